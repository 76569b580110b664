/* diagnose_estimate.c -- numbers with 95 % intervals over steps.
 *
 * Medians: bootstrap_median of the analyses. Ratios of sums: the same circular block bootstrap.
 * Blocks have the length that the first series needs, and pairs stay together; percentiles 2.5 and
 * 97.5 of RESAMPLES.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/bootstrap/bootstrap.h"
#include "base/sort.h"
#include "diagnose/diagnosis.h"

enum { RESAMPLES = 1000 };

sr_status estimate_median(const double *value, int64_t count, estimate *e, sr_failure *why) {
    summary s;
    double *copy = malloc((size_t)(count + 1) * sizeof *copy);
    if (!copy) return sr_fail(why, SR_MEMORY, "out of memory");
    memcpy(copy, value, (size_t)count * sizeof *copy);
    summary_range(copy, count, &s);
    free(copy);
    *e = (estimate){s.median, NAN, NAN, s.values - s.nonfinite};
    return bootstrap_median(value, count, s.median, &e->low, &e->high, why);
}

typedef struct pairs {
    double *a, *b; /* [n] */
    int64_t n;
} pairs;

static sr_status keep_pairs(pairs *p, const double *a, const double *b, int64_t count,
                            sr_failure *why) {
    p->a = malloc(2 * (size_t)(count + 1) * sizeof *p->a);
    if (!p->a) return sr_fail(why, SR_MEMORY, "out of memory");
    p->b = p->a + count + 1;
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(a[i]) || (b && !isfinite(b[i]))) continue;
        p->a[p->n] = a[i];
        p->b[p->n++] = b ? b[i] : 1;
    }
    return SR_OK;
}

/* sums [n + 1]: sums of the values before each. Sums `length` values from `at` on, around the
 * end. */
static double sum_of_block(const double *sums, int64_t n, int64_t at, int64_t length) {
    const int64_t end = at + length;
    return end <= n ? sums[end] - sums[at] : sums[n] - sums[at] + sums[end - n];
}

static double ratio_of_resample(const pairs *sums, int64_t block, const rng_range *range,
                                rng *random) {
    double a = 0, b = 0;
    for (int64_t drawn = 0; drawn < sums->n; drawn += block) {
        const int64_t left = sums->n - drawn, length = block < left ? block : left;
        const int64_t at = (int64_t)rng_in_range(random, range);
        a += sum_of_block(sums->a, sums->n, at, length);
        b += sum_of_block(sums->b, sums->n, at, length);
    }
    return a / b;
}

/* Values become sums of those before them; value [n + 1] */
static void sum_before(double *value, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i <= n; i++) {
        const double here = i < n ? value[i] : 0;
        value[i] = sum;
        sum += here;
    }
}

/* Replaces the pairs by their sums. */
static sr_status ratio_interval(pairs *p, estimate *e, sr_failure *why) {
    double drawn[RESAMPLES];
    rng random = rng_create(1);
    const rng_range range = rng_range_create((uint64_t)p->n);
    summary s;
    double *copy = malloc((size_t)p->n * sizeof *copy);
    if (!copy) return sr_fail(why, SR_MEMORY, "out of memory");
    memcpy(copy, p->a, (size_t)p->n * sizeof *copy);
    summary_range(copy, p->n, &s);
    free(copy);
    const int64_t block = bootstrap_block(p->a, p->n, s.median, why);
    if (!block) return why->status;
    sum_before(p->a, p->n);
    sum_before(p->b, p->n);
    for (int i = 0; i < RESAMPLES; i++) drawn[i] = ratio_of_resample(p, block, &range, &random);
    sort_reals(drawn, RESAMPLES);
    e->low = quantile_of_sorted(drawn, RESAMPLES, 0.025);
    e->high = quantile_of_sorted(drawn, RESAMPLES, 0.975);
    return SR_OK;
}

sr_status estimate_ratio(const double *a, const double *b, int64_t count, estimate *e,
                         sr_failure *why) {
    pairs p = {0};
    double of_a = 0, of_b = 0;
    sr_status status = keep_pairs(&p, a, b, count, why);
    for (int64_t i = 0; i < p.n; i++) of_a += p.a[i], of_b += p.b[i];
    *e = (estimate){p.n ? of_a / of_b : NAN, NAN, NAN, p.n};
    if (status == SR_OK && p.n >= LEAST_STEPS && isfinite(e->value))
        status = ratio_interval(&p, e, why);
    free(p.a);
    return status;
}

estimate estimate_quotient(const estimate *b, const estimate *a) {
    return (estimate){b->value / a->value, b->low / a->high, b->high / a->low, a->steps + b->steps};
}

sr_status estimate_tail(const double *value, int64_t count, int tail, estimate *e,
                        sr_failure *why) {
    static const double quantile[BOOTSTRAP_TAILS] = {0.5, 0.99, 1};
    pairs p = {0};
    double *drawn = malloc(RESAMPLES * sizeof *drawn), median = NAN;
    sr_status status =
        drawn ? keep_pairs(&p, value, NULL, count, why) : sr_fail(why, SR_MEMORY, "out of memory");
    *e = NO_ESTIMATE;
    if (status == SR_OK && p.n) {
        memcpy(p.b, p.a, (size_t)p.n * sizeof *p.b);
        const column_quantiles of = quantiles_make(p.b, p.n, quantile, BOOTSTRAP_TAILS);
        *e = (estimate){of.at[tail], NAN, NAN, p.n};
        median = of.at[0];
    }
    if (status == SR_OK && p.n >= LEAST_STEPS) {
        const int64_t block = bootstrap_block(p.a, p.n, median, why);
        status = block ? bootstrap_tail(p.a, p.n, block, tail, rng_create(1), RESAMPLES, drawn, why)
                       : why->status;
    }
    if (status == SR_OK && p.n >= LEAST_STEPS) {
        sort_reals(drawn, RESAMPLES);
        e->low = quantile_of_sorted(drawn, RESAMPLES, 0.025);
        e->high = quantile_of_sorted(drawn, RESAMPLES, 0.975);
    }
    free(p.a);
    free(drawn);
    return status;
}
