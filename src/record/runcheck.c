/* runcheck.c -- walks a whole run file: everything declared is there, everything counted is
 * readable and makes sense. Raw values carry no checksum: a flipped bit in a statistic cannot be
 * seen. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader.h"

enum { BATCH_BYTES = 1 << 20 };

typedef struct walk {
    const sr_runfile *f;
    sr_failure *why;
    void *memory; /* BATCH_BYTES, or one row when that is more */
    size_t memory_bytes;
} walk;

static sr_status damaged(const walk *w, const char *path, const char *what) {
    return sr_fail(w->why, SR_FORMAT, "%s: %s: %s", w->f->path, path, what);
}

/* Reads every counted row of one column. */
static sr_status read_column(const walk *w, const run_column *c, int64_t rows, bool exact) {
    h5_id set;
    h5_shape shape;
    sr_status status = reader_open_column(w->f, c, &set, &shape, w->why);
    if (status != SR_OK) return status;
    char path[2 * SR_NAME_SIZE];
    snprintf(path, sizeof path, "/%s/%s", c->group, c->name);
    if (exact && shape.dims[0] != rows) status = damaged(w, path, "rows that are not counted");
    int64_t columns = shape.rank == 2 ? shape.dims[1] : 1;
    size_t element = c->type == H5_FLOAT32 ? 4 : 8;
    int64_t batch = (int64_t)(w->memory_bytes / element) / (columns > 0 ? columns : 1);
    for (int64_t at = 0; at < rows && status == SR_OK && h5_stored_bytes(set) > 0; at += batch) {
        h5_rows part = {at, rows - at < batch ? rows - at : batch, 0, columns, columns};
        status = h5_read_rows(set, &part, c->type, w->memory, w->why);
    }
    h5_close_dataset(set);
    return status;
}

/* All of a group's columns, or (optional) none. */
static sr_status read_group(const walk *w, const run_column *c, int count, int64_t rows, bool exact,
                            bool optional) {
    sr_status status = SR_OK;
    if (optional && !reader_has_column(w->f, &c[0])) {
        char path[2 * SR_NAME_SIZE];
        snprintf(path, sizeof path, "/%s/%s", c[0].group, c[0].name);
        for (int i = 1; i < count && status == SR_OK; i++)
            if (reader_has_column(w->f, &c[i])) status = damaged(w, path, "missing");
        return status;
    }
    for (int i = 0; i < count && status == SR_OK; i++) status = read_column(w, &c[i], rows, exact);
    return status;
}

/* A group whose rows came in ages: first[0 .. ages] are where they begin, and where the last ends.
 * always: the first age is never missing. */
static sr_status read_ages(const walk *w, const run_column *c, const int *first, int ages,
                           int64_t rows, bool exact, bool always) {
    sr_status status = SR_OK;
    for (int i = 0; i < ages && status == SR_OK; i++)
        status =
            read_group(w, c + first[i], first[i + 1] - first[i], rows, exact, i > 0 || !always);
    return status;
}

static sr_status read_statistics(const walk *w, bool exact) {
    static const int scalar[] = {0, SR_SCALAR_AGES, SR_SCALAR_COUNT},
                     vector[] = {0, SR_VECTOR_AGES, SR_VECTOR_COUNT},
                     eval[] = {0, SR_EVAL_AGES, SR_EVAL_COUNT};
    enum {
        SCALAR = sizeof scalar / sizeof *scalar - 1,
        VECTOR = sizeof vector / sizeof *vector - 1,
        EVAL = sizeof eval / sizeof *eval - 1
    };
    const sr_run_info *info = &w->f->info;
    sr_status status = read_ages(w, run_scalars, scalar, SCALAR, info->steps, exact, false);
    if (status == SR_OK) status = read_group(w, &run_vector_step, 1, info->vectors, exact, false);
    if (status == SR_OK)
        status = read_ages(w, run_vectors, vector, VECTOR, info->vectors, exact, false);
    if (status == SR_OK) status = read_group(w, &run_eval_step, 1, info->evals, exact, false);
    return status == SR_OK ? read_ages(w, run_evals, eval, EVAL, info->evals, exact, true) : status;
}

static int64_t *read_steps(const walk *w, const char *group, int64_t rows) {
    int64_t *step = calloc((size_t)rows + 1, sizeof *step);
    if (!step) {
        sr_fail(w->why, SR_MEMORY, "%s: %lld steps", w->f->path, (long long)rows);
        return NULL;
    }
    sr_status status = strcmp(group, "steps") == 0
                           ? sr_run_step_ints(w->f, "step", 0, rows, step, w->why)
                           : sr_run_vector_steps(w->f, 0, rows, step, w->why);
    if (status == SR_OK) return step;
    free(step);
    return NULL;
}

