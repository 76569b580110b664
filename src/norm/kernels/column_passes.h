/* column_passes.h -- passes over the columns of a row-major matrix, for methods with statistics
 * over a batch.
 *
 * Rows are cut into fixed chunks by their number only, and sums of chunks are merged in order.
 * Results are therefore bit-identical for any number of threads.
 *
 * After a layer scale, passes divide x by s as they read it, so x/s needs no memory. While the
 * scale has a `dx`, column_passes_scale, column_passes_fill and column_passes_combine write a
 * gradient. They pass it through the layer scale while the rows are in cache. */
#ifndef NORM_KERNELS_COLUMN_PASSES_H
#define NORM_KERNELS_COLUMN_PASSES_H

#include "norm/kernels/layer_scale.h"
#include "norm/kernels/norm_method.h"

/* The rows of one pass. */
typedef struct column_passes {
    int64_t rows;         /* rows of the pass */
    int64_t features;     /* d */
    const int32_t *index; /* [rows] row numbers; NULL: 0 .. rows-1 */
    int threads;
    tape *tape;               /* allocates scratch memory when `scratch` is NULL */
    double *scratch;          /* [column_passes_scratch_count] doubles of the caller, or NULL */
    const layer_scale *scale; /* passes read x/s instead of x; NULL: x */
    bool makes_scale;         /* column_passes_moments computes 1/s first */
} column_passes;

static inline int64_t column_passes_row(const column_passes *m, int64_t i) {
    return m->index ? m->index[i] : i;
}

/* Doubles of scratch memory for any of these passes over `rows` rows. */
int64_t column_passes_scratch_count(int64_t rows, int64_t features);

column_passes column_passes_valid(const norm_call *c); /* valid rows */
column_passes column_passes_all(const norm_call *c);   /* padded rows too */
/* The padded rows alone, with an index in the tape's memory. */
sr_status column_passes_padded(const norm_call *c, column_passes *m);

/* Runs a step of the scale in all rows of the pass, chunk by chunk, on several threads. */
void column_passes_scale_rows(const column_passes *m, layer_scale_fn *step);

/* mean [d] and m2 [d] = sum (x - mean)^2. rows = 0: zeros. */
sr_status column_passes_moments(const column_passes *m, const real *x, double *mean, double *m2);

/* Merges moments of n_b rows into the moments of n_a rows. */
void column_passes_merge(int64_t d, double n_a, double *mean, double *m2, double n_b,
                         const double *mean_b, const double *m2_b);

/* sum_g [d] = sum g, sum_gx [d] = sum g * (x - center) * scale. */
sr_status column_passes_gradient_sums(const column_passes *m, const real *x, const real *g,
                                      const double *center, const double *scale, double *sum_g,
                                      double *sum_gx);

/* y = (x - center) * scale + shift in every row of the pass. */
void column_passes_scale(const column_passes *m, const real *x, const double *center,
                         const double *scale, const double *shift, real *y);

/* y = value in every row of the pass. */
void column_passes_fill(const column_passes *m, const double *value, real *y);

/* dx = a*g + b + c*(x - center) in every row of the pass. All arrays are [d]. */
typedef struct column_passes_line {
    const double *center, *a, *b, *c;
} column_passes_line;

/* Norms of dx for hooks, computed while the rows are in cache. */
typedef struct dx_norms {
    const double *weight; /* [d], or NULL: no row_norm */
    double row_norm;      /* sum over rows of sqrt(sum_k (weight_k (x_k - center_k))^2) */
    double dx2, direct2;  /* sums over rows and columns of dx^2, as written, and of (a g)^2 */
} dx_norms;

/* Writes dx; norms may be NULL. */
sr_status column_passes_combine(const column_passes *m, const real *x, const real *g,
                                const column_passes_line *line, real *dx, dx_norms *norms);

/* Sum over rows and columns of (weight g)^2; weight [d], NULL: ones. */
sr_status column_passes_squares(const column_passes *m, const real *g, const double *weight,
                                double *sum);

#endif
