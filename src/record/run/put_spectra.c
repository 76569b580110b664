/* put_spectra.c -- takes spectra of the current step, and statistics and pairs of a final pass. */
#include "record/run/put_spectra.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "record/flush_policy.h"
#include "record/recorder_state.h"
#include "record/site_arguments.h"
#include "runfile/descending.h"
#include "runfile/pair_check.h"
#include "runfile/write/write_spectra.h"
#include "runfile/write/writer.h"

sr_status recorder_reserve_spectra(sr_recorder *r) {
    spectra_row *s = &r->writer.spectra;
    if (s->rows) return SR_OK;
    s->value[0] = malloc((size_t)(SR_SPECTRUM_COUNT * r->width) * sizeof(double));
    if (s->value[0]) s->rows = malloc((size_t)r->sites * sizeof *s->rows);
    for (int i = 1; i < SR_SPECTRUM_COUNT && s->rows; i++) s->value[i] = s->value[i - 1] + r->width;
    if (s->rows) return SR_OK;
    return sr_fail(&r->failure, SR_MEMORY, "%s: a row of spectra", r->path);
}

void recorder_begin_spectra(sr_recorder *r) {
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
    const sr_run_site *at = &r->site[site];
    for (int i = 0; i < SR_SPECTRUM_COUNT; i++)
        if (value[i] && !run_descends(value[i], at->width))
            return sr_fail(&r->failure, SR_USAGE,
                           "%s: sr_put_spectrum: singular values of the %s at site %s are negative "
                           "or do not descend",
                           r->path, run_spectra[i].name, at->name);
    if (recorder_reserve_spectra(r) != SR_OK) return recorder_check(r);
    spectra_row *s = &r->writer.spectra;
    if (!s->used) recorder_begin_spectra(r);
    s->rows[site] = rows;
    for (int i = 0; i < SR_SPECTRUM_COUNT; i++)
        if (value[i])
            memcpy(s->value[i] + at->offset, value[i], (size_t)at->width * sizeof *value[i]);
    return SR_OK;
}

static run_embedding *find_embedding(const sr_recorder *r, const char *name) {
    for (int i = 0; i < r->embeddings && name; i++)
        if (strcmp(r->embedding[i].name, name) == 0) return &r->embedding[i];
    return NULL;
}

sr_status sr_put_singular_values(sr_recorder *r, const char *name, int64_t step,
                                 const double *values) {
    if (!r || recorder_start(r) != SR_OK) return recorder_check(r);
    run_embedding *e = find_embedding(r, name);
    if (!e || !values)
        return sr_fail(&r->failure, SR_USAGE, "%s: no embedding '%s', or no values", r->path,
                       name ? name : "");
    if (step < e->last)
        return sr_fail(&r->failure, SR_USAGE,
                       "%s: sr_put_singular_values: embedding %s: step %lld after step %lld",
                       r->path, name, (long long)step, (long long)e->last);
    if (!run_descends(values, e->rows < e->cols ? e->rows : e->cols))
        return sr_fail(&r->failure, SR_USAGE,
                       "%s: sr_put_singular_values: values of embedding %s in step %lld are "
                       "negative or do not descend",
                       r->path, name, (long long)step);
    e->last = step;
    const sr_status status = writer_put_singular_values(&r->writer, e, step, values, &r->failure);
    return status == SR_OK ? flush_policy_beside(r) : status;
}

sr_status sr_put_final(sr_recorder *r, int64_t batches, const double *const value[SR_FINAL_COUNT]) {
    if (!r || recorder_start(r) != SR_OK) return recorder_check(r);
    bool whole = value && batches >= 0;
    for (int i = 0; whole && i < SR_FINAL_COUNT; i++) whole = value[i] != NULL;
    if (!r->options.final || !whole)
        return sr_fail(&r->failure, r->options.final ? SR_USAGE : SR_STATE, "%s: sr_put_final %s",
                       r->path, r->options.final ? "without values" : "without sr_options.final");
    sr_status status = writer_put_final(&r->writer, batches, value, &r->failure);
    return writer_keep(&r->writer, status) == SR_OK ? flush_policy_beside(r) : status;
}

sr_status sr_put_pairs(sr_recorder *r, int site, const float *x, const float *y,
                       const int32_t *feature) {
    if (!r || recorder_start(r) != SR_OK) return recorder_check(r);
    if (!r->options.pairs)
        return sr_fail(&r->failure, SR_STATE, "%s: sr_put_pairs without sr_options.pairs", r->path);
    if (site < 0 || site >= r->sites || !x || !y || !feature)
        return sr_fail(&r->failure, SR_USAGE, "%s: sr_put_pairs: site %d, or no values", r->path,
                       site);
    const sr_run_site *at = &r->site[site];
    const char *fault = pair_check_fault(x, y, feature, r->options.pairs, at->width);
    if (fault)
        return sr_fail(&r->failure, SR_USAGE, "%s: sr_put_pairs: site %s: %s", r->path, at->name,
                       fault);
    const void *const value[SR_PAIR_COUNT] = {x, y, feature};
    return writer_keep(&r->writer, writer_put_pairs(&r->writer, site, value, &r->failure));
}
