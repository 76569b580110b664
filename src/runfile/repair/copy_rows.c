/* copy_rows.c -- copies the readable rows of a run file into a new recorder: to recover a broken
 * file, or to resume from a checkpoint. Columns are read in batches of rows. An unreadable batch is
 * read again row by row, so damage costs only the values that it hit.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/part_file.h"
#include "record/recorder_state.h"
#include "runfile/abi_struct.h"
#include "runfile/descending.h"
#include "runfile/read/datasets/read_custom.h"
#include "runfile/read/datasets/read_metrics.h"
#include "runfile/read/datasets/read_spectra.h"
#include "runfile/read/file/damage_list.h"
#include "runfile/read/file/open_file_cache.h"
#include "runfile/repair/copy.h"
#include "runfile/write/write_custom.h"
#include "runfile/write/write_spectra.h"
#include "runfile/write/writer.h"

/* Steps between two flushes: until then their numbers and HDF5's metadata stay in memory. */
enum { HELD_STEPS = 16384 };
enum { STEP_BATCH = 64, STEP_BYTES = 8 << 20, VECTOR_BYTES = 1 << 20, WIDE_BYTES = 32 << 20 };

typedef struct copier {
    sr_recorder *r;
    sr_runfile *f;
    const copy_plan *plan;     /* NULL: everything */
    const copy_choice *choice; /* the plan's choice */
    bool recovers;             /* the recorder may lack metrics with unreadable declarations */
    int64_t up_to, embeddings_up_to;
    sr_recovery count;
    unreadable_data *losses;

    int64_t batch;                  /* steps in memory at most */
    step_value *step[RUN_STEPS];    /* [batch] */
    float *scalar[SR_SCALAR_COUNT]; /* [batch, S]; NULL if the file has none */
    void *own[RUN_DECLARED_MAX];    /* custom scalars: float [batch, S] or double [batch] */

    int64_t vector_capacity;        /* rows in memory at most */
    int64_t step_first, step_count; /* rows in vector_step */
    int64_t *vector_step;           /* [vector_capacity] */
    int64_t vector_first, vector_count;
    float *vector[SR_VECTOR_COUNT]; /* [vector_capacity, W]; NULL if the file has none */
} copier;

/* -- memory ---------------------------------------------------------------------------------- */

static bool allocate(void *at, int64_t count, size_t size) {
    void **p = at;
    *p = calloc((size_t)count + 1, size);
    return *p != NULL;
}

static int64_t own_columns(const sr_runfile *f, int i) {
    return f->declared[i].shown.scope == SR_PER_SITE ? f->info.sites : 1;
}

static sr_status allocate_vectors(copier *c) {
    const sr_run_info *info = &c->f->info;
    const int64_t row = info->width * (int64_t)sizeof(float);
    bool has[SR_VECTOR_COUNT] = {false}, ok = true;
    int vectors = 0;
    c->vector_capacity = row > 0 && VECTOR_BYTES / row > 1 ? VECTOR_BYTES / row : 1;
    for (int v = 0; v < SR_VECTOR_COUNT && c->r->options.vectors; v++)
        vectors += has[v] = info->vectors > 0 && copy_keeps(c->choice, run_vectors[v].name) &&
                            sr_run_has_vector(c->f, run_vectors[v].name);
    /* A row of every vector is buffered here and in the writer. A small file must not cause a large
     * allocation by declaring wide rows. */
    if (2 * row * vectors > WIDE_BYTES + 2 * h5_file_bytes(reader_file(c->f)))
        return sr_fail(&c->r->failure, SR_FORMAT,
                       "%s: /vectors: rows of %lld columns, hardly any value stored", c->f->path,
                       (long long)info->width);
    ok = allocate(&c->vector_step, c->vector_capacity, sizeof(int64_t));
    for (int v = 0; v < SR_VECTOR_COUNT && ok; v++)
        if (has[v]) ok = allocate(&c->vector[v], c->vector_capacity * info->width, sizeof(float));
    if (ok) return SR_OK;
    return sr_fail(&c->r->failure, SR_MEMORY, "%s: memory to copy vectors", c->f->path);
}

