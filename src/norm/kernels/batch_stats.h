/* batch_stats.h -- shared by the methods with statistics over a batch (batch_stats.c). */
#ifndef NORM_KERNELS_BATCH_STATS_H
#define NORM_KERNELS_BATCH_STATS_H

#include "norm/kernels/column_passes.h"

/* Kept from forward to backward, arrays [d]. */
typedef struct batch_kept {
    double n;                 /* valid rows of all processes; 0: no process has any */
    double *center;           /* xhat = (x - center) * inverse */
    double *inverse;          /* 1/s */
    double *scratch;          /* [4 d] */
    double *part_g, *part_gx; /* [d] parameter gradients of this process, when there are several */
    double *own;              /* [norm_method.kept_arrays, d] */
} batch_kept;

size_t batch_kept_bytes(const norm_call *c);
/* Memory after batch_kept, for methods that keep more than arrays [d]. */
void *batch_kept_end(const norm_call *c);
/* Returns c->kept with its arrays set. */
batch_kept *batch_kept_start(const norm_call *c);

/* Fills n and stat mu_B, sigma2_B, psi2_B of this process's valid rows. Must be the first pass over
 * x. */
sr_status batch_own_statistics(norm_call *c, batch_kept *k, const real *x);

/* Fills n and stat mu_B, sigma2_B, psi2_B over all processes. */
sr_status batch_statistics(norm_call *c, batch_kept *k, const real *x);

/* state <- alpha*state + (1-alpha)*batch*factor, in NORM_TRAIN when there are rows. */
void batch_advance(const norm_call *c, const batch_kept *k, double *state, const double *batch,
                   double factor);

/* BN's forward statistics. Divides by the batch's and advances the running mu and sigma2 (unbiased:
 * by n/(n-1) times sigma2_B); in NORM_RUNNING divides by the running ones. */
sr_status batch_standardise(norm_call *c, batch_kept *k, const real *x, double *mu, double *sigma2,
                            bool unbiased);

/* Sets y or dx of padded rows to value [d]. In backward the layer scale continues from them. */
sr_status batch_fill_padded(const norm_call *c, const double *value, real *y);

/* y = gamma * (x - center) * inverse + beta in the valid rows, or in the rows of m, with the gamma
 * of c->stat. */
void batch_normalize(const norm_call *c, const batch_kept *k, const real *x, real *y);
void batch_normalize_rows(const norm_call *c, const batch_kept *k, const column_passes *m,
                          const real *x, real *y);
/* `recompute` of methods whose forward ends with batch_normalize and whose kept memory starts with
 * k. */
sr_status batch_recompute(norm_call *c, const real *x, real *y);

/* Fills stat sum_g, sum_gx over all processes, and dgamma, dbeta of this one. */
sr_status batch_gradient_sums(norm_call *c, batch_kept *k, const real *x, const real *dy);

/* center <- center (NULL: zeros), inverse <- 1/sqrt(square + eps). */
void batch_divide(const norm_call *c, batch_kept *k, const double *center, const double *square);

/* dx = a*g + b + slope*(x - center), arrays [d] of k's scratch memory. */
typedef struct batch_terms {
    double *a, *b, *slope;
} batch_terms;

/* a = gamma*inverse, b = slope = 0. */
batch_terms batch_terms_start(const norm_call *c, const batch_kept *k);

/* Derivative through the batch statistics: gamma*inverse * (g - sum_g/n - xhat*sum_gx/n). The
 * middle term belongs to methods that use mu. */
batch_terms batch_statistic_terms(const norm_call *c, const batch_kept *k);

/* Fills the scalars dx_norm and direct_norm, if the call has a hook. */
void batch_record_norms(norm_call *c, const dx_norms *norms);

/* Root mean square over the valid rows of ||slope (x - c)||_2, divided by d. `square` is the
 * statistic mean[(x - c)^2]: psi2_B for c = 0, sigma2_B for c = mu_B. For g_sigma2 and g_psi2 of
 * NORM_FAMILY_OWN. */
double batch_part(const norm_call *c, const double *slope, norm_vector square);

/* Fills the scalars g_mu and g_sigma2 of b and of slope about mu_B. */
void batch_record_parts(norm_call *c, const batch_terms *t);

/* Writes dx and, with a hook, its norms. When wanted, also the scalar g_sigma2_rowmean
 * (g_psi2_rowmean of methods that use psi2): the mean over rows of ||weight (x - center)||_2,
 * divided by d. weight [d], NULL: slope. */
sr_status batch_combine(norm_call *c, const batch_kept *k, const batch_terms *terms,
                        const double *weight, const real *x, const real *dy, real *dx);

/* `backward` of bn and pnv: dx of batch_statistic_terms, or with constant statistics in
 * NORM_RUNNING. */
sr_status batch_backward(norm_call *c, const real *x, const real *dy, real *dx);

/* dx = gamma*inverse * g: the derivative with constant statistics. */
sr_status batch_backward_constant(norm_call *c, const batch_kept *k, const real *dy, real *dx);

#endif
