/* writer.c -- see writer.h. Order of a flush: rows, H5Fflush, committed counts; whoever reads a
 * count finds the rows, whenever the writer dies. */
#define _GNU_SOURCE /* fallocate */
#include "runfile/write/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "journal/writer_lock.h"
#include "runfile/write/declare.h"

enum { STEP_MEMORY = 4 << 20, VECTOR_MEMORY = 32 << 20, RESERVE_SPARE = 32768 };

/* After a failed write HDF5 must be left alone: its caches hold what it could not write. What was
 * flushed to the disk stays as it is. */
sr_status writer_keep(run_writer *w, sr_status status) {
    if (status == SR_OK || w->broken) return status;
    w->broken = true;
    h5_divert(w->file);
    writer_lock_release(h5_descriptor(w->file));
    return status;
}

sr_status writer_create(run_writer *w, const char *path, sr_failure *why) {
    *w = (run_writer){.path = path, .evals.capacity = EVAL_CAPACITY, .running.last = -1};
    return writer_keep(w, h5_create(path, true, &w->file, why));
}

/* -- memory ---------------------------------------------------------------------------------- */

static sr_status allocate(void *at, int64_t count, size_t size, sr_failure *why) {
    void **p = at;
    *p = calloc((size_t)(count > 0 ? count : 1), size);
    if (*p) return SR_OK;
    return sr_fail(why, SR_MEMORY, "%lld x %zu bytes for waiting rows", (long long)count, size);
}

static int64_t capacity_for(int64_t memory, int64_t row_bytes, int64_t most) {
    int64_t capacity = memory / (row_bytes > 0 ? row_bytes : 1);
    return capacity < 1 ? 1 : capacity > most ? most : capacity;
}

static sr_status allocate_rows(run_writer *w, sr_failure *why) {
    const run_layout *l = &w->layout;
    w->steps.capacity = capacity_for(STEP_MEMORY, 4 * SR_SCALAR_COUNT * l->sites, w->flush_steps);
    w->vectors.capacity =
        capacity_for(VECTOR_MEMORY, 4 * SR_VECTOR_COUNT * l->width, w->flush_steps);
    sr_status status = SR_OK;
    for (int i = 0; i < RUN_STEP_INTS && status == SR_OK; i++)
        status = allocate(&w->step_int[i], w->steps.capacity, sizeof(int64_t), why);
    for (int i = 0; i < RUN_STEP_REALS && status == SR_OK; i++)
        status = allocate(&w->step_real[i], w->steps.capacity, sizeof(double), why);
    for (int i = 0; i < w->declared_count && status == SR_OK; i++)
        if (w->declared[i].scope == SR_PER_STEP)
            status = allocate(&w->declared[i].step_value, w->steps.capacity, sizeof(double), why);
    if (status == SR_OK)
        status = allocate(&w->vector_step, w->vectors.capacity, sizeof(int64_t), why);
    return status;
}

run_metric *writer_add_metric(run_writer *w, sr_failure *why) {
    run_metric *grown = realloc(w->metric, (size_t)(w->metrics + 1) * sizeof *grown);
    if (!grown) {
        sr_fail(why, SR_MEMORY, "%s: %d metrics", w->path, w->metrics + 1);
        return NULL;
    }
    w->metric = grown;
    run_metric *m = &grown[w->metrics++];
    *m = (run_metric){.current = NAN};
    for (int i = 0; i < EVAL_CAPACITY; i++) m->value[i] = NAN;
    return m;
}

void writer_free(run_writer *w) {
    for (int i = 0; i < RUN_STEP_INTS; i++) free(w->step_int[i]);
    for (int i = 0; i < RUN_STEP_REALS; i++) free(w->step_real[i]);
    for (int i = 0; i < SR_SCALAR_COUNT; i++) free(w->scalar[i]);
    for (int i = 0; i < SR_VECTOR_COUNT; i++) free(w->vector[i]), free(w->vector_used[i]);
    for (int i = 0; i < w->declared_count; i++)
        free(w->declared[i].site_value), free(w->declared[i].step_value);
    free(w->vector_step), free(w->metric), free(w->declared);
    free(w->spectra.rows), free(w->spectra.value[0]);
    if (!w->broken) h5_close(w->file, NULL);
    *w = (run_writer){0};
}

