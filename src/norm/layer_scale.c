/* layer_scale.c -- layer scale, and group scale with more than one group (norms.md section 13;
 * Shen et al., ICML 2020, appendix).
 *
 * Each row of d features is cut into G consecutive groups of w = d/G. Per row and group:
 *
 *     forward   s = sqrt(mean[x^2] + eps)     u = x/s
 *     backward  dx = (du - u mean[du u]) / s
 *
 * No parameters, no state; the same in training and inference. Kept: u [rows, d] and 1/s
 * [rows, G]. eps is the layer's.
 */
#include "layer_scale.h"

#include <math.h>

#include "wide.h"

/* sum x y, in eight interleaved partial sums. */
static double dot_product(const real *x, const real *y, int64_t w) {
    wide lane = {0}, a, b;
    int64_t k = 0;
    for (; k + WIDE <= w; k += WIDE) {
        wide_load(&a, x + k);
        wide_load(&b, y + k);
        lane += a * b;
    }
    double sum = wide_total(&lane);
    for (; k < w; k++) sum += (double)x[k] * (double)y[k];
    return sum;
}

static void scale_group(const real *x, int64_t w, double eps, real *u, double *scale) {
    *scale = 1 / sqrt(dot_product(x, x, w) / (double)w + eps);
    for (int64_t k = 0; k < w; k++) u[k] = (real)((double)x[k] * *scale);
}

void layer_scale_forward(const norm_call *c, bool all, const real *x, real *u, double *scale) {
    const norm_rows *r = c->rows;
    int64_t count = all ? r->rows : r->valid, groups = c->options->layer_scale;
    int64_t w = c->features / groups;
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t i = 0; i < count; i++) {
        int64_t row = !all && r->index ? r->index[i] : i;
        for (int64_t j = 0; j < groups; j++) {
            int64_t at = row * c->features + j * w;
            scale_group(x + at, w, c->options->eps, u + at, scale + row * groups + j);
        }
    }
}

static void unscale_group(const real *u, int64_t w, double scale, const real *du, real *dx) {
    double dot = dot_product(du, u, w) / (double)w;
    for (int64_t k = 0; k < w; k++) dx[k] = (real)(scale * ((double)du[k] - (double)u[k] * dot));
}

void layer_scale_backward(const norm_call *c, bool all, const real *u, const double *scale,
                          const real *du, real *dx) {
    const norm_rows *r = c->rows;
    int64_t count = all ? r->rows : r->valid, groups = c->options->layer_scale;
    int64_t w = c->features / groups;
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t i = 0; i < count; i++) {
        int64_t row = !all && r->index ? r->index[i] : i;
        for (int64_t j = 0; j < groups; j++) {
            int64_t at = row * c->features + j * w;
            unscale_group(u + at, w, scale[row * groups + j], du + at, dx + at);
        }
    }
}
