/* sync.c -- merges the statistics of processes (docs/norms.md 17).
 *
 * Process r has n_r valid rows (0 is allowed), their mean and M2_r = sum (x - mean_r)^2:
 *
 *     N = sum n_r    mu = sum n_r mean_r / N    M2 = sum M2_r + n_r (mean_r - mu)^2
 *
 * merged pairwise in the order of the ranks, on every process: all get the same bits. One
 * all-gather forward, one backward. */
#include "norm/kernels/sync.h"

#include <string.h>

#include "norm/kernels/column_passes.h"

/* [ranks, width], whose row of this rank the caller fills; NULL when out of memory. */
static double *make_slots(const norm_call *c, int64_t width) {
    return tape_alloc(c->tape, (size_t)(c->rows->ranks * width) * sizeof(double));
}

sr_status sync_moments(const norm_call *c, double *n, double *mean, double *m2) {
    int64_t d = c->features, width = 2 * d + 1;
    size_t bytes = (size_t)d * sizeof(double);
    *n = (double)c->rows->valid;
    if (!c->rows->gather) return SR_OK;
    double *slots = make_slots(c, width);
    if (!slots) return SR_MEMORY;
    double *own = slots + c->rows->rank * width;
    own[0] = *n;
    memcpy(own + 1, mean, bytes);
    memcpy(own + 1 + d, m2, bytes);
    sr_status status = c->rows->gather(c->rows->gather_context, slots, width);
    if (status != SR_OK) return status;
    *n = 0;
    memset(mean, 0, bytes);
    memset(m2, 0, bytes);
    for (int r = 0; r < c->rows->ranks; r++) {
        const double *slot = slots + r * width;
        if (!(slot[0] > 0)) continue;
        column_passes_merge(d, *n, mean, m2, slot[0], slot + 1, slot + 1 + d);
        *n += slot[0];
    }
    return SR_OK;
}

sr_status sync_sums(const norm_call *c, double *a, double *b) {
    int64_t d = c->features, width = 2 * d;
    size_t bytes = (size_t)d * sizeof(double);
    if (!c->rows->gather) return SR_OK;
    double *slots = make_slots(c, width);
    if (!slots) return SR_MEMORY;
    memcpy(slots + c->rows->rank * width, a, bytes);
    memcpy(slots + c->rows->rank * width + d, b, bytes);
    sr_status status = c->rows->gather(c->rows->gather_context, slots, width);
    if (status != SR_OK) return status;
    memset(a, 0, bytes);
    memset(b, 0, bytes);
    for (int r = 0; r < c->rows->ranks; r++) {
        for (int64_t k = 0; k < d; k++) {
            a[k] += slots[r * width + k];
            b[k] += slots[r * width + d + k];
        }
    }
    return SR_OK;
}

sr_status sync_rows(const norm_call *c, double *n) {
    *n = (double)c->rows->valid;
    if (!c->rows->gather) return SR_OK;
    double *slots = make_slots(c, 1);
    if (!slots) return SR_MEMORY;
    slots[c->rows->rank] = *n;
    sr_status status = c->rows->gather(c->rows->gather_context, slots, 1);
    *n = 0;
    for (int r = 0; r < c->rows->ranks && status == SR_OK; r++) *n += slots[r];
    return status;
}
