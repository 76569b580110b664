/* Gradients of layer normalization (Understanding and Improving LayerNorm, NeurIPS 2019, Theorem
 * 1).
 *
 * Per row, over its H features, with g = dL/dy and gain gamma; then averaged over the valid rows:
 *
 *     row_grad_mean, row_grad_var = mean and biased variance of dx
 *     row_g_mean, row_g_var       = the same of gamma * g, what dx would be made of without the
 *                                   derivatives of mean and deviation
 *
 * The theorem compares them: re-centring makes row_grad_mean 0, re-scaling makes row_grad_var
 * smaller. The row gradients themselves are not stored, so nothing can be computed again from
 * /vectors.
 */
#include "analysis.h"

static const statistic stats[] = {
    {"grad_mean", "row_grad_mean", NULL, 0, NULL, NULL},
    {"grad_var", "row_grad_var", NULL, 0, NULL, NULL},
    {"g_mean", "row_g_mean", NULL, 0, NULL, NULL},
    {"g_var", "row_g_var", NULL, 0, NULL, NULL},
};

int main(int argc, char **argv) {
    const analysis a = {
        .program = "stat-lngrad",
        .does =
            "Mean and variance over features of the gradients at layer normalization, per site.",
        .stat = stats,
        .statistics = sizeof stats / sizeof stats[0],
        .preset = "grad_mean,grad_var,g_mean,g_var",
        .site = "*",
        .source = FROM_SCALARS,
        .hint = "only the methods of the LN family record it",
    };
    return analysis_main(&a, argc, argv);
}
