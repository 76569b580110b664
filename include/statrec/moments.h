/* moments.h -- statistics of a tensor, and the scalars of format.h from vectors. Plain C and libm.
 *
 * Two-pass inside blocks, merged after Chan et al. (1979) in a fixed order; sums over rows in
 * double.
 */
#ifndef STATREC_MOMENTS_H
#define STATREC_MOMENTS_H

#include <stddef.h>
#include <stdint.h>

#include "statrec/base.h"
#include "statrec/format.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a tensor's elements are: IEEE 754 binary32, binary64, binary16, or the upper half of a
 * binary32. */
typedef enum { SR_FLOAT32, SR_FLOAT64, SR_BFLOAT16, SR_FLOAT16 } sr_element;

/* A tensor of a host, never written to: element (o, c, i) of [outer, channels, inner] is one value
 * of feature c; a row is one (o, i). Channels last (NLC, NHWC): all rows in outer, inner 1. Channels
 * first (NCL, NCHW): outer N, inner L or H*W. */
typedef struct sr_tensor {
    size_t size;
    const void *data;
    sr_element element;
    int64_t outer, channels, inner;
    const uint8_t *valid; /* [outer * inner]: rows that count; NULL: all */
    int64_t samples;      /* that the rows belong to; 0: outer where inner > 1, else not known */
} sr_tensor;

/* Rows that count; mean, biased variance and mean square [channels] (NaN when there is no row). */
int64_t sr_moments(const sr_tensor *x, double *mean, double *variance, double *mean_square);

/* sum_g[c] = sum g, sum_gc[c] = sum g (x - center[c]), sum_gg[c] = sum g^2 over valid rows of x; all
 * [channels]. g has the shape of x, but may have elements of its own. */
void sr_gradient_sums(const sr_tensor *g, const sr_tensor *x, const double *center, double *sum_g,
                      double *sum_gc, double *sum_gg);

/* ||a - b||_2 / d, and the same of the roots. docs/norms.md 18.1 */
double sr_dist(const double *a, const double *b, int64_t d);
double sr_dist_root(const double *a, const double *b, int64_t d);
/* Training-inference discrepancy ([RBN]), sigma without eps; docs/norms.md 18.3:
 * ||mu_B - mu||_2 / ||sigma||_2 and ||sigma_B - sigma||_2 / ||sigma||_2. */
double sr_tid_mean(const double *mu_B, const double *mu, const double *sigma2, int64_t d);
double sr_tid_var(const double *sigma2_B, const double *sigma2, int64_t d);

/* Scalars that follow from a site's vectors: vector[v] is [d] or NULL where absent; scalar
 * [SR_SCALAR_COUNT] is written where the family has the scalar and its vectors are there, and left
 * alone elsewhere. rows = n. */
void sr_derive_scalars(sr_family family, int64_t d, double eps, int64_t rows,
                       const double *const vector[SR_VECTOR_COUNT], double scalar[SR_SCALAR_COUNT]);
/* The same of a site whose batch statistics are observed (sr_set_observed): the scalars of bn and
 * of pnv, where PN keeps its own g_psi2. */
void sr_derive_observed(sr_family family, int64_t d, double eps, int64_t rows,
                        const double *const vector[SR_VECTOR_COUNT],
                        double scalar[SR_SCALAR_COUNT]);

#ifdef __cplusplus
}
#endif
#endif
