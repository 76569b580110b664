/* Gradient norms that the batch statistics contribute (PowerNorm, ICML 2020, figures 3 and 4).
 *
 * Batch statistics are functions of the input, so each contributes a part of the input gradient dx.
 * With g = dL/dy, xhat the normalized input, s = sqrt(statistic + eps), n valid rows, d features:
 *
 *     c_mu  = gamma/s * sum_g / n       part of dx through mu_B:     -c_mu              (every row)
 *     c_sig = gamma/s * sum_gx / n      part of dx through sigma2_B: -c_sig * xhat_i    (row i)
 *     g_mu     = ||c_mu||_2 / d
 *     g_sigma2 = sqrt(sum c_sig^2 Q) / d,  Q = mean of xhat^2 = sigma2_B / (sigma2_B + eps)
 *     g_psi2   = g_sigma2 with psi2_B for sigma2_B; PN: || |nu|/psi * sqrt(Gamma) ||_2 / d
 *     *_rowmean: mean over rows of ||c * xhat_i||_2, divided by d; needs the rows, so never from
 *                /vectors
 *
 * g is the gradient of the loss as the run reduced it: in `statrec train` the sum over the tokens
 * of a pass. --loss sum and mean convert it to either. --loss share divides the Frobenius norm of a
 * part, sqrt(n) d g, by the norm of the whole dx. It depends on neither loss, tokens, width nor
 * scale (statistic_forms.c).
 *
 * /vectors suffice only if these formulas hold for /sites/family: sigma for the first two, psi for
 * the third. In older files they hold for bn and rbn, pnv and mabn.
 */
#include <math.h>

#include "analysis/frame/statistics_table.h"

#define V(row, name) ((row)->v[SR_##name])

/* sqrt(sum_k (gamma_k/s_k * sum_k/n)^2 q_k) / d; q = stat2/(stat2+eps), or 1 */
static double coefficient_norm(const vector_row *r, const double *sum, const double *stat2,
                               bool weigh) {
    double total = 0;
    for (int64_t k = 0; k < r->width; k++) {
        const double s2 = stat2[k] + r->eps;
        const double c = V(r, gamma)[k] / sqrt(s2) * sum[k] / r->rows;
        total += c * c * (weigh ? stat2[k] / s2 : 1);
    }
    return sqrt(total) / (double)r->width;
}

static double g_mu(const vector_row *r) {
    return coefficient_norm(r, V(r, sum_g), V(r, sigma2_B), false);
}
static double g_sigma2(const vector_row *r) {
    return coefficient_norm(r, V(r, sum_gx), V(r, sigma2_B), true);
}
static double g_psi2(const vector_row *r) {
    return coefficient_norm(r, V(r, sum_gx), V(r, psi2_B), true);
}

#define SUMS (NEEDS(gamma) | NEEDS_ROWS)

static const statistic stats[] = {
    {"g_mu", "g_mu", NULL, SUMS | NEEDS(sum_g) | NEEDS(sigma2_B), g_mu, "sigma"},
    {"g_sigma2", "g_sigma2", NULL, SUMS | NEEDS(sum_gx) | NEEDS(sigma2_B), g_sigma2, "sigma"},
    {"g_psi2", "g_psi2", NULL, SUMS | NEEDS(sum_gx) | NEEDS(psi2_B), g_psi2, "psi"},
    {"g_sigma2_rowmean", "g_sigma2_rowmean", NULL, 0, NULL, NULL},
    {"g_psi2_rowmean", "g_psi2_rowmean", NULL, 0, NULL, NULL},
};

/* Tokens and ||dx|| are not among the vectors. */
#define OF_LOSS(form)                                                                              \
    {                                                                                              \
        {"g_mu", "g_mu_" form, NULL, 0, NULL, NULL},                                               \
            {"g_sigma2", "g_sigma2_" form, NULL, 0, NULL, NULL},                                   \
            {"g_psi2", "g_psi2_" form, NULL, 0, NULL, NULL},                                       \
            {"g_sigma2_rowmean", "g_sigma2_rowmean_" form, NULL, 0, NULL, NULL}, {                 \
            "g_psi2_rowmean", "g_psi2_rowmean_" form, NULL, 0, NULL, NULL                          \
        }                                                                                          \
    }
static const statistic of_sum[] = OF_LOSS("sum"), of_mean[] = OF_LOSS("mean"),
                       share[] = OF_LOSS("share");

int main(int argc, char **argv) {
    const analysis a = {
        .program = "stat-gradnorm",
        .does =
            "Norms of the gradient that reaches the input through the batch statistics, per site.",
        .stat = stats,
        .statistics = sizeof stats / sizeof stats[0],
        .default_stat = "g_mu,g_sigma2,g_psi2,g_sigma2_rowmean,g_psi2_rowmean",
        .site = "*",
        .source = FROM_SCALARS,
        .hint = "without batch statistics, add `statrec train --observe batch`; old files lack "
                "||dx|| for fractions",
        .form_option = "loss",
        .form_help = "recorded: the run's loss (a sum in `statrec train`); sum, mean: over tokens "
                     "or images; share: fraction of the whole gradient, comparable between batch "
                     "sizes and widths",
        .form = {{"recorded", stats, false},
                 {"sum", of_sum, false},
                 {"mean", of_mean, false},
                 {"share", share, false}},
    };
    return analysis_main(&a, argc, argv);
}
