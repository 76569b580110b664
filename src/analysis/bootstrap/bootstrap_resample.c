/* Quantiles of block resamples of a series: exact, without sorting a resample.
 *
 * A resample (bootstrap.c) consists of blocks of steps. Six order statistics are wanted: two around
 * the median, two around the 99 % quantile, and the two largest. They vary little between
 * resamples. The number of drawn values below a quantile p has the variance n/l v, at most about n
 * l p (1 - p). v is the variance of their number in a block. So only values near them are sorted,
 * in two windows of ranks; the upper window includes the largest value. Windows that overlap become
 * one. If only one tail is wanted, there is one window. A series of equal values needs no resample.
 *
 * Each member of a window gets the number of its draws. Short blocks count each of their steps. For
 * long blocks, prefix sums over the steps count the values below each window and the members of
 * both windows. A block then costs two look-ups, whatever its length. An order statistic outside
 * its window is rare. Such a resample is drawn again with one window of all values.
 *
 * One thread makes a resample, which depends only on its first random number. Resamples follow each
 * other in the stream. Each takes a number for each block, and one more for each number that
 * rng_in_range rejects (at most one of 2^32). All resamples start as if none were rejected. If one
 * was, they are drawn again one after the other.
 */
#include <math.h>
#include <omp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/bootstrap/bootstrap.h"
#include "analysis/columns/column_summary.h"
#include "base/sort.h"

enum {
    WINDOWS = 2,
    DEVIATIONS = 4, /* half of a window, in the largest standard deviations there can be */
    MEASURED = 6,   /* and in measured ones */
    BLOCKS = 16,    /* more values at the top: a resample draws one of them but for e^-16 */
    LOOK_UPS = 5,   /* two cost as much as counting 5 steps */
    MANY = 1 << 18  /* number of drawn values from which threads pay */
};

static const double tail_quantile[BOOTSTRAP_TAILS] = {0.5, 0.99, 1};
enum { ALL_TAILS = -1, MEDIAN };
/* Values that are in no window: below the first, between both, above. */
enum { BELOW, BETWEEN, ABOVE, GAPS };

/* Values of the steps before one. */
typedef struct prefix {
    uint32_t below[WINDOWS], members;
} prefix;

typedef struct ranked {
    double value;
    uint32_t member; /* its index in `times` */
} ranked;

typedef struct resampler {
    const double *value; /* [n] */
    int64_t n, block;
    rng_range range; /* range of n */
    int tail;        /* the one that is wanted, or ALL_TAILS */
    int windows;
    double low[WINDOWS], high[WINDOWS];
    int64_t end[WINDOWS]; /* ends of the windows in `sorted` */
    prefix *before;       /* [n + 1] */
    ranked *sorted;       /* [members] upwards */
    uint32_t *place;      /* [n + block] where a step is counted; NULL: long blocks */
    uint32_t *times;      /* [threads, counters] draws of each member, then of GAPS */
    int64_t members, counters;
    int64_t rank[BOOTSTRAP_TAILS][2]; /* the two that a quantile is between */
    int threads;
} resampler;

static int by_value(const void *a, const void *b) {
    const double x = ((const ranked *)a)->value, y = ((const ranked *)b)->value;
    return (x > y) - (x < y);
}

/* Standard deviation of the number of values below `limit` in a resample. */
static double deviation_below(const resampler *r, double limit) {
    int64_t here = 0;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < r->block; i++) here += r->value[i] < limit;
    for (int64_t i = 0; i < r->n; i++) {
        sum += (double)here, squares += (double)here * (double)here;
        const int64_t next = i + r->block < r->n ? i + r->block : i + r->block - r->n;
        here += (r->value[next] < limit) - (r->value[i] < limit);
    }
    const double n = (double)r->n, mean = sum / n;
    return sqrt(fmax(0, squares / n - mean * mean) * n / (double)r->block);
}

/* Half of a window around rank p n, from the measured deviation, and at most from the largest
 * possible one. limit: the value at that rank. */
static double reach_around(const resampler *r, double p, double limit) {
    const double l = (double)r->block;
    return fmin(DEVIATIONS * sqrt((double)r->n * l * p * (1 - p)),
                MEASURED * deviation_below(r, limit) + 2 * l);
}

