/* copy_spectra.c -- /spectra and /final of a run file into a recorder: what can be read of them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "losses.h"
#include "reader.h"
#include "recorder.h"

/* One part of row i; the values that it leaves are NaN or -1 where it cannot be read. */
static bool copy_part(const sr_runfile *f, const run_column *c, int64_t i, int64_t columns,
                      void *value, copy_losses *losses) {
    h5_rows row = {i, 1, 0, columns, columns};
    sr_failure why = {0};
    if (reader_spectra_part(f, c, &row, value, &why) == SR_OK) return true;
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
    if (!reader_spectra_init(&c, f) || recorder_reserve_spectra(r) != SR_OK)
        status = sr_fail(&r->failure, SR_MEMORY, "%s: a row of spectra", f->path);
    for (int64_t i = 0, last = -1; i < f->info.spectra && status == SR_OK; i++) {
        if (!copy_what_is_whole(&c, f, i, losses) || c.step <= last) continue;
        if (c.step > (up_to >= 0 ? up_to : r->step)) break; /* its step is not copied */
        last = c.step;
        recorder_begin_spectra(r);
        memcpy(r->writer.spectra.rows, c.rows, (size_t)r->sites * sizeof *c.rows);
        memcpy(r->writer.spectra.value[0], c.value[0],
               (size_t)(SR_SPECTRUM_COUNT * r->width) * sizeof(double));
        status = writer_keep(&r->writer, writer_put_spectra(&r->writer, c.step, &r->failure));
    }
    reader_spectra_free(&c);
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
    if (h5_has(reader_file(f), "/final/batches") &&
        reader_fixed(f, "/final/batches", H5_INT64, 0, &batches, &why) != SR_OK)
        copy_missed(losses, "final", "batches", -1, &why);
    for (int i = 0; i < SR_FINAL_COUNT && batches >= 0; i++) {
        char path[2 * SR_NAME_SIZE];
        sr_failure part = {0};
        snprintf(path, sizeof path, "/final/%s", run_finals[i].name);
        if (reader_fixed(f, path, H5_FLOAT64, 1, value[i], &part) == SR_OK) continue;
        copy_missed(losses, "final", run_finals[i].name, -1, &part);
        for (int64_t k = 0; k < r->sites; k++) value[i][k] = NAN;
    }
    if (batches >= 0) sr_put_final(r, batches, (const double *const *)value);
    free(memory);
    return recorder_check(r);
}
