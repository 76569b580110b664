/* Block bootstrap of the median, the 99 % quantile and the maximum of an autocorrelated series.
 *
 * Circular block bootstrap (Politis and Romano 1992): a resample of x_0 .. x_{n-1} consists of
 * ceil(n / l) blocks of l consecutive values. Each block starts at a uniformly drawn index and
 * wraps around at the end; the resample is cut to n values. Blocks keep the dependence of
 * neighbouring steps. Single values lose it and give intervals that are too short.
 *
 * bootstrap_block_length.c chooses l, bootstrap_resample.c finds quantiles of resamples. The
 * maximum of a resample cannot exceed the maximum of the series. So its interval shows how much
 * depends on single steps, and its upper end is the maximum itself.
 *
 * Several runs (two levels: Davison and Hinkley, Bootstrap Methods, 3.8): a resample is the mean of
 * n runs drawn with replacement. Each has its own resample of blocks. Such a mean varies less than
 * the mean of n new runs, for two reasons. Drawing from the n runs divides the variance by n
 * instead of n - 1. Percentiles assume a normal distribution; n runs give Student's with n - 1
 * degrees of freedom. So intervals are widened (Hesterberg 2015, expanded percentiles; there at
 * their level, which n = 3 runs cannot reach) by
 *
 *     c = t_{n-1, level} / z_level  sqrt(n / (n - 1)):   9.2 at n = 2, 2.7 at 3, 1.6 at 5
 *
 * (95 %). Student's distribution function is Abramowitz and Stegun 26.7.3 and 26.7.4.
 *
 * Pairs that share references (Cochran and Cox, Experimental Designs, 1957): the mean
 * difference has the variance a + b, a from n runs and b from k references. t is the mean of
 * t_{n-1} and t_{k-1}, weighted with a and b. Welch's degrees of freedom are too uncertain where k
 * is small, and intervals are too short (10 runs, 2 references: 91 % instead of 95 %).
 */

#include "analysis/bootstrap/bootstrap.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/columns/column_summary.h"
#include "base/buckets.h"
#include "base/sort.h"

enum { RESAMPLES = 1000, LEAST = 20 };

sr_status bootstrap_median(const double *value, int64_t count, double median, double *low,
                           double *high, sr_failure *why) {
    double least = INFINITY, largest = -INFINITY;
    double *finite = malloc((size_t)(count + 1) * sizeof *finite);
    double *drawn = malloc(RESAMPLES * sizeof *drawn);
    sr_status status = finite && drawn ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    const int64_t n = status == SR_OK ? gather_finite(finite, value, count, &least, &largest) : 0;
    *low = *high = NAN;
    if (n >= LEAST) {
        const int64_t block = bootstrap_block(finite, n, median, why);
        status = block ? bootstrap_tail(finite, n, block, 0, rng_create(1), RESAMPLES, drawn, why)
                       : why->status;
        if (status == SR_OK) {
            sort_reals(drawn, RESAMPLES);
            *low = quantile_of_sorted(drawn, RESAMPLES, 0.025);
            *high = quantile_of_sorted(drawn, RESAMPLES, 0.975);
        }
    }
    free(finite);
    free(drawn);
    return status;
}

/* -- several runs ---------------------------------------------------------------------------- */

/* A run that is drawn twice gives two different resamples: they are taken n-ths of all apart. */
void bootstrap_runs(double *const *drawn, int runs, rng random, int64_t resamples, double *result) {
    for (int64_t b = 0; b < resamples; b++) {
        double sum[BOOTSTRAP_TAILS] = {0};
        for (int k = 0; k < runs; k++) {
            const double *of = drawn[runs > 1 ? rng_below(&random, (uint64_t)runs) : 0];
            const int64_t at = (b + k * resamples / runs) % resamples;
            for (int i = 0; i < BOOTSTRAP_TAILS; i++) sum[i] += of[i * resamples + at];
        }
        for (int i = 0; i < BOOTSTRAP_TAILS; i++) result[i * resamples + b] = sum[i] / runs;
    }
}

