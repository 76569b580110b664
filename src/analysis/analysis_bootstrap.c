/* Block bootstrap of the median, the 99 % quantile and the maximum of an autocorrelated series.
 *
 * Circular block bootstrap (Politis and Romano 1992): a resample of x_0 .. x_{n-1} is made of
 * ceil(n / l) blocks of l consecutive values, each beginning at a place drawn uniformly and
 * wrapping around at the end, cut to n values. Blocks keep the dependence of neighbouring steps,
 * which single values drawn one by one would lose: the intervals would be too short.
 *
 * Block length (Politis and White 2004, with the correction of Patton, Politis and White 2009):
 *
 *     l = ceil((2 G^2 / D)^(1/3) n^(1/3)),  D = 4/3 g^2,
 *     G = sum_{|k| <= M} w(k/M) |k| R(k),   g = sum_{|k| <= M} w(k/M) R(k),
 *     w(t) = 1 for |t| <= 1/2, 2 (1 - |t|) for |t| <= 1,
 *
 * R the autocovariance, M = 2 m, m the smallest lag after which K = max(5, ceil(sqrt(log10 n)))
 * lags in a row have |R(k) / R(0)| < 2 sqrt(log10 n / n); l is at most min(3 sqrt n, n / 3). R is
 * that of the indicator x_i > median, not of x: this is what the error of a median depends on, and
 * it exists however heavy the tails are.
 *
 * Each resample is counted per distinct rank, so it costs one pass and no sorting. The maximum of a
 * resample cannot exceed the maximum of the series: its interval says how much hangs on single
 * steps, and its upper end is the value itself.
 *
 * Several runs (two levels: Davison and Hinkley, Bootstrap Methods, 3.8): a resample of n runs is n
 * runs drawn with replacement, each with a resample of its blocks of its own, and their mean. Such
 * a mean varies less than that of n new runs: drawing from the n runs themselves takes the variance
 * with n instead of n - 1, and percentiles are those of a normal distribution where n runs leave
 * Student's with n - 1 degrees of freedom. Intervals are made wider by (Hesterberg 2015, expanded
 * percentiles; there at their level, which n = 3 runs cannot reach)
 *
 *     c = t_{n-1, level} / z_level  sqrt(n / (n - 1)):   9.2 at n = 2, 2.7 at 3, 1.6 at 5
 *
 * (95 %). The distribution function of Student is Abramowitz and Stegun 26.7.3 and 26.7.4.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "statnet/analysis.h"

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* R(lag) of the indicator, biased (divided by n). */
static double covariance(const double *indicator, int64_t n, double mean, int64_t lag) {
    double sum = 0;
    for (int64_t i = lag; i < n; i++) sum += (indicator[i] - mean) * (indicator[i - lag] - mean);
    return sum / (double)n;
}

/* Fills r[0 .. most] and gives m: the last lag before `run` small ones in a row. */
static int64_t correlation_end(const double *indicator, int64_t n, double *r, int64_t most) {
    const double limit = 2 * sqrt(log10((double)n) / (double)n);
    const int64_t needed = (int64_t)fmax(5, ceil(sqrt(log10((double)n))));
    double mean = 0;
    int64_t last = 0;
    for (int64_t i = 0; i < n; i++) mean += indicator[i];
    mean /= (double)n;
    for (int64_t k = 0; k <= most; k++) {
        r[k] = covariance(indicator, n, mean, k);
        if (k && fabs(r[k]) >= limit * r[0]) last = k;
    }
    for (int64_t k = 1, row = 0; k <= most; k++) {
        row = fabs(r[k]) < limit * r[0] ? row + 1 : 0;
        if (row == needed) return k - needed;
    }
    return last;
}

static double flat_top(double t) {
    return t <= 0.5 ? 1 : 2 * (1 - t);
}

/* end: the lag m; r [most + 1]. */
static double block_length(const double *r, int64_t n, int64_t end, int64_t most) {
    const int64_t window = smaller(2 * (end > 0 ? end : 1), most);
    const double limit = ceil(fmin(3 * sqrt((double)n), (double)n / 3));
    double large = 0, spectrum = r[0];
    for (int64_t k = 1; k <= window; k++) {
        const double w = flat_top((double)k / (double)window);
        large += 2 * w * (double)k * r[k];
        spectrum += 2 * w * r[k];
    }
    if (!(spectrum > 0)) return 1;
    const double length = cbrt(2 * large * large / (4.0 / 3 * spectrum * spectrum) * (double)n);
    return fmin(fmax(1, ceil(length)), limit);
}

int64_t bootstrap_block(const double *value, int64_t n, double median, sr_failure *why) {
    if (n < 4) return 1;
    const int64_t most = smaller((int64_t)ceil(2 * sqrt((double)n)) + 10, n - 1);
    double *indicator = calloc((size_t)n, sizeof *indicator);
    double *r = calloc((size_t)(most + 1), sizeof *r);
    double length = 0;
    if (indicator && r) {
        for (int64_t i = 0; i < n; i++) indicator[i] = value[i] > median;
        length = block_length(r, n, correlation_end(indicator, n, r, most), most);
    } else {
        sr_fail(why, SR_MEMORY, "out of memory");
    }
    free(indicator);
    free(r);
    return (int64_t)length;
}

