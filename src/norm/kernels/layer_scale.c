/* layer_scale.c -- layer scale, and group scale with more than one group (docs/norms.md 13; Shen et
 * al., ICML 2020, appendix).
 *
 * Each row of d features is cut into G consecutive groups of w = d/G. Per row and group:
 *
 *     forward   s = sqrt(mean[x^2] + eps)     u = x/s
 *     backward  dx = (du - u mean[du u]) / s
 *
 * No parameters, no state; the same in training and inference. Kept: 1/s [rows, G]. eps is the
 * layer's.
 *
 * Speed: methods over a batch never write u; their passes divide as they read (column_passes.c). A
 * group of a row is a unit of w values; unit q starts at q w. Eight neighbouring units are
 * processed at once, to compute eight roots together; remaining units one by one. */
#include "norm/kernels/layer_scale.h"

#include <math.h>

#include "norm/kernels/simd_double.h"

/* -- forward ----------------------------------------------------------------------------------- */

static void make_one(const layer_scale *s, int64_t w, int64_t q) {
    const real *x = s->x + q * w;
    s->inverse[q] = 1 / sqrt(simd_double_dot(x, x, w) / (double)w + s->eps);
}

SIMD_DOUBLE_INLINE void make_units(const layer_scale *s, int64_t w, int64_t q) {
    const real *x = s->x + q * w;
    double square[SIMD_WIDTH];
    for (int j = 0; j < SIMD_WIDTH; j++) simd_double_prefetch(x + j * w, PREFETCH_BYTES);
    simd_double_dots(square, x, x, w);
    for (int j = 0; j < SIMD_WIDTH; j++)
        s->inverse[q + j] = 1 / sqrt(square[j] / (double)w + s->eps);
}

/* A branch for a usual width, constant for the compiler. */
static void make_eight(const layer_scale *s, int64_t w, int64_t q) {
    if (w == 16)
        make_units(s, 16, q);
    else
        make_units(s, w, q);
}

/* -- backward ---------------------------------------------------------------------------------- */

/* product: sum of du x */
SIMD_DOUBLE_INLINE void backward_unit(const layer_scale *s, int64_t w, int64_t q, double product) {
    const real *x = s->x + q * w, *du = s->du + q * w;
    real *dx = s->dx + q * w;
    double inverse = s->inverse[q], slope = product / (double)w * (inverse * inverse);
    simd_double a, b;
    int64_t k = 0;
    for (; k + SIMD_WIDTH <= w; k += SIMD_WIDTH) {
        simd_double_load(&a, x + k);
        simd_double_load(&b, du + k);
        a = inverse * (b - a * slope);
        simd_double_store(dx + k, &a);
    }
    for (; k < w; k++) dx[k] = (real)(inverse * ((double)du[k] - (double)x[k] * slope));
}

static void backward_one(const layer_scale *s, int64_t w, int64_t q) {
    backward_unit(s, w, q, simd_double_dot(s->du + q * w, s->x + q * w, w));
}

SIMD_DOUBLE_INLINE void backward_units(const layer_scale *s, int64_t w, int64_t q) {
    double product[SIMD_WIDTH];
    simd_double_dots(product, s->du + q * w, s->x + q * w, w);
    for (int j = 0; j < SIMD_WIDTH; j++) backward_unit(s, w, q + j, product[j]);
}

static void backward_eight(const layer_scale *s, int64_t w, int64_t q) {
    if (w == 16)
        backward_units(s, 16, q);
    else
        backward_units(s, w, q);
}

/* -- the rows of a pass ------------------------------------------------------------------------ */

typedef void visit_units(const layer_scale *s, int64_t w, int64_t q);

/* Number of consecutive row numbers from index i on, before `end`. */
static int64_t neighbours(const int32_t *index, int64_t i, int64_t end) {
    int64_t count = 1;
    if (!index) return end - i;
    while (i + count < end && index[i + count] == index[i] + count) count++;
    return count;
}

static int64_t row_number(const int32_t *index, int64_t i) {
    return index ? index[i] : i;
}

SIMD_DOUBLE_INLINE void visit_rows(const layer_scale *s, const int32_t *index, int64_t first,
                                   int64_t count, visit_units *one, visit_units *eight) {
    int64_t end = first + count, rows;
    for (int64_t i = first; i < end; i += rows) {
        rows = neighbours(index, i, end);
        int64_t q = row_number(index, i) * s->groups, last = q + rows * s->groups;
        for (; q + SIMD_WIDTH <= last; q += SIMD_WIDTH) eight(s, s->width, q);
        for (; q < last; q++) one(s, s->width, q);
    }
}

void layer_scale_make(const layer_scale *s, const int32_t *index, int64_t first, int64_t count) {
    visit_rows(s, index, first, count, make_one, make_eight);
}

void layer_scale_apply(const layer_scale *s, const int32_t *index, int64_t first, int64_t count) {
    const int64_t w = s->width;
    for (int64_t i = first; i < first + count; i++)
        for (int64_t j = 0; j < s->groups; j++) {
            const int64_t q = row_number(index, i) * s->groups + j;
            for (int64_t k = 0; k < w; k++)
                s->u[q * w + k] = (real)((double)s->x[q * w + k] * s->inverse[q]);
        }
}

void layer_scale_backward(const layer_scale *s, const int32_t *index, int64_t first,
                          int64_t count) {
    visit_rows(s, index, first, count, backward_one, backward_eight);
}
