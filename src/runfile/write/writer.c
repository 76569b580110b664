/* writer.c -- buffers and writes the rows of a run file. A flush writes rows, calls H5Fflush, and
 * then writes the committed counts. So counted rows are in the file, whenever the process dies. */
#define _GNU_SOURCE /* fallocate */
#include "runfile/write/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "journal/writer_lock.h"
#include "runfile/write/declare.h"

enum { STEP_MEMORY = 4 << 20, VECTOR_MEMORY = 32 << 20, RESERVE_SPARE = 32768 };

/* After a failed write HDF5 is not called again, since its caches contain the failed data. Flushed
 * data stay in the file. */
sr_status writer_keep(run_writer *w, sr_status status) {
    if (status == SR_OK || w->broken) return status;
    w->broken = true;
    h5_divert(w->file);
    writer_lock_release(h5_descriptor(w->file));
    lock_file_release(&w->lock);
    return status;
}

sr_status writer_create(run_writer *w, const char *path, sr_failure *why) {
    *w = (run_writer){.path = path, .evals.capacity = EVAL_CAPACITY, .running.last = -1};
    return writer_keep(w, h5_create(path, true, &w->file, why));
}

/* -- memory ---------------------------------------------------------------------------------- */

static sr_status allocate(const run_writer *w, void *at, int64_t count, size_t size,
                          sr_failure *why) {
    void **p = at;
    *p = calloc((size_t)(count > 0 ? count : 1), size);
    if (*p) return SR_OK;
    return sr_fail(why, SR_MEMORY, "%s: %lld x %zu bytes for buffered rows", w->path,
                   (long long)count, size);
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
    for (int i = 0; i < RUN_STEPS && status == SR_OK; i++)
        status = allocate(w, &w->step[i], w->steps.capacity, sizeof(step_value), why);
    for (int i = 0; i < w->declared_count && status == SR_OK; i++)
        if (w->declared[i].scope == SR_PER_STEP)
            status =
                allocate(w, &w->declared[i].step_value, w->steps.capacity, sizeof(double), why);
    if (status == SR_OK)
        status = allocate(w, &w->vector_step, w->vectors.capacity, sizeof(int64_t), why);
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
    for (int i = 0; i < RUN_STEPS; i++) free(w->step[i]);
    for (int i = 0; i < SR_SCALAR_COUNT; i++) free(w->scalar[i]);
    for (int i = 0; i < SR_VECTOR_COUNT; i++) free(w->vector[i]), free(w->vector_used[i]);
    for (int i = 0; i < w->declared_count; i++)
        free(w->declared[i].site_value), free(w->declared[i].step_value);
    free(w->vector_step), free(w->metric), free(w->declared);
    free(w->spectra.rows), free(w->spectra.value[0]);
    if (!w->broken) h5_close(w->file, NULL);
    lock_file_release(&w->lock);
    *w = (run_writer){0};
}

/* Bytes of the metadata, which precede the first step; rows come later. */
static int64_t metadata_bytes(const run_writer *w) {
    run_layout l = w->layout;
    l.planned_steps = 0, l.running = false;
    const int64_t bytes = run_project(&l, 0) + RESERVE_SPARE;
    return w->size_limit > 0 && bytes > w->size_limit ? w->size_limit : bytes;
}

/* True if the file system has these bytes free, or does not report it. */
static bool is_free(int fd, int64_t bytes) {
    struct statvfs s;
    if (fstatvfs(fd, &s) != 0 || s.f_blocks == 0 || s.f_frsize == 0) return true;
    return (uint64_t)bytes / s.f_frsize <= s.f_bavail;
}

/* Releases blocks after the end of the file. */
static void release_spare(int fd) {
    struct stat s;
    if (fstat(fd, &s) != 0 || ftruncate(fd, s.st_size) != 0) return;
}

/* Reserves space for the metadata, so that a full disk is reported before HDF5 caches anything.
 * Checks the free space first: a failing fallocate may take all of it for a moment. */
