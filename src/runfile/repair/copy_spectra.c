/* copy_spectra.c -- copies the readable values of /spectra and /final into a recorder. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/recorder_state.h"
#include "record/run/put_spectra.h"
#include "runfile/descending.h"
#include "runfile/read/datasets/read_spectra.h"
#include "runfile/read/file/read_column.h"
#include "runfile/repair/copy.h"
#include "runfile/write/write_spectra.h"
#include "runfile/write/writer.h"

/* Reads one part of row i; fills it with NaN or -1 if it is unreadable. */
static bool copy_part(const sr_runfile *f, const run_column *c, int64_t i, int64_t columns,
                      void *value, unreadable_data *losses) {
    h5_rows row = {i, 1, 0, columns, columns};
    sr_failure why = {0};
    if (reader_spectra_part(f, c, &row, value, &why) == SR_OK) return true;
    copy_missed(losses, c->group, c->name, 1, &why);
    copy_fill(c, columns, value);
    return false;
}

static void note(const sr_runfile *f, const run_column *c, int64_t rows, const char *what,
                 unreadable_data *losses) {
    sr_failure why = {0};
    sr_fail(&why, SR_FORMAT, "%s: /%s/%s: %s", f->path, c->group, c->name, what);
    copy_missed(losses, c->group, c->name, rows, &why);
}

static bool fill_nan(double *value, int64_t count) {
    bool any = false;
    for (int64_t k = 0; k < count; k++) any = any || !isnan(value[k]), value[k] = NAN;
    return any;
}

/* Leaves out impossible values. */
static void mend_row(spectra_copy *c, const sr_runfile *f, unreadable_data *losses) {
    for (int64_t i = 0; i < f->info.sites; i++) {
        const sr_run_site *s = &f->site[i];
        if (c->rows[i] < -1) {
            note(f, &run_spectra_rows, 1, "a count below -1", losses);
            c->rows[i] = -1;
        }
        for (int k = 0; k < SR_SPECTRUM_COUNT; k++) {
            double *own = c->value[k] + s->offset;
            if (c->rows[i] >= 0 && run_descends(own, s->width)) continue;
            if (fill_nan(own, s->width))
                note(f, &run_spectra[k], 1, "singular values in a wrong order, or not measured",
                     losses);
        }
    }
}

/* Steps [f->info.steps] as they were copied: increasing; -1: lost. NULL: out of memory. */
static int64_t *copied_steps(const sr_runfile *f) {
    const int64_t rows = f->info.steps;
    int64_t *step = calloc((size_t)rows + 1, sizeof *step), last = -1;
    const bool whole = step && sr_run_step_ints(f, "step", 0, rows, step, NULL) == SR_OK;
    for (int64_t i = 0; step && i < rows; i++) {
        if (!whole && sr_run_step_ints(f, "step", i, 1, &step[i], NULL) != SR_OK) step[i] = -1;
        if (step[i] > last)
            last = step[i];
        else
            step[i] = -1;
    }
    return step;
}

/* Copies the sites of the recorder into its row of spectra. */
static void take_sites(sr_recorder *r, const sr_runfile *f, const copy_choice *choice,
                       const spectra_copy *c) {
    for (int64_t i = 0; i < r->sites; i++) {
        const int64_t source = copy_source_of(choice, i);
        const sr_run_site *from = &f->site[source], *to = &r->site[i];
        r->writer.spectra.rows[i] = c->rows[source];
        for (int k = 0; k < SR_SPECTRUM_COUNT; k++)
            if (copy_keeps(choice, run_spectra[k].name))
                memcpy(r->writer.spectra.value[k] + to->offset, c->value[k] + from->offset,
                       (size_t)to->width * sizeof(double));
    }
}

