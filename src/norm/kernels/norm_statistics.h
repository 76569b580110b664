/* norm_statistics.h -- the statistics that a normalization method leaves for hooks. Names and
 * formulas: docs/norms.md. */
#ifndef NORM_KERNELS_NORM_STATISTICS_H
#define NORM_KERNELS_NORM_STATISTICS_H

#include <stdint.h>

/* Vectors [features], in double, that a method leaves in norm_call.stat for watchers. */
#define NORM_VECTORS(X)                                                                            \
    X(mu_B)     /* mean over valid rows */                                                         \
    X(sigma2_B) /* biased variance */                                                              \
    X(psi2_B)   /* mean square */                                                                  \
    X(mu)       /* running values from BEFORE this call's update */                                \
    X(sigma2)                                                                                      \
    X(psi2)                                                                                        \
    X(gamma) /* gain of this call: 1 where there is none, gamma r in BRN and MABN, (1 - lambda)  \
                 * gamma in RepBN, s in unit */ \
    X(sum_g) /* sum over valid rows of g = dL/dy; also dbeta */                                    \
    X(sum_gx)   /* sum over valid rows of g * xhat; also dgamma */                                 \
    X(nu)       /* pn: before the update */                                                        \
    X(Gamma_t)  /* pn: mean of xhat^2 */                                                           \
    X(Lambda_t) /* pn: mean of gamma g xhat */

/* Scalars that a method leaves in norm_call.scalar; NaN for those it lacks. */
#define NORM_SCALARS(X)                                                                            \
    X(row_grad_mean) /* LN family, Theorem 1: mean over valid rows of the row mean of dx, */       \
    X(row_grad_var)  /* of the row's biased variance of dx, */                                     \
    X(row_g_mean)    /* and the same of q = gamma g */                                             \
    X(row_g_var)                                                                                   \
    X(row_exact_mean) /* and the closed form for dx, from q, xhat and s alone: NaN for rmsnorm */  \
    X(row_exact_var)                                                                               \
    X(g_sigma2_rowmean) /* mean over rows of the row norm of this part of dx, divided by d; */     \
    X(g_psi2_rowmean)   /* only when norm_call.want_rows */                                        \
    X(Gamma_max)        /* pn: largest Gamma_t */                                                  \
    X(dx_norm)          /* ||dx||_F over valid rows, of the tensor that the method normalizes */   \
    X(direct_norm)      /* ||gamma/s g||_F: dx if the statistics did not depend on x */            \
    X(dx_norm_bn)       /* observed sites: the same two if bn stood there */                       \
    X(direct_norm_bn)                                                                              \
    X(row_free_var) /* LN family: D/s^2, dx if mean and deviation were constants */                \
    X(g_mu)     /* NORM_FAMILY_OWN alone: root mean square over valid rows of the part of dx */    \
    X(g_sigma2) /* that flows through this statistic, divided by d */                              \
    X(g_psi2)

#define NORM_ENUM_VECTOR(name) NORM_##name,
#define NORM_ENUM_SCALAR(name) NORM_SCALAR_##name,
typedef enum { NORM_VECTORS(NORM_ENUM_VECTOR) NORM_VECTOR_COUNT } norm_vector;
typedef enum { NORM_SCALARS(NORM_ENUM_SCALAR) NORM_SCALAR_COUNT } norm_scalar;

#define NORM_BIT(name)        (1u << NORM_##name)
#define NORM_SCALAR_BIT(name) (1u << NORM_SCALAR_##name)

#endif
