/* put_step.c -- takes statistics of the current step, and derives scalars from them. */
#include "record/step/put_step.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "record/recorder_state.h"
#include "record/site_arguments.h"
#include "record/step/raw_passes.h"
#include "runfile/write/write_custom.h"
#include "runfile/write/writer.h"
#include "statrec/moments.h"

sr_status sr_put_rows(sr_recorder *r, int site, int64_t rows) {
    site_state *s = recorder_site(r, site, "sr_put_rows");
    if (!s) return recorder_check(r);
    if (rows < 0)
        return sr_fail(&r->failure, SR_USAGE, "%s: sr_put_rows: %lld rows at site %s", r->path,
                       (long long)rows, r->site[site].name);
    s->rows = rows;
    return SR_OK;
}

/* True for a mean of squares over a batch, which no method makes negative. */
static bool is_square(sr_vector which) {
    return which == SR_sigma2_B || which == SR_psi2_B;
}

sr_status sr_put_vector(sr_recorder *r, int site, sr_vector which, const double *value) {
    const site_state *s = recorder_site(r, site, "sr_put_vector");
    if (!s) return recorder_check(r);
    /* Without a family xhat is undefined, and these sums would have no scalars. */
    static const uint32_t sums =
        1u << SR_sum_g | 1u << SR_sum_gx | 1u << SR_nu | 1u << SR_Gamma_t | 1u << SR_Lambda_t;
    if (is_square(which) && value &&
        put_step_squares(r, site, "sr_put_vector", run_vectors[which].name, value) != SR_OK)
        return SR_USAGE;
    const bool is_sum = (int)which >= 0 && which < SR_VECTOR_COUNT && (sums >> which & 1);
    if (s->family != SR_FAMILY_NONE || r->site[site].observed || !is_sum)
        return recorder_put_vector(r, site, which, value);
    return sr_fail(&r->failure, SR_USAGE,
                   "%s: sr_put_vector: %s at site %s, which was added without a family "
                   "(sr_site.family)",
                   r->path, run_vectors[which].name, r->site[site].name);
}

sr_status recorder_put_vector(sr_recorder *r, int site, sr_vector which, const double *value) {
    site_state *s = recorder_site(r, site, "sr_put_vector");
    if (!s) return recorder_check(r);
    if ((int)which < 0 || which >= SR_VECTOR_COUNT || !value)
        return sr_fail(&r->failure, SR_USAGE, "%s: sr_put_vector: %s %d at site %s", r->path,
                       value ? "vector" : "NULL for vector", (int)which, r->site[site].name);
    if (s->put >> which & 1)
        return sr_fail(&r->failure, SR_STATE, "%s: %s put twice in step %lld at site %s", r->path,
                       run_vectors[which].name, (long long)r->step, r->site[site].name);
    const sr_run_site *at = &r->site[site];
    if (!r->vector[which]) {
        r->vector[which] = malloc((size_t)r->width * sizeof(double));
        if (!r->vector[which])
            return sr_fail(&r->failure, SR_MEMORY, "%s: %lld values", r->path, (long long)r->width);
    }
    float *row = NULL;
    if (r->keeps_vectors) {
        row = writer_vector_row(&r->writer, (int)which, site, &r->failure);
        if (!row) return recorder_check(r);
    }
    memcpy(r->vector[which] + at->offset, value, (size_t)at->width * sizeof(double));
    for (int64_t k = 0; k < at->width; k++) {
        const float v = (float)value[k];
        s->nonfinite += !isfinite(v);
        if (row) row[k] = v;
    }
    s->put |= 1u << which;
    return SR_OK;
}

/* Sets a custom scalar (sr_declare_scalar) of the row in progress. */
static sr_status put_declared(sr_recorder *r, int64_t site, int which, sr_scope scope,
                              double value) {
    const int i = which - SR_SCALAR_COUNT;
    if (i < 0 || i >= r->writer.declared_count || r->writer.declared[i].scope != scope)
        return sr_fail(&r->failure, SR_USAGE, "%s: scalar %d is not one of a %s", r->path, which,
                       scope == SR_PER_SITE ? "site" : "step");
    return writer_put_declared(&r->writer, i, site, value, &r->failure);
}

sr_status sr_put_scalar(sr_recorder *r, int site, int which, double value) {
    site_state *s = recorder_site(r, site, "sr_put_scalar");
    if (!s) return recorder_check(r);
    if (which >= SR_SCALAR_COUNT) return put_declared(r, site, which, SR_PER_SITE, value);
    if (which < 0)
        return sr_fail(&r->failure, SR_USAGE, "%s: sr_put_scalar: scalar %d at site %s", r->path,
                       which, r->site[site].name);
    s->scalar[which] = value;
    s->scalar_put |= 1u << which;
    return SR_OK;
}

sr_status sr_put_vectors(sr_recorder *r, sr_vector which, const int *site,
                         const double *const *value, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (sr_put_vector(r, site[i], which, value[i]) != SR_OK) break;
    return recorder_check(r);
}

sr_status sr_put_scalars(sr_recorder *r, int which, const int *site, const double *value,
                         int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (sr_put_scalar(r, site[i], which, value[i]) != SR_OK) break;
    return recorder_check(r);
}

sr_status sr_put_step_scalar(sr_recorder *r, int which, double value) {
    if (!r || r->failure.status != SR_OK || recorder_in_fork(r)) return recorder_check(r);
    if (!r->in_step)
        return sr_fail(&r->failure, SR_STATE, "%s: sr_put_step_scalar outside a step", r->path);
    return put_declared(r, 0, which, SR_PER_STEP, value);
}

void put_step_begin(sr_recorder *r) {
    for (int64_t i = 0; i < r->sites; i++) {
        site_state *s = &r->state[i];
        s->put = s->scalar_put = 0;
        s->rows = -1, s->nonfinite = 0;
        raw_begin_step(&s->raw);
    }
}

sr_status put_step_end(sr_recorder *r) {
    if (!r->options.scalars) return SR_OK;
    for (int64_t i = 0; i < r->sites; i++) {
        const site_state *s = &r->state[i];
        if (!s->put && !s->scalar_put && s->rows < 0) continue;
        double scalar[SR_SCALAR_COUNT];
        const double *vector[SR_VECTOR_COUNT];
        for (int v = 0; v < SR_VECTOR_COUNT; v++)
            vector[v] = s->put >> v & 1 ? r->vector[v] + r->site[i].offset : NULL;
        for (int k = 0; k < SR_SCALAR_COUNT; k++) scalar[k] = NAN;
        (r->site[i].observed ? sr_derive_observed : sr_derive_scalars)(
            s->family, r->site[i].width, r->site[i].eps, s->rows, vector, scalar);
        scalar[SR_SCALAR_nonfinite] = (double)s->nonfinite;
        for (int k = 0; k < SR_SCALAR_COUNT; k++)
            if (s->scalar_put >> k & 1) scalar[k] = s->scalar[k];
        for (int k = 0; k < SR_SCALAR_COUNT; k++) {
            if (isnan(scalar[k])) continue; /* the fill value already */
            float *row = writer_scalar_row(&r->writer, k, &r->failure);
            if (!row) return recorder_check(r);
            row[i] = (float)scalar[k];
        }
    }
    return SR_OK;
}
