/* moments.h -- statistics of a tensor, and the scalars of format.h from vectors. Plain C and libm.
 *
 * Two-pass inside blocks, merged after Chan et al. (1979) in a fixed order; sums over rows in
 * double. A tensor is element (o, c, i) of [outer, channels, inner]; a row is one (o, i).
 */
#ifndef STATREC_MOMENTS_H
#define STATREC_MOMENTS_H

#include <stdint.h>

#include "statrec/base.h"
#include "statrec/format.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rows that count; mean, biased variance and mean square [channels] (NaN when there is no row). */
int64_t sr_moments(const float *x, int64_t outer, int64_t channels, int64_t inner,
                   const uint8_t *valid, double *mean, double *variance, double *mean_square);

/* sum_g[c] = sum g, sum_gx[c] = sum g * (x - center[c]) * scale[c], sum_gg[c] = sum g^2 over valid
 * rows; all [channels]. */
void sr_gradient_sums(const float *g, const float *x, int64_t outer, int64_t channels,
                      int64_t inner, const uint8_t *valid, const double *center,
                      const double *scale, double *sum_g, double *sum_gx, double *sum_gg);

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
