/* read_spectra.c -- reads and checks /spectra (singular values of a site's input and gradient at
 * chosen steps) and /final (statistics of a final pass). Only host programs that request a group
 * create it, so a missing group means no values.
 */
#include "runfile/read/datasets/read_spectra.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runfile/descending.h"
#include "runfile/read/file/damage_list.h"
#include "runfile/read/file/open_file_cache.h"
#include "runfile/read/file/read_column.h"
#include "runfile/read/file/step_cursor.h"
#include "runfile/read/read_trailer.h"

/* -- reading --------------------------------------------------------------------------------- */

static sr_status open_spectra(const sr_runfile *f, const run_column *c, h5_id *set, h5_shape *shape,
                              sr_failure *why) {
    bool steps = c == &run_spectra_step;
    int64_t columns = c == &run_spectra_rows ? f->info.sites : f->info.width;
    return reader_open(f, h5_path_of("/%s/%s", c->group, c->name).text, c->type, steps ? 1 : 2,
                       columns, set, shape, why);
}

static const run_column *column_at(int i) {
    if (i < SR_SPECTRUM_COUNT) return &run_spectra[i];
    return i == SR_SPECTRUM_COUNT ? &run_spectra_rows : &run_spectra_step;
}

/* Lowers *least to the readable rows of one column. No rows are left when the index of chunks is
 * cut off. */
static sr_status count_column(const sr_runfile *f, const run_column *c, int64_t *least,
                              sr_failure *why) {
    h5_id set;
    h5_shape shape;
    sr_failure own = {0};
    sr_status status = open_spectra(f, c, &set, &shape, why);
    if (status != SR_OK) return status;
    const int64_t columns = shape.rank == 2 && shape.dims[1] > 0 ? shape.dims[1] : 1;
    int64_t stored = INT64_MAX; /* rows are written as a whole */
    if (c == &run_spectra_step || !f->cut_at) stored = h5_stored_bytes(set, &own) / 8 / columns;
    if (shape.dims[0] < *least) *least = shape.dims[0];
    if (f->cut_at) *least = h5_whole_rows(set, *least, f->cut_at);
    if (stored < *least) *least = stored;
    h5_close_dataset(set);
    if (own.status == SR_OK || (f->cut_at && own.status != SR_MEMORY)) return SR_OK;
    return sr_fail(why, own.status, "%s", own.text);
}

/* /spectra has no committed count. In a file without an end, rows of committed steps are
   complete. */
static sr_status count_committed(sr_runfile *f, int64_t *rows, sr_failure *why) {
    int64_t last = -1, counted = 0;
    sr_status status = SR_OK;
    if (f->info.steps > 0) status = sr_run_step_ints(f, "step", f->info.steps - 1, 1, &last, why);
    for (int64_t step = -1; counted < *rows && status == SR_OK; counted++) {
        const h5_rows one = {counted, 1, 0, 1, 1};
        status = reader_spectra_part(f, &run_spectra_step, &one, &step, why);
        if (step < 0 || step > last) break;
    }
    if (status == SR_OK) *rows = counted;
    return status;
}

/* Ignores damaged columns; without steps there are no rows. An intact file is counted by its steps
 * alone, as in count_rows. Its other columns have the same rows and are opened when they are
 * read. */
sr_status reader_count_spectra(sr_runfile *f, sr_failure *why) {
    f->info.spectra = 0;
    int64_t least = INT64_MAX;
    sr_status status = SR_OK;
    if (!reader_has_column(f, &run_spectra_step)) return SR_OK;
    const int first = reader_is_intact(f) ? SR_SPECTRUM_COUNT + 1 : 0;
    for (int i = first; i < SR_SPECTRUM_COUNT + 2 && status == SR_OK; i++) {
        sr_failure own = {0};
        if (count_column(f, column_at(i), &least, &own) != SR_OK &&
            column_at(i) == &run_spectra_step)
            least = 0;
        status = damage_list_add(f, &own, why);
    }
    f->info.spectra = least == INT64_MAX ? 0 : least;
    if (status != SR_OK || !f->unfinished || f->cut_at) return status;
    sr_failure own = {0};
    count_committed(f, &f->info.spectra, &own);
    return damage_list_add(f, &own, why);
}

sr_status reader_spectra_part(const sr_runfile *f, const run_column *c, const h5_rows *rows,
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
    if ((unsigned)which >= SR_SPECTRUM_COUNT || i < 0 || i >= f->info.spectra || site < 0 ||
        site >= f->info.sites)
        return sr_fail(why, SR_USAGE, "%s: spectrum %d of site %lld, row %lld of %lld", f->path,
                       (int)which, (long long)site, (long long)i, (long long)f->info.spectra);
    const sr_run_site *s = &f->site[site];
    h5_rows one = {i, 1, 0, 1, 1}, at = {i, 1, site, 1, 1},
            own = {i, 1, s->offset, s->width, s->width};
    sr_status status = reader_spectra_part(f, &run_spectra_step, &one, step, why);
    if (status == SR_OK) status = reader_spectra_part(f, &run_spectra_rows, &at, rows, why);
    return status == SR_OK ? reader_spectra_part(f, &run_spectra[which], &own, value, why) : status;
}