/* P(|T| < sqrt(freedom) tan(angle)). */
static double student(double angle, int freedom) {
    const double c = cos(angle), s = sin(angle);
    const bool odd = freedom % 2;
    double term = odd ? c : 1, sum = freedom > 1 ? term : 0;
    for (int k = odd ? 3 : 2; k < freedom; k += 2) sum += term *= c * c * (k - 1) / k;
    return odd ? (angle + s * sum) / acos(0) : s * sum;
}

/* Bound of the part of a distribution around 0: Student's, or the normal one for no freedom. The
 * distribution functions rise; 80 halvings are more than a double resolves. */
static double two_sided_quantile(double part, int freedom) {
    double low = 0, high = freedom ? acos(0) : 40;
    for (int i = 0; i < 80; i++) {
        const double middle = (low + high) / 2;
        const double here = freedom ? student(middle, freedom) : erf(middle / sqrt(2));
        *(here < part ? &low : &high) = middle;
    }
    return freedom ? sqrt(freedom) * tan(low) : low;
}

double bootstrap_widening(int runs, double level) {
    if (runs < 2) return 1;
    return two_sided_quantile(level / 100, runs - 1) / two_sided_quantile(level / 100, 0) *
           sqrt((double)runs / (runs - 1));
}

void student_interval(const double *value, int n, double *low, double *high) {
    double mean = 0, squares = 0;
    *low = *high = NAN;
    if (n < 2) return;
    for (int i = 0; i < n; i++) mean += value[i] / n;
    for (int i = 0; i < n; i++) squares += (value[i] - mean) * (value[i] - mean);
    const double half = two_sided_quantile(0.95, n - 1) * sqrt(squares / (n - 1) / n);
    *low = mean - half;
    *high = mean + half;
}

/* -- pairs that share references ------------------------------------------------------------- */

sr_status pairs_values_make(pairs_values *p, int n, sr_failure *why) {
    *p = (pairs_values){.difference = malloc((size_t)(2 * n + 1) * sizeof(double)),
                        .reference = malloc((size_t)(n + 1) * sizeof(int))};
    p->of_reference = p->difference ? p->difference + n : NULL;
    return p->difference && p->reference ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
}

void pairs_values_free(pairs_values *p) {
    free(p->difference);
    free(p->reference);
}

/* Number of pairs with the reference of pair i; 0 unless i is the first of them. */
static int pairs_of_reference(const int *reference, int n, int i) {
    int pairs = 0;
    for (int k = 0; k < n; k++) {
        if (reference[k] != reference[i]) continue;
        if (k < i) return 0;
        pairs++;
    }
    return pairs;
}

typedef struct moments {
    int n;
    double mean, squares; /* squares: sum of (value - mean)^2 */
} moments;

static void add_moment(moments *m, double value) {
    const double before = value - m->mean;
    m->mean += before / ++m->n;
    m->squares += before * (value - m->mean);
}

int paired_interval(const pairs_values *p, int n, double *low, double *high) {
    moments run = {0}, reference = {0}, difference = {0};
    double weights = 0; /* sum over references of (its fraction of the pairs)^2 */
    for (int i = 0; i < n; i++) {
        const double fraction = (double)pairs_of_reference(p->reference, n, i) / n;
        add_moment(&difference, p->difference[i]);
        add_moment(&run, p->difference[i] + p->of_reference[i]);
        if (fraction > 0) add_moment(&reference, p->of_reference[i]);
        weights += fraction * fraction;
    }
    *low = *high = NAN;
    if (reference.n == n) student_interval(p->difference, n, low, high);
    if (reference.n == n || reference.n < 2) return reference.n;
    const int freedom[] = {n - 1, reference.n - 1};
    const double a = run.squares / freedom[0] / n, b = reference.squares / freedom[1] * weights;
    const double t =
        (a * two_sided_quantile(0.95, freedom[0]) + b * two_sided_quantile(0.95, freedom[1])) /
        (a + b);
    const double half = a + b > 0 ? t * sqrt(a + b) : a + b; /* 0 or NaN */
    *low = difference.mean - half;
    *high = difference.mean + half;
    return reference.n;
}
