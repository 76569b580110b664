/* runspectra.c -- /spectra (singular values of a site's input and of its gradient at chosen steps)
 * and /final (what a last pass after training measured): writing, reading, copying, checking. Both
 * groups are there only when the host asked for them, so a reader takes their absence for "none".
 *
 * A row of /spectra goes to the file when its step ends; `step` is written last, so a row that has
 * a step is whole.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader.h"
#include "recorder.h"

#define SPECTRUM(name, definition)    {"spectra", #name, "1", definition, H5_FLOAT64},
#define FINAL(name, unit, definition) {"final", #name, unit, definition, H5_FLOAT64},

const run_column run_spectra[SR_SPECTRUM_COUNT] = {SR_SPECTRA(SPECTRUM)};
const run_column run_spectra_step = {"spectra", "step", "1", "step of each row, one of /steps/step",
                                     H5_INT64};
const run_column run_spectra_rows = {"spectra", "rows", "1", "valid rows N; -1: not measured",
                                     H5_INT64};
const run_column run_finals[SR_FINAL_COUNT] = {SR_FINALS(FINAL)};

/* -- writing --------------------------------------------------------------------------------- */

static sr_status reserve_row(sr_recorder *r) {
    spectra_row *s = &r->writer.spectra;
    if (s->rows) return SR_OK;
    s->value[0] = malloc((size_t)(SR_SPECTRUM_COUNT * r->width) * sizeof(double));
    if (s->value[0]) s->rows = malloc((size_t)r->sites * sizeof *s->rows);
    for (int i = 1; i < SR_SPECTRUM_COUNT && s->rows; i++) s->value[i] = s->value[i - 1] + r->width;
    if (s->rows) return SR_OK;
    return sr_fail(&r->failure, SR_MEMORY, "%s: a row of spectra", r->path);
}

static void begin_row(sr_recorder *r) {
    spectra_row *s = &r->writer.spectra;
    for (int64_t i = 0; i < r->sites; i++) s->rows[i] = -1;
    for (int64_t i = 0; i < SR_SPECTRUM_COUNT * r->width; i++) s->value[0][i] = NAN;
    s->used = true;
}

sr_status sr_put_spectrum(sr_recorder *r, int site, int64_t rows,
                          const double *const value[SR_SPECTRUM_COUNT]) {
    if (!recorder_site(r, site, "sr_put_spectrum")) return recorder_check(r);
    if (!r->options.spectra)
        return sr_fail(&r->failure, SR_STATE, "%s: sr_put_spectrum without sr_options.spectra",
                       r->path);
    if (rows < 0 || !value)
        return sr_fail(&r->failure, SR_USAGE, "%s: sr_put_spectrum: %lld rows at site %s", r->path,
                       (long long)rows, r->site[site].name);
    if (reserve_row(r) != SR_OK) return recorder_check(r);
    spectra_row *s = &r->writer.spectra;
    if (!s->used) begin_row(r);
    s->rows[site] = rows;
    const sr_run_site *at = &r->site[site];
    for (int i = 0; i < SR_SPECTRUM_COUNT; i++)
        if (value[i])
            memcpy(s->value[i] + at->offset, value[i], (size_t)at->width * sizeof *value[i]);
    return SR_OK;
}

static sr_status append_row(h5_id set, int64_t at, int64_t columns, h5_type type, const void *value,
                            sr_failure *why) {
    h5_rows row = {at, 1, 0, columns, columns};
    sr_status status = h5_extend(set, at + 1, why);
    return status == SR_OK ? h5_write_rows(set, &row, type, value, why) : status;
}

sr_status writer_put_spectra(run_writer *w, int64_t step, sr_failure *why) {
    spectra_row *s = &w->spectra;
    if (!s->used) return SR_OK;
    s->used = false;
    const run_layout *l = &w->layout;
    sr_status status = append_row(s->rows_set, s->written, l->sites, H5_INT64, s->rows, why);
    for (int i = 0; i < SR_SPECTRUM_COUNT && status == SR_OK; i++)
        status = append_row(s->set[i], s->written, l->width, H5_FLOAT64, s->value[i], why);
    if (status == SR_OK) status = append_row(s->step_set, s->written, 1, H5_INT64, &step, why);
    if (status == SR_OK) s->written++;
    return status;
}

