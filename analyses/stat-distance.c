/* Distance between batch and running statistics (PowerNorm, ICML 2020, figures 2 and 4).
 *
 * With d the width of the site, B the batch of one step, running values from before their update:
 *
 *     dist_mu     = ||mu_B - mu||_2 / d
 *     dist_sigma2 = ||sigma2_B - sigma2||_2 / d
 *     dist_sigma  = ||sqrt(sigma2_B) - sqrt(sigma2)||_2 / d
 *     dist_psi2   = ||psi2_B - psi2||_2 / d
 *     dist_psi    = ||sqrt(psi2_B) - sqrt(psi2)||_2 / d
 *
 * The division is by d, not sqrt(d), as in the paper: widths are not comparable. Roots without eps.
 */
#include "analysis.h"
#include "statrec/moments.h"

#define V(row, name) ((row)->v[SR_##name])

static double dist_mu(const vector_row *r) {
    return sr_dist(V(r, mu_B), V(r, mu), r->width);
}
static double dist_sigma(const vector_row *r) {
    return sr_dist_root(V(r, sigma2_B), V(r, sigma2), r->width);
}
static double dist_sigma2(const vector_row *r) {
    return sr_dist(V(r, sigma2_B), V(r, sigma2), r->width);
}
static double dist_psi(const vector_row *r) {
    return sr_dist_root(V(r, psi2_B), V(r, psi2), r->width);
}
static double dist_psi2(const vector_row *r) {
    return sr_dist(V(r, psi2_B), V(r, psi2), r->width);
}

static const statistic stats[] = {
    {"mu", "dist_mu", NULL, NEEDS(mu_B) | NEEDS(mu), dist_mu, NULL},
    {"sigma", "dist_sigma", NULL, NEEDS(sigma2_B) | NEEDS(sigma2), dist_sigma, NULL},
    {"sigma2", "dist_sigma2", NULL, NEEDS(sigma2_B) | NEEDS(sigma2), dist_sigma2, NULL},
    {"psi", "dist_psi", NULL, NEEDS(psi2_B) | NEEDS(psi2), dist_psi, NULL},
    {"psi2", "dist_psi2", NULL, NEEDS(psi2_B) | NEEDS(psi2), dist_psi2, NULL},
};

int main(int argc, char **argv) {
    const analysis a = {
        .program = "stat-distance",
        .does = "Distance between the statistics of a batch and the running ones, per site.",
        .stat = stats,
        .statistics = sizeof stats / sizeof stats[0],
        .preset = "mu,sigma,sigma2,psi,psi2",
        .site = "*",
        .source = FROM_SCALARS,
        .hint =
            "methods without batch statistics have them only with `statrec train --observe batch`",
    };
    return analysis_main(&a, argc, argv);
}