static sr_status copy_rows(sr_recorder *r, const sr_runfile *f, const int64_t *step,
                           const copy_plan *plan, int64_t up_to, spectra_copy *c,
                           unreadable_data *losses) {
    sr_status status = SR_OK;
    int64_t last = -1, at = 0;
    for (int64_t i = 0; i < f->info.spectra && status == SR_OK; i++) {
        if (plan && !plan->spectrum[i]) continue;
        if (!copy_part(f, &run_spectra_step, i, 1, &c->step, losses)) continue;
        copy_part(f, &run_spectra_rows, i, f->info.sites, c->rows, losses);
        for (int k = 0; k < SR_SPECTRUM_COUNT; k++)
            copy_part(f, &run_spectra[k], i, f->info.width, c->value[k], losses);
        if (up_to >= 0 && c->step > up_to) break;
        while (c->step > last && at < f->info.steps && step[at] < c->step) at++;
        if (c->step <= last || at == f->info.steps || step[at] != c->step) {
            note(f, &run_spectra_step, 1, "not increasing, or not among the steps", losses);
            if (at == f->info.steps) at = 0;
            continue;
        }
        last = c->step;
        mend_row(c, f, losses);
        recorder_begin_spectra(r);
        take_sites(r, f, plan ? plan->choice : NULL, c);
        status = writer_keep(&r->writer, writer_put_spectra(&r->writer, c->step, &r->failure));
    }
    return status;
}

sr_status recorder_copy_spectra(sr_recorder *r, const sr_runfile *f, const copy_plan *plan,
                                int64_t up_to, unreadable_data *losses) {
    spectra_copy c;
    if (!r->options.spectra || f->info.spectra == 0) return SR_OK;
    int64_t *step = copied_steps(f);
    const bool ready = reader_spectra_init(&c, f) && step && recorder_reserve_spectra(r) == SR_OK;
    sr_status status = ready ? copy_rows(r, f, step, plan, up_to, &c, losses)
                             : sr_fail(&r->failure, SR_MEMORY, "%s: a row of spectra", f->path);
    reader_spectra_free(&c);
    free(step);
    return status;
}

/* Reads one column of /final; NaN for missing, unreadable or impossible values. */
static void copy_final_column(const sr_runfile *f, const run_column *c, bool passed, double *value,
                              unreadable_data *losses) {
    const h5_path path = h5_path_of("/final/%s", c->name);
    sr_failure why = {0};
    bool odd = false;
    if (!reader_has_column(f, c) ||
        reader_fixed(f, path.text, H5_FLOAT64, 0, 1, value, &why) != SR_OK) {
        if (reader_has_column(f, c)) copy_missed(losses, "final", c->name, -1, &why);
        fill_nan(value, f->info.sites);
        return;
    }
    for (int64_t k = 0; k < f->info.sites; k++) {
        if (isnan(value[k]) || (passed && value[k] >= 0)) continue;
        odd = true, value[k] = NAN;
    }
    if (odd) note(f, c, -1, passed ? "a negative value" : "values without a pass", losses);
}

sr_status recorder_copy_final(sr_recorder *r, const sr_runfile *f, const copy_choice *choice,
                              unreadable_data *losses) {
    static const run_column counted = {"final", "batches", "", "", H5_INT64};
    int64_t batches = -1;
    double *value[SR_FINAL_COUNT], *memory;
    sr_failure why = {0};
    if (!r->options.final) return SR_OK;
    memory = calloc((size_t)(SR_FINAL_COUNT * f->info.sites) + 1, sizeof *memory);
    if (!memory) return sr_fail(&r->failure, SR_MEMORY, "%s: /final", f->path);
    for (int i = 0; i < SR_FINAL_COUNT; i++) value[i] = memory + i * f->info.sites;
    if (reader_fixed(f, "/final/batches", H5_INT64, 0, 0, &batches, &why) != SR_OK)
        copy_missed(losses, "final", "batches", -1, &why), batches = -1;
    else if (batches < -1)
        note(f, &counted, -1, "a count below -1", losses);
    for (int i = 0; i < SR_FINAL_COUNT; i++) {
        copy_final_column(f, &run_finals[i], batches >= 0, value[i], losses);
        for (int64_t k = 0; k < r->sites; k++) value[i][k] = value[i][copy_source_of(choice, k)];
    }
    recorder_copy_pairs(r, f, choice, batches >= 0, losses);
    if (batches >= 0) sr_put_final(r, batches, (const double *const *)value);
    free(memory);
    return recorder_check(r);
}