static sr_status copier_allocate(copier *c) {
    const sr_run_info *info = &c->f->info;
    bool ok = true;
    const int64_t columns = SR_SCALAR_COUNT + 2 * c->f->declared_count;
    const int64_t rows = STEP_BYTES / ((info->sites + 1) * columns * (int64_t)sizeof(float));
    c->batch = rows < 1 ? 1 : rows > STEP_BATCH ? STEP_BATCH : rows;
    for (int i = 0; i < RUN_STEPS && ok; i++)
        ok = allocate(&c->step[i], c->batch, sizeof(step_value));
    for (int i = 0; i < SR_SCALAR_COUNT && ok && c->r->options.scalars; i++)
        if (copy_keeps(c->choice, run_scalars[i].name) &&
            sr_run_has_scalar(c->f, run_scalars[i].name))
            ok = allocate(&c->scalar[i], c->batch * info->sites, sizeof(float));
    for (int i = 0; i < c->f->declared_count && ok; i++)
        if (copy_keeps(c->choice, c->f->declared[i].name))
            ok = allocate(&c->own[i], c->batch * own_columns(c->f, i), sizeof(double));
    if (ok) return allocate_vectors(c);
    return sr_fail(&c->r->failure, SR_MEMORY, "%s: memory to copy rows", c->f->path);
}

/* -- columns --------------------------------------------------------------------------------- */

/* Reads full rows of any column. */
static sr_status read_any(const copier *c, const run_column *k, int64_t first, int64_t count,
                          void *to, sr_failure *why) {
    if (k == &run_vector_step) return sr_run_vector_steps(c->f, first, count, to, why);
    if (k->type == H5_INT64) return sr_run_step_ints(c->f, k->name, first, count, to, why);
    if (k->type == H5_FLOAT64) return sr_run_step_reals(c->f, k->name, first, count, to, why);
    if (strcmp(k->group, "scalars") == 0)
        return sr_run_scalar(c->f, k->name, -1, first, count, to, why);
    return sr_run_vector(c->f, k->name, -1, first, count, to, why);
}

/* A row of vectors may be readable at other sites. */
static void read_sites(const copier *c, const run_column *k, int64_t row, float *to) {
    for (int64_t i = 0; i < c->f->info.sites; i++) {
        const sr_run_site *s = &c->f->site[i];
        if (sr_run_vector(c->f, k->name, i, row, 1, to + s->offset, NULL) != SR_OK)
            copy_fill(k, s->width, to + s->offset);
    }
}

/* Reads rows of a column with this number of columns; unreadable values become NaN or -1. */
static void read_readable(copier *c, const run_column *k, int64_t columns, int64_t first,
                          int64_t count, void *to) {
    const int64_t row = columns * (k->type == H5_FLOAT32 ? 4 : 8);
    if (read_any(c, k, first, count, to, NULL) == SR_OK) return;
    for (int64_t i = 0; i < count; i++) {
        sr_failure why = {0};
        char *at = (char *)to + i * row;
        if (read_any(c, k, first + i, 1, at, &why) == SR_OK) continue;
        copy_missed(c->losses, k->group, k->name, 1, &why);
        if (k->type == H5_FLOAT32 && strcmp(k->group, "vectors") == 0)
            read_sites(c, k, first + i, (float *)at);
        else
            copy_fill(k, columns, at);
    }
}

/* -- vectors --------------------------------------------------------------------------------- */

/* Moves a window of rows to row `at` of /vectors. True if it does not contain the row yet. */
static bool move_window(const copier *c, int64_t at, int64_t *first, int64_t *count) {
    if (at < *first + *count) return false; /* rows are visited in their order */
    const int64_t left = c->f->info.vectors - at;
    *first = at, *count = left < c->vector_capacity ? left : c->vector_capacity;
    return true;
}

