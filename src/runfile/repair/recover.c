/* recover.c -- copies a broken run file into a new, finished one with the same declarations and
 * every readable row (copy_rows.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/run/take_method.h"
#include "runfile/abi_struct.h"
#include "runfile/read/file/damage_list.h"
#include "runfile/read/file/open_file_cache.h"
#include "runfile/read/file/read_column.h"
#include "runfile/repair/copy.h"

/* Rejects PATH or PATH.part if it is the file to be read. */
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

/* Some of them may be damaged. */
static bool has_any(const sr_runfile *f, const run_column *c, int count) {
    bool any = false;
    for (int i = 0; i < count; i++) any = any || reader_has_column(f, &c[i]);
    return any;
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
    o.scalars = has_any(f, run_scalars, SR_SCALAR_COUNT);
    o.vectors = has_any(f, run_vectors, SR_VECTOR_COUNT);
    o.sync = SR_SYNC_CLOSE;
    o.vectors_every = 1, o.planned_steps = info->steps;
    o.spectra = reader_has_column(f, &run_spectra_step);
    o.final = has_any(f, run_finals, SR_FINAL_COUNT) || h5_has(reader_file(f), "/final/batches") ||
              info->pairs > 0;
    o.pairs = info->pairs;
    return sr_create(path, &o, why);
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

/* The recorder's message about a rejected declaration, without the path; NULL: none. */
static const char *refused(const sr_recorder *r) {
    const size_t prefix = strlen(r->path) + sizeof ": " - 1;
    if (r->failure.status != SR_USAGE || strlen(r->failure.text) < prefix) return NULL;
    return r->failure.text + prefix;
}

/* Leaves out and notes a declaration that the recorder rejected, and clears the failure. */
static void leave_out(sr_recorder *r, const sr_runfile *f, const char *group, const char *name,
                      unreadable_data *losses) {
    sr_failure why = {0};
    const char *text = refused(r);
    if (!text) return;
    sr_fail(&why, SR_FORMAT, "%s: /%s/%s: %s", f->path, group, name, text);
    copy_missed(losses, group, name, -1, &why);
    r->failure = (sr_failure){0};
}

static void add_embeddings_like(sr_recorder *r, const sr_runfile *f, unreadable_data *losses) {
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

static void add_sites_like(sr_recorder *r, sr_runfile *f, unreadable_data *losses) {
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
        repair_method(f, &site, losses);
        int added = sr_add_site(r, &site);
        if (added >= 0 && s->observed) sr_set_observed(r, added);
    }
}

static void add_metrics_like(sr_recorder *r, const sr_runfile *f, unreadable_data *losses) {
    const sr_run_metric *m;
    for (int64_t i = 0; (m = sr_run_get_metric(f, i)) && !sr_failed(r); i++) {
        sr_add_metric(r, m->name, m->unit, m->definition, m->better);
        leave_out(r, f, "evals", m->name, losses);
    }
    const sr_run_declared *d;
    for (int64_t i = 0; (d = sr_run_get_declared(f, i)) && !sr_failed(r); i++) {
        sr_declare_scalar(r, d->name, d->unit, d->definition, d->scope);
        leave_out(r, f, d->scope == SR_PER_SITE ? "scalars" : "steps", d->name, losses);
    }
}

typedef struct noting {
    const sr_runfile *broken;
    unreadable_data *losses;
} noting;

static bool is_repaired(const sr_runfile *f, const sr_failure *fault) {
    const char *text;
    for (int i = 0; (text = sr_run_repaired(f, i)); i++)
        if (!strcmp(text, fault->text)) return true;
    return false;
}

/* Notes faults that the check found and copying did not: missing columns. */
static void note_fault(void *context, const sr_failure *fault) {
    const noting *to = context;
    char name[2 * SR_NAME_SIZE] = "";
    const char *at = strstr(fault->text, ": "), *dataset = at ? strchr(at, '/') : NULL;
    if (fault->status != SR_FORMAT || !dataset || is_repaired(to->broken, fault)) return;
    snprintf(name, sizeof name, "%s", dataset + 1);
    if (strncmp(at, ": no dataset /", 14) != 0) name[strcspn(name, ": ")] = 0;
    copy_missed(to->losses, name, "", -1, fault);
}

static sr_status copy_all(sr_recorder *r, sr_runfile *f, int64_t up_to_step, sr_recovery *count,
                          unreadable_data *losses) {
    sr_failure why = {0};
    noting to = {f, losses};
    add_sites_like(r, f, losses);
    add_embeddings_like(r, f, losses);
    add_metrics_like(r, f, losses);
    recorder_copy_rows(r, f, up_to_step, count, losses);
    const sr_failure *failed = sr_failed(r);
    if (!failed && sr_run_check_all(f->path, note_fault, &to, &why) == SR_MEMORY)
        return sr_fail(&r->failure, SR_MEMORY, "%s", why.text);
    return failed ? failed->status : SR_OK;
}

static sr_status close_recovered(sr_recorder *r, const sr_runfile *f, const sr_recovery *count,
                                 const unreadable_data *losses, sr_failure *why) {
    char reason[SR_REASON_SIZE], more[48] = "";
    if (losses->count)
        snprintf(more, sizeof more, ", %d damaged dataset%s", losses->count,
                 losses->count > 1 ? "s" : "");
    snprintf(reason, sizeof reason, "recovered from %.150s: %lld steps lost%s", f->path,
             (long long)count->lost_steps, more);
    return sr_close(r, &SR_INIT(sr_finish, .status = "interrupted", .reason = reason), why);
}

/* Removes the new file. A rejected declaration is here a fault of the broken file, not of a
 * caller. */
static sr_status give_up(sr_recorder *r, const sr_runfile *f, sr_failure *why) {
    sr_failure failed = {0};
    const char *text = refused(r);
    if (text)
        sr_fail(&failed, SR_FORMAT, "%s: %s", f->path, text);
    else
        failed = *sr_failed(r);
    if (why->status == SR_OK) *why = failed;
    unlink(r->part);
    sr_abandon(r);
    return failed.status;
}

static sr_status recover(sr_runfile *f, const char *path, bool force, int64_t up_to_step,
                         sr_recovery *count, unreadable_data *losses, sr_failure *why) {
    char part[4096];
    if (check_target(f->path, path, why) != SR_OK) return why->status;
    sr_recorder *r = create_like(f, path, force, why);
    if (!r) return why->status;
    if (copy_all(r, f, up_to_step, count, losses) != SR_OK) return give_up(r, f, why);
    snprintf(part, sizeof part, "%s", r->part);
    sr_status status = close_recovered(r, f, count, losses, why);
    if (status != SR_OK && status != SR_EXISTS) unlink(part);
    return status;
}

sr_status sr_run_recover_report(const char *broken, const char *path, bool force,
                                int64_t up_to_step, sr_recovery *result, sr_lost_fn *report,
                                void *context, sr_failure *why) {
    sr_recovery count = SR_INIT(sr_recovery, .running_step = -1);
    unreadable_data losses = {0};
    sr_failure own = {0};
    if (!why) why = &own;
    if (!path || !*path) return sr_fail(why, SR_USAGE, "no path for the recovered file");
    sr_runfile *f = sr_run_open(broken, why);
    sr_status status = f ? recover(f, path, force, up_to_step, &count, &losses, why) : why->status;
    if (status == SR_OK) unreadable_data_report(&losses, report, context);
    free(losses.entry);
    sr_run_close(f);
    if (result && abi_struct_give(result, &count, sizeof count, "sr_recovery", why) != SR_OK)
        status = why->status;
    return status;
}

sr_status sr_run_recover(const char *broken, const char *path, bool force, int64_t up_to_step,
                         sr_recovery *result, sr_failure *why) {
    return sr_run_recover_report(broken, path, force, up_to_step, result, NULL, NULL, why);
}