/* Room for the beginning of the file, asked for before HDF5 has anything it could fail to write. */
static sr_status reserve_space(run_writer *w, sr_failure *why) {
    run_layout l = w->layout;
    l.planned_steps = 0;
    int fd = h5_descriptor(w->file);
    off_t bytes = run_project(&l, 0) + RESERVE_SPARE;
    if (fd < 0 || fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, bytes) == 0) return SR_OK;
    if (errno != ENOSPC && errno != EDQUOT) return SR_OK; /* not every file system can do it */
    return sr_fail(why, SR_IO, "%s: %s", w->path, strerror(errno));
}

/* Steps are held while they are written (append_steps): HDF5 must not keep them back. */
static sr_status make_steps_direct(run_writer *w, sr_failure *why) {
    h5_id *const set[] = {&w->step_int_set[0], &w->vector_step_set, &w->eval_step_set,
                          &w->spectra.step_set, &w->running.step_set};
    sr_status status = SR_OK;
    for (size_t i = 0; i < sizeof set / sizeof *set && status == SR_OK; i++)
        status = h5_make_direct(set[i], why);
    for (int i = 0; i < w->embeddings && status == SR_OK; i++)
        status = h5_make_direct(&w->embedding[i].step, why);
    return status;
}

sr_status writer_declare(run_writer *w, const sr_run_info *info, sr_failure *why) {
    sr_status status = allocate_rows(w, why);
    if (status != SR_OK) return status;
    status = reserve_space(w, why);
    if (status == SR_OK) status = declare_run_file(w, info, why);
    if (status == SR_OK) status = h5_flush(w->file, why);
    if (status == SR_OK) status = h5_start_swmr(w->file, why);
    if (status == SR_OK) status = make_steps_direct(w, why);
    if (status == SR_OK) status = h5_begin_journal(w->file, w->sync_flushes, why);
    w->ready = status == SR_OK;
    return writer_keep(w, status);
}

/* -- writing --------------------------------------------------------------------------------- */

static void copy_floats(float *to, const float *from, int64_t count) {
    memcpy(to, from, (size_t)count * sizeof *to);
}

/* Appends the waiting rows of a one-column dataset. */
static sr_status append(h5_id set, const row_block *b, h5_type type, const void *rows,
                        sr_failure *why) {
    h5_rows r = {.first = b->written, .count = b->count, .columns = 1, .stride = 1};
    sr_status status = h5_extend(set, b->written + b->count, why);
    return status == SR_OK ? h5_write_rows(set, &r, type, rows, why) : status;
}

/* Steps of rows: without them the rows of all other columns are lost. */
static sr_status append_steps(run_writer *w, h5_id set, const row_block *b, const int64_t *step,
                              sr_failure *why) {
    h5_hold(w->file, true);
    sr_status status = append(set, b, H5_INT64, step, why);
    h5_hold(w->file, false);
    return status;
}

static sr_status write_scalars(run_writer *w, sr_failure *why) {
    const row_block *b = &w->steps;
    int64_t sites = w->layout.sites;
    h5_rows r = {b->written, b->count, 0, sites, sites};
    sr_status status = SR_OK;
    for (int i = 0; i < SR_SCALAR_COUNT && status == SR_OK; i++) {
        if (!w->scalar_set[i]) continue;
        status = h5_extend(w->scalar_set[i], b->written + b->count, why);
        if (status == SR_OK && w->scalar[i])
            status = h5_write_rows(w->scalar_set[i], &r, H5_FLOAT32, w->scalar[i], why);
    }
    return status;
}