static int64_t step_of_vectors(copier *c, int64_t at) {
    if (move_window(c, at, &c->step_first, &c->step_count))
        read_readable(c, &run_vector_step, 1, at, c->step_count, c->vector_step);
    return c->vector_step[at - c->step_first];
}

static void hold_vectors(copier *c, int64_t at) {
    if (!move_window(c, at, &c->vector_first, &c->vector_count)) return;
    for (int v = 0; v < SR_VECTOR_COUNT; v++)
        if (c->vector[v])
            read_readable(c, &run_vectors[v], c->f->info.width, at, c->vector_count, c->vector[v]);
}

/* Moves *at to the row of `step`; counts rows without a copied step as lost. */
static bool find_vectors(copier *c, int64_t step, int64_t *at) {
    for (; *at < c->f->info.vectors; ++*at) {
        const int64_t here = step_of_vectors(c, *at);
        const bool wanted = !c->plan || c->plan->vector[*at];
        if (here == step) return wanted;
        if (here > step) return false;
        c->count.lost_vectors += wanted;
    }
    return false;
}

static bool any_value(const float *value, int64_t count) {
    for (int64_t k = 0; k < count; k++)
        if (!isnan(value[k])) return true;
    return false;
}

static sr_status copy_vector_row(copier *c, int64_t at) {
    sr_recorder *r = c->r;
    hold_vectors(c, at);
    int64_t width = c->f->info.width, row = at - c->vector_first;
    for (int v = 0; v < SR_VECTOR_COUNT; v++)
        for (int64_t i = 0; i < r->sites && c->vector[v]; i++) {
            const int64_t source = copy_source_of(c->choice, i);
            const float *from = c->vector[v] + row * width + c->f->site[source].offset;
            size_t bytes = (size_t)r->site[i].width * sizeof *from;
            if (!any_value(from, r->site[i].width)) continue; /* NaN already */
            float *to = writer_vector_row(&r->writer, v, i, &r->failure);
            if (!to) return recorder_check(r);
            memcpy(to, from, bytes);
        }
    c->count.vectors++;
    return SR_OK;
}

/* -- steps ----------------------------------------------------------------------------------- */

static void load_steps(copier *c, int64_t first, int64_t count) {
    for (int i = 0; i < RUN_STEPS; i++)
        read_readable(c, &run_steps[i], 1, first, count, c->step[i]);
    for (int i = 0; i < SR_SCALAR_COUNT; i++)
        if (c->scalar[i])
            read_readable(c, &run_scalars[i], c->f->info.sites, first, count, c->scalar[i]);
    for (int i = 0; i < c->f->declared_count; i++)
        if (c->own[i])
            read_readable(c, &c->f->declared[i].column, own_columns(c->f, i), first, count,
                          c->own[i]);
}

static sr_status copy_own(copier *c, int64_t row) {
    run_writer *w = &c->r->writer;
    for (int i = 0; i < c->f->declared_count; i++) {
        const bool site = c->f->declared[i].shown.scope == SR_PER_SITE;
        const int64_t columns = own_columns(c->f, i), wanted = site ? c->r->sites : 1;
        int to = 0;
        if (!c->own[i]) continue;
        while (to < w->declared_count && strcmp(w->declared[to].name, c->f->declared[i].name) != 0)
            to++;
        for (int64_t k = 0; k < wanted && to < w->declared_count; k++) {
            const double value =
                site ? ((float *)c->own[i])[row * columns + copy_source_of(c->choice, k)]
                     : ((double *)c->own[i])[row];
            if (!isnan(value) && writer_put_declared(w, to, k, value, &c->r->failure) != SR_OK)
                return recorder_check(c->r);
        }
    }
    return SR_OK;
}

static sr_status copy_scalars(copier *c, int64_t row) {
    sr_recorder *r = c->r;
    for (int i = 0; i < SR_SCALAR_COUNT; i++) {
        if (!c->scalar[i]) continue;
        float *to = writer_scalar_row(&r->writer, i, &r->failure);
        if (!to) return recorder_check(r);
        const float *from = c->scalar[i] + row * c->f->info.sites;
        for (int64_t k = 0; k < r->sites; k++) to[k] = from[copy_source_of(c->choice, k)];
    }
    return SR_OK;
}

