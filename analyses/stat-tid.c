/* Training-inference discrepancy (Regularized BN, NeurIPS 2022, section 3; norms.md 18.3).
 *
 * Per step, with running values from before their update and roots without eps:
 *
 *     tid_mean = ||mu_B - mu||_2 / ||sqrt(sigma2)||_2
 *     tid_var  = ||sqrt(sigma2_B) - sqrt(sigma2)||_2 / ||sqrt(sigma2)||_2
 *
 * The paper's Mean TID and Var TID are expectations over training batches: the column `mean` of the
 * summary, times 100 for percent; its tables give the last BN layer (--site last). Here the running
 * values move during the run, while the paper takes them as those of the population.
 */
#include <math.h>

#include "analysis.h"

#define V(row, name) ((row)->v[SR_##name])

static double tid_mean(const vector_row *r) {
    double difference = 0, sigma2 = 0;
    for (int64_t k = 0; k < r->width; k++) {
        const double delta = V(r, mu_B)[k] - V(r, mu)[k];
        difference += delta * delta;
        sigma2 += V(r, sigma2)[k];
    }
    return sqrt(difference / sigma2);
}

static double tid_var(const vector_row *r) {
    double difference = 0, sigma2 = 0;
    for (int64_t k = 0; k < r->width; k++) {
        const double delta = sqrt(V(r, sigma2_B)[k]) - sqrt(V(r, sigma2)[k]);
        difference += delta * delta;
        sigma2 += V(r, sigma2)[k];
    }
    return sqrt(difference / sigma2);
}

static const statistic stats[] = {
    {"mean", "tid_mean", NULL, NEEDS(mu_B) | NEEDS(mu) | NEEDS(sigma2), tid_mean, NULL},
    {"var", "tid_var", NULL, NEEDS(sigma2_B) | NEEDS(sigma2), tid_var, NULL},
};

int main(int argc, char **argv) {
    const analysis a = {
        .program = "stat-tid",
        .does = "Training-inference discrepancy of batch normalization, per site.",
        .stat = stats,
        .statistics = sizeof stats / sizeof stats[0],
        .preset = "mean,var",
        .site = "*",
        .source = FROM_SCALARS,
        .hint =
            "methods without batch statistics have it only with `statrec train --observe batch`",
    };
    return analysis_main(&a, argc, argv);
}
