/* Distance between batch and running statistics (PowerNorm, ICML 2020, figures 2 and 4).
 *
 * With d the width of the site, B the batch of one step, running values before their update:
 *
 *     dist_mu     = ||mu_B - mu||_2 / d
 *     dist_sigma2 = ||sigma2_B - sigma2||_2 / d
 *     dist_sigma  = ||sqrt(sigma2_B) - sqrt(sigma2)||_2 / d
 *     dist_psi2   = ||psi2_B - psi2||_2 / d
 *     dist_psi    = ||sqrt(psi2_B) - sqrt(psi2)||_2 / d
 *
 * The paper divides by d, not by sqrt(d), and keeps the scale of the activations. So this form does
 * not compare runs of different width or scale. Roots have no eps. --form per-root divides by
 * sqrt(d) (root mean square over features). --form relative divides by the length of the running
 * statistic; for mu, by the length of the running standard deviation. It depends on neither width
 * nor scale.
 * --ranks uses no running values: it prints the spread between the shards of a batch
 * (shard_spread.c).
 */
#include <math.h>

#include "analysis/shard_spread.h"
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

#define FORMS(q, relative)                                                                         \
    static double q##_per_root(const vector_row *r) {                                              \
        return dist_##q(r) * sqrt((double)r->width);                                               \
    }                                                                                              \
    static double q##_relative(const vector_row *r) {                                              \
        return relative;                                                                           \
    }

/* A scalar as the recorder derives it. */
static double derived(const vector_row *r, sr_scalar which) {
    double scalar[SR_SCALAR_COUNT] = {0};
    sr_derive_scalars(SR_FAMILY_NONE, r->width, r->eps, -1, r->v, scalar);
    return scalar[which];
}

FORMS(mu, sr_tid_mean(V(r, mu_B), V(r, mu), V(r, sigma2), r->width))
FORMS(sigma, sr_tid_var(V(r, sigma2_B), V(r, sigma2), r->width))
FORMS(sigma2, derived(r, SR_SCALAR_rel_sigma2))
FORMS(psi, derived(r, SR_SCALAR_rel_psi))
FORMS(psi2, derived(r, SR_SCALAR_rel_psi2))

#define STATISTICS(suffix, f, more)                                                                \
    {"mu", "dist_mu" suffix, NULL, NEEDS(mu_B) | NEEDS(mu) | (more), f(mu), NULL},                 \
        {"sigma", "dist_sigma" suffix, NULL, NEEDS(sigma2_B) | NEEDS(sigma2), f(sigma), NULL},     \
        {"sigma2", "dist_sigma2" suffix, NULL, NEEDS(sigma2_B) | NEEDS(sigma2), f(sigma2), NULL},  \
        {"psi", "dist_psi" suffix, NULL, NEEDS(psi2_B) | NEEDS(psi2), f(psi), NULL}, {             \
        "psi2", "dist_psi2" suffix, NULL, NEEDS(psi2_B) | NEEDS(psi2), f(psi2), NULL               \
    }
#define PAPER(q)    dist_##q
#define PER_ROOT(q) q##_per_root
#define RELATIVE(q) q##_relative

static const statistic stats[] = {STATISTICS("", PAPER, 0)};
static const statistic per_root[] = {STATISTICS("_per_root", PER_ROOT, 0)};
static const statistic relative[] = {STATISTICS("_relative", RELATIVE, NEEDS(sigma2))};

int main(int argc, char **argv) {
    const analysis a = {
        .program = "stat-distance",
        .does = "Distance between the statistics of a batch and the running ones, per site.",
        .stat = stats,
        .statistics = sizeof stats / sizeof stats[0],
        .default_stat = "mu,sigma,sigma2,psi,psi2",
        .site = "*",
        .source = FROM_SCALARS,
        .hint = "without batch statistics, add `statrec train --observe batch`",
        .form_option = "form",
        .form_help = "paper: divide by d; per-root: by sqrt(d); relative: by the running "
                     "statistic, comparable between widths",
        .form = {{"paper", stats, false},
                 {"per-root", per_root, false},
                 {"relative", relative, false}},
        .print_shards = shards_print,
    };
    return analysis_main(&a, argc, argv);
}
