/* check_run.c -- walks a whole run file: everything declared is there, everything counted is
 * readable and makes sense. Of a file with sums (trailer.h) every byte is looked at. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runfile/read/datasets/read_custom.h"
#include "runfile/read/datasets/read_metrics.h"
#include "runfile/read/datasets/read_pairs.h"
#include "runfile/read/datasets/read_spectra.h"
#include "runfile/read/file/open_file_cache.h"
#include "runfile/read/file/read_column.h"
#include "runfile/read/file/read_growing.h"
#include "runfile/read/file/step_cursor.h"
#include "runfile/read/read_trailer.h"

#define RECOVER_HINT "`statrec recover` copies what is readable"

enum { BATCH_BYTES = 1 << 20 };

/* A fault that was told. */
typedef struct fault {
    struct fault *next;
    sr_failure why;
} fault;

typedef struct run_checker {
    const sr_runfile *f;
    sr_failure *why; /* of what is looked at now; see report_fault() */
    sr_fault_fn *tell;
    void *context;
    fault *first, **last;
    void *memory; /* BATCH_BYTES, or one row when that is more */
    size_t memory_bytes;
} run_checker;

static sr_status damaged(const run_checker *w, const char *path, const char *what) {
    return sr_fail(w->why, SR_FORMAT, "%s: %s: %s", w->f->path, path, what);
}

/* Behind every look: tells the fault that it found, once, and makes room for the next. */
static void report_fault(run_checker *w) {
    const sr_failure why = *w->why;
    *w->why = (sr_failure){0};
    if (why.status == SR_OK) return;
    for (const fault *k = w->first; k; k = k->next)
        if (strcmp(k->why.text, why.text) == 0) return;
    fault *own = calloc(1, sizeof *own);
    if (w->tell) w->tell(w->context, &why);
    if (!own) return; /* it was told */
    own->why = why;
    *w->last = own, w->last = &own->next;
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
    char path[2 * SR_NAME_SIZE];
    snprintf(path, sizeof path, "/%s/%s", c->group, c->name);
    if (exact && shape.dims[0] != rows) status = damaged(w, path, "rows that are not counted");
    int64_t columns = shape.rank == 2 ? shape.dims[1] : 1;
    size_t element = c->type == H5_FLOAT32 ? 4 : 8;
    int64_t batch = (int64_t)(w->memory_bytes / element) / (columns > 0 ? columns : 1);
    /* of a file that was cut the index may be gone, and all rows that are counted are there */
    const bool stored = h5_stored_bytes_or(set, w->f->cut_at ? NULL : w->why) > 0;
    for (int64_t at = 0; at < rows && status == SR_OK && stored; at += batch) {
        h5_rows part = {at, rows - at < batch ? rows - at : batch, 0, columns, columns};
        status = h5_read_rows(set, &part, c->type, w->memory, w->why);
    }
    h5_close_dataset(set);
    report_fault(w);
}

/* All of a group's columns, or (optional) none. */
static void read_group(run_checker *w, const run_column *c, int count, int64_t rows, bool exact,
                       bool optional) {
    char path[2 * SR_NAME_SIZE];
    bool none = optional && !reader_has_column(w->f, &c[0]);
    snprintf(path, sizeof path, "/%s/%s", c[0].group, c[0].name);
    for (int i = 0; i < count; i++) {
        if (!none) read_column(w, &c[i], rows, exact);
        if (none && reader_has_column(w->f, &c[i])) damaged(w, path, "missing");
        report_fault(w);
    }
}

/* A group whose rows came in ages: first[0 .. ages] are where they begin, and where the last
   ends. */
static void read_ages(run_checker *w, const run_column *c, const int *first, int ages, int64_t rows,
                      bool exact) {
    for (int i = 0; i < ages; i++)
        read_group(w, c + first[i], first[i + 1] - first[i], rows, exact, true);
}

static void read_statistics(run_checker *w, bool exact) {
    static const int scalar[] = {0, SR_SCALAR_AGES, SR_SCALAR_COUNT},
                     vector[] = {0, SR_VECTOR_AGES, SR_VECTOR_COUNT};
    enum {
        SCALAR = sizeof scalar / sizeof *scalar - 1,
        VECTOR = sizeof vector / sizeof *vector - 1
    };
    const sr_run_info *info = &w->f->info;
    read_ages(w, run_scalars, scalar, SCALAR, info->steps, exact);
    for (int i = 0; i < w->f->declared_count; i++)
        read_column(w, &w->f->declared[i].column, info->steps, exact), report_fault(w);
    read_group(w, &run_vector_step, 1, info->vectors, exact, false);
    read_ages(w, run_vectors, vector, VECTOR, info->vectors, exact);
}

static void read_evals(run_checker *w, bool exact) {
    const int64_t evals = w->f->info.evals;
    read_group(w, &run_eval_step, 1, evals, exact, false);
    read_group(w, &run_eval_epoch, 1, evals, exact, false);
    for (int i = 0; i < w->f->metrics; i++)
        read_column(w, &w->f->metric[i].column, evals, exact), report_fault(w);
    reader_check_metrics(w->f, w->why), report_fault(w);
}