sr_status writer_put_final(run_writer *w, int64_t batches, const double *const *value,
                           sr_failure *why) {
    sr_status status = SR_OK;
    for (int i = 0; i < SR_FINAL_COUNT && status == SR_OK && w->layout.sites > 0; i++)
        status = h5_write_all(w->final_set[i], H5_FLOAT64, 0, value[i], why);
    if (status != SR_OK) return status;
    return h5_write_all(w->final_batches_set, H5_INT64, 0, &batches, why);
}

sr_status sr_put_final(sr_recorder *r, int64_t batches, const double *const value[SR_FINAL_COUNT]) {
    if (!r || recorder_start(r) != SR_OK) return recorder_check(r);
    bool whole = value && batches >= 0;
    for (int i = 0; whole && i < SR_FINAL_COUNT; i++) whole = value[i] != NULL;
    if (!r->options.final || !whole)
        return sr_fail(&r->failure, r->options.final ? SR_USAGE : SR_STATE, "%s: sr_put_final %s",
                       r->path, r->options.final ? "without values" : "without sr_options.final");
    return writer_keep(&r->writer, writer_put_final(&r->writer, batches, value, &r->failure));
}

/* -- reading --------------------------------------------------------------------------------- */

static sr_status open_spectra(const sr_runfile *f, const run_column *c, h5_id *set, h5_shape *shape,
                              sr_failure *why) {
    char path[2 * SR_NAME_SIZE];
    snprintf(path, sizeof path, "/%s/%s", c->group, c->name);
    bool steps = c == &run_spectra_step;
    int64_t columns = c == &run_spectra_rows ? f->info.sites : f->info.width;
    return reader_open(f, path, c->type, steps ? 1 : 2, columns, set, shape, why);
}

static const run_column *column_at(int i) {
    if (i < SR_SPECTRUM_COUNT) return &run_spectra[i];
    return i == SR_SPECTRUM_COUNT ? &run_spectra_rows : &run_spectra_step;
}

/* Rows of one column at most, to *least. */
static sr_status count_column(const sr_runfile *f, const run_column *c, int64_t *least,
                              sr_failure *why) {
    h5_id set;
    h5_shape shape;
    sr_status status = open_spectra(f, c, &set, &shape, why);
    if (status != SR_OK) return status;
    int64_t stored = c == &run_spectra_step ? h5_stored_bytes_or(set, why) / 8 : INT64_MAX;
    if (shape.dims[0] < *least) *least = shape.dims[0];
    if (f->cut_at) *least = h5_whole_rows(set, *least, f->cut_at);
    if (stored < *least) *least = stored;
    h5_close_dataset(set);
    return why->status;
}

/* Damaged columns count for nothing, and without steps there are no rows. */
sr_status reader_count_spectra(sr_runfile *f, sr_failure *why) {
    f->info.spectra = 0;
    int64_t least = INT64_MAX;
    sr_status status = SR_OK;
    if (!reader_has_column(f, &run_spectra_step)) return SR_OK;
    for (int i = 0; i < SR_SPECTRUM_COUNT + 2 && status == SR_OK; i++) {
        sr_failure own = {0};
        if (count_column(f, column_at(i), &least, &own) != SR_OK &&
            column_at(i) == &run_spectra_step)
            least = 0;
        status = reader_forgive(f, &own, why);
    }
    f->info.spectra = least == INT64_MAX ? 0 : least;
    return status;
}

static sr_status read_part(const sr_runfile *f, const run_column *c, const h5_rows *rows,
                           void *value, sr_failure *why) {
    h5_id set;
    h5_shape shape;
    sr_status status = open_spectra(f, c, &set, &shape, why);
    if (status == SR_OK) status = h5_read_rows(set, rows, c->type, value, why);
    h5_close_dataset(set);
    return status;
}

