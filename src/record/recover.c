/* recover.c -- a broken run file into a new, finished one: declared like it, with every row that can
 * be read (copy_rows.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "losses.h"
#include "reader.h"
#include "recorder.h"
#include "struct_size.h"

/* Refuses to write over the file that is read, whichever of the two names it would take. */
static sr_status check_target(const char *broken, const char *path, sr_failure *why) {
    struct stat from, to;
    char part[4096];
    const char *names[2] = {path, part};
    snprintf(part, sizeof part, "%s.part", path);
    if (stat(broken, &from) != 0) return SR_OK;
    for (int i = 0; i < 2; i++)
        if (stat(names[i], &to) == 0 && from.st_dev == to.st_dev && from.st_ino == to.st_ino) {
            sr_fail(why, SR_EXISTS, "%s: %s is the file to be read", path, names[i]);
            sr_hint(why, "another name for the new file");
            return SR_EXISTS;
        }
    return SR_OK;
}

static sr_recorder *create_like(sr_runfile *f, const char *path, bool force, sr_failure *why) {
    const sr_run_info *info = &f->info;
    sr_options o = SR_OPTIONS_DEFAULT;
    o.force = force, o.seed = info->seed, o.threads = info->threads;
    o.program = info->program, o.version = info->version, o.command = info->command;
    o.config = info->config, o.host = info->host, o.git = info->git, o.model = info->model;
    o.data = info->data, o.task = info->task, o.loss_reduction = info->loss_reduction;
    o.parent = info->parent, o.ranks = info->ranks;
    o.running = reader_has_column(f, &run_running_step), o.overhead = 0;
    o.scalars = reader_has_column(f, &run_scalars[0]);
    o.vectors = reader_has_column(f, &run_vectors[0]);
    o.sync = SR_SYNC_CLOSE;
    o.vectors_every = 1, o.planned_steps = info->steps;
    o.spectra = reader_has_column(f, &run_spectra_step);
    o.final = reader_has_column(f, &run_finals[0]);
    return sr_create(path, &o, why);
}

static void add_sites_like(sr_recorder *r, sr_runfile *f) {
    for (int64_t i = 0; i < f->info.sites; i++) {
        const sr_run_site *s = &f->site[i];
        sr_site site = {.size = sizeof site,
                        .name = s->name,
                        .repeat = s->merged ? SR_REPEAT_MERGE : SR_REPEAT_LAST,
                        .norm = s->norm,
                        .kind = s->kind,
                        .width = (int)s->width,
                        .depth = (int)s->depth,
                        .layer_scale = (int)s->layer_scale,
                        .eps = s->eps,
                        .alpha = s->alpha,
                        .family = s->family,
                        .axis = s->axis,
                        .uses = s->uses,
                        .constants = s->constants,
                        .layer_scale_own = s->layer_scale_own != 0};
        int added = sr_add_site(r, &site);
        if (added >= 0 && s->observed) sr_set_observed(r, added);
    }
    const char *name;
    for (int i = 0; (name = sr_run_name(f, "embeddings", i)); i++) {
        sr_run_embedding e = SR_INIT(sr_run_embedding, .rows = 0);
        sr_failure why = {0};
        if (sr_run_get_embedding(f, name, &e, &why) != SR_OK) { /* copying tells */
            if (why.status == SR_MEMORY) sr_fail(&r->failure, SR_MEMORY, "%s", why.text);
            continue;
        }
        sr_add_embedding(r, name, e.rows, e.cols);
        sr_set_embedding_method(r, name, e.method);
    }
}

static void add_metrics_like(sr_recorder *r, const sr_runfile *f) {
    const sr_run_metric *m;
    for (int64_t i = 0; (m = sr_run_get_metric(f, i)); i++)
        sr_add_metric(r, m->name, m->unit, m->definition, m->better);
    const sr_run_declared *d;
    for (int64_t i = 0; (d = sr_run_get_declared(f, i)); i++)
        sr_declare_scalar(r, d->name, d->unit, d->definition, d->scope);
}

sr_status sr_run_recover_telling(const char *broken, const char *path, bool force,
                                 int64_t up_to_step, sr_recovery *result, sr_lost_fn *tell,
                                 void *context, sr_failure *why) {
    sr_recovery count = SR_INIT(sr_recovery, .running_step = -1);
    copy_losses losses = {NULL, 0};
    sr_failure own = {0};
    if (!why) why = &own;
    if (!path || !*path) return sr_fail(why, SR_USAGE, "no path for the recovered file");
    sr_runfile *f = sr_run_open(broken, why);
    sr_recorder *r = NULL;
    if (f && check_target(f->path, path, why) == SR_OK) r = create_like(f, path, force, why);
    sr_status status = why->status;
    if (r) {
        char reason[SR_REASON_SIZE], more[48] = "";
        add_sites_like(r, f);
        add_metrics_like(r, f);
        recorder_copy_rows(r, f->path, up_to_step, up_to_step, &count, &losses);
        if (losses.count)
            snprintf(more, sizeof more, ", %d damaged dataset%s", losses.count,
                     losses.count > 1 ? "s" : "");
        snprintf(reason, sizeof reason, "recovered from %.180s: %lld steps lost%s", f->path,
                 (long long)count.lost_steps, more);
        status = sr_close(r, &SR_INIT(sr_finish, .status = "interrupted", .reason = reason), why);
        if (status == SR_OK) losses_tell(&losses, tell, context);
    }
    losses_free(&losses);
    sr_run_close(f);
    if (result && struct_give(result, &count, sizeof count, "sr_recovery", why) != SR_OK)
        status = why->status;
    return status;
}

sr_status sr_run_recover(const char *broken, const char *path, bool force, int64_t up_to_step,
                         sr_recovery *result, sr_failure *why) {
    return sr_run_recover_telling(broken, path, force, up_to_step, result, NULL, NULL, why);
}