/* Copies one loaded row of /steps, its scalars and its row of /vectors, if any. */
static sr_status copy_step(copier *c, int64_t row, int64_t *vector_at) {
    sr_recorder *r = c->r;
    step_value value[RUN_STEPS];
    for (int i = 0; i < RUN_STEPS; i++) value[i] = c->step[i][row];
    const int64_t step = value[0].whole;
    if (step <= r->step) { /* unreadable, or damaged: steps increase */
        c->count.lost_steps++;
        return SR_OK;
    }
    bool vectors = r->options.vectors && find_vectors(c, step, vector_at);
    sr_status status = writer_begin_step(&r->writer, vectors, &r->failure);
    if (status == SR_OK) status = copy_scalars(c, row);
    if (status == SR_OK) status = copy_own(c, row);
    if (status == SR_OK && vectors) status = copy_vector_row(c, (*vector_at)++);
    if (status != SR_OK) return status;
    writer_end_step(&r->writer, value);
    r->step = step;
    const double seconds = value[RUN_STEPS - 1].real;
    if (seconds > r->seconds_before) r->seconds_before = seconds;
    c->count.steps++;
    return c->count.steps % HELD_STEPS ? SR_OK : writer_flush(&r->writer, &r->failure);
}

static sr_status copy_steps(copier *c) {
    int64_t total = c->f->info.steps, vector_at = 0;
    for (int64_t at = 0, count; at < total; at += count) {
        count = total - at < c->batch ? total - at : c->batch;
        if (c->choice && c->choice->stopped && c->choice->stopped())
            return sr_fail(&c->r->failure, SR_STATE, "%s: stopped by a signal", c->r->path);
        if (c->plan && !memchr(c->plan->step + at, 1, (size_t)count)) continue;
        load_steps(c, at, count);
        for (int64_t i = 0; i < count; i++) {
            if (c->up_to >= 0 && c->step[0][i].whole > c->up_to) return SR_OK;
            if (c->plan && !c->plan->step[at + i]) continue;
            sr_status status = copy_step(c, i, &vector_at);
            if (status != SR_OK) return status;
        }
    }
    if (c->up_to < 0 && !c->plan) c->count.lost_vectors += c->f->info.vectors - vector_at;
    return SR_OK;
}

/* -- evaluations and embeddings -------------------------------------------------------------- */

/* A value of an evaluation; NaN if it is unreadable. */
static double read_eval(copier *c, const char *name, int64_t at) {
    double value = NAN;
    sr_failure why = {0};
    if (sr_run_eval(c->f, name, at, 1, &value, &why) == SR_OK) return value;
    copy_missed(c->losses, "evals", name, 1, &why);
    return NAN;
}

static sr_status copy_evals(copier *c) {
    for (int64_t at = 0; at < c->f->info.evals; at++) {
        double value[SR_METRICS_MAX + 2], step = read_eval(c, "step", at);
        if (c->up_to >= 0 && step > (double)c->up_to) break;
        if (step >= 0 && !copy_plan_includes(c->plan, (int64_t)step)) continue;
        if (!(step >= 0) || step < (double)c->r->eval_step) {
            c->count.lost_evals++;
            continue;
        }
        const double epoch = read_eval(c, "epoch", at);
        for (int i = 0; i < c->f->metrics; i++) value[i] = read_eval(c, c->f->metric[i].name, at);
        sr_begin_eval(c->r, (int64_t)step, epoch);
        for (int i = 0; i < c->f->metrics; i++) {
            /* a metric without values may be missing in a recovered file */
            const char *name = c->f->metric[i].name;
            if (isnan(value[i]) || (c->recovers && !recorder_has_metric(c->r, name))) continue;
            sr_put_metric(c->r, name, value[i]);
        }
        if (sr_end_eval(c->r) != SR_OK) return recorder_check(c->r);
        c->count.evals++;
    }
    return SR_OK;
}