/* Steps increase; steps of vectors and of spectra increase and are among them. */
static sr_status check_steps(const walk *w, bool exact) {
    const sr_run_info *info = &w->f->info;
    int64_t *step = read_steps(w, "steps", info->steps);
    int64_t *vector = step ? read_steps(w, "vectors", info->vectors) : NULL;
    sr_status status = vector ? SR_OK : w->why->status;
    for (int64_t i = 0; i < info->steps && status == SR_OK; i++)
        if (step[i] < 0 || (i > 0 && step[i] <= step[i - 1]))
            status = damaged(w, "/steps/step", "not increasing");
    for (int64_t i = 0, at = 0; i < info->vectors && status == SR_OK; i++) {
        while (at < info->steps && step[at] < vector[i]) at++;
        if (at == info->steps || step[at] != vector[i] || (i > 0 && vector[i] <= vector[i - 1]))
            status = damaged(w, "/vectors/step", "not increasing, or not among the steps");
    }
    if (status == SR_OK) status = reader_check_spectra(w->f, step, info->steps, exact, w->why);
    free(step), free(vector);
    return status;
}

static sr_status check_evals(const walk *w) {
    double last = -1, step;
    sr_status status = SR_OK;
    for (int64_t i = 0; i < w->f->info.evals && status == SR_OK; i++) {
        status = sr_run_eval(w->f, "step", i, 1, &step, w->why);
        if (status == SR_OK && step < last) status = damaged(w, "/evals/step", "decreasing");
        last = step;
    }
    return status;
}

static sr_status check_columns_of_sites(const walk *w) {
    h5_id set;
    h5_shape shape;
    const sr_run_info *info = &w->f->info;
    sr_status status =
        reader_open(w->f, "/sites/column_site", H5_INT32, 1, 0, &set, &shape, w->why);
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

static sr_status check_embeddings(const walk *w) {
    sr_status status = SR_OK;
    const char *name;
    for (int i = 0; status == SR_OK && (name = sr_run_name(w->f, "embeddings", i)); i++) {
        sr_run_embedding e;
        int64_t step;
        char path[2 * SR_NAME_SIZE];
        snprintf(path, sizeof path, "/embeddings/%.*s", SR_NAME_SIZE - 1, name);
        status = sr_run_get_embedding(w->f, name, &e, w->why);
        double *value = status == SR_OK ? calloc((size_t)e.values, sizeof *value) : NULL;
        if (status == SR_OK && !value)
            status = sr_fail(w->why, SR_MEMORY, "%s: embedding %s", w->f->path, name);
        for (int64_t k = 0, last = 0; status == SR_OK && k < e.records; k++) {
            status = sr_run_singular_values(w->f, name, k, &step, value, w->why);
            if (status == SR_OK && (step < last || !reader_descends(value, e.values)))
                status = damaged(w, path, "steps or singular values in a wrong order");
            last = step;
        }
        free(value);
    }
    return status;
}

static sr_status check_state(const walk *w) {
    const sr_run_info *info = &w->f->info;
    for (int i = 0; i < COMMITTED_COUNT; i++)
        if (!w->f->cut_at && w->f->committed[i] > w->f->extent_least[i])
            return damaged(w, run_committed_names[i], "rows are missing");
    if (strcmp(info->status, "complete") == 0 && !w->f->unfinished) return SR_OK;
    sr_status status = sr_fail(w->why, SR_STATE, "%s: %s, %lld steps readable%s%s", w->f->path,
                               w->f->unfinished ? "unfinished" : info->status,
                               (long long)info->steps, *info->reason ? ": " : "", info->reason);
    if (w->f->unfinished) sr_hint(w->why, "`statrec recover` copies what is readable");
    return status;
}

static sr_status walk_file(const walk *w) {
    const sr_run_info *info = &w->f->info;
    bool exact = !w->f->unfinished && strcmp(info->status, "running") != 0;
    sr_status status = read_group(w, run_step_ints, RUN_STEP_INTS, info->steps, exact, false);
    if (status == SR_OK)
        status = read_group(w, run_step_reals, RUN_STEP_REALS, info->steps, exact, false);
    if (status == SR_OK) status = read_statistics(w, exact);
    if (status == SR_OK) status = check_steps(w, exact);
    if (status == SR_OK) status = check_evals(w);
    if (status == SR_OK) status = check_columns_of_sites(w);
    if (status == SR_OK) status = check_embeddings(w);
    if (status == SR_OK) status = reader_check_final(w->f, w->why);
    return status == SR_OK ? check_state(w) : status;
}

sr_status sr_run_check(const char *path, sr_failure *why) {
    sr_failure own = {0};
    sr_runfile *f = sr_run_open(path, &own);
    if (f) {
        walk w = {f, &own, NULL, 8 * (size_t)f->info.width};
        if (w.memory_bytes < BATCH_BYTES) w.memory_bytes = BATCH_BYTES;
        w.memory = malloc(w.memory_bytes);
        if (w.memory) {
            if (walk_file(&w) == SR_FORMAT)
                sr_hint(&own, "`statrec recover` copies what is readable");
        } else {
            sr_fail(&own, SR_MEMORY, "%s: %zu bytes", f->path, w.memory_bytes);
        }
        free(w.memory);
        sr_run_close(f);
    }
    if (own.status != SR_OK && why && why->status == SR_OK) *why = own;
    return own.status;
}