/* Makes two windows of the one of all values, unless they overlap. copy [n] is reordered. */
static void place_windows(resampler *r, double *copy) {
    const double l = (double)r->block;
    int64_t rank[] = {quantile_rank(r->n, 0.5), quantile_rank_above(r->n, 0.5),
                      quantile_rank(r->n, 0.99)};
    quickselect_ranks(copy, r->n, rank, 3);
    const double middle = reach_around(r, 0.5, copy[rank[0]]);
    const double low = (double)rank[0] - middle, high = (double)rank[1] + middle;
    const double upper =
        (double)rank[2] - reach_around(r, 0.99, copy[rank[2]]) - (double)BLOCKS * l;
    if (low < 0 || upper < low) return;
    rank[0] = (int64_t)low, rank[1] = (int64_t)high, rank[2] = (int64_t)upper;
    const bool apart = rank[1] < rank[2];
    quickselect_ranks(copy, r->n, rank, apart ? 3 : 1);
    r->low[0] = copy[rank[r->tail > MEDIAN && apart ? 2 : 0]];
    if (apart && r->tail == MEDIAN) r->high[0] = copy[rank[1]];
    if (r->tail != ALL_TAILS || !apart || copy[rank[1]] >= copy[rank[2]]) return;
    r->windows = 2;
    r->high[0] = copy[rank[1]];
    r->low[1] = copy[rank[2]], r->high[1] = INFINITY;
}

/* -1: in no window */
static int window_of(const resampler *r, double value) {
    for (int w = 0; w < r->windows; w++)
        if (value >= r->low[w] && value <= r->high[w]) return w;
    return -1;
}

/* Prefix sums over the steps; returns how many values are in each window. */
static void count_before(resampler *r, int64_t count[WINDOWS]) {
    for (int64_t i = 0; i < r->n; i++) {
        const int w = window_of(r, r->value[i]);
        r->before[i + 1] = r->before[i];
        r->before[i + 1].members += w >= 0;
        for (int k = 0; k < r->windows; k++) r->before[i + 1].below[k] += r->value[i] < r->low[k];
        if (w >= 0) count[w]++;
    }
}

static int gap_of(const resampler *r, double value) {
    if (value < r->low[0]) return BELOW;
    return r->windows == 2 && value < r->low[1] ? BETWEEN : ABOVE;
}

/* Counts members in their order, so that their draws are read one after the other. False if out of
 * memory. */
static bool place_steps(resampler *r) {
    r->place = malloc((size_t)(r->n + r->block) * sizeof *r->place);
    uint32_t *order = malloc((size_t)(r->members + 1) * sizeof *order);
    for (int64_t k = 0; order && k < r->members; k++) {
        order[r->sorted[k].member] = (uint32_t)k;
        r->sorted[k].member = (uint32_t)k;
    }
    for (int64_t i = 0; order && r->place && i < r->n; i++)
        r->place[i] = window_of(r, r->value[i]) >= 0
                          ? order[r->before[i].members]
                          : (uint32_t)(r->members + gap_of(r, r->value[i]));
    for (int64_t i = 0; order && r->place && i < r->block; i++) r->place[r->n + i] = r->place[i];
    free(order);
    return order && r->place;
}

/* The members of the windows in order, and where the draws are counted. */
static sr_status find_members(resampler *r, sr_failure *why) {
    int64_t count[WINDOWS] = {0};
    count_before(r, count);
    r->end[0] = count[0], r->end[1] = r->members = count[0] + count[1];
    r->counters = r->members + GAPS;
    r->sorted = malloc((size_t)(r->members + 1) * sizeof *r->sorted);
    r->times = malloc((size_t)(r->threads * r->counters) * sizeof *r->times);
    bool ok = r->sorted && r->times;
    for (int64_t i = 0; i < r->n && ok; i++)
        r->sorted[r->before[i].members] = (ranked){r->value[i], r->before[i].members};
    if (ok) qsort(r->sorted, (size_t)r->members, sizeof *r->sorted, by_value);
    if (ok && r->block * (r->n - r->members) <= LOOK_UPS * r->n) ok = place_steps(r);
    return ok ? SR_OK
              : sr_fail(why, SR_MEMORY, "out of memory for resamples of %lld values",
                        (long long)r->n);
}

