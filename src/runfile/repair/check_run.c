/* check_run.c -- checks a whole run file: all declared datasets exist, all counted rows are
 * readable and possible. In a file with checksums (trailer.h) every byte is verified. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers/vector.h"
#include "runfile/descending.h"
#include "runfile/read/datasets/read_custom.h"
#include "runfile/read/datasets/read_metrics.h"
#include "runfile/read/datasets/read_pairs.h"
#include "runfile/read/datasets/read_spectra.h"
#include "runfile/read/file/open_file_cache.h"
#include "runfile/read/file/read_column.h"
#include "runfile/read/file/read_growing.h"
#include "runfile/read/file/step_cursor.h"
#include "runfile/read/read_trailer.h"

#define RECOVER_HINT "`statrec recover` copies the readable data"

enum { BATCH_BYTES = 1 << 20 };

typedef struct run_checker {
    const sr_runfile *f;
    sr_failure *why; /* the current check's; see report_fault() */
    sr_fault_fn *report;
    void *context;
    sr_failure *fault; /* [faults] reported so far */
    int64_t faults, fault_capacity;
    bool full;    /* a fault found no memory: the list is not whole */
    void *memory; /* BATCH_BYTES, or one row when that is more */
    size_t memory_bytes;
} run_checker;

static sr_status damaged(const run_checker *w, const char *path, const char *what) {
    return sr_fail(w->why, SR_FORMAT, "%s: %s: %s", w->f->path, path, what);
}

/* After every check: reports its fault, each text once, and clears w->why. */
static void report_fault(run_checker *w) {
    const sr_failure why = *w->why;
    *w->why = (sr_failure){0};
    if (why.status == SR_OK) return;
    for (int64_t i = 0; i < w->faults; i++)
        if (strcmp(w->fault[i].text, why.text) == 0) return;
    if (w->report) w->report(w->context, &why);
    if (vector_reserve(&w->fault, &w->fault_capacity, w->faults + 1, sizeof *w->fault))
        w->fault[w->faults++] = why;
    else
        w->full = true;
}

/* Reads every counted row of one column. */
static void read_column(run_checker *w, const run_column *c, int64_t rows, bool exact) {
    h5_id set;
    h5_shape shape;
    sr_status status = reader_open_column(w->f, c, &set, &shape, w->why);
    if (status != SR_OK) {
        report_fault(w);
        return;
    }
    if (exact && shape.dims[0] != rows)
        status =
            damaged(w, h5_path_of("/%s/%s", c->group, c->name).text, "rows that are not counted");
    int64_t columns = shape.rank == 2 ? shape.dims[1] : 1;
    size_t element = c->type == H5_FLOAT32 ? 4 : 8;
    int64_t batch = (int64_t)(w->memory_bytes / element) / (columns > 0 ? columns : 1);
    /* A truncated file may lack the index; its counted rows are all stored. */
    const bool stored = h5_stored_bytes(set, w->f->cut_at ? NULL : w->why) > 0;
    for (int64_t at = 0; at < rows && status == SR_OK && stored; at += batch) {
        h5_rows part = {at, rows - at < batch ? rows - at : batch, 0, columns, columns};
        status = h5_read_rows(set, &part, c->type, w->memory, w->why);
    }
    h5_close_dataset(set);
    report_fault(w);
}

/* Reads all columns of a group; optional: they may all be missing. */
static void read_group(run_checker *w, const run_column *c, int count, int64_t rows, bool exact,
                       bool optional) {
    const h5_path path = h5_path_of("/%s/%s", c[0].group, c[0].name);
    bool none = optional && !reader_has_column(w->f, &c[0]);
    for (int i = 0; i < count; i++) {
        if (!none) read_column(w, &c[i], rows, exact);
        if (none && reader_has_column(w->f, &c[i])) damaged(w, path.text, "missing");
        report_fault(w);
    }
}

