/* write_spectra.c -- writes /spectra, /final and singular values of embeddings. A row of /spectra
 * is written when its step ends. Its `step` comes last, so a row with a step is complete. */
#include "runfile/write/write_spectra.h"

#include "runfile/write/writer.h"

sr_status writer_put_spectra(run_writer *w, int64_t step, sr_failure *why) {
    spectra_row *s = &w->spectra;
    if (!s->used) return SR_OK;
    s->used = false;
    const run_layout *l = &w->layout;
    sr_status status = writer_append(s->rows_set, s->written, 1, l->sites, H5_INT64, s->rows, why);
    for (int i = 0; i < SR_SPECTRUM_COUNT && status == SR_OK; i++)
        status = writer_append(s->set[i], s->written, 1, l->width, H5_FLOAT64, s->value[i], why);
    h5_hold(w->file, true);
    if (status == SR_OK)
        status = writer_append(s->step_set, s->written, 1, 1, H5_INT64, &step, why);
    h5_hold(w->file, false);
    if (status == SR_OK) s->written++;
    return status;
}

sr_status writer_put_singular_values(run_writer *w, run_embedding *e, int64_t step,
                                     const double *values, sr_failure *why) {
    int64_t count = e->rows < e->cols ? e->rows : e->cols;
    sr_status status = writer_append(e->values, e->records, 1, count, H5_FLOAT64, values, why);
    h5_hold(w->file, true);
    if (status == SR_OK) status = writer_append(e->step, e->records, 1, 1, H5_INT64, &step, why);
    h5_hold(w->file, false);
    if (status == SR_OK) e->records++;
    return writer_keep(w, status);
}

sr_status writer_put_final(run_writer *w, int64_t batches, const double *const *value,
                           sr_failure *why) {
    sr_status status = SR_OK;
    if (!w->final_batches_set) return SR_OK; /* no sites */
    h5_hold(w->file, true);
    for (int i = 0; i < SR_FINAL_COUNT && status == SR_OK; i++)
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