static sr_status copy_embedding(copier *c, run_embedding *e) {
    sr_run_embedding from = SR_INIT(sr_run_embedding, .rows = 0);
    sr_failure why = {0};
    if (sr_run_get_embedding(c->f, e->name, &from, &why) != SR_OK)
        return why.status == SR_MEMORY ? sr_fail(&c->r->failure, SR_MEMORY, "%s", why.text) : SR_OK;
    if (from.records == 0) return SR_OK;
    double *value = malloc((size_t)from.values * sizeof *value);
    if (!value) return sr_fail(&c->r->failure, SR_MEMORY, "%s: embedding %s", c->f->path, e->name);
    sr_status status = SR_OK;
    for (int64_t i = 0; i < from.records && status == SR_OK; i++) {
        int64_t step;
        sr_failure lost = {0};
        if (sr_run_singular_values(c->f, e->name, i, &step, value, &lost) != SR_OK) {
            copy_missed(c->losses, "embeddings", e->name, 1, &lost);
            continue;
        }
        if (c->up_to >= 0 && step > c->embeddings_up_to) continue;
        if (!copy_plan_includes(c->plan, step)) continue;
        if (step < e->last || !run_descends(value, from.values)) {
            sr_fail(&lost, SR_FORMAT,
                    "%s: /embeddings/%s: steps or singular values in a wrong order", c->f->path,
                    e->name);
            copy_missed(c->losses, "embeddings", e->name, 1, &lost);
            continue;
        }
        e->last = step;
        status = writer_put_singular_values(&c->r->writer, e, step, value, &c->r->failure);
    }
    free(value);
    return status;
}

static sr_status copy_all(copier *c) {
    sr_status status = recorder_declare(c->r);
    if (status == SR_OK) status = copier_allocate(c);
    if (status == SR_OK) status = copy_steps(c);
    if (status == SR_OK) status = copy_evals(c);
    for (int i = 0; i < c->r->embeddings && status == SR_OK; i++)
        status = copy_embedding(c, &c->r->embedding[i]);
    if (status == SR_OK) status = recorder_copy_spectra(c->r, c->f, c->plan, c->up_to, c->losses);
    const bool end = !c->plan || c->plan->end;
    if (status == SR_OK && c->up_to < 0 && end)
        status = recorder_copy_final(c->r, c->f, c->choice, c->losses);
    if (status == SR_OK && end)
        status = recorder_copy_running(c->r, c->f, c->choice, c->up_to, &c->count.running_step,
                                       c->losses);
    if (status == SR_OK) status = writer_flush(&c->r->writer, &c->r->failure);
    if (c->up_to >= 0) return status;
    const sr_run_info *info = &c->f->info;
    const int64_t read[COMMITTED_COUNT] = {info->steps, info->vectors, info->evals};
    int64_t *lost[COMMITTED_COUNT] = {&c->count.lost_steps, &c->count.lost_vectors,
                                      &c->count.lost_evals};
    for (int i = 0; i < COMMITTED_COUNT; i++) {
        int64_t claimed = c->f->committed[i]; /* -1: unreadable */
        if (c->f->extent_most[i] > claimed) claimed = c->f->extent_most[i];
        *lost[i] += claimed - read[i];
    }
    return status;
}

/* -- public ---------------------------------------------------------------------------------- */

/* Notes the damage that opening found and copying did not read: attributes, columns without
   rows. */
static void note_damage(const copier *c) {
    const char *text;
    const size_t prefix = strlen(c->f->path) + sizeof ": " - 1;
    for (int i = 0; (text = sr_run_damage(c->f, i)); i++) {
        if (c->f->damage[i].repaired) continue;
        sr_failure why = {0};
        char name[SR_NAME_SIZE] = "";
        const char *object = strchr(text + strnlen(text, prefix), '/');
        if (object) snprintf(name, sizeof name, "%s", object);
        name[strcspn(name, ":")] = '\0';
        sr_fail(&why, SR_FORMAT, "%s", text);
        copy_missed(c->losses, name + (*name == '/'), "", -1, &why);
    }
}