/* The columns of a format revision are all there, or none (SR_SCALAR_AGES). */
static void read_statistics(run_checker *w, bool exact) {
    static const int scalar[] = {0, SR_SCALAR_AGES, SR_SCALAR_COUNT};
    static const int vector[] = {0, SR_VECTOR_AGES, SR_VECTOR_COUNT};
    const sr_run_info *info = &w->f->info;
    for (const int *at = scalar; *at < SR_SCALAR_COUNT; at++)
        read_group(w, run_scalars + at[0], at[1] - at[0], info->steps, exact, true);
    for (int i = 0; i < w->f->declared_count; i++)
        read_column(w, &w->f->declared[i].column, info->steps, exact), report_fault(w);
    read_group(w, &run_vector_step, 1, info->vectors, exact, false);
    for (const int *at = vector; *at < SR_VECTOR_COUNT; at++)
        read_group(w, run_vectors + at[0], at[1] - at[0], info->vectors, exact, true);
}

static void read_evals(run_checker *w, bool exact) {
    const int64_t evals = w->f->info.evals;
    read_group(w, &run_eval_step, 1, evals, exact, false);
    read_group(w, &run_eval_epoch, 1, evals, exact, false);
    for (int i = 0; i < w->f->metrics; i++)
        read_column(w, &w->f->metric[i].column, evals, exact), report_fault(w);
    reader_check_metrics(w->f, w->why), report_fault(w);
}

static sr_status check_evals(const run_checker *w) {
    double last = -1, step;
    sr_status status = SR_OK;
    for (int64_t i = 0; i < w->f->info.evals && status == SR_OK; i++) {
        status = sr_run_eval(w->f, "step", i, 1, &step, w->why);
        if (status == SR_OK && step < last) status = damaged(w, "/evals/step", "decreasing");
        last = step;
    }
    return status;
}

static sr_status check_columns_of_sites(const run_checker *w) {
    h5_id set;
    h5_shape shape;
    const sr_run_info *info = &w->f->info;
    sr_status status =
        reader_open_fixed(w->f, "/sites/column_site", H5_INT32, 1, &set, &shape, w->why);
    if (status != SR_OK) return status;
    int32_t *site = calloc((size_t)info->width + 1, sizeof *site);
    if (!site) status = sr_fail(w->why, SR_MEMORY, "%s: columns", w->f->path);
    if (status == SR_OK && info->width > 0) status = h5_read_all(set, H5_INT32, 0, site, w->why);
    for (int64_t i = 0; i < info->sites && status == SR_OK; i++)
        for (int64_t k = 0; k < w->f->site[i].width; k++)
            if (site[w->f->site[i].offset + k] != i) {
                status = damaged(w, "/sites/column_site", "does not agree with offset and width");
                break;
            }
    free(site);
    h5_close_dataset(set);
    return status;
}

static void check_embeddings(run_checker *w) {
    const char *name;
    for (int i = 0; (name = sr_run_name(w->f, "embeddings", i)); i++) {
        sr_status status = SR_OK;
        sr_run_embedding e = SR_INIT(sr_run_embedding, .rows = 0);
        int64_t step;
        status = sr_run_get_embedding(w->f, name, &e, w->why);
        const bool any = status == SR_OK && e.records > 0;
        double *value = any ? calloc((size_t)e.values, sizeof *value) : NULL;
        if (any && !value)
            status = sr_fail(w->why, SR_MEMORY, "%s: embedding %s", w->f->path, name);
        for (int64_t k = 0, last = 0; status == SR_OK && k < e.records; k++) {
            status = sr_run_singular_values(w->f, name, k, &step, value, w->why);
            if (status == SR_OK && (step < last || !run_descends(value, e.values)))
                status = damaged(w, h5_path_of("/embeddings/%s", name).text,
                                 "steps or singular values in a wrong order");
            last = step;
        }
        free(value);
        report_fault(w);
    }
}

static sr_status check_state(const run_checker *w) {
    const sr_run_info *info = &w->f->info;
    for (int i = 0; i < COMMITTED_COUNT; i++)
        if (!w->f->cut_at && w->f->committed[i] > w->f->extent_least[i])
            return damaged(w, run_committed_names[i], "rows are missing");
    /* HDF5 closes the file of a program that exits without sr_close: "running" */
    const bool unfinished = w->f->unfinished || strcmp(info->status, "running") == 0;
    if (strcmp(info->status, "complete") == 0 && !unfinished) return SR_OK;
    sr_status status = sr_fail(w->why, SR_STATE, "%s: %s, %lld steps readable%s%s", w->f->path,
                               unfinished ? "unfinished" : info->status, (long long)info->steps,
                               *info->reason ? ": " : "", info->reason);
    if (unfinished) sr_hint(w->why, "%s", RECOVER_HINT);
    return status;
}