sr_status sr_run_spectrum(const sr_runfile *f, sr_spectrum which, int64_t site, int64_t i,
                          int64_t *step, int64_t *rows, double *value, sr_failure *why) {
    if ((int)which < 0 || which >= SR_SPECTRUM_COUNT || i < 0 || i >= f->info.spectra || site < 0 ||
        site >= f->info.sites)
        return sr_fail(why, SR_USAGE, "%s: spectrum %d of site %lld, row %lld of %lld", f->path,
                       (int)which, (long long)site, (long long)i, (long long)f->info.spectra);
    const sr_run_site *s = &f->site[site];
    h5_rows one = {i, 1, 0, 1, 1}, at = {i, 1, site, 1, 1},
            own = {i, 1, s->offset, s->width, s->width};
    sr_status status = read_part(f, &run_spectra_step, &one, step, why);
    if (status == SR_OK) status = read_part(f, &run_spectra_rows, &at, rows, why);
    return status == SR_OK ? read_part(f, &run_spectra[which], &own, value, why) : status;
}

static sr_status read_fixed(const sr_runfile *f, const char *path, h5_type type, int rank,
                            void *value, sr_failure *why) {
    h5_id set;
    h5_shape shape;
    sr_status status = reader_open(f, path, type, rank, 0, &set, &shape, why);
    if (status == SR_OK && rank == 1 && shape.dims[0] != f->info.sites)
        status = sr_fail(why, SR_FORMAT, "%s: %s: not one value a site", f->path, path);
    if (status == SR_OK && (rank == 0 || f->info.sites > 0))
        status = h5_read_all(set, type, 0, value, why);
    h5_close_dataset(set);
    return status;
}

sr_status sr_run_final(const sr_runfile *f, int64_t *batches, double *const value[SR_FINAL_COUNT],
                       sr_failure *why) {
    *batches = -1;
    if (!h5_has(f->file, "/final/batches")) return SR_OK;
    sr_status status = read_fixed(f, "/final/batches", H5_INT64, 0, batches, why);
    for (int i = 0; i < SR_FINAL_COUNT && status == SR_OK; i++) {
        char path[2 * SR_NAME_SIZE];
        snprintf(path, sizeof path, "/final/%s", run_finals[i].name);
        status = read_fixed(f, path, H5_FLOAT64, 1, value[i], why);
    }
    return status;
}

/* -- checking and copying -------------------------------------------------------------------- */

/* One row of /spectra in memory. */
typedef struct spectra_copy {
    int64_t step, *rows;              /* [S] */
    double *value[SR_SPECTRUM_COUNT]; /* [W] each, one block */
} spectra_copy;

static bool copy_init(spectra_copy *c, const sr_runfile *f) {
    c->rows = calloc((size_t)f->info.sites + 1, sizeof *c->rows);
    c->value[0] = calloc((size_t)(SR_SPECTRUM_COUNT * f->info.width) + 1, sizeof(double));
    for (int i = 1; i < SR_SPECTRUM_COUNT && c->value[0]; i++)
        c->value[i] = c->value[i - 1] + f->info.width;
    return c->rows && c->value[0];
}

static void copy_free(spectra_copy *c) {
    free(c->rows), free(c->value[0]);
}

static sr_status copy_read(spectra_copy *c, const sr_runfile *f, int64_t i, sr_failure *why) {
    const int64_t s = f->info.sites, w = f->info.width;
    h5_rows one = {i, 1, 0, 1, 1}, sites = {i, 1, 0, s, s}, columns = {i, 1, 0, w, w};
    sr_status status = read_part(f, &run_spectra_step, &one, &c->step, why);
    if (status == SR_OK) status = read_part(f, &run_spectra_rows, &sites, c->rows, why);
    for (int k = 0; k < SR_SPECTRUM_COUNT && status == SR_OK; k++)
        status = read_part(f, &run_spectra[k], &columns, c->value[k], why);
    return status;
}

static sr_status damaged(const sr_runfile *f, const run_column *c, const char *what,
                         sr_failure *why) {
    return sr_fail(why, SR_FORMAT, "%s: /%s/%s: %s", f->path, c->group, c->name, what);
}

bool reader_descends(const double *value, int64_t count) {
    for (int64_t k = 0; k < count; k++)
        if (value[k] < 0 || (k > 0 && value[k] > value[k - 1])) return false;
    return true;
}

