/* moments.h -- statistics of a tensor, and the scalars of format.h from vectors.
 *
 * Needs only libm. Blocks of rows are merged in a fixed order (Chan et al. 1979); sums are in
 * double.
 */
#ifndef STATREC_MOMENTS_H
#define STATREC_MOMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "statrec/base.h"
#include "statrec/format.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The type of a tensor's elements. SR_BFLOAT16 is the upper half of a binary32. */
typedef enum { SR_FLOAT32, SR_FLOAT64, SR_BFLOAT16, SR_FLOAT16 } sr_element;

/* A read-only, contiguous tensor [outer, channels, inner], inner >= 1. Element (o, c, i) is a value
 * of feature c; a row is one (o, i). Channels last (NLC, NHWC): outer has all rows, inner is 1.
 * Channels first (NCL, NCHW): outer is N, inner is L or H*W. */
typedef struct sr_tensor {
    size_t size;
    const void *data;
    sr_element element;
    int64_t outer, channels, inner;
    const uint8_t *valid; /* [outer * inner] mask of valid rows; NULL: all */
    int64_t samples;      /* samples in the rows; 0: outer if inner > 1, else unknown */
} sr_tensor;

/* Returns the number of valid rows. Fills mean, biased variance and mean square [channels]; NaN
 * without valid rows. */
int64_t sr_moments(const sr_tensor *x, double *mean, double *variance, double *mean_square);

/* Sums over valid rows of x, [channels] each: sum_g[c] of g, sum_gc[c] of g (x - center[c]),
 * sum_gg[c] of g^2. g has the shape of x; its element type may differ. */
void sr_gradient_sums(const sr_tensor *g, const sr_tensor *x, const double *center, double *sum_g,
                      double *sum_gc, double *sum_gg);

/* Squared norms over valid rows of tensors with inner = 1: square[0] of the gradient of x,
 * square[1] of gamma g / s. The normalization is by the mean of each row and
 * s = sqrt(variance + eps), or (root) by s = sqrt(mean square + eps) alone. gamma [channels]: its
 * gain; NULL: ones. */
void sr_row_norms(const sr_tensor *g, const sr_tensor *x, const double *gamma, double eps,
                  bool root, double square[2]);

/* Everything that one pass of a site needs, in one call for a host program whose calls are
 * expensive.
 *
 * g, x: contiguous [outer, channels, inner] of one element type. vector: mean, variance, sum_g,
 * sum_gc and the gain, [channels] each of type vector_element. to [6, channels]: rows mean,
 * variance, sum_g, sum_gc, sum_gg, gain. Rows whose vector is given are copies of it. A missing
 * gain becomes ones. Either the mean, the variance, sum_g and sum_gc are given, and x may be NULL;
 * or all four are computed from x and g. g NULL: the row of sum_gg stays. square: sr_row_norms of
 * them, or NULL. */
typedef struct sr_pass_sums {
    size_t size;
    const void *g, *x, *vector[5];
    sr_element element, vector_element;
    int64_t outer, channels, inner;
    double *to, *square;
    double eps;
    bool root;
} sr_pass_sums;

void sr_sum_pass(const sr_pass_sums *p);

/* Layout of one pass's sums in a buffer copied from a device. Fields are offsets in bytes from its
 * start, a multiple of the size of the elements there. Rows of [channels] follow each other
 * `stride` elements apart.
 *
 * sums: doubles, rows x, x^2, g, g x, g^2; with vectors the row g^2 alone. vectors: < 0, or floats
 * of the node of a batch norm, rows mean, 1/s, sum g, sum g xhat; s = sqrt(variance + eps). gain:
 * float [channels]; < 0: ones. more: double [3]: || dx ||^2, || gamma g / s ||^2, valid rows. */
typedef struct sr_device_place {
    size_t size;
    int64_t channels, sums, sums_stride, vectors, vectors_stride, gain, more;
    double eps;
} sr_device_place;

/* Moments and sums of `count` passes in double, from a buffer as sr_device_place describes it.
 *
 * scale: factor of the loss, != 0; the sums of g are divided by it. rows [count]: valid rows of
 * each pass; < 0 is replaced by the number in `more`. to: 7 rows of [sum of channels], the passes
 * side by side. Rows: mean, biased variance, mean square, sum g, sum g (x - mean), sum g^2, gain.
 * found [count, 4]: || dx ||^2 and || gamma g / s ||^2 without the scale, least variance, and
 * largest mean^2/variance. A NaN in a feature makes it NaN. The caller owns all memory. */
void sr_read_device_sums(const sr_device_place *places, int64_t count, const void *buffer,
                         double scale, int64_t *rows, double *to, double *found);

/* One pass. values [6, channels]: the rows that sr_sum_pass has filled; they belong to the caller.
 * eps < 0: these are moments and sums. eps >= 0: they are vectors of a batch norm's autograd node.
 * 1/sqrt(variance + eps) replaces the variance, and sum g xhat replaces sum_gc. */
typedef struct sr_pass_block {
    size_t size;
    int64_t channels;
    const double *values;
    double eps;
} sr_pass_block;

/* Converts `count` passes to the rows that sr_put_passes takes. scale, to: as in
 * sr_read_device_sums. bounds [count, 2]: the least variance and the largest mean^2/variance of a
 * pass; NaN if a feature has NaN. */
void sr_join_passes(const sr_pass_block *passes, int64_t count, double scale, double *to,
                    double *bounds);

/* Converts `count` vectors of one element type to doubles, one after the other in `to`. n [count]:
 * their lengths. */
void sr_read_vectors(const void *const *from, const int64_t *n, int64_t count, sr_element element,
                     double *to);

/* How far the running means of `sites` batch norms moved in a step. batch, before, after: addresses
 * of [width[s]] doubles of each site s: batch mean, running mean before and after. moved, apart
 * [sites]: sums over features of (after - before)(batch - before) and of (batch - before)^2. */
void sr_sum_moves(int64_t sites, const int64_t *width, const double *const *batch,
                  const double *const *before, const double *const *after, double *moved,
                  double *apart);

/* ||a - b||_2 / d, and ||sqrt(a) - sqrt(b)||_2 / d. docs/norms.md 18.1 */
double sr_dist(const double *a, const double *b, int64_t d);
double sr_dist_root(const double *a, const double *b, int64_t d);
/* Training-inference discrepancy ([RBN]), sigma without eps; docs/norms.md 18.3:
 * ||mu_B - mu||_2 / ||sigma||_2 and ||sigma_B - sigma||_2 / ||sigma||_2. */
double sr_tid_mean(const double *mu_B, const double *mu, const double *sigma2, int64_t d);
double sr_tid_var(const double *sigma2_B, const double *sigma2, int64_t d);

/* Derives scalars from a site's vectors. vector[v]: [d], or NULL. Writes scalar [SR_SCALAR_COUNT]
 * where the family has the scalar and its vectors are given; leaves the others unchanged. rows =
 * n. */
void sr_derive_scalars(sr_family family, int64_t d, double eps, int64_t rows,
                       const double *const vector[SR_VECTOR_COUNT], double scalar[SR_SCALAR_COUNT]);
/* As sr_derive_scalars, for a site whose batch statistics are observed (sr_set_observed): the
 * scalars of bn and pnv, except that PN keeps its own g_psi2. */
void sr_derive_observed(sr_family family, int64_t d, double eps, int64_t rows,
                        const double *const vector[SR_VECTOR_COUNT],
                        double scalar[SR_SCALAR_COUNT]);

#ifdef __cplusplus
}
#endif
#endif