static void report_part(void *context, sr_failure *why) {
    run_checker *w = context;
    *w->why = *why;
    report_fault(w);
}

static void check_file(run_checker *w) {
    const sr_run_info *info = &w->f->info;
    bool exact = !w->f->unfinished && strcmp(info->status, "running") != 0;
    const char *text;
    for (int i = 0; (text = sr_run_damage(w->f, i)); i++)
        sr_fail(w->why, SR_FORMAT, "%s", text), report_fault(w);
    read_group(w, run_steps, RUN_STEPS, info->steps, exact, false);
    read_statistics(w, exact);
    read_evals(w, exact);
    if (h5_has(reader_file(w->f), "/running")) {
        read_group(w, &run_running_step, 1, 0, false, false);
        read_group(w, run_running, RUN_RUNNING, 0, false, false);
    }
    bool read;
    step_cursor_check_steps(w->f, &read, w->why), report_fault(w);
    if (read) { /* otherwise every step below would seem to be missing */
        step_cursor_check_vectors(w->f, w->why), report_fault(w);
        reader_check_spectra(w->f, exact, w->why), report_fault(w);
    }
    check_evals(w), report_fault(w);
    check_columns_of_sites(w), report_fault(w);
    check_embeddings(w);
    reader_check_final(w->f, w->why), report_fault(w);
    reader_check_pairs(w->f, w->why), report_fault(w);
    reader_verify_trailer(w->f, report_part, w);
    check_state(w), report_fault(w);
}

/* The first fault other than an unfinished file. */
static const sr_failure *first_damage(const run_checker *w) {
    for (int64_t i = 0; i < w->faults; i++)
        if (w->fault[i].status != SR_STATE) return &w->fault[i];
    return NULL;
}

static void check_path(run_checker *w, const char *path) {
    w->f = sr_run_open(path, w->why);
    if (w->f) {
        const size_t row = 8 * (size_t)w->f->info.width;
        w->memory_bytes = row < BATCH_BYTES ? BATCH_BYTES : row;
        if ((w->memory = malloc(w->memory_bytes)))
            check_file(w);
        else
            sr_fail(w->why, SR_MEMORY, "%s: %zu bytes", w->f->path, w->memory_bytes);
        free(w->memory);
    }
    report_fault(w);
}

static void close_checked(run_checker *w) {
    w->faults = 0, w->full = false;
    sr_run_close((sr_runfile *)(uintptr_t)w->f);
    w->f = NULL;
}

/* A fault of a growing file counts if it lasts. Such faults are reported at the end. */
sr_status sr_run_check_all(const char *path, sr_fault_fn *report, void *context, sr_failure *why) {
    sr_failure own = {0};
    run_checker w = {.why = &own, .context = context};
    const bool live = path && reader_is_live(path);
    if (!live) w.report = report;
    check_path(&w, path);
    bool still = live; /* a process was writing the file when the check began */
    for (int attempts = 0; live; attempts++) {
        const sr_failure *damage = first_damage(&w);
        if (!damage || !reader_retries(path, still, damage, attempts)) break;
        close_checked(&w);
        still = reader_is_live(path);
        check_path(&w, path);
    }
    for (int64_t i = 0; i < w.faults && live && report; i++) report(context, &w.fault[i]);
    sr_failure first = w.faults ? w.fault[0] : (sr_failure){0};
    if (w.full)
        first = (sr_failure){0},
        sr_fail(&first, SR_MEMORY, "%s: list of its faults", path ? path : "");
    if (first.status == SR_FORMAT && w.f) sr_hint(&first, "%s", RECOVER_HINT);
    if (why && why->status == SR_OK) *why = first;
    close_checked(&w);
    free(w.fault);
    return first.status;
}

sr_status sr_run_check(const char *path, sr_failure *why) {
    return sr_run_check_all(path, NULL, NULL, why);
}