static bool all_nan(const double *value, int64_t count) {
    for (int64_t k = 0; k < count; k++)
        if (!isnan(value[k])) return false;
    return true;
}

/* Singular values descend; without rows there are none. */
static sr_status check_row(const spectra_copy *c, const sr_runfile *f, sr_failure *why) {
    for (int64_t i = 0; i < f->info.sites; i++) {
        const sr_run_site *s = &f->site[i];
        if (c->rows[i] < -1) return damaged(f, &run_spectra_rows, "a count below -1", why);
        for (int k = 0; k < SR_SPECTRUM_COUNT; k++) {
            const double *own = c->value[k] + s->offset;
            if (!reader_descends(own, s->width))
                return damaged(f, &run_spectra[k], "singular values that do not descend", why);
            if (c->rows[i] < 0 && !all_nan(own, s->width))
                return damaged(f, &run_spectra[k], "values of a site that was not measured", why);
        }
    }
    return SR_OK;
}

/* Every column is there with as many rows as can be read; the steps, without which none can, first.
 */
static sr_status check_extents(const sr_runfile *f, sr_failure *why) {
    bool any = false;
    sr_status status = SR_OK;
    for (int i = 0; i < SR_SPECTRUM_COUNT + 2; i++) any |= reader_has_column(f, column_at(i));
    for (int i = SR_SPECTRUM_COUNT + 1; i >= 0 && any && status == SR_OK; i--) {
        h5_id set;
        h5_shape shape;
        status = open_spectra(f, column_at(i), &set, &shape, why);
        if (status == SR_OK && shape.dims[0] != f->info.spectra)
            status = damaged(f, column_at(i), "rows that are not whole", why);
        h5_close_dataset(set);
    }
    return status;
}

/* Reads every row: steps increase and are among step [count], which increases. */
static sr_status check_rows(const sr_runfile *f, const int64_t *step, int64_t count,
                            sr_failure *why) {
    spectra_copy c;
    sr_status status = SR_OK;
    int64_t last = -1, at = 0;
    if (!copy_init(&c, f)) status = sr_fail(why, SR_MEMORY, "%s: a row of spectra", f->path);
    for (int64_t i = 0; i < f->info.spectra && status == SR_OK; i++) {
        status = copy_read(&c, f, i, why);
        while (at < count && step[at] < c.step) at++;
        if (status == SR_OK && (c.step <= last || at == count || step[at] != c.step))
            status = damaged(f, &run_spectra_step, "not increasing, or not among the steps", why);
        if (status == SR_OK) status = check_row(&c, f, why);
        last = c.step;
    }
    copy_free(&c);
    return status;
}

sr_status reader_check_spectra(const sr_runfile *f, const int64_t *step, int64_t count, bool exact,
                               sr_failure *why) {
    sr_status status = exact ? check_extents(f, why) : SR_OK;
    return status == SR_OK ? check_rows(f, step, count, why) : status;
}

sr_status reader_check_final(const sr_runfile *f, sr_failure *why) {
    int64_t batches = -1, sites = f->info.sites;
    double *value[SR_FINAL_COUNT];
    bool any = h5_has(f->file, "/final/batches");
    for (int i = 0; i < SR_FINAL_COUNT; i++) any |= reader_has_column(f, &run_finals[i]);
    if (!any) return SR_OK;
    if (!h5_has(f->file, "/final/batches"))
        return sr_fail(why, SR_FORMAT, "%s: no dataset /final/batches", f->path);
    double *memory = calloc((size_t)(SR_FINAL_COUNT * sites) + 1, sizeof *memory);
    if (!memory) return sr_fail(why, SR_MEMORY, "%s: /final", f->path);
    for (int i = 0; i < SR_FINAL_COUNT; i++) value[i] = memory + i * sites;
    sr_status status = sr_run_final(f, &batches, value, why);
    if (status == SR_OK && batches < -1)
        status = sr_fail(why, SR_FORMAT, "%s: /final/batches: %lld", f->path, (long long)batches);
    for (int i = 0; i < SR_FINAL_COUNT && status == SR_OK; i++) {
        if (batches < 0 && !all_nan(value[i], sites))
            status = damaged(f, &run_finals[i], "values without a pass", why);
        for (int64_t k = 0; k < sites && status == SR_OK; k++)
            if (value[i][k] < 0) status = damaged(f, &run_finals[i], "a negative value", why);
    }
    free(memory);
    return status;
}