/* all: one window of all values */
static sr_status resampler_make(resampler *r, bool all, sr_failure *why) {
    double *copy = malloc((size_t)r->n * sizeof *copy);
    r->before = calloc((size_t)r->n + 1, sizeof *r->before);
    r->windows = 1, r->low[0] = -INFINITY, r->high[0] = INFINITY;
    sr_status status = SR_OK;
    if (!copy || !r->before)
        status =
            sr_fail(why, SR_MEMORY, "out of memory for resamples of %lld values", (long long)r->n);
    if (status == SR_OK && !all) {
        memcpy(copy, r->value, (size_t)r->n * sizeof *copy);
        place_windows(r, copy);
    }
    free(copy);
    return status == SR_OK ? find_members(r, why) : status;
}

/* Steps from .. to - 1 are drawn once more: `times` are then the sums from the first member on. */
static void draw_steps(const resampler *r, int64_t from, int64_t to, uint32_t *times,
                       uint32_t below[WINDOWS]) {
    const prefix *a = &r->before[from], *b = &r->before[to];
    times[a->members]++;
    times[b->members]--;
    for (int w = 0; w < WINDOWS; w++) below[w] += b->below[w] - a->below[w];
}

/* A block that runs over the end continues at the first step. below: drawn values below each
 * window. Returns where the next resample begins. */
static rng draw_long_blocks(const resampler *r, rng random, uint32_t *times,
                            uint32_t below[WINDOWS]) {
    memset(below, 0, WINDOWS * sizeof *below);
    for (int64_t left = r->n; left > 0; left -= r->block) {
        const int64_t at = (int64_t)rng_in_range(&random, &r->range);
        const int64_t end = at + (r->block < left ? r->block : left);
        draw_steps(r, at, end < r->n ? end : r->n, times, below);
        if (end > r->n) draw_steps(r, 0, end - r->n, times, below);
    }
    for (int64_t i = 1; i < r->members; i++) times[i] += times[i - 1];
    return random;
}

static rng draw_short_blocks(const resampler *r, rng random, uint32_t *times,
                             uint32_t below[WINDOWS]) {
    for (int64_t left = r->n; left > 0; left -= r->block) {
        const uint32_t *at = r->place + rng_in_range(&random, &r->range);
        const uint32_t *end = at + (r->block < left ? r->block : left);
        while (at < end) times[*at++]++;
    }
    below[0] = times[r->members + BELOW];
    below[1] = below[0] + times[r->members + BETWEEN];
    for (int64_t k = 0; r->windows == 2 && k < r->end[0]; k++) below[1] += times[k];
    return random;
}

/* The values at two ranks of a resample; NaN: outside the windows. */
static void find_upwards(const resampler *r, const uint32_t *times, const uint32_t begin[WINDOWS],
                         const int64_t rank[2], double value[2]) {
    for (int j = 0; j < 2; j++) {
        const int w = r->windows == 2 && begin[1] <= rank[j];
        int64_t k = w ? r->end[0] : 0, below = begin[w];
        while (k < r->end[w] && below + times[r->sorted[k].member] <= rank[j])
            below += times[r->sorted[k++].member];
        value[j] = below <= rank[j] && k < r->end[w] ? r->sorted[k].value : NAN;
    }
}

/* Finds ranks in the last window, which contains the largest value, from its end: few steps for a
 * tail. */
static void find_downwards(const resampler *r, const uint32_t *times, const int64_t rank[2],
                           double value[2]) {
    int64_t k = r->members, below = r->n;
    for (int j = 1; j >= 0; j--) {
        while (below - times[r->sorted[k - 1].member] > rank[j])
            below -= times[r->sorted[--k].member];
        value[j] = r->sorted[k - 1].value;
    }
}

/* tail: the first of three numbers that are `stride` apart, or the one that is wanted; NaN where
 * one is outside its window. */