static sr_status reserve_space(run_writer *w, sr_failure *why) {
    const int fd = h5_descriptor(w->file);
    const int64_t bytes = metadata_bytes(w);
    int wrong = 0;
    if (fd >= 0 && !is_free(fd, bytes))
        wrong = ENOSPC;
    else if (fd >= 0 && fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, bytes) != 0)
        wrong = errno, release_spare(fd);
    if (wrong != ENOSPC && wrong != EDQUOT) return SR_OK; /* or unsupported by the file system */
    return sr_fail(why, SR_IO, "%s: %lld bytes for its metadata: %s", w->path, (long long)bytes,
                   strerror(wrong));
}

/* append_steps holds the steps while HDF5 writes them, so HDF5 must not cache them. */
static sr_status make_steps_direct(run_writer *w, sr_failure *why) {
    h5_id *const set[] = {&w->step_set[0], &w->vector_step_set, &w->eval_step_set,
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

sr_status writer_append(h5_id set, int64_t written, int64_t rows, int64_t columns, h5_type type,
                        const void *values, sr_failure *why) {
    const h5_rows r = {written, rows, 0, columns, columns};
    sr_status status = h5_extend(set, written + rows, why);
    return status == SR_OK && values ? h5_write_rows(set, &r, type, values, why) : status;
}

/* Appends the buffered rows of a dataset. */
static sr_status append(h5_id set, const row_block *b, int64_t columns, h5_type type,
                        const void *values, sr_failure *why) {
    return writer_append(set, b->written, b->count, columns, type, values, why);
}

/* Appends steps, with a backup copy: without its step a row is lost. */
static sr_status append_steps(run_writer *w, h5_id set, const row_block *b, const void *step,
                              sr_failure *why) {
    h5_hold(w->file, true);
    sr_status status = append(set, b, 1, H5_INT64, step, why);
    h5_hold(w->file, false);
    return status;
}

static sr_status write_steps(run_writer *w, sr_failure *why) {
    row_block *b = &w->steps;
    const int64_t sites = w->layout.sites;
    if (b->count == 0) return SR_OK;
    sr_status status = append_steps(w, w->step_set[0], b, w->step[0], why);
    for (int i = 1; i < RUN_STEPS && status == SR_OK; i++)
        status = append(w->step_set[i], b, 1, run_steps[i].type, w->step[i], why);
    for (int i = 0; i < SR_SCALAR_COUNT && status == SR_OK; i++)
        if (w->scalar_set[i])
            status = append(w->scalar_set[i], b, sites, H5_FLOAT32, w->scalar[i], why);
    for (int i = 0; i < w->declared_count && status == SR_OK; i++) {
        const run_declared *d = &w->declared[i];
        if (d->set && d->scope == SR_PER_STEP)
            status = append(d->set, b, 1, H5_FLOAT64, d->step_value, why);
        else if (d->set)
            status = append(d->set, b, sites, H5_FLOAT32, d->site_value, why);
    }
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
    for (int v = 0; v < SR_VECTOR_COUNT && status == SR_OK; v++) status = write_vector(w, v, why);
    if (status == SR_OK) b->written += b->count, b->count = 0;
    return status;
}

static sr_status write_evals(run_writer *w, sr_failure *why) {
    row_block *b = &w->evals;
    if (b->count == 0) return SR_OK;
    sr_status status = append_steps(w, w->eval_step_set, b, w->eval_step, why);
    if (status == SR_OK) status = append(w->eval_epoch_set, b, 1, H5_FLOAT64, w->eval_epoch, why);
    for (int i = 0; i < w->metrics && status == SR_OK; i++)
        status = append(w->metric[i].set, b, 1, H5_FLOAT64, w->metric[i].value, why);
    if (status == SR_OK) b->written += b->count, b->count = 0;
    return status;
}

/* Moves the row in progress, which follows the written rows, to the start of the buffers. */
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

/* Writes buffered rows and then their counts, without a commit. */
static sr_status write_buffered(run_writer *w, sr_failure *why) {
    const int64_t steps = w->steps.count, vectors = w->vectors.count;
    sr_status status = write_steps(w, why);
    if (status == SR_OK) status = write_vectors(w, why);
    if (status == SR_OK && w->filling) carry_row(w, steps, vectors);
    if (status == SR_OK) status = write_evals(w, why);
    if (status == SR_OK) status = h5_flush(w->file, why);
    const int64_t committed[COMMITTED_COUNT] = {w->steps.written, w->vectors.written,
                                                w->evals.written};
    h5_hold(w->file, true);
    /* Steps come before vectors, so that readers find the step of each counted row. */
    for (int i = 0; i < COMMITTED_COUNT && status == SR_OK; i++)
        status = h5_write_all(w->committed_set[i], H5_INT64, 0, &committed[i], why);
    h5_hold(w->file, false);
    return status;
}

sr_status writer_flush(run_writer *w, sr_failure *why) {
    sr_status status = write_buffered(w, why);
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
        if (allocate(w, &w->scalar[which], w->steps.capacity * sites, sizeof(float), why) != SR_OK)
            return NULL;
        fill_nan(w->scalar[which], w->steps.capacity * sites);
    }
    return w->scalar[which] + w->steps.count * sites;
}

float *writer_vector_row(run_writer *w, int which, int64_t site, sr_failure *why) {
    const run_layout *l = &w->layout;
    if (!w->with_vectors) return NULL;
    if (!w->vector_used[which] &&
        allocate(w, &w->vector_used[which], l->sites, sizeof(uint8_t), why) != SR_OK)
        return NULL;
    if (!w->vector[which]) {
        int64_t count = w->vectors.capacity * l->width;
        if (allocate(w, &w->vector[which], count, sizeof(float), why) != SR_OK) return NULL;
        fill_nan(w->vector[which], count);
    }
    w->vector_used[which][site] = 1;
    return w->vector[which] + w->vectors.count * l->width + l->site[site].offset;
}

void writer_end_step(run_writer *w, const step_value value[RUN_STEPS]) {
    for (int i = 0; i < RUN_STEPS; i++) w->step[i][w->steps.count] = value[i];
    w->steps.count++;
    w->filling = false;
    if (!w->with_vectors) return;
    w->vector_step[w->vectors.count++] = value[0].whole;
    w->with_vectors = false;
}

sr_status writer_put_eval(run_writer *w, int64_t step, double epoch, sr_failure *why) {
    if (w->evals.count == w->evals.capacity) {
        if (!w->ready)
            return sr_fail(why, SR_STATE,
                           "%s: evaluation %d at step %lld; at most %d before the first step",
                           w->path, EVAL_CAPACITY + 1, (long long)step, EVAL_CAPACITY);
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
    /* The dataset is ASCII; it was declared before the text existed. */
    for (size_t i = 0; text && text[i] && i < size; i++)
        field[i] = (unsigned char)text[i] < 0x80 ? text[i] : '?';
    return h5_write_all(set, H5_TEXT, size, field, why);
}

static sr_status write_end(run_writer *w, const sr_run_info *end, sr_failure *why) {
    sr_status status = write_text(w->reason_set, end->reason, SR_REASON_SIZE, why);
    if (status == SR_OK)
        status = write_text(w->finished_set, end->finished, RUN_FINISHED_SIZE, why);
    if (status == SR_OK)
        status = write_text(w->digest_set, end->weights_digest, SR_DIGEST_SIZE, why);
    if (status == SR_OK) status = h5_write_all(w->wall_set, H5_FLOAT64, 0, &end->wall_seconds, why);
    return status == SR_OK ? write_text(w->status_set, end->status, SR_STATUS_SIZE, why) : status;
}

sr_status writer_finish(run_writer *w, const sr_run_info *end, sr_failure *why) {
    sr_status status = write_buffered(w, why);
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