static sr_status write_declared(run_writer *w, sr_failure *why) {
    const row_block *b = &w->steps;
    const int64_t sites = w->layout.sites;
    const h5_rows of_sites = {b->written, b->count, 0, sites, sites};
    sr_status status = SR_OK;
    for (int i = 0; i < w->declared_count && status == SR_OK; i++) {
        const run_declared *d = &w->declared[i];
        if (!d->set) continue;
        if (d->step_value) status = append(d->set, b, H5_FLOAT64, d->step_value, why);
        if (d->step_value) continue;
        status = h5_extend(d->set, b->written + b->count, why);
        if (status == SR_OK && d->site_value)
            status = h5_write_rows(d->set, &of_sites, H5_FLOAT32, d->site_value, why);
    }
    return status;
}

static sr_status write_steps(run_writer *w, sr_failure *why) {
    row_block *b = &w->steps;
    if (b->count == 0) return SR_OK;
    sr_status status = SR_OK;
    status = append_steps(w, w->step_int_set[0], b, w->step_int[0], why);
    for (int i = 1; i < RUN_STEP_INTS && status == SR_OK; i++)
        status = append(w->step_int_set[i], b, H5_INT64, w->step_int[i], why);
    for (int i = 0; i < RUN_STEP_REALS && status == SR_OK; i++)
        status = append(w->step_real_set[i], b, H5_FLOAT64, w->step_real[i], why);
    if (status == SR_OK) status = write_scalars(w, why);
    if (status == SR_OK) status = write_declared(w, why);
    if (status == SR_OK) b->written += b->count, b->count = 0;
    return status;
}

/* Writes one vector in runs of neighbouring sites that put it. */
static sr_status write_vector(run_writer *w, int v, sr_failure *why) {
    const run_layout *l = &w->layout;
    const row_block *b = &w->vectors;
    sr_status status = h5_extend(w->vector_set[v], b->written + b->count, why);
    for (int64_t i = 0; i < l->sites && w->vector[v] && status == SR_OK; i++) {
        if (!w->vector_used[v][i]) continue;
        int64_t end = i;
        while (end + 1 < l->sites && w->vector_used[v][end + 1]) end++;
        int64_t first = l->site[i].offset;
        h5_rows r = {b->written, b->count, first, l->site[end].offset + l->site[end].width - first,
                     l->width};
        status = h5_write_rows(w->vector_set[v], &r, H5_FLOAT32, w->vector[v], why);
        i = end;
    }
    return status;
}

static sr_status write_vectors(run_writer *w, sr_failure *why) {
    row_block *b = &w->vectors;
    if (b->count == 0) return SR_OK;
    sr_status status = append_steps(w, w->vector_step_set, b, w->vector_step, why);
    for (int v = 0; v < SR_VECTOR_COUNT && status == SR_OK; v++)
        if (w->vector_set[v]) status = write_vector(w, v, why);
    if (status == SR_OK) b->written += b->count, b->count = 0;
    return status;
}

static sr_status write_evals(run_writer *w, sr_failure *why) {
    row_block *b = &w->evals;
    if (b->count == 0) return SR_OK;
    sr_status status = append_steps(w, w->eval_step_set, b, w->eval_step, why);
    if (status == SR_OK) status = append(w->eval_epoch_set, b, H5_FLOAT64, w->eval_epoch, why);
    for (int i = 0; i < w->metrics && status == SR_OK; i++)
        status = append(w->metric[i].set, b, H5_FLOAT64, w->metric[i].value, why);
    if (status == SR_OK) b->written += b->count, b->count = 0;
    return status;
}

