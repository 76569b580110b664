/* statistic_forms.c -- statistics that no file contains, computed from recorded ones step by step.
 *
 * The papers print distances divided by d and gradient norms of a summed loss. These forms of the
 * same quantities do not depend on width, scale or batch size (docs/definitions.md, "Forms of a
 * quantity"):
 *
 *     dist_q_per_root = ||q_B - q||_2 / sqrt(d)      root mean square over features
 *     dist_q_relative = ||q_B - q||_2 / ||q||_2      for mu: / ||sigma||_2, which is TID
 *     g_q_sum, g_q_mean: of the loss summed, or averaged, over the tokens or images of the pass
 *     g_q_share = sqrt(n) d g_q / ||dx||_F           fraction of the whole input gradient
 *
 * All of these still depend on the number n of rows. The mean of n independent rows has the
 * deviation sigma/sqrt(n), and the running mean adds its own part. The null: rows are independent
 * (and normal, for sigma), gradients have mean 0 and do not depend on x. Against it
 *
 *     dist_mu_excess    = TID mean / sqrt(2/((1 + alpha) n))
 *     dist_sigma_excess = TID var / sqrt(1/((1 + alpha) n))
 *     g_q_excess        = n d g_q / ||gamma/s g||_F
 *
 * are about 1. Rows of one image or sentence are not independent, and a larger excess shows that.
 *
 * sqrt(n) d g_q is the Frobenius norm over the n rows of the part of dx through q. Parts are
 * subtracted from the direct part: fractions of one site do not add up to 1 and may exceed it. At
 * observed sites ||dx||_F is the norm that bn would give. For psi no such norm is recorded, so the
 * fraction is NaN.
 */

#include "analysis/series/statistic_forms.h"

#include <math.h>
#include <string.h>

#include "analysis/series/statistic.h"

static double sum_of_terms(const double *term, const form_site *at) {
    (void)at;
    return term[0] + term[1];
}

static double per_root(const double *term, const form_site *at) {
    return term[0] * sqrt((double)at->width);
}

static double same(const double *term, const form_site *at) {
    (void)at;
    return term[0];
}

static double of_sum(const double *term, const form_site *at) {
    return at->loss_is_mean ? term[0] * term[1] : term[0];
}

static double of_mean(const double *term, const form_site *at) {
    return at->loss_is_mean ? term[0] : term[0] / term[1];
}

/* term: g, n, dx_norm, dx_norm_bn */
static double share(const double *term, const form_site *at) {
    return sqrt(term[1]) * (double)at->width * term[0] / (at->observed ? term[3] : term[2]);
}

static double share_of_psi(const double *term, const form_site *at) {
    return at->observed ? NAN : share(term, at);
}

static double excess_of_mean(const double *term, const form_site *at) {
    return term[0] * sqrt(term[1] * (1 + at->alpha) / 2);
}

static double excess_of_deviation(const double *term, const form_site *at) {
    return term[0] * sqrt(term[1] * (1 + at->alpha));
}

static double excess_of_gradient(const double *term, const form_site *at) {
    return term[1] * (double)at->width * term[0] / (at->observed ? term[3] : term[2]);
}

