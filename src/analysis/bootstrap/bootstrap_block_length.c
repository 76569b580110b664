/* Length of the blocks of a bootstrap (Politis and White 2004, with the correction of Patton,
 * Politis and White 2009):
 *
 *     l = ceil((2 G^2 / D)^(1/3) n^(1/3)),  D = 4/3 g^2,
 *     G = sum_{|k| <= M} w(k/M) |k| R(k),   g = sum_{|k| <= M} w(k/M) R(k),
 *     w(t) = 1 for |t| <= 1/2, 2 (1 - |t|) for |t| <= 1,
 *
 * R is the autocovariance, M = 2 m. m is the smallest lag after which K = max(5, ceil(sqrt(log10
 * n))) lags in a row have |R(k) / R(0)| < 2 sqrt(log10 n / n). l is at most min(3 sqrt n, n / 3)
 * and at least n / 4096. Longer blocks than needed keep the interval valid, and 4096 blocks lose
 * little. A resample costs a step for each block. R belongs to the indicator y_i = [x_i > median],
 * not to x. The error of a median depends on it, and it exists for any tails.
 *
 * An indicator takes one bit of a step. So counts of 64 steps at once give its covariances; a
 * million steps need up to 2,000 lags. With p the mean of y,
 *
 *     n R(k) = #{i: y_i = y_{i-k} = 1}
 *              - p (#{i >= k: y_i = 1} + #{i < n - k: y_i = 1}) + (n - k) p^2
 *
 * Lags after M, and after the K small ones, are not computed.
 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "analysis/bootstrap/bootstrap.h"

enum { WORD = 64, MOST_BLOCKS = 4096 };

/* -- the indicator --------------------------------------------------------------------------- */

typedef struct indicator {
    int64_t n, ones;
    uint64_t *word; /* [n / WORD + 2] zero after the end */
} indicator;

static int64_t bit_at(const indicator *y, int64_t i) {
    return (int64_t)(y->word[i / WORD] >> i % WORD & 1);
}

static void indicator_fill(indicator *y, const double *value, double median) {
    for (int64_t i = 0; i < y->n; i++) {
        const uint64_t above = value[i] > median;
        y->word[i / WORD] |= above << i % WORD;
        y->ones += (int64_t)above;
    }
}

/* #{i: y_i = y_{i+lag} = 1} */
static int64_t count_both(const indicator *y, int64_t lag) {
    const uint64_t *a = y->word, *b = y->word + lag / WORD;
    const int64_t shift = lag % WORD, words = (y->n - lag + WORD - 1) / WORD;
    int64_t count = 0;
    for (int64_t i = 0; i < words; i++) {
        const uint64_t moved = b[i] >> shift | b[i + 1] << 1 << (WORD - 1 - shift);
        count += __builtin_popcountll(a[i] & moved);
    }
    return count;
}

/* -- its covariances ------------------------------------------------------------------------- */

typedef struct correlation {
    indicator y;
    int64_t most, known; /* lags that may be asked for, and the last that was */
    int64_t head, tail;  /* ones among the first and the last `known` */
    double *r;           /* [most + 1] biased: divided by n */
} correlation;

static double covariance(const correlation *c) {
    const indicator *y = &c->y;
    const double n = (double)y->n, mean = (double)y->ones / n;
    const int64_t single = 2 * y->ones - c->head - c->tail;
    const int64_t both = count_both(y, c->known), terms = y->n - c->known;
    return ((double)both - mean * (double)single + (double)terms * mean * mean) / n;
}

static double correlation_at(correlation *c, int64_t lag) {
    while (c->known < lag) {
        c->head += bit_at(&c->y, c->known);
        c->known++;
        c->tail += bit_at(&c->y, c->y.n - c->known);
        c->r[c->known] = covariance(c);
    }
    return c->r[lag];
}

/* m: the last lag before `needed` small ones in a row. */
static int64_t correlation_end(correlation *c) {
    const double n = (double)c->y.n;
    const double limit = 2 * sqrt(log10(n) / n) * c->r[0];
    const int64_t needed = (int64_t)fmax(5, ceil(sqrt(log10(n))));
    int64_t last = 0;
    for (int64_t k = 1, row = 0; k <= c->most; k++) {
        const bool small = fabs(correlation_at(c, k)) < limit;
        row = small ? row + 1 : 0;
        if (row == needed) return k - needed;
        if (!small) last = k;
    }
    return last;
}

static double flat_top(double t) {
    return t <= 0.5 ? 1 : 2 * (1 - t);
}

static double block_length(correlation *c) {
    const double n = (double)c->y.n, limit = ceil(fmin(3 * sqrt(n), n / 3));
    const int64_t end = correlation_end(c);
    const int64_t twice = 2 * (end > 0 ? end : 1), window = twice < c->most ? twice : c->most;
    double large = 0, spectrum = c->r[0];
    for (int64_t k = 1; k <= window; k++) {
        const double w = flat_top((double)k / (double)window), r = correlation_at(c, k);
        large += 2 * w * (double)k * r;
        spectrum += 2 * w * r;
    }
    const double least = fmax(1, ceil(n / MOST_BLOCKS));
    if (!(spectrum > 0)) return least;
    const double length = cbrt(2 * large * large / (4.0 / 3 * spectrum * spectrum) * n);
    return fmin(fmax(least, ceil(length)), limit);
}

int64_t bootstrap_block(const double *value, int64_t n, double median, sr_failure *why) {
    if (n < 4) return 1;
    correlation of = {.y = {.n = n},
                      .most = (int64_t)fmin(ceil(2 * sqrt((double)n)) + 10, (double)(n - 1))};
    of.y.word = calloc((size_t)(n / WORD + 2), sizeof *of.y.word);
    of.r = calloc((size_t)(of.most + 1), sizeof *of.r);
    double length = 0;
    if (of.y.word && of.r) {
        indicator_fill(&of.y, value, median);
        of.r[0] = covariance(&of);
        length = block_length(&of);
    } else {
        sr_fail(why, SR_MEMORY, "out of memory for the covariances of %lld values", (long long)n);
    }
    free(of.y.word);
    free(of.r);
    return (int64_t)length;
}