static rng resample(const resampler *r, rng random, uint32_t *times, int64_t stride, double *tail) {
    uint32_t begin[WINDOWS];
    memset(times, 0, (size_t)r->counters * sizeof *times);
    const rng next = r->place ? draw_short_blocks(r, random, times, begin)
                              : draw_long_blocks(r, random, times, begin);
    const int first = r->tail == ALL_TAILS ? 0 : r->tail;
    const int end = r->tail == ALL_TAILS ? BOOTSTRAP_TAILS : r->tail + 1;
    for (int i = first; i < end; i++) {
        const int64_t *rank = r->rank[i];
        double value[2];
        if (i > MEDIAN && begin[r->windows - 1] <= rank[0])
            find_downwards(r, times, rank, value);
        else
            find_upwards(r, times, begin, rank, value);
        tail[(i - first) * stride] = quantile_between(r->n, tail_quantile[i], value[0], value[1]);
    }
    return next;
}

/* missed: some order statistics are outside their windows. */
static void draw_all(const resampler *r, rng random, int64_t resamples, double *result,
                     bool *missed) {
    const uint64_t blocks = (uint64_t)((r->n + r->block - 1) / r->block);
    int rejected = 0;
#pragma omp parallel for schedule(dynamic) num_threads(r->threads) reduction(+ : rejected)
    for (int64_t b = 0; b < resamples; b++) {
        rng from = random;
        from.counter += (uint64_t)b * blocks;
        uint32_t *times = r->times + omp_get_thread_num() * r->counters;
        const rng next = resample(r, from, times, resamples, result + b);
        rejected += next.counter != from.counter + blocks;
    }
    for (int64_t b = 0; b < resamples && rejected; b++)
        random = resample(r, random, r->times, resamples, result + b);
    const int64_t numbers = (r->tail == ALL_TAILS ? BOOTSTRAP_TAILS : 1) * resamples;
    *missed = false;
    for (int64_t i = 0; i < numbers; i++) *missed |= isnan(result[i]);
}

static bool all_equal(const double *value, int64_t n) {
    for (int64_t i = 1; i < n; i++)
        if (value[i] != value[0]) return false;
    return true;
}

static sr_status draw_tails(const double *value, int64_t n, int64_t block, int tail, rng random,
                            int64_t resamples, double *result, sr_failure *why) {
    const int64_t numbers = (tail == ALL_TAILS ? BOOTSTRAP_TAILS : 1) * resamples;
    if (all_equal(value, n)) {
        for (int64_t i = 0; i < numbers; i++) result[i] = value[0];
        return SR_OK;
    }
    if (n > UINT32_MAX)
        return sr_fail(why, SR_MEMORY, "resamples are of %lld values at most, not %lld",
                       (long long)UINT32_MAX, (long long)n);
    bool missed = true;
    sr_status status = SR_OK;
    for (int pass = 0; pass < 2 && missed && status == SR_OK; pass++) {
        resampler r = {.value = value,
                       .n = n,
                       .block = block,
                       .tail = tail,
                       .range = rng_range_create((uint64_t)n),
                       .threads = n * resamples < MANY ? 1 : omp_get_max_threads()};
        for (int i = 0; i < BOOTSTRAP_TAILS; i++) {
            r.rank[i][0] = quantile_rank(n, tail_quantile[i]);
            r.rank[i][1] = quantile_rank_above(n, tail_quantile[i]);
        }
        status = resampler_make(&r, pass == 1, why);
        if (status == SR_OK) draw_all(&r, random, resamples, result, &missed);
        free(r.before);
        free(r.sorted);
        free(r.place);
        free(r.times);
    }
    return status;
}

sr_status bootstrap_tails(const double *value, int64_t n, int64_t block, rng random,
                          int64_t resamples, double *result, sr_failure *why) {
    return draw_tails(value, n, block, ALL_TAILS, random, resamples, result, why);
}

sr_status bootstrap_tail(const double *value, int64_t n, int64_t block, int tail, rng random,
                         int64_t resamples, double *result, sr_failure *why) {
    return draw_tails(value, n, block, tail, random, resamples, result, why);
}
