/* copy_declare.c -- declares a recorder like a run file, or like a part of it. */
#include "runfile/repair/copy_declare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "record/recorder_state.h"
#include "record/run/take_method.h"
#include "runfile/read/datasets/read_copied.h"
#include "runfile/read/file/open_file_cache.h"
#include "runfile/read/file/read_column.h"

sr_status copy_check_target(const char *broken, const char *path, sr_failure *why) {
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

/* Some of them may be damaged. */
static bool has_any(const sr_runfile *f, const run_column *c, int count) {
    bool any = false;
    for (int i = 0; i < count; i++) any = any || reader_has_column(f, &c[i]);
    return any;
}

sr_options copy_options_like(const sr_runfile *f, const sr_run_info *info) {
    sr_options o = SR_OPTIONS_DEFAULT;
    o.seed = info->seed, o.threads = info->threads;
    o.program = info->program, o.version = info->version, o.command = info->command;
    o.config = info->config, o.host = info->host, o.git = info->git, o.model = info->model;
    o.data = info->data, o.task = info->task, o.loss_reduction = info->loss_reduction;
    o.parent = info->parent, o.ranks = info->ranks;
    o.running = reader_has_column(f, &run_running_step), o.overhead = 0;
    o.scalars = has_any(f, run_scalars, SR_SCALAR_COUNT);
    o.vectors = has_any(f, run_vectors, SR_VECTOR_COUNT);
    o.sync = SR_SYNC_CLOSE;
    o.vectors_every = 1, o.planned_steps = info->steps;
    o.spectra = reader_has_column(f, &run_spectra_step);
    o.final = has_any(f, run_finals, SR_FINAL_COUNT) || h5_has(reader_file(f), "/final/batches") ||
              info->pairs > 0;
    o.pairs = info->pairs;
    return o;
}

/* Replaces a method that contradicts its family, since no recorder writes one, by the family's
 * default. */
static void repair_method(const sr_runfile *f, sr_site *site, unreadable_data *losses) {
    sr_run_site method;
    sr_failure why = {0};
    if (recorder_take_method(&method, site)) return;
    sr_fail(&why, SR_FORMAT,
            "%s: /sites/uses: axis, uses or constants of site %.64s do not go with %s", f->path,
            site->name, sr_family_name(site->family));
    copy_missed(losses, "sites", "uses", -1, &why);
    site->axis = site->uses = site->constants = NULL;
}

const char *copy_refused(const sr_recorder *r) {
    const size_t prefix = strlen(r->path) + sizeof ": " - 1;
    if (r->failure.status != SR_USAGE || strlen(r->failure.text) < prefix) return NULL;
    return r->failure.text + prefix;
}

/* Leaves out and notes a declaration that the recorder rejected, and clears the failure. */
static void leave_out(sr_recorder *r, const sr_runfile *f, const char *group, const char *name,
                      unreadable_data *losses) {
    sr_failure why = {0};
    const char *text = copy_refused(r);
    if (!text) return;
    sr_fail(&why, SR_FORMAT, "%s: /%s/%s: %s", f->path, group, name, text);
    copy_missed(losses, group, name, -1, &why);
    r->failure = (sr_failure){0};
}

void copy_add_embeddings(sr_recorder *r, const sr_runfile *f, unreadable_data *losses) {
    const char *name;
    for (int i = 0; (name = sr_run_name(f, "embeddings", i)) && !sr_failed(r); i++) {
        sr_run_embedding e = SR_INIT(sr_run_embedding, .rows = 0);
        sr_failure why = {0};
        const sr_status status = sr_run_get_embedding(f, name, &e, &why);
        if (status == SR_MEMORY)
            sr_fail(&r->failure, SR_MEMORY, "%s", why.text);
        else if (status != SR_OK)
            copy_missed(losses, "embeddings", name, -1, &why);
        else if (sr_add_embedding(r, name, e.rows, e.cols) == SR_OK)
            sr_set_embedding_method(r, name, e.method);
        leave_out(r, f, "embeddings", name, losses);
    }
}

void copy_add_sites(sr_recorder *r, const sr_runfile *f, const copy_choice *choice,
                    unreadable_data *losses) {
    const int64_t sites = choice && choice->site ? choice->sites : f->info.sites;
    for (int64_t i = 0; i < sites; i++) {
        const sr_run_site *s = &f->site[copy_source_of(choice, i)];
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
        repair_method(f, &site, losses);
        int added = sr_add_site(r, &site);
        if (added >= 0) sr_set_alpha_backward(r, added, s->alpha_bwd);
        if (added >= 0 && s->observed) sr_set_observed(r, added);
    }
}

static bool has_declared(const sr_recorder *r, const char *name) {
    for (int i = 0; i < r->writer.declared_count; i++)
        if (strcmp(r->writer.declared[i].name, name) == 0) return true;
    return false;
}

void copy_add_metrics(sr_recorder *r, const sr_runfile *f, const copy_choice *choice,
                      unreadable_data *losses) {
    const sr_run_metric *m;
    for (int64_t i = 0; (m = sr_run_get_metric(f, i)) && !sr_failed(r); i++) {
        if (choice && recorder_has_metric(r, m->name)) continue;
        sr_add_metric(r, m->name, m->unit, m->definition, m->better);
        leave_out(r, f, "evals", m->name, losses);
    }
    const sr_run_declared *d;
    for (int64_t i = 0; (d = sr_run_get_declared(f, i)) && !sr_failed(r); i++) {
        if (choice && (!copy_keeps(choice, d->name) || has_declared(r, d->name))) continue;
        sr_declare_scalar(r, d->name, d->unit, d->definition, d->scope);
        leave_out(r, f, d->scope == SR_PER_SITE ? "scalars" : "steps", d->name, losses);
    }
}

void copy_take_texts(sr_recorder *r, const sr_runfile *f, unreadable_data *losses) {
    sr_failure why = {0};
    if (reader_copied(f, r->copied, &why) == SR_OK) return;
    for (int i = 0; i < COPY_TEXTS; i++) free(r->copied[i]), r->copied[i] = NULL;
    if (why.status == SR_MEMORY)
        sr_fail(&r->failure, SR_MEMORY, "%s", why.text);
    else
        copy_missed(losses, "copy", "", -1, &why);
}
