/* copy_running.c -- copies rows of /running into a recorder; the run resumes from the running
 * statistics of the newest row. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "record/recorder_state.h"
#include "record/run/running.h"
#include "record/step/raw_passes.h"
#include "runfile/read/file/read_column.h"
#include "runfile/repair/copy.h"
#include "runfile/write/write_running.h"

/* Reads rows of one column; notes it if that fails. */
static bool read_rows(const sr_runfile *f, const run_column *c, const h5_rows *rows, void *value,
                      unreadable_data *losses) {
    h5_id set;
    h5_shape shape;
    sr_failure why = {0};
    sr_status status = reader_open_column(f, c, &set, &shape, &why);
    if (status == SR_OK && rows->count > 0) status = h5_read_rows(set, rows, c->type, value, &why);
    h5_close_dataset(set);
    if (status != SR_OK) copy_missed(losses, c->group, c->name, rows->count ? 1 : -1, &why);
    return status == SR_OK;
}

/* Moves the values of the recorder's sites together: [RUN_RUNNING, W] of the recorder. */
static void choose_sites(const sr_recorder *r, const sr_runfile *f, const copy_choice *choice,
                         double *all) {
    double *to = all;
    for (int v = 0; v < RUN_RUNNING; v++)
        for (int64_t i = 0; i < r->sites; i++) {
            const sr_run_site *from = &f->site[copy_source_of(choice, i)];
            memmove(to, all + v * f->info.width + from->offset, (size_t)from->width * sizeof *to);
            to += from->width;
        }
}

/* Whether the row has values of a site; the values of a site without passes are all NaN. */
static bool has_site(const sr_recorder *r, int64_t site, const double *all) {
    for (int v = 0; v < RUN_RUNNING; v++)
        for (int64_t k = 0; k < r->site[site].width; k++)
            if (!isnan(all[v * r->width + r->site[site].offset + k])) return true;
    return false;
}

/* Sites without values in the row start with initial values. */
static sr_status take_row(sr_recorder *r, const double *all) {
    for (int64_t i = 0; i < r->sites; i++) {
        const sr_run_site *s = &r->site[i];
        if (isnan(s->alpha) || !has_site(r, i, all)) continue;
        if (raw_reserve(r, (int)i) != SR_OK) return recorder_check(r);
        for (int v = 0; v < RUN_RUNNING; v++)
            memcpy(running_values(&r->state[i].raw, v), all + v * r->width + s->offset,
                   (size_t)s->width * sizeof *all);
    }
    return SR_OK;
}

/* Leaves out an unreadable row; an older one is used. */
static sr_status copy_row(sr_recorder *r, const sr_runfile *f, const copy_choice *choice,
                          int64_t at, int64_t step, double *all, int64_t *last,
                          unreadable_data *losses) {
    const double *row[RUN_RUNNING];
    const int64_t width = f->info.width;
    const h5_rows one = {at, 1, 0, width, width};
    bool whole = true;
    for (int i = 0; i < RUN_RUNNING; i++)
        whole = read_rows(f, &run_running[i], &one, all + i * width, losses) && whole;
    if (!whole) return SR_OK;
    choose_sites(r, f, choice, all);
    for (int i = 0; i < RUN_RUNNING; i++) row[i] = all + i * r->width;
    if (writer_put_running(&r->writer, step, row, &r->failure) != SR_OK) return recorder_check(r);
    *last = step;
    return take_row(r, all);
}

/* Reads the steps of the rows; returns their number. Opens every column, to note damage. */
static int64_t read_steps(const sr_runfile *f, int64_t step[SR_RUNNING_KEPT],
                          unreadable_data *losses) {
    const run_column *c = &run_running_step;
    const h5_rows none = {.columns = 1, .stride = 1};
    if (!reader_has_column(f, c)) return 0;
    for (int i = 0; i < RUN_RUNNING; i++) read_rows(f, &run_running[i], &none, NULL, losses);
    h5_id set;
    h5_shape shape;
    sr_failure why = {0};
    if (reader_open_column(f, c, &set, &shape, &why) != SR_OK) {
        copy_missed(losses, c->group, c->name, -1, &why);
        return 0;
    }
    h5_close_dataset(set);
    const int64_t count = shape.dims[0] < SR_RUNNING_KEPT ? shape.dims[0] : SR_RUNNING_KEPT;
    const h5_rows rows = {.first = 0, .count = count, .columns = 1, .stride = 1};
    return read_rows(f, c, &rows, step, losses) ? count : 0;
}

/* The row with the next step after `after`; -1: none. Rows are in no order. */
static int64_t next_row(const int64_t *step, int64_t count, int64_t after) {
    int64_t next = -1;
    for (int64_t i = 0; i < count; i++)
        if (step[i] > after && (next < 0 || step[i] < step[next])) next = i;
    return next;
}

sr_status recorder_copy_running(sr_recorder *r, const sr_runfile *f, const copy_choice *choice,
                                int64_t up_to, int64_t *step, unreadable_data *losses) {
    int64_t of_row[SR_RUNNING_KEPT];
    const int64_t count = read_steps(f, of_row, losses);
    *step = -1;
    if (count == 0) return SR_OK;
    double *all = malloc(RUN_RUNNING * (size_t)f->info.width * sizeof *all);
    if (!all) return sr_fail(&r->failure, SR_MEMORY, "%s: running values", r->path);
    for (int64_t done = -1, at; (at = next_row(of_row, count, done)) >= 0; done = of_row[at])
        if ((up_to >= 0 && of_row[at] > up_to) ||
            copy_row(r, f, choice, at, of_row[at], all, step, losses) != SR_OK)
            break;
    free(all);
    return recorder_check(r);
}