/* The row that is being filled, behind those that waited, becomes the first. */
static void carry_row(run_writer *w, int64_t steps, int64_t vectors) {
    const int64_t sites = w->layout.sites, width = w->layout.width;
    for (int i = 0; i < SR_SCALAR_COUNT && steps; i++)
        if (w->scalar[i]) copy_floats(w->scalar[i], w->scalar[i] + steps * sites, sites);
    for (int i = 0; i < w->declared_count && steps; i++) {
        const run_declared *d = &w->declared[i];
        if (d->site_value) copy_floats(d->site_value, d->site_value + steps * sites, sites);
        if (d->step_value) d->step_value[0] = d->step_value[steps];
    }
    for (int v = 0; v < SR_VECTOR_COUNT && vectors && w->with_vectors; v++)
        if (w->vector[v]) copy_floats(w->vector[v], w->vector[v] + vectors * width, width);
}

sr_status writer_commit(run_writer *w, sr_status status, sr_failure *why) {
    if (status == SR_OK) status = h5_flush(w->file, why);
    return status == SR_OK ? h5_commit(w->file, why) : status;
}

/* Waiting rows and their counts, up to the commit. */
static sr_status write_waiting(run_writer *w, sr_failure *why) {
    const int64_t steps = w->steps.count, vectors = w->vectors.count;
    sr_status status = write_steps(w, why);
    if (status == SR_OK) status = write_vectors(w, why);
    if (status == SR_OK && w->filling) carry_row(w, steps, vectors);
    if (status == SR_OK) status = write_evals(w, why);
    if (status == SR_OK) status = h5_flush(w->file, why);
    const int64_t committed[COMMITTED_COUNT] = {w->steps.written, w->vectors.written,
                                                w->evals.written};
    h5_hold(w->file, true);
    /* The vectors' count goes last: whoever sees a row of vectors sees its step. */
    const int order[COMMITTED_COUNT] = {COMMITTED_STEPS, COMMITTED_VECTORS, COMMITTED_EVALS};
    for (int i = 0; i < COMMITTED_COUNT && status == SR_OK; i++)
        status = h5_write_all(w->committed_set[order[i]], H5_INT64, 0, &committed[order[i]], why);
    h5_hold(w->file, false);
    return status;
}

sr_status writer_flush(run_writer *w, sr_failure *why) {
    sr_status status = write_waiting(w, why);
    if (status == SR_OK) status = h5_commit(w->file, why);
    return writer_keep(w, status);
}

/* -- rows ------------------------------------------------------------------------------------ */

static void fill_nan(float *at, int64_t count) {
    for (int64_t i = 0; i < count; i++) at[i] = NAN;
}

sr_status writer_begin_step(run_writer *w, bool with_vectors, sr_failure *why) {
    const run_layout *l = &w->layout;
    sr_status status = SR_OK;
    if (w->steps.count == w->steps.capacity) status = write_steps(w, why);
    if (status == SR_OK && with_vectors && w->vectors.count == w->vectors.capacity)
        status = write_vectors(w, why);
    if (status != SR_OK) return writer_keep(w, status);
    w->with_vectors = with_vectors && l->vectors;
    w->filling = true;
    for (int i = 0; i < SR_SCALAR_COUNT; i++)
        if (w->scalar[i]) fill_nan(w->scalar[i] + w->steps.count * l->sites, l->sites);
    for (int i = 0; i < w->declared_count; i++) {
        const run_declared *d = &w->declared[i];
        if (d->site_value) fill_nan(d->site_value + w->steps.count * l->sites, l->sites);
        if (d->step_value) d->step_value[w->steps.count] = NAN;
    }
    for (int v = 0; v < SR_VECTOR_COUNT && w->with_vectors; v++)
        if (w->vector[v]) fill_nan(w->vector[v] + w->vectors.count * l->width, l->width);
    return SR_OK;
}

float *writer_scalar_row(run_writer *w, int which, sr_failure *why) {
    int64_t sites = w->layout.sites;
    if (!w->scalar[which]) {
        if (allocate(&w->scalar[which], w->steps.capacity * sites, sizeof(float), why) != SR_OK)
            return NULL;
        fill_nan(w->scalar[which], w->steps.capacity * sites);
    }
    return w->scalar[which] + w->steps.count * sites;
}