#define EXCESS(q)                                                                                  \
    {"g_" #q "_excess",                                                                            \
     "rows d g_" #q " / ||gamma/s g||_F: against rows whose g is independent, with mean 0",        \
     {"g_" #q, "rows", "direct_norm", "direct_norm_bn"},                                           \
     excess_of_gradient},
#define PER_ROOT(q, text)       {"dist_" #q "_per_root", text " / sqrt(d)", {"dist_" #q}, per_root},
#define RELATIVE(q, from, text) {"dist_" #q "_relative", text, {from}, same},
#define LOSS(q)                                                                                    \
    {"g_" #q "_sum", "g_" #q " of the loss summed over the pass", {"g_" #q, "tokens"}, of_sum},    \
        {"g_" #q "_mean",                                                                          \
         "g_" #q " of the mean loss: of the sum, divided by the tokens or images of the pass",     \
         {"g_" #q, "tokens"},                                                                      \
         of_mean},
#define SHARE(q, combine)                                                                          \
    {"g_" #q "_share",                                                                             \
     "sqrt(rows) d g_" #q " / ||dx||_F: Frobenius norm of this part as a share of the whole dx; "  \
     "parts overlap, so shares need not add up to 1",                                              \
     {"g_" #q, "rows", "dx_norm", "dx_norm_bn"},                                                   \
     combine},

/* A table follows, one line each. */
/* clang-format off */
static const stat_form forms[] = {
    {"tid_total", "tid_mean + tid_var", {"tid_mean", "tid_var"}, sum_of_terms},
    PER_ROOT(mu, "||mu_B - mu||_2")
    PER_ROOT(sigma, "||sqrt(sigma2_B) - sqrt(sigma2)||_2")
    PER_ROOT(sigma2, "||sigma2_B - sigma2||_2")
    PER_ROOT(psi, "||sqrt(psi2_B) - sqrt(psi2)||_2")
    PER_ROOT(psi2, "||psi2_B - psi2||_2")
    RELATIVE(mu, "tid_mean", "||mu_B - mu||_2 / ||sqrt(sigma2)||_2 (mean TID)")
    RELATIVE(sigma, "tid_var", "||sqrt(sigma2_B) - sqrt(sigma2)||_2 / ||sqrt(sigma2)||_2 (var TID)")
    RELATIVE(sigma2, "rel_sigma2", "||sigma2_B - sigma2||_2 / ||sigma2||_2")
    RELATIVE(psi, "rel_psi", "||sqrt(psi2_B) - sqrt(psi2)||_2 / ||sqrt(psi2)||_2")
    RELATIVE(psi2, "rel_psi2", "||psi2_B - psi2||_2 / ||psi2||_2")
    LOSS(mu) LOSS(sigma2) LOSS(psi2) LOSS(sigma2_rowmean) LOSS(psi2_rowmean)
    SHARE(mu, share) SHARE(sigma2, share) SHARE(psi2, share_of_psi)
    SHARE(sigma2_rowmean, share) SHARE(psi2_rowmean, share_of_psi)
    {"dist_mu_excess", "mean TID / sqrt(2/((1 + alpha) rows)): against independent rows",
     {"tid_mean", "rows"}, excess_of_mean},
    {"dist_sigma_excess", "var TID / sqrt(1/((1 + alpha) rows)): against independent normal rows",
     {"tid_var", "rows"}, excess_of_deviation},
    EXCESS(mu) EXCESS(sigma2)
};
/* clang-format on */

#define COUNT_ONE(name, ...) +1
_Static_assert(sizeof forms / sizeof forms[0] == 0 FORM_NAMES(COUNT_ONE), "a name for each form");

#define STATISTIC(name, ...) {#name, #name, NULL, 0, NULL, NULL},
const statistic recorded_statistics[] = {SR_SCALARS(STATISTIC) FORM_NAMES(STATISTIC)};
_Static_assert(sizeof recorded_statistics / sizeof recorded_statistics[0] == RECORDED_STATISTICS,
               "as statistic.h counts them");

const stat_form *form_find(const char *name) {
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (strcmp(forms[i].name, name) == 0) return &forms[i];
    return NULL;
}

int form_terms(const stat_form *f) {
    int n = 0;
    while (n < FORM_TERMS && f->term[n]) n++;
    return n;
}

form_site form_site_of(const sr_runfile *run, int64_t site, const stat_form *f) {
    const sr_run_site *at = sr_run_get_site(run, site);
    const char *reduction = sr_run_get_info(run)->loss_reduction;
    return (form_site){.width = at->width,
                       .alpha = at->alpha,
                       .observed = sr_run_only_observed(at, f->term[0]),
                       .loss_is_mean = reduction && strcmp(reduction, "mean") == 0};
}
