/* write_running.c -- writes running statistics; a run may resume from them. /running keeps the last
 * SR_RUNNING_KEPT rows. While a row is overwritten its `step` is -1. Each stage is committed before
 * the next. */
#include "runfile/write/write_running.h"

#include "runfile/write/writer.h"

static sr_status write_step(run_writer *w, int64_t row, int64_t step, sr_failure *why) {
    const h5_rows one = {.first = row, .count = 1, .columns = 1, .stride = 1};
    h5_hold(w->file, true);
    sr_status status = h5_write_rows(w->running.step_set, &one, H5_INT64, &step, why);
    h5_hold(w->file, false);
    return writer_commit(w, status, why);
}

sr_status writer_put_running(run_writer *w, int64_t step, const double *const value[RUN_RUNNING],
                             sr_failure *why) {
    running_rows *r = &w->running;
    const int64_t row = r->written % SR_RUNNING_KEPT, width = w->layout.width;
    const h5_rows rows = {row, 1, 0, width, width};
    sr_status status = SR_OK;
    if (!r->step_set) return SR_OK;
    if (r->written < SR_RUNNING_KEPT) status = h5_extend(r->step_set, row + 1, why);
    if (status == SR_OK) status = write_step(w, row, -1, why);
    for (int i = 0; i < RUN_RUNNING && status == SR_OK; i++) {
        if (r->written < SR_RUNNING_KEPT) status = h5_extend(r->set[i], row + 1, why);
        if (status == SR_OK) status = h5_write_rows(r->set[i], &rows, H5_FLOAT64, value[i], why);
    }
    status = writer_commit(w, status, why);
    if (status == SR_OK) status = write_step(w, row, step, why);
    if (status == SR_OK) r->written++, r->last = step;
    return writer_keep(w, status);
}
