/* write_spectra.c -- rows of /spectra and what /final holds, into the file. A row goes there when
 * its step ends; `step` is written last, so a row that has a step is whole. */
#include "runfile/write/write_spectra.h"

#include "runfile/write/writer.h"

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
    h5_hold(w->file, true);
    if (status == SR_OK) status = append_row(s->step_set, s->written, 1, H5_INT64, &step, why);
    h5_hold(w->file, false);
    if (status == SR_OK) s->written++;
    return status;
}

sr_status writer_put_singular_values(run_writer *w, run_embedding *e, int64_t step,
                                     const double *values, sr_failure *why) {
    int64_t count = e->rows < e->cols ? e->rows : e->cols;
    h5_rows row = {e->records, 1, 0, count, count};
    h5_rows one = {.first = e->records, .count = 1, .columns = 1, .stride = 1};
    sr_status status = h5_extend(e->values, e->records + 1, why);
    if (status == SR_OK) status = h5_write_rows(e->values, &row, H5_FLOAT64, values, why);
    if (status == SR_OK) status = h5_extend(e->step, e->records + 1, why);
    h5_hold(w->file, true);
    if (status == SR_OK) status = h5_write_rows(e->step, &one, H5_INT64, &step, why);
    h5_hold(w->file, false);
    if (status == SR_OK) e->records++;
    return writer_keep(w, status);
}

sr_status writer_put_final(run_writer *w, int64_t batches, const double *const *value,
                           sr_failure *why) {
    sr_status status = SR_OK;
    h5_hold(w->file, true);
    for (int i = 0; i < SR_FINAL_COUNT && status == SR_OK && w->layout.sites > 0; i++)
        status = h5_write_all(w->final_set[i], H5_FLOAT64, 0, value[i], why);
    if (status == SR_OK) status = h5_write_all(w->final_batches_set, H5_INT64, 0, &batches, why);
    h5_hold(w->file, false);
    return status;
}

sr_status writer_put_pairs(run_writer *w, int64_t site, const void *const value[SR_PAIR_COUNT],
                           sr_failure *why) {
    const h5_rows row = {site, 1, 0, w->layout.pairs, w->layout.pairs};
    sr_status status = SR_OK;
    h5_hold(w->file, true);
    for (int i = 0; i < SR_PAIR_COUNT && status == SR_OK; i++)
        status = h5_write_rows(w->pair_set[i], &row, run_pairs[i].type, value[i], why);
    h5_hold(w->file, false);
    return status;
}