/* What a resample draws from: the values in order, and the rank of each step's value. Equal values are one rank. */
typedef struct pool {
    int64_t n, block;
    double *sorted;
    uint32_t *rank;
    uint32_t *count; /* [n] of one resample */
} pool;

static void pool_free(pool *p) {
    free(p->sorted);
    free(p->rank);
    free(p->count);
}

/* The first that is not smaller. */
static uint32_t rank_of(const pool *p, double value) {
    int64_t low = 0, high = p->n - 1;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (p->sorted[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return (uint32_t)low;
}

/* Sixteen bytes of each value, as many again as one has while they are sorted: the rest comes behind that. */
static sr_status pool_create(pool *p, const double *value, int64_t n, int64_t block,
                             sr_failure *why) {
    const size_t capacity = (size_t)n + 1;
    *p = (pool){.n = n, .block = block};
    p->sorted = n <= UINT32_MAX ? malloc(capacity * sizeof *p->sorted) : NULL;
    if (p->sorted) {
        memcpy(p->sorted, value, (size_t)n * sizeof *value);
        sort_reals(p->sorted, n);
        p->rank = malloc(capacity * sizeof *p->rank);
        p->count = malloc(capacity * sizeof *p->count);
    }
    if (!p->rank || !p->count) {
        pool_free(p);
        return sr_fail(why, SR_MEMORY, "out of memory for resamples of %lld values", (long long)n);
    }
    for (int64_t i = 0; i < n; i++) p->rank[i] = rank_of(p, value[i]);
    return SR_OK;
}

static void draw_resample(pool *p, rng *random) {
    memset(p->count, 0, (size_t)p->n * sizeof *p->count);
    for (int64_t drawn = 0; drawn < p->n;) {
        int64_t at = (int64_t)rng_below(random, (uint64_t)p->n);
        const int64_t length = smaller(p->block, p->n - drawn);
        for (int64_t i = 0; i < length; i++) {
            p->count[p->rank[at]]++;
            at = at + 1 == p->n ? 0 : at + 1;
        }
        drawn += length;
    }
}

/* Order statistic k of the resample; *at and *below keep the place for the next, larger k. */
static double order_statistic(const pool *p, int64_t k, int64_t *at, int64_t *below) {
    while (*below + p->count[*at] <= k) *below += p->count[(*at)++];
    return p->sorted[*at];
}

static double resample_quantile(const pool *p, double q, int64_t *at, int64_t *below) {
    const double h = (double)(p->n - 1) * q;
    const int64_t k = (int64_t)floor(h);
    const double low = order_statistic(p, k, at, below);
    if (k + 1 >= p->n) return low;
    return low + (h - (double)k) * (order_statistic(p, k + 1, at, below) - low);
}

sr_status bootstrap_tails(const double *value, int64_t n, int64_t block, rng random,
                          int64_t resamples, double *result, sr_failure *why) {
    static const double quantile[BOOTSTRAP_TAILS] = {0.5, 0.99, 1};
    pool p;
    sr_status status = pool_create(&p, value, n, block, why);
    if (status != SR_OK) return status;
    for (int64_t b = 0; b < resamples; b++) {
        int64_t at = 0, below = 0;
        draw_resample(&p, &random);
        for (int i = 0; i < BOOTSTRAP_TAILS; i++)
            result[i * resamples + b] = resample_quantile(&p, quantile[i], &at, &below);
    }
    pool_free(&p);
    return SR_OK;
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

/* Both distribution functions rise; 80 halvings are more than a double resolves. */
static double student_quantile(double part, int freedom) {
    double low = 0, high = acos(0);
    for (int i = 0; i < 80; i++) {
        const double middle = (low + high) / 2;
        *(student(middle, freedom) < part ? &low : &high) = middle;
    }
    return sqrt(freedom) * tan(low);
}

static double normal_quantile(double part) {
    double low = 0, high = 40;
    for (int i = 0; i < 80; i++) {
        const double middle = (low + high) / 2;
        *(erf(middle / sqrt(2)) < part ? &low : &high) = middle;
    }
    return low;
}

double bootstrap_widening(int runs, double level) {
    if (runs < 2) return 1;
    return student_quantile(level / 100, runs - 1) / normal_quantile(level / 100) *
           sqrt((double)runs / (runs - 1));
}

void student_interval(const double *value, int n, double *low, double *high) {
    double mean = 0, squares = 0;
    *low = *high = NAN;
    if (n < 2) return;
    for (int i = 0; i < n; i++) mean += value[i] / n;
    for (int i = 0; i < n; i++) squares += (value[i] - mean) * (value[i] - mean);
    const double half = student_quantile(0.95, n - 1) * sqrt(squares / (n - 1) / n);
    *low = mean - half;
    *high = mean + half;
}
