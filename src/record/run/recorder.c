/* recorder.c -- the recorder from sr_create to sr_close. r->failure keeps the first failure, and
 * later calls do nothing. */
#include "record/recorder.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "journal/file_sync.h"
#include "journal/lock_file.h"
#include "journal/writer_lock.h"
#include "record/flush_policy.h"
#include "record/part_file.h"
#include "record/recorder_state.h"
#include "record/run/overhead_limit.h"
#include "record/run/recorder_options.h"
#include "record/run/running.h"
#include "record/run/site_checks.h"
#include "record/run/take_method.h"
#include "record/run/vector_sampling.h"
#include "record/step/put_step.h"
#include "record/step/raw_passes.h"
#include "runfile/abi_struct.h"
#include "runfile/write/write_spectra.h"
#include "runfile/write/writer.h"

/* -- small things ---------------------------------------------------------------------------- */

static double now_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void format_time(double seconds, char text[RUN_FINISHED_SIZE]) {
    time_t t = (time_t)seconds;
    struct tm utc;
    text[0] = '\0';
    if (gmtime_r(&t, &utc)) strftime(text, RUN_FINISHED_SIZE, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

static char *copy_text(const char *text) {
    return strdup(text ? text : "");
}

/* -- create ---------------------------------------------------------------------------------- */

static void free_recorder(sr_recorder *r) {
    writer_free(&r->writer);
    for (int64_t i = 0; i < r->sites; i++) raw_free(&r->state[i].raw);
    for (int v = 0; v < SR_VECTOR_COUNT; v++) free(r->vector[v]);
#define FREE(name) free((void *)(uintptr_t)r->info.name);
    RUN_TEXTS(FREE)
    FREE(ranks)
#undef FREE
    for (int i = 0; i < COPY_TEXTS; i++) free(r->copied[i]);
    map_free(&r->names);
    free(r->site), free(r->state), free(r->expected), free(r->expected_scalars);
    free(r->embedding), free(r->path), free(r->part), free(r->home);
    free(r);
}

static sr_status copy_info(sr_recorder *r, sr_failure *why) {
    char created[RUN_FINISHED_SIZE];
    sr_options *o = &r->options;
    double now = now_seconds();
    if (!(o->started > 0)) o->started = now;
    r->seconds_before = now > o->started ? now - o->started : 0;
    format_time(o->started, created);
    r->info.seed = o->seed, r->info.threads = o->threads;
    struct {
        const char *program, *version, *command, *config, *host, *created, *git, *model, *data,
            *task, *loss_reduction, *parent;
    } from = {o->program, o->version, o->command, o->config, o->host,           created,
              o->git,     o->model,   o->data,    o->task,   o->loss_reduction, o->parent};
    bool ok = true;
#define COPY(name) ok = (r->info.name = copy_text(from.name)) != NULL && ok;
    RUN_TEXTS(COPY)
#undef COPY
    r->info.ranks = copy_text(o->ranks);
    return ok && r->info.ranks ? SR_OK : sr_fail(why, SR_MEMORY, "%s: texts of the run", r->path);
}

static sr_status create_file(sr_recorder *r, sr_failure *why) {
    sr_status status = writer_create(&r->writer, r->part, why);
    if (status != SR_OK) {
        if (status != SR_EXISTS) unlink(r->part);
        return status;
    }
    struct stat s;
    if (stat(r->part, &s) != 0) {
        sr_fail(why, SR_IO, "%s: stat: %s", r->part, strerror(errno));
        unlink(r->part);
        return SR_IO;
    }
    r->device = s.st_dev, r->inode = s.st_ino;
    const int refused = writer_lock_acquire(h5_descriptor(r->writer.file));
    if (!refused) return SR_OK;
    const bool force = r->options.force && !r->options.resume;
    status = lock_file_create(&r->writer.lock, r->part, refused, force, why);
    if (status != SR_OK) unlink(r->part);
    return status;
}

sr_recorder *recorder_create(const char *path, const sr_options *options, bool copies,
                             sr_failure *why) {
    if (!path || !*path) {
        sr_fail(why, SR_USAGE, "sr_create: no path");
        return NULL;
    }
    sr_recorder *r = calloc(1, sizeof *r);
    if (!r) {
        sr_fail(why, SR_MEMORY, "%s: %zu bytes for a recorder", path, sizeof *r);
        return NULL;
    }
    r->step = r->ended = r->eval_step = -1;
    r->owner = getpid(), r->copies = copies;
    r->clock_start = r->clock_flush = recorder_clock();
    sr_status status = recorder_take_options(r, options, copies, why);
    if (status == SR_OK) status = part_file_reserve(r, path, why);
    if (status == SR_OK) status = copy_info(r, why);
    if (status == SR_OK) status = create_file(r, why);
    if (status == SR_OK) return r;
    free_recorder(r);
    return NULL;
}

sr_recorder *sr_create(const char *path, const sr_options *options, sr_failure *why) {
    return recorder_create(path, options, false, why);
}

const char *sr_lock_refused(const sr_recorder *r) {
    return r && r->writer.lock.path ? r->writer.lock.reason : NULL;
}

/* -- sites ----------------------------------------------------------------------------------- */

static bool resize(void *at, int64_t count, size_t size) {
    void **p = at;
    void *grown = realloc(*p, (size_t)count * size);
    if (grown) *p = grown;
    return grown != NULL;
}

static sr_status reserve_site(sr_recorder *r) {
    if (r->sites < r->site_capacity) return SR_OK;
    int64_t capacity = r->site_capacity ? 2 * r->site_capacity : 32;
    if (!resize(&r->site, capacity, sizeof *r->site) ||
        !resize(&r->state, capacity, sizeof *r->state) ||
        !resize(&r->expected, capacity, sizeof *r->expected) ||
        !resize(&r->expected_scalars, capacity, sizeof *r->expected_scalars))
        return sr_fail(&r->failure, SR_MEMORY, "%s: %lld sites", r->path, (long long)capacity);
    r->site_capacity = capacity;
    return SR_OK;
}

/* OWN has the distances of the statistics that it uses. */
static uint32_t scalars_of(const sr_run_site *s) {
    const bool sigma = sr_run_uses(s, "mu") || sr_run_uses(s, "sigma2");
    if (s->family != SR_FAMILY_OWN) return run_family_scalars(s->family);
    return run_family_scalars(SR_FAMILY_NONE) | (sigma ? run_family_scalars(SR_FAMILY_SIGMA) : 0) |
           (sr_run_uses(s, "psi2") ? run_family_scalars(SR_FAMILY_PSI) : 0);
}

int sr_add_site(sr_recorder *r, const sr_site *given) {
    sr_site taken = {0}, *s = &taken;
    if (!r || recorder_too_late(r, "sr_add_site") ||
        abi_struct_take(s, sizeof *s, given, "sr_site", &r->failure) != SR_OK ||
        site_check(r, s) != SR_OK || reserve_site(r) != SR_OK)
        return -1;
    sr_run_site *at = &r->site[r->sites];
    *at = (sr_run_site){.size = sizeof *at,
                        .offset = r->width,
                        .merged = s->repeat == SR_REPEAT_MERGE,
                        .width = s->width,
                        .depth = s->depth,
                        .layer_scale = s->layer_scale,
                        .eps = s->eps,
                        .alpha = s->alpha,
                        .alpha_bwd = NAN};
    strncpy(at->name, s->name, sizeof at->name - 1);
    strncpy(at->norm, s->norm ? s->norm : "", sizeof at->norm - 1);
    strncpy(at->kind, s->kind ? s->kind : "", sizeof at->kind - 1);
    recorder_take_method(at, s);
    r->state[r->sites] = (site_state){.family = s->family, .rows = -1};
    r->expected[r->sites] = run_family_vectors(s->family);
    r->expected_scalars[r->sites] = scalars_of(at);
    r->width += s->width;
    if (map_add(&r->names, s->name, strlen(s->name)) < 0)
        return sr_fail(&r->failure, SR_MEMORY, "%s: names of sites", r->path), -1;
    return (int)r->sites++;
}

sr_status sr_expect_vectors(sr_recorder *r, int site, uint32_t vectors) {
    if (!r || recorder_too_late(r, "sr_expect_vectors")) return recorder_check(r);
    if (site < 0 || site >= r->sites || vectors >> SR_VECTOR_COUNT)
        return sr_fail(&r->failure, SR_USAGE, "%s: sr_expect_vectors: site %d, vectors %#x",
                       r->path, site, (unsigned)vectors);
    r->expected[site] = vectors;
    return SR_OK;
}

sr_status sr_set_alpha_backward(sr_recorder *r, int site, double alpha_bwd) {
    if (!r || recorder_too_late(r, "sr_set_alpha_backward")) return recorder_check(r);
    if (site < 0 || site >= r->sites || alpha_bwd < 0 || alpha_bwd > 1)
        return sr_fail(&r->failure, SR_USAGE, "%s: sr_set_alpha_backward: site %d, alpha_bwd %g",
                       r->path, site, alpha_bwd);
    r->site[site].alpha_bwd = alpha_bwd;
    return SR_OK;
}

sr_status sr_set_observed(sr_recorder *r, int site) {
    if (!r || recorder_too_late(r, "sr_set_observed")) return recorder_check(r);
    if (site < 0 || site >= r->sites)
        return sr_fail(&r->failure, SR_USAGE, "%s: sr_set_observed: site %d", r->path, site);
    r->site[site].observed = 1;
    for (int i = 0; i < 2; i++) {
        const sr_family family = i ? SR_FAMILY_PSI : SR_FAMILY_SIGMA;
        r->expected[site] |= run_family_vectors(family);
        r->expected_scalars[site] |= run_family_scalars(family);
    }
    return SR_OK;
}

sr_status sr_add_embedding(sr_recorder *r, const char *name, int64_t rows, int64_t cols) {
    if (!r || recorder_too_late(r, "sr_add_embedding")) return recorder_check(r);
    if (!name || !*name || strlen(name) >= SR_NAME_SIZE || strchr(name, '/') || *name == '.' ||
        rows < 1 || cols < 1 || !recorder_is_text(r, name))
        return sr_fail(&r->failure, SR_USAGE, "%s: embedding '%s' of %lld x %lld", r->path,
                       name ? name : "", (long long)rows, (long long)cols);
    if (r->embeddings == SR_EMBEDDINGS_MAX)
        return sr_fail(&r->failure, SR_USAGE, "%s: embedding %s: more than %d", r->path, name,
                       SR_EMBEDDINGS_MAX);
    for (int i = 0; i < r->embeddings; i++)
        if (strcmp(r->embedding[i].name, name) == 0)
            return sr_fail(&r->failure, SR_USAGE, "%s: embedding %s declared twice", r->path, name);
    if (!resize(&r->embedding, r->embeddings + 1, sizeof *r->embedding))
        return sr_fail(&r->failure, SR_MEMORY, "%s: embedding %s", r->path, name);
    run_embedding *e = &r->embedding[r->embeddings++];
    *e = (run_embedding){.rows = rows, .cols = cols};
    strncpy(e->name, name, sizeof e->name - 1);
    return SR_OK;
}

sr_status sr_set_embedding_method(sr_recorder *r, const char *name, const char *method) {
    if (!r || recorder_too_late(r, "sr_set_embedding_method")) return recorder_check(r);
    for (int i = 0; i < r->embeddings && name && method && strlen(method) < SR_METHOD_SIZE &&
                    recorder_is_text(r, method);
         i++)
        if (strcmp(r->embedding[i].name, name) == 0) {
            memcpy(r->embedding[i].method, method, strlen(method) + 1);
            return SR_OK;
        }
    return sr_fail(&r->failure, SR_USAGE, "%s: method '%s' of embedding '%s'", r->path,
                   method ? method : "", name ? name : "");
}

/* -- sizes ----------------------------------------------------------------------------------- */

static int64_t count_declared(const sr_recorder *r, sr_scope scope) {
    int64_t count = 0;
    for (int i = 0; i < r->writer.declared_count; i++)
        count += r->writer.declared[i].scope == scope;
    return count;
}

static run_layout make_layout(const sr_recorder *r) {
    bool any_alpha = false;
    for (int64_t i = 0; i < r->sites; i++) any_alpha |= !isnan(r->site[i].alpha);
    return (run_layout){.sites = r->sites,
                        .width = r->width,
                        .site = r->site,
                        .expected = r->expected,
                        .expected_scalars = r->expected_scalars,
                        .scalars = r->options.scalars && r->sites > 0,
                        .vectors =
                            r->options.vectors && r->options.vectors_every != 0 && r->sites > 0,
                        .spectra = r->options.spectra && r->sites > 0,
                        .final = r->options.final && r->sites > 0,
                        .pairs = r->sites > 0 ? r->options.pairs : 0,
                        .running = r->options.running && any_alpha,
                        .metrics = r->writer.metrics,
                        .has_host = r->writer.declared_count > 0 || *r->info.ranks,
                        .ranks = r->info.ranks,
                        .copied = r->copied[0] ? (const char *const *)r->copied : NULL,
                        .declared_sites = count_declared(r, SR_PER_SITE),
                        .declared_steps = count_declared(r, SR_PER_STEP),
                        .planned_steps = r->options.planned_steps,
                        .vectors_every = r->every};
}

int64_t sr_vectors_every(const sr_recorder *r) {
    if (!r || !r->options.vectors || r->sites == 0) return 0;
    if (r->started) return r->every;
    if (r->options.vectors_every >= 0) return r->options.vectors_every;
    run_layout l = make_layout(r);
    return run_spacing(&l, r->options.size_limit);
}

int64_t sr_projected_bytes(const sr_recorder *r) {
    if (!r || r->options.planned_steps == 0) return -1;
    run_layout l = make_layout(r);
    l.vectors_every = sr_vectors_every(r);
    double beside = 0;
    for (int i = 0; i < r->embeddings; i++) {
        const run_embedding *e = &r->embedding[i];
        beside += 8 * (double)(e->rows < e->cols ? e->rows : e->cols);
    }
    if (l.spectra)
        beside += 8 * (double)(1 + l.sites + SR_SPECTRUM_COUNT * l.width) *
                  (double)r->options.planned_spectra;
    return run_bytes((double)run_project(&l, l.vectors_every) + beside);
}

/* -- steps ----------------------------------------------------------------------------------- */

sr_status recorder_declare(sr_recorder *r) {
    const double began = recorder_clock();
    if (r->failure.status != SR_OK || recorder_in_fork(r) || r->started) return recorder_check(r);
    if (!r->copies && site_settle(r) != SR_OK) return recorder_check(r);
    r->every = r->least_every = sr_vectors_every(r);
    overhead_limit_declare(r);
    if (r->failure.status != SR_OK) return recorder_check(r);
    run_writer *w = &r->writer;
    w->layout = make_layout(r);
    w->embedding = r->embedding, w->embeddings = r->embeddings;
    w->sync_flushes = r->options.sync == SR_SYNC_FLUSH;
    w->sync_end = r->options.sync != SR_SYNC_NONE;
    w->flush_steps = r->options.flush_steps < 4096 ? r->options.flush_steps : 4096;
    w->size_limit = r->options.size_limit;
    char room[PATH_MAX];
    const char *const part = part_file_at(r, r->part, room);
    r->started = writer_declare(w, &r->info, &r->failure) == SR_OK &&
                 (!w->sync_flushes || file_sync_directory(part, &r->failure) == SR_OK);
    r->clock_flush = r->clock_row = recorder_clock();
    r->own_seconds += r->clock_flush - began;
    return recorder_check(r);
}

sr_status recorder_start(sr_recorder *r) {
    if (r->failure.status != SR_OK || !r->resuming) return recorder_declare(r);
    return sr_fail(&r->failure, SR_STATE,
                   "%s: options.resume, but sr_copy_rows has copied nothing before the first row",
                   r->path);
}

sr_status sr_begin_step(sr_recorder *r, int64_t step) {
    if (!r || r->failure.status != SR_OK || recorder_in_fork(r)) return recorder_check(r);
    if (r->in_step)
        return sr_fail(&r->failure, SR_STATE, "%s: step %lld begun inside step %lld", r->path,
                       (long long)step, (long long)r->step);
    if (step < 0)
        return sr_fail(&r->failure, SR_USAGE, "%s: step %lld is negative", r->path,
                       (long long)step);
    if (step <= r->step)
        return sr_fail(&r->failure, SR_USAGE, "%s: step %lld after step %lld", r->path,
                       (long long)step, (long long)r->step);
    if (recorder_start(r) != SR_OK || flush_policy_when_due(r) != SR_OK) return recorder_check(r);
    const double began = recorder_clock();
    overhead_limit_begin_step(r);
    r->keeps_vectors = vector_sampling_wants_vectors(r, step);
    if (writer_begin_step(&r->writer, r->keeps_vectors, &r->failure) != SR_OK)
        return recorder_check(r);
    put_step_begin(r);
    r->step = step, r->in_step = true;
    r->own_seconds += recorder_clock() - began;
    return SR_OK;
}

bool sr_wants_vectors(const sr_recorder *r) {
    return r && r->in_step && r->failure.status == SR_OK && r->keeps_vectors;
}

/* Rejects negative values; NaN: not known. */
static sr_status check_row(sr_recorder *r, const sr_step *row) {
    const struct {
        const char *name;
        double value;
    } least_zero[] = {{"update", (double)row->update},
                      {"tokens", (double)row->tokens},
                      {"lr", row->lr},
                      {"grad_norm", row->grad_norm}};
    for (size_t i = 0; i < sizeof least_zero / sizeof *least_zero; i++)
        if (least_zero[i].value < 0)
            return sr_fail(&r->failure, SR_USAGE,
                           "%s: sr_end_step: %s %.15g of step %lld is negative", r->path,
                           least_zero[i].name, least_zero[i].value, (long long)r->step);
    return SR_OK;
}

sr_status sr_end_step(sr_recorder *r, const sr_step *given) {
    const double began = recorder_clock();
    sr_step row = {0};
    if (!r || r->failure.status != SR_OK || recorder_in_fork(r)) return recorder_check(r);
    if (!r->in_step)
        return sr_fail(&r->failure, SR_STATE, "%s: sr_end_step outside a step", r->path);
    if (abi_struct_take(&row, sizeof row, given, "sr_end_step: sr_step", &r->failure) != SR_OK ||
        check_row(r, &row) != SR_OK || raw_end_step(r) != SR_OK || put_step_end(r) != SR_OK)
        return recorder_check(r);
    if (writer_keep(&r->writer, writer_put_spectra(&r->writer, r->step, &r->failure)) != SR_OK)
        return recorder_check(r);
    r->own_seconds += recorder_clock() - began;
    const double seconds = r->seconds_before + recorder_clock() - r->clock_start;
    const step_value values[RUN_STEPS] = {
        {.whole = r->step}, {.whole = row.update}, {.whole = row.tokens},   {.real = row.epoch},
        {.real = row.loss}, {.real = row.lr},      {.real = row.grad_norm}, {.real = seconds}};
    overhead_limit_end_step(r);
    writer_end_step(&r->writer, values);
    r->in_step = false, r->ended = r->step;
    flush_policy_ended(r);
    return flush_policy_when_due(r);
}

/* -- the end --------------------------------------------------------------------------------- */

static sr_status take_finish(sr_finish *finish, const sr_finish *given, sr_failure *why) {
    if (abi_struct_take(finish, sizeof *finish, given, "sr_close: sr_finish", why) != SR_OK)
        return why->status;
    const char *s = finish->status;
    static const char *const known[] = {"complete", "diverged", "interrupted", "failed"};
    for (size_t i = 0; s && i < sizeof known / sizeof known[0]; i++)
        if (strcmp(s, known[i]) == 0) return SR_OK;
    return sr_fail(why, SR_USAGE,
                   "sr_close: status '%s' is not complete, diverged, interrupted or failed",
                   s ? s : "");
}

/* An open evaluation would be dropped with its metrics. */
static void check_open(sr_recorder *r, const sr_finish *finish) {
    if (r->failure.status != SR_OK || !r->in_eval || strcmp(finish->status, "complete") != 0)
        return;
    sr_fail(&r->failure, SR_STATE, "%s: sr_close inside the evaluation at step %lld", r->path,
            (long long)r->eval_step);
}

/* Writes the end of the file. After a misuse of the recorder (not after a failed write) the earlier
 * rows are kept, too. */
static void finish_file(sr_recorder *r, const sr_finish *finish) {
    sr_run_info end = r->info;
    char finished[RUN_FINISHED_SIZE];
    double seconds = r->seconds_before + recorder_clock() - r->clock_start;
    format_time(now_seconds(), finished);
    bool mistaken = r->failure.status != SR_OK;
    end.status = mistaken ? "failed" : finish->status;
    end.reason = mistaken ? r->failure.text : finish->reason;
    char open[64];
    if (r->in_step && !(end.reason && *end.reason)) {
        snprintf(open, sizeof open, "closed inside step %lld, which is not recorded",
                 (long long)r->step);
        end.reason = open;
    }
    end.weights_digest = finish->weights_digest;
    end.finished = finished, end.wall_seconds = seconds;
    if (r->source_end)
        end.finished = r->source_end->finished, end.wall_seconds = r->source_end->wall_seconds;
    sr_failure late = {0};
    sr_status status = SR_OK;
    if ((!r->started || r->resuming) && mistaken) return; /* the file has no new rows */
    if (!r->started || r->resuming) status = recorder_start(r);
    if (status == SR_OK && !mistaken) status = running_put(r);
    if (status == SR_OK) status = writer_finish(&r->writer, &end, &late);
    if (status == SR_OK) part_file_publish(r, &late);
    if (r->failure.status == SR_OK && late.status != SR_OK) r->failure = late;
}

/* Removes a file that has no rows, or only rows of another file. */
static void forget_useless(const sr_recorder *r) {
    char room[PATH_MAX];
    if (!r->started || r->resuming) unlink(part_file_at(r, r->part, room));
}

sr_status sr_close(sr_recorder *r, const sr_finish *given, sr_failure *why) {
    if (!r) return SR_OK;
    sr_finish finish = {0};
    const bool alien = recorder_in_fork(r);
    take_finish(&finish, given, &r->failure);
    check_open(r, &finish);
    if (!r->writer.broken) finish_file(r, &finish);
    sr_status status = r->failure.status;
    if (status != SR_OK && why && why->status == SR_OK) *why = r->failure;
    if (status != SR_OK && !alien) forget_useless(r);
    free_recorder(r);
    return status;
}

void sr_abandon(sr_recorder *r) {
    if (!r) return;
    if (!recorder_in_fork(r)) forget_useless(r);
    free_recorder(r);
}