float *writer_vector_row(run_writer *w, int which, int64_t site, sr_failure *why) {
    const run_layout *l = &w->layout;
    if (!w->with_vectors) return NULL;
    if (!w->vector_used[which] &&
        allocate(&w->vector_used[which], l->sites, sizeof(uint8_t), why) != SR_OK)
        return NULL;
    if (!w->vector[which]) {
        int64_t count = w->vectors.capacity * l->width;
        if (allocate(&w->vector[which], count, sizeof(float), why) != SR_OK) return NULL;
        fill_nan(w->vector[which], count);
    }
    w->vector_used[which][site] = 1;
    return w->vector[which] + w->vectors.count * l->width + l->site[site].offset;
}

void writer_end_step(run_writer *w, const int64_t *ints, const double *reals) {
    for (int i = 0; i < RUN_STEP_INTS; i++) w->step_int[i][w->steps.count] = ints[i];
    for (int i = 0; i < RUN_STEP_REALS; i++) w->step_real[i][w->steps.count] = reals[i];
    w->steps.count++;
    w->filling = false;
    if (!w->with_vectors) return;
    w->vector_step[w->vectors.count++] = ints[0];
    w->with_vectors = false;
}

sr_status writer_put_eval(run_writer *w, int64_t step, double epoch, sr_failure *why) {
    if (w->evals.count == w->evals.capacity) {
        if (!w->ready)
            return sr_fail(why, SR_STATE,
                           "%s: too many evaluations before a step: the one at step %lld is number "
                           "%d, there is room for %d",
                           w->path, (long long)step, EVAL_CAPACITY + 1, EVAL_CAPACITY);
        sr_status status = writer_keep(w, write_evals(w, why));
        if (status != SR_OK) return status;
    }
    w->eval_step[w->evals.count] = step;
    w->eval_epoch[w->evals.count] = epoch;
    for (int i = 0; i < w->metrics; i++) w->metric[i].value[w->evals.count] = w->metric[i].current;
    w->evals.count++;
    return SR_OK;
}

/* -- the end --------------------------------------------------------------------------------- */

static sr_status write_text(h5_id set, const char *text, size_t size, sr_failure *why) {
    char field[SR_REASON_SIZE] = {0};
    /* the dataset was declared as ASCII before this text was known */
    for (size_t i = 0; text && text[i] && i < size; i++)
        field[i] = (unsigned char)text[i] < 0x80 ? text[i] : '?';
    return h5_write_all(set, H5_TEXT, size, field, why);
}

static sr_status write_end(run_writer *w, const sr_run_info *end, sr_failure *why) {
    sr_status status = SR_OK;
    if (status == SR_OK) status = write_text(w->reason_set, end->reason, SR_REASON_SIZE, why);
    if (status == SR_OK)
        status = write_text(w->finished_set, end->finished, RUN_FINISHED_SIZE, why);
    if (status == SR_OK)
        status = write_text(w->digest_set, end->weights_digest, SR_DIGEST_SIZE, why);
    if (status == SR_OK) status = h5_write_all(w->wall_set, H5_FLOAT64, 0, &end->wall_seconds, why);
    return status == SR_OK ? write_text(w->status_set, end->status, SR_STATUS_SIZE, why) : status;
}

sr_status writer_finish(run_writer *w, const sr_run_info *end, sr_failure *why) {
    sr_status status = write_waiting(w, why);
    h5_hold(w->file, true);
    if (status == SR_OK) status = write_end(w, end, why);
    h5_hold(w->file, false);
    if (status == SR_OK) status = h5_flush(w->file, why);
    if (status == SR_OK) {
        h5_finalize(w->file, w->sync_end);
        status = h5_close(w->file, why);
        w->file = 0;
    }
    return writer_keep(w, status);
}