sr_status sr_run_final(const sr_runfile *f, int64_t *batches, double *const value[SR_FINAL_COUNT],
                       sr_failure *why) {
    *batches = -1;
    if (!h5_has(reader_file(f), "/final/batches")) return SR_OK;
    sr_status status = reader_fixed(f, "/final/batches", H5_INT64, 0, 0, batches, why);
    for (int i = 0; i < SR_FINAL_COUNT && status == SR_OK; i++)
        status = reader_fixed(f, h5_path_of("/final/%s", run_finals[i].name).text, H5_FLOAT64, 0, 1,
                              value[i], why);
    return status;
}

/* -- checking -------------------------------------------------------------------- */

bool reader_spectra_init(spectra_copy *c, const sr_runfile *f) {
    c->rows = calloc((size_t)f->info.sites + 1, sizeof *c->rows);
    c->value[0] = calloc((size_t)(SR_SPECTRUM_COUNT * f->info.width) + 1, sizeof(double));
    for (int i = 1; i < SR_SPECTRUM_COUNT && c->value[0]; i++)
        c->value[i] = c->value[i - 1] + f->info.width;
    return c->rows && c->value[0];
}

void reader_spectra_free(spectra_copy *c) {
    free(c->rows), free(c->value[0]);
}

static sr_status copy_read(spectra_copy *c, const sr_runfile *f, int64_t i, sr_failure *why) {
    const int64_t s = f->info.sites, w = f->info.width;
    h5_rows one = {i, 1, 0, 1, 1}, sites = {i, 1, 0, s, s}, columns = {i, 1, 0, w, w};
    sr_status status = reader_spectra_part(f, &run_spectra_step, &one, &c->step, why);
    if (status == SR_OK) status = reader_spectra_part(f, &run_spectra_rows, &sites, c->rows, why);
    for (int k = 0; k < SR_SPECTRUM_COUNT && status == SR_OK; k++)
        status = reader_spectra_part(f, &run_spectra[k], &columns, c->value[k], why);
    return status;
}

static sr_status damaged(const sr_runfile *f, const run_column *c, const char *what,
                         sr_failure *why) {
    return sr_fail(why, SR_FORMAT, "%s: /%s/%s: %s", f->path, c->group, c->name, what);
}

static bool all_nan(const double *value, int64_t count) {
    for (int64_t k = 0; k < count; k++)
        if (!isnan(value[k])) return false;
    return true;
}

/* Singular values descend; a site without rows has none. */
static sr_status check_row(const spectra_copy *c, const sr_runfile *f, sr_failure *why) {
    for (int64_t i = 0; i < f->info.sites; i++) {
        const sr_run_site *s = &f->site[i];
        if (c->rows[i] < -1) return damaged(f, &run_spectra_rows, "a count below -1", why);
        for (int k = 0; k < SR_SPECTRUM_COUNT; k++) {
            const double *own = c->value[k] + s->offset;
            if (!run_descends(own, s->width))
                return damaged(f, &run_spectra[k], "singular values that do not descend", why);
            if (c->rows[i] < 0 && !all_nan(own, s->width))
                return damaged(f, &run_spectra[k], "values of a site that was not measured", why);
        }
    }
    return SR_OK;
}

/* Every column has as many rows as are readable. The steps come first. */
static sr_status check_extents(const sr_runfile *f, sr_failure *why) {
    bool any = false;
    sr_status status = SR_OK;
    for (int i = 0; i < SR_SPECTRUM_COUNT + 2; i++) any |= reader_has_column(f, column_at(i));
    for (int i = SR_SPECTRUM_COUNT + 1; i >= 0 && any && status == SR_OK; i--) {
        h5_id set;
        h5_shape shape;
        status = open_spectra(f, column_at(i), &set, &shape, why);
        if (status == SR_OK && shape.dims[0] != f->info.spectra)
            status = damaged(f, column_at(i), "incomplete rows", why);
        h5_close_dataset(set);
    }
    return status;
}

static sr_status check_rows(const sr_runfile *f, sr_failure *why) {
    spectra_copy c;
    step_cursor w;
    if (f->info.spectra == 0) return SR_OK;
    sr_status status = step_cursor_open(&w, f, false, why);
    if (!reader_spectra_init(&c, f))
        status = sr_fail(why, SR_MEMORY, "%s: a row of spectra", f->path);
    c.step = -1;
    for (int64_t i = 0; i < f->info.spectra && status == SR_OK; i++) {
        const int64_t last = c.step;
        bool found = false;
        status = copy_read(&c, f, i, why);
        if (status == SR_OK) status = step_cursor_reach(&w, c.step, &found, why);
        if (status == SR_OK && (c.step <= last || !found))
            status = damaged(f, &run_spectra_step, "not increasing, or not among the steps", why);
        if (status == SR_OK) status = check_row(&c, f, why);
    }
    reader_spectra_free(&c), step_cursor_close(&w);
    return status;
}

sr_status reader_check_spectra(const sr_runfile *f, bool exact, sr_failure *why) {
    sr_status status = exact ? check_extents(f, why) : SR_OK;
    return status == SR_OK ? check_rows(f, why) : status;
}

sr_status reader_check_final(const sr_runfile *f, sr_failure *why) {
    int64_t batches = -1, sites = f->info.sites;
    double *value[SR_FINAL_COUNT];
    bool any = h5_has(reader_file(f), "/final/batches");
    for (int i = 0; i < SR_FINAL_COUNT; i++) any |= reader_has_column(f, &run_finals[i]);
    if (!any) return SR_OK;
    if (!h5_has(reader_file(f), "/final/batches"))
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
