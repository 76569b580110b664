/* row_stats.h -- the kernel of the methods that normalize each row separately (row_stats.c). */
#ifndef NORM_KERNELS_ROW_STATS_H
#define NORM_KERNELS_ROW_STATS_H

#include "norm/kernels/norm_method.h"

/* Settings of a member of the family. */
typedef struct row_rule {
    bool center;                  /* subtract the row's mean */
    int ddof;                     /* variance = sum/(d - ddof) */
    bool eps_outside;             /* s = sqrt(v) + eps instead of sqrt(v + eps) */
    bool detach_mean, detach_std; /* constants in the backward pass */
    bool gain;                    /* gamma and beta (then k = 0); false saves their work */
    double C, k; /* y = C (1 - k xhat) xhat, the factor a constant; C = 1, k = 0: none */
} row_rule;

size_t row_stats_kept_bytes(const norm_call *c);
sr_status row_stats_forward(norm_call *c, const row_rule *rule, const real *x, real *y);
sr_status row_stats_backward(norm_call *c, const row_rule *rule, const real *x, const real *dy,
                             real *dx);

/* Parameters 0 and 1 of the members whose releases differ from their papers. */
enum { ROW_STATS_UNBIASED, ROW_STATS_PLACEMENT, ROW_STATS_PARAMS };
#define ROW_STATS_RELEASE_PARAMS                                                                   \
    {"unbiased", 0, 0, 1, NULL, "1: variance over d-1, as released", true}, {                      \
        "placement", 0, 0, 1, "inside outside",                                                    \
            "inside: s = sqrt(v + eps); outside: s = sqrt(v) + eps, as released"                   \
    }
/* The rule of a method that subtracts the mean, by its row and these two parameters; phi = 1. */
row_rule row_stats_rule(const norm_call *c);
/* `forward` and `backward` of such a method. */
sr_status row_stats_centered_forward(norm_call *c, const real *x, real *y);
sr_status row_stats_centered_backward(norm_call *c, const real *x, const real *dy, real *dx);

/* Statistics of all members. */
#define ROW_STATS_VECTORS (NORM_BIT(gamma) | NORM_BIT(sum_g) | NORM_BIT(sum_gx))
#define ROW_STATS_SCALARS                                                                          \
    (NORM_SCALAR_BIT(row_grad_mean) | NORM_SCALAR_BIT(row_grad_var) |                              \
     NORM_SCALAR_BIT(row_g_mean) | NORM_SCALAR_BIT(row_g_var))
/* Statistics of the members that subtract the mean; Theorem 1 applies to these. */
#define ROW_STATS_THEOREM_SCALARS                                                                  \
    (ROW_STATS_SCALARS | NORM_SCALAR_BIT(row_exact_mean) | NORM_SCALAR_BIT(row_exact_var) |        \
     NORM_SCALAR_BIT(row_free_var))

#endif