/* One part of row i; the values that it leaves are NaN or -1 where it cannot be read. */
static bool copy_part(const sr_runfile *f, const run_column *c, int64_t i, int64_t columns,
                      void *value, copy_losses *losses) {
    h5_rows row = {i, 1, 0, columns, columns};
    sr_failure why = {0};
    if (read_part(f, c, &row, value, &why) == SR_OK) return true;
    copy_missed(losses, c->group, c->name, 1, &why);
    for (int64_t k = 0; k < columns; k++) {
        if (c->type == H5_INT64) ((int64_t *)value)[k] = -1;
        if (c->type == H5_FLOAT64) ((double *)value)[k] = NAN;
    }
    return false;
}

/* What can be read of row i; false without its step. */
static bool copy_what_is_whole(spectra_copy *c, const sr_runfile *f, int64_t i,
                               copy_losses *losses) {
    if (!copy_part(f, &run_spectra_step, i, 1, &c->step, losses)) return false;
    copy_part(f, &run_spectra_rows, i, f->info.sites, c->rows, losses);
    for (int k = 0; k < SR_SPECTRUM_COUNT; k++)
        copy_part(f, &run_spectra[k], i, f->info.width, c->value[k], losses);
    return true;
}

sr_status recorder_copy_spectra(sr_recorder *r, const sr_runfile *f, int64_t up_to,
                                copy_losses *losses) {
    spectra_copy c;
    sr_status status = SR_OK;
    if (!r->options.spectra || f->info.spectra == 0) return SR_OK;
    if (!copy_init(&c, f) || reserve_row(r) != SR_OK)
        status = sr_fail(&r->failure, SR_MEMORY, "%s: a row of spectra", f->path);
    for (int64_t i = 0, last = -1; i < f->info.spectra && status == SR_OK; i++) {
        if (!copy_what_is_whole(&c, f, i, losses) || c.step <= last) continue;
        if (c.step > (up_to >= 0 ? up_to : r->step)) break; /* its step is not copied */
        last = c.step;
        begin_row(r);
        memcpy(r->writer.spectra.rows, c.rows, (size_t)r->sites * sizeof *c.rows);
        memcpy(r->writer.spectra.value[0], c.value[0],
               (size_t)(SR_SPECTRUM_COUNT * r->width) * sizeof(double));
        status = writer_keep(&r->writer, writer_put_spectra(&r->writer, c.step, &r->failure));
    }
    copy_free(&c);
    return status;
}

sr_status recorder_copy_final(sr_recorder *r, const sr_runfile *f, copy_losses *losses) {
    int64_t batches = -1;
    double *value[SR_FINAL_COUNT], *memory;
    sr_failure why = {0};
    if (!r->options.final) return SR_OK;
    memory = calloc((size_t)(SR_FINAL_COUNT * r->sites) + 1, sizeof *memory);
    if (!memory) return sr_fail(&r->failure, SR_MEMORY, "%s: /final", f->path);
    for (int i = 0; i < SR_FINAL_COUNT; i++) value[i] = memory + i * r->sites;
    if (h5_has(f->file, "/final/batches") &&
        read_fixed(f, "/final/batches", H5_INT64, 0, &batches, &why) != SR_OK)
        copy_missed(losses, "final", "batches", -1, &why);
    for (int i = 0; i < SR_FINAL_COUNT && batches >= 0; i++) {
        char path[2 * SR_NAME_SIZE];
        sr_failure part = {0};
        snprintf(path, sizeof path, "/final/%s", run_finals[i].name);
        if (read_fixed(f, path, H5_FLOAT64, 1, value[i], &part) == SR_OK) continue;
        copy_missed(losses, "final", run_finals[i].name, -1, &part);
        for (int64_t k = 0; k < r->sites; k++) value[i][k] = NAN;
    }
    if (batches >= 0) sr_put_final(r, batches, (const double *const *)value);
    free(memory);
    return recorder_check(r);
}