sr_status recorder_take_created(sr_recorder *r, const char *created) {
    char *copy = strdup(created);
    if (!copy) return sr_fail(&r->failure, SR_MEMORY, "%s: texts", r->path);
    free((void *)(uintptr_t)r->info.created);
    r->info.created = copy;
    return SR_OK;
}

static void note_fault(void *context, const sr_failure *fault) {
    if (fault->status != SR_STATE) *(sr_failure *)context = *fault; /* not: interrupted */
}

/* The new file is about to replace the old one. A fault that a second reading does not find was no
 * damage: the disk failed for a moment. Another attempt may read values that the new file lacks. */
static sr_status confirm_damage(const copier *c) {
    const sr_recovery *n = &c->count;
    sr_failure found = {0}, *why = &c->r->failure;
    if (!c->f->damages && !c->losses->count && n->lost_steps + n->lost_vectors + n->lost_evals == 0)
        return SR_OK;
    sr_run_check_all(c->f->path, note_fault, &found, NULL);
    if (found.status == SR_FORMAT) return SR_OK;
    if (found.status != SR_OK) return sr_fail(why, found.status, "%s", found.text);
    sr_fail(why, SR_IO, "%s: read with damage first, and without it again", c->f->path);
    sr_hint(why, "the disk may fail; nothing is changed");
    return why->status;
}

static sr_status copy_and_count(copier *c, sr_recovery *result) {
    c->count = SR_INIT(sr_recovery, .running_step = -1);
    /* the new file contains the same run */
    if (!c->plan) recorder_take_created(c->r, c->f->info.created);
    if (recorder_check(c->r) == SR_OK && copy_all(c) == SR_OK && c->r->resuming &&
        confirm_damage(c) == SR_OK)
        part_file_take_over(c->r, &c->r->failure);
    note_damage(c);
    if (result) abi_struct_give(result, &c->count, sizeof c->count, "sr_recovery", &c->r->failure);
    for (int i = 0; i < RUN_STEPS; i++) free(c->step[i]);
    for (int i = 0; i < SR_SCALAR_COUNT; i++) free(c->scalar[i]);
    for (int v = 0; v < SR_VECTOR_COUNT; v++) free(c->vector[v]);
    for (int i = 0; i < RUN_DECLARED_MAX; i++) free(c->own[i]);
    free(c->vector_step);
    return recorder_check(c->r);
}

sr_status recorder_copy_rows(sr_recorder *r, sr_runfile *from, const copy_plan *plan,
                             int64_t up_to_step, sr_recovery *result, unreadable_data *losses) {
    if (r->failure.status != SR_OK) return recorder_check(r);
    copier c = {.r = r,
                .f = from,
                .plan = plan,
                .choice = plan ? plan->choice : NULL,
                .recovers = !plan,
                .up_to = up_to_step,
                .embeddings_up_to = up_to_step,
                .losses = losses};
    return copy_and_count(&c, result);
}

sr_status sr_copy_rows(sr_recorder *r, const char *from, int64_t up_to_step,
                       int64_t embeddings_up_to, struct sr_recovery *result) {
    unreadable_data losses = {0};
    if (!r || r->failure.status != SR_OK || recorder_in_fork(r)) return recorder_check(r);
    if (r->started)
        return sr_fail(&r->failure, SR_STATE, "%s: sr_copy_rows after the first step", r->path);
    copier c = {.r = r,
                .f = sr_run_open(from, &r->failure),
                .up_to = up_to_step,
                .embeddings_up_to = embeddings_up_to,
                .losses = &losses};
    if (c.f && recorder_copy_match(r, c.f, &losses) == SR_OK) copy_and_count(&c, result);
    if (c.f && !sr_failed(r)) unreadable_data_check(&losses, from, &r->failure);
    free(losses.entry);
    sr_run_close(c.f);
    return recorder_check(r);
}