/* Steps increase; steps of vectors and of spectra increase and are among them. */
static void check_steps(run_checker *w, bool exact) {
    bool read;
    step_cursor_check_steps(w->f, &read, w->why), report_fault(w);
    if (!read) return; /* every step of what follows would seem to be missing */
    step_cursor_check_vectors(w->f, w->why), report_fault(w);
    reader_check_spectra(w->f, exact, w->why), report_fault(w);
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
        char path[2 * SR_NAME_SIZE];
        snprintf(path, sizeof path, "/embeddings/%.*s", SR_NAME_SIZE - 1, name);
        status = sr_run_get_embedding(w->f, name, &e, w->why);
        const bool any = status == SR_OK && e.records > 0;
        double *value = any ? calloc((size_t)e.values, sizeof *value) : NULL;
        if (any && !value)
            status = sr_fail(w->why, SR_MEMORY, "%s: embedding %s", w->f->path, name);
        for (int64_t k = 0, last = 0; status == SR_OK && k < e.records; k++) {
            status = sr_run_singular_values(w->f, name, k, &step, value, w->why);
            if (status == SR_OK && (step < last || !reader_descends(value, e.values)))
                status = damaged(w, path, "steps or singular values in a wrong order");
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
    if (strcmp(info->status, "complete") == 0 && !w->f->unfinished) return SR_OK;
    sr_status status = sr_fail(w->why, SR_STATE, "%s: %s, %lld steps readable%s%s", w->f->path,
                               w->f->unfinished ? "unfinished" : info->status,
                               (long long)info->steps, *info->reason ? ": " : "", info->reason);
    if (w->f->unfinished) sr_hint(w->why, "%s", RECOVER_HINT);
    return status;
}

static void tell_part(void *context, sr_failure *why) {
    run_checker *w = context;
    *w->why = *why;
    report_fault(w);
}

static void walk_file(run_checker *w) {
    const sr_run_info *info = &w->f->info;
    bool exact = !w->f->unfinished && strcmp(info->status, "running") != 0;
    const char *text;
    for (int i = 0; (text = sr_run_damage(w->f, i)); i++)
        sr_fail(w->why, SR_FORMAT, "%s", text), report_fault(w);
    read_group(w, run_step_ints, RUN_STEP_INTS, info->steps, exact, false);
    read_group(w, run_step_reals, RUN_STEP_REALS, info->steps, exact, false);
    read_statistics(w, exact);
    read_evals(w, exact);
    if (h5_has(reader_file(w->f), "/running")) {
        read_group(w, &run_running_step, 1, 0, false, false);
        read_group(w, run_running, RUN_RUNNING, 0, false, false);
    }
    check_steps(w, exact);
    check_evals(w), report_fault(w);
    check_columns_of_sites(w), report_fault(w);
    check_embeddings(w);
    reader_check_final(w->f, w->why), report_fault(w);
    reader_check_pairs(w->f, w->why), report_fault(w);
    reader_verify_trailer(w->f, tell_part, w);
    check_state(w), report_fault(w);
}

/* The first fault; what is damaged may be recovered. */
static sr_status keep_first(const run_checker *w, sr_failure *why) {
    if (!w->first) return SR_OK;
    sr_failure first = w->first->why;
    if (first.status == SR_FORMAT && w->f) sr_hint(&first, "%s", RECOVER_HINT);
    if (why && why->status == SR_OK) *why = first;
    return first.status;
}

/* The first fault that is more than being unfinished. */
static const sr_failure *first_damage(const run_checker *w) {
    for (const fault *k = w->first; k; k = k->next)
        if (k->why.status != SR_STATE) return &k->why;
    return NULL;
}

static void look(run_checker *w, const char *path) {
    w->f = sr_run_open(path, w->why);
    if (w->f) {
        const size_t row = 8 * (size_t)w->f->info.width;
        w->memory_bytes = row < BATCH_BYTES ? BATCH_BYTES : row;
        if ((w->memory = malloc(w->memory_bytes)))
            walk_file(w);
        else
            sr_fail(w->why, SR_MEMORY, "%s: %zu bytes", w->f->path, w->memory_bytes);
        free(w->memory);
    }
    report_fault(w);
}

static void close_look(run_checker *w) {
    for (fault *k = w->first, *next; k; k = next) {
        next = k->next;
        free(k);
    }
    w->first = NULL, w->last = &w->first;
    sr_run_close((sr_runfile *)(uintptr_t)w->f);
    w->f = NULL;
}

/* What is met in a file that grows counts when it lasts. */
static void look_until_it_lasts(run_checker *w, const char *path) {
    for (int looks = 0;; looks++) {
        const bool live = reader_is_live(path);
        look(w, path);
        const sr_failure *damage = first_damage(w);
        if (!damage || !reader_retries(path, live, damage, looks)) return;
        close_look(w);
    }
}

sr_status sr_run_check_all(const char *path, sr_fault_fn *tell, void *context, sr_failure *why) {
    sr_failure own = {0};
    run_checker w = {.why = &own, .context = context};
    w.last = &w.first;
    const bool live = path && reader_is_live(path);
    if (!live) w.tell = tell;
    if (live)
        look_until_it_lasts(&w, path);
    else
        look(&w, path);
    for (const fault *k = w.first; k && live && tell; k = k->next) tell(context, &k->why);
    sr_status status = keep_first(&w, why);
    close_look(&w);
    return status;
}

sr_status sr_run_check(const char *path, sr_failure *why) {
    return sr_run_check_all(path, NULL, NULL, why);
}
