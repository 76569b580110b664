/* pointwise.c -- methods without a statistic: a bounded function of every number, with one slope
 * and one shift for the layer (docs/norms.md 19, 20). g = dL/dy:
 *
 *     forward   z = alpha x + s    y = gamma f(z) + beta
 *     backward  dx = gamma g f'(z) alpha
 *               sum_g = sum over rows of g (= dbeta)    sum_gx = sum over rows of g f(z) (= dgamma)
 *               dalpha = sum over rows and features of gamma g f'(z) x    ds = the same without x
 *
 * The same in training and inference, no state. Backward recomputes f; nothing is kept. Sums over
 * rows are in double, in fixed chunks merged in order: bit-identical for any number of threads. */
#include "norm/kernels/pointwise.h"

#include <math.h>
#include <string.h>

/* Scalars after the sums [2 d] of a chunk. */
enum { CHUNK = 64, BY_ALPHA = 0, BY_SHIFT, DX2, CHUNK_SCALARS };

sr_status pointwise_forward(norm_call *c, const pointwise_rule *rule, const real *x, real *y) {
    const int64_t n = c->rows->valid;
#pragma omp parallel for num_threads(c->threads) schedule(static) if (n > CHUNK)
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = norm_row_number(c->rows, i) * c->features;
        for (int64_t k = 0; k < c->features; k++) {
            const double f = rule->value(rule->alpha * (double)x[at + k] + rule->shift);
            y[at + k] = (real)((double)c->gamma[k] * f + (double)c->beta[k]);
        }
    }
    return SR_OK;
}

static void chunk_backward(const norm_call *c, const pointwise_rule *rule, const real *x,
                           const real *dy, real *dx, int64_t first, double *part) {
    const int64_t d = c->features, n = c->rows->valid, end = first + CHUNK < n ? first + CHUNK : n;
    double *scalar = part + 2 * d;
    for (int64_t i = first; i < end; i++) {
        const int64_t at = norm_row_number(c->rows, i) * c->features;
        for (int64_t k = 0; k < d; k++) {
            const double u = (double)x[at + k], g = (double)dy[at + k];
            const double z = rule->alpha * u + rule->shift, f = rule->value(z);
            const double by_z = (double)c->gamma[k] * g * rule->slope(z, f);
            part[k] += g;
            part[d + k] += g * f;
            scalar[BY_ALPHA] += by_z * u;
            scalar[BY_SHIFT] += by_z;
            dx[at + k] = (real)(by_z * rule->alpha);
            scalar[DX2] += (double)dx[at + k] * (double)dx[at + k];
        }
    }
}

sr_status pointwise_backward(norm_call *c, const pointwise_rule *rule, const real *x,
                             const real *dy, real *dx) {
    const int64_t d = c->features, n = c->rows->valid, width = 2 * d + CHUNK_SCALARS;
    const int64_t chunks = n ? (n + CHUNK - 1) / CHUNK : 1;
    double *part = tape_alloc(c->tape, (size_t)(chunks * width) * sizeof *part);
    if (!part) return SR_MEMORY;
    memset(part, 0, (size_t)(chunks * width) * sizeof *part);
#pragma omp parallel for num_threads(c->threads) schedule(static) if (chunks > 1)
    for (int64_t i = 0; i < chunks; i++)
        chunk_backward(c, rule, x, dy, dx, i * CHUNK, part + i * width);
    for (int64_t i = 1; i < chunks; i++)
        for (int64_t k = 0; k < width; k++) part[k] += part[i * width + k];
    memcpy(c->stat[NORM_sum_g], part, (size_t)d * sizeof *part);
    memcpy(c->stat[NORM_sum_gx], part + d, (size_t)d * sizeof *part);
    c->own_grad[POINTWISE_ALPHA][0] = part[2 * d + BY_ALPHA];
    if (c->own_grad[POINTWISE_SHIFT]) c->own_grad[POINTWISE_SHIFT][0] = part[2 * d + BY_SHIFT];
    if (c->has_hook)
        c->scalar[NORM_SCALAR_dx_norm] = c->scalar[NORM_SCALAR_direct_norm] =
            sqrt(part[2 * d + DX2]);
    return SR_OK;
}
