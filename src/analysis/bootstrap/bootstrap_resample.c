/* Quantiles of block resamples of a series: exact, without sorting a resample.
 *
 * A resample (bootstrap.c) is the number of times that it draws each step. Six of its order
 * statistics are wanted: two around the median, two around the 99 % quantile, and the largest. The
 * values are sorted once. The number of draws in each of CLASSES neighbourhoods of the sorted
 * values tells which one contains an order statistic; a walk through that one finds it. A resample
 * of n values so takes two passes over n numbers, in the order of the steps.
 *
 * Each resample is the work of one thread, and depends only on its first random number. Resamples
 * follow each other in the stream: a number for each block, and one more for each number that
 * rng_in_range rejects, which is at most one of 2^32. All resamples start as if none were rejected;
 * if one was, they are drawn again one after the other.
 */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/bootstrap/bootstrap.h"
#include "analysis/columns/column_summary.h"

enum {
    CLASSES = 1024,
    LEAST_CLASS = 16, /* values */
    LANES = 4,        /* neighbours often share a class, and an increment waits for the last one */
    MANY = 1 << 18    /* values to draw for which threads are worth it */
};

static const double tail_quantile[BOOTSTRAP_TAILS] = {0.5, 0.99, 1};

typedef struct ranked {
    double value;
    uint32_t step;
} ranked;

typedef struct resampler {
    int64_t n, block;
    rng_range range; /* of n */
    int64_t classes;
    ranked *sorted;       /* [n] upwards */
    uint16_t *step_class; /* [n] class of each step */
    uint32_t *times;      /* [threads, n] draws of each step */
    int threads;
} resampler;

static void resampler_free(resampler *r) {
    free(r->sorted);
    free(r->step_class);
    free(r->times);
}

static int by_value(const void *a, const void *b) {
    const double x = ((const ranked *)a)->value, y = ((const ranked *)b)->value;
    return (x > y) - (x < y);
}

/* Of class c: its first rank. */
static int64_t class_begin(const resampler *r, int64_t c) {
    return c * r->n / r->classes;
}

static sr_status resampler_make(resampler *r, const double *value, int64_t resamples,
                                sr_failure *why) {
    const size_t n = (size_t)r->n;
    r->range = rng_range_create((uint64_t)r->n);
    r->threads = r->n * resamples < MANY ? 1 : omp_get_max_threads();
    r->classes = r->n < CLASSES * LEAST_CLASS ? 1 + r->n / LEAST_CLASS : CLASSES;
    r->sorted = malloc(n * sizeof *r->sorted);
    r->step_class = malloc(n * sizeof *r->step_class);
    r->times = malloc((size_t)r->threads * n * sizeof *r->times);
    if (!r->sorted || !r->step_class || !r->times)
        return sr_fail(why, SR_MEMORY, "out of memory for resamples of %zu values", n);
    for (int64_t i = 0; i < r->n; i++) r->sorted[i] = (ranked){value[i], (uint32_t)i};
    qsort(r->sorted, n, sizeof *r->sorted, by_value);
    for (int64_t c = 0; c < r->classes; c++)
        for (int64_t k = class_begin(r, c); k < class_begin(r, c + 1); k++)
            r->step_class[r->sorted[k].step] = (uint16_t)c;
    return SR_OK;
}

/* Marks where blocks begin and end: `times` are then the sums from the first step on. A block that
 * runs over the end goes on at the first step. */
static rng draw_blocks(const resampler *r, rng random, uint32_t *times) {
    memset(times, 0, (size_t)r->n * sizeof *times);
    for (int64_t left = r->n; left > 0; left -= r->block) {
        const int64_t at = (int64_t)rng_in_range(&random, &r->range);
        const int64_t end = at + (r->block < left ? r->block : left);
        times[at]++;
        if (end < r->n) times[end]--;
        if (end > r->n) times[0]++, times[end - r->n]--;
    }
    return random;
}

/* count [classes]: draws of each class. */
static void count_classes(const resampler *r, uint32_t *times, uint32_t count[LANES][CLASSES]) {
    uint32_t now = 0;
    memset(count, 0, LANES * CLASSES * sizeof count[0][0]);
    for (int64_t i = 0; i < r->n; i++) {
        times[i] = now += times[i];
        count[i % LANES][r->step_class[i]] += now;
    }
    for (int64_t c = 0; c < r->classes; c++)
        for (int k = 1; k < LANES; k++) count[0][c] += count[k][c];
}

/* The value of this rank among the drawn ones; `below` were drawn of the classes before c. */
static double value_in_class(const resampler *r, const uint32_t *times, int64_t c, int64_t below,
                             int64_t rank) {
    int64_t k = class_begin(r, c);
    while (k + 1 < r->n && below + times[r->sorted[k].step] <= rank)
        below += times[r->sorted[k++].step];
    return r->sorted[k].value;
}

/* tail: the first of three numbers that are `stride` apart. Returns where the next resample
   begins. */
static rng resample(const resampler *r, rng random, uint32_t *times, int64_t stride, double *tail) {
    uint32_t count[LANES][CLASSES];
    const rng next = draw_blocks(r, random, times);
    int64_t c = 0, below = 0;
    count_classes(r, times, count);
    for (int i = 0; i < BOOTSTRAP_TAILS; i++) {
        const int64_t rank[2] = {quantile_rank(r->n, tail_quantile[i]),
                                 quantile_rank_above(r->n, tail_quantile[i])};
        double value[2];
        for (int k = 0; k < 2; k++) {
            while (c + 1 < r->classes && below + count[0][c] <= rank[k]) below += count[0][c++];
            value[k] = value_in_class(r, times, c, below, rank[k]);
        }
        tail[i * stride] = quantile_between(r->n, tail_quantile[i], value[0], value[1]);
    }
    return next;
}

sr_status bootstrap_tails(const double *value, int64_t n, int64_t block, rng random,
                          int64_t resamples, double *result, sr_failure *why) {
    resampler r = {.n = n, .block = block};
    if (n > UINT32_MAX)
        return sr_fail(why, SR_MEMORY, "resamples are of %lld values at most, not %lld",
                       (long long)UINT32_MAX, (long long)n);
    const sr_status status = resampler_make(&r, value, resamples, why);
    const uint64_t blocks = (uint64_t)((n + block - 1) / block);
    int rejected = 0;
    if (status == SR_OK) {
#pragma omp parallel for schedule(dynamic) num_threads(r.threads) reduction(+ : rejected)
        for (int64_t b = 0; b < resamples; b++) {
            rng from = random;
            from.counter += (uint64_t)b * blocks;
            uint32_t *times = r.times + omp_get_thread_num() * n;
            const rng next = resample(&r, from, times, resamples, result + b);
            rejected += next.counter != from.counter + blocks;
        }
        for (int64_t b = 0; b < resamples && rejected; b++)
            random = resample(&r, random, r.times, resamples, result + b);
    }
    resampler_free(&r);
    return status;
}
