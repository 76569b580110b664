/* Resamples of long series from blocks with fixed ends (Carlstein 1986).
 *
 * Block k of K has the values floor(k n / K) .. floor((k + 1) n / K) - 1. A resample has K blocks,
 * drawn with replacement. So block k counts `times` in it, and a value as often as its block. The
 * blocks of bootstrap_resample.c begin anywhere: a resample then takes two random accesses to the
 * series for each block. With thousands of blocks their starts matter little.
 *
 * DRAW_LANES resamples are counted side by side. The number of drawn values below a window is a
 * matrix product of the numbers in each block and `times`. The members of the window follow in
 * their order, GROUP at a time, until their draws reach the rank. Windows: around the median, and
 * from below the 99 % quantile on, by the deviation of the number of drawn values below each. An
 * order statistic outside its window is rare. Then the window is all values.
 */
#include "analysis/bootstrap/bootstrap_fixed.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/columns/column_summary.h"
#include "base/large_pages.h"
#include "base/sort.h"

enum {
    BLOCKS_MOST = 4096,
    WINDOWS = 2,
    DEVIATIONS = 6, /* half of a window */
    GROUP = 32,     /* GROUP times the draws of a block fit into 16 bits */
    MAXIMUM = BOOTSTRAP_TAILS - 1
};
_Static_assert(GROUP *UINT8_MAX <= UINT16_MAX, "sum_members");

static const double tail_quantile[BOOTSTRAP_TAILS] = {0.5, 0.99, 1};

int64_t fixed_blocks(int64_t n, int64_t block) {
    const int64_t blocks = (n + block - 1) / block;
    return n < FIXED_LEAST || n > INT32_MAX || blocks > BLOCKS_MOST ? 0 : blocks;
}

/* -- draws ----------------------------------------------------------------------------------- */

/* A block is drawn 256 times in a resample with a probability below 1e-500. */
static void draw_lane(uint8_t *times, int64_t blocks, rng random) {
    const rng_range range = rng_range_create((uint64_t)blocks);
    for (int64_t i = 0; i < blocks; i++) times[rng_in_range(&random, &range) * DRAW_LANES]++;
}

sr_status block_draws_make(block_draws *d, int64_t blocks, rng random, int64_t first,
                           int64_t resamples, sr_failure *why) {
    const int64_t slices = (resamples + DRAW_LANES - 1) / DRAW_LANES, size = blocks * DRAW_LANES;
    *d = (block_draws){blocks, resamples, calloc((size_t)(slices * size), 1)};
    if (!d->times) return sr_fail(why, SR_MEMORY, "out of memory for resamples");
#pragma omp parallel for schedule(dynamic)
    for (int64_t s = 0; s < slices; s++)
        for (int64_t c = 0; c < DRAW_LANES; c++)
            draw_lane(d->times + s * size + c, blocks,
                      rng_split(&random, (uint64_t)(first + s * DRAW_LANES + c)));
    return SR_OK;
}

void block_draws_free(block_draws *d) {
    free(d->times);
    *d = (block_draws){0};
}

/* -- windows --------------------------------------------------------------------------------- */

typedef struct member {
    double value;
    uint32_t block;
} member;

/* Values low .. high, and the numbers of values below them in each block. */
typedef struct window {
    double low, high;
    uint32_t *below; /* [blocks] */
    member *in;      /* [members] upwards */
    int64_t members;
} window;

typedef struct fixed_series {
    const double *value;
    int64_t n, blocks;
    uint32_t *length; /* [blocks] */
    window window[WINDOWS];
    int windows;
} fixed_series;

static int64_t block_begin(const fixed_series *s, int64_t block) {
    return block * s->n / s->blocks; /* at most 2^43 */
}

static void count_below(const fixed_series *s, double limit, uint32_t *below) {
    for (int64_t k = 0; k < s->blocks; k++) {
        const int64_t end = block_begin(s, k + 1);
        uint32_t count = 0;
        for (int64_t i = block_begin(s, k); i < end; i++) count += s->value[i] < limit;
        below[k] = count;
    }
}

/* DEVIATIONS times the standard deviation of the number of values below `limit` in a resample. */
static int64_t reach(const fixed_series *s, double limit, uint32_t *below) {
    double sum = 0, squares = 0;
    count_below(s, limit, below);
    for (int64_t k = 0; k < s->blocks; k++)
        sum += below[k], squares += (double)below[k] * (double)below[k];
    const double variance = squares - sum * sum / (double)s->blocks;
    return 2 + s->n / s->blocks + (int64_t)(DEVIATIONS * sqrt(fmax(0, variance)));
}

/* copy [n] is reordered. */
static void place_windows(fixed_series *s, double *copy) {
    const int64_t middle[] = {quantile_rank(s->n, 0.5), quantile_rank(s->n, 0.99)};
    quickselect_ranks(copy, s->n, middle, 2);
    const int64_t around = reach(s, copy[middle[0]], s->window[0].below);
    const int64_t under = reach(s, copy[middle[1]], s->window[0].below);
    const int64_t rank[] = {middle[0] - around, middle[0] + around, middle[1] - under};
    if (rank[0] < 0 || rank[2] < rank[0]) return;
    const bool apart = rank[1] < rank[2];
    quickselect_ranks(copy, s->n, rank, apart ? 3 : 1);
    s->window[0].low = copy[rank[0]];
    if (!apart || copy[rank[1]] >= copy[rank[2]]) return;
    s->windows = 2;
    s->window[0].high = copy[rank[1]];
    s->window[1].low = copy[rank[2]], s->window[1].high = INFINITY;
}

static int by_value(const void *a, const void *b) {
    const double x = ((const member *)a)->value, y = ((const member *)b)->value;
    return (x > y) - (x < y);
}

/* Values of value [count] in the window. */
static int64_t count_in(const window *w, const double *value, int64_t count) {
    int64_t in = 0;
    for (int64_t i = 0; i < count; i++) in += (value[i] >= w->low) & (value[i] <= w->high);
    return in;
}

/* Few lines have a member. */
static void gather(const fixed_series *s, window *w) {
    enum { LINE = 16 };
    member *to = w->in;
    for (int64_t k = 0; k < s->blocks; k++) {
        const int64_t end = block_begin(s, k + 1);
        for (int64_t at = block_begin(s, k); at < end; at += LINE) {
            const int64_t n = end - at < LINE ? end - at : LINE;
            if (!count_in(w, s->value + at, n)) continue;
            for (int64_t i = at; i < at + n; i++) {
                *to = (member){s->value[i], (uint32_t)k};
                to += (s->value[i] >= w->low) & (s->value[i] <= w->high);
            }
        }
    }
}

static bool find_members(fixed_series *s, window *w) {
    w->members = count_in(w, s->value, s->n);
    w->in = malloc((size_t)(w->members + 1) * sizeof *w->in); /* one that is written over */
    if (!w->in) return false;
    count_below(s, w->low, w->below);
    gather(s, w);
    qsort(w->in, (size_t)w->members, sizeof *w->in, by_value);
    return true;
}

/* all: one window of all values */
static sr_status series_make(fixed_series *s, bool all, sr_failure *why) {
    double *copy = large_pages_alloc((size_t)s->n * sizeof *copy);
    s->length = malloc((size_t)s->blocks * sizeof *s->length);
    bool ok = copy && s->length;
    for (int w = 0; w < WINDOWS; w++) {
        s->window[w].below = malloc((size_t)s->blocks * sizeof(uint32_t));
        ok = ok && s->window[w].below;
    }
    s->windows = 1, s->window[0].low = -INFINITY, s->window[0].high = INFINITY;
    if (ok && !all) {
        memcpy(copy, s->value, (size_t)s->n * sizeof *copy);
        place_windows(s, copy);
    }
    free(copy);
    for (int64_t k = 0; k < s->blocks && ok; k++)
        s->length[k] = (uint32_t)(block_begin(s, k + 1) - block_begin(s, k));
    for (int w = 0; w < s->windows && ok; w++) ok = find_members(s, &s->window[w]);
    return ok ? SR_OK
              : sr_fail(why, SR_MEMORY, "out of memory for resamples of %lld values",
                        (long long)s->n);
}

static void series_free(fixed_series *s) {
    free(s->length);
    for (int w = 0; w < WINDOWS; w++) free(s->window[w].below), free(s->window[w].in);
}

/* -- quantiles ------------------------------------------------------------------------------- */

/* Sums of[blocks] over the blocks of each resample. */
static void sum_blocks(const uint8_t *times, int64_t blocks, const uint32_t *of,
                       uint32_t sum[DRAW_LANES]) {
    memset(sum, 0, DRAW_LANES * sizeof *sum);
    for (int64_t k = 0; k < blocks; k++)
        for (int c = 0; c < DRAW_LANES; c++) sum[c] += of[k] * times[k * DRAW_LANES + c];
}

/* Sums of the draws of members at .. end - 1. */
static void sum_members(const uint8_t *times, const member *at, const member *end,
                        uint16_t sum[DRAW_LANES]) {
    memset(sum, 0, DRAW_LANES * sizeof *sum);
    for (; at < end; at++)
        for (int c = 0; c < DRAW_LANES; c++)
            sum[c] = (uint16_t)(sum[c] + times[at->block * DRAW_LANES + c]);
}

/* The values of ranks among members at .. end - 1; returns how many. */
static int find_in_group(const uint8_t *times, const member *at, const member *end, uint32_t below,
                         const uint32_t rank[2], double value[2]) {
    int found = 0;
    for (; at < end; at++) {
        const uint32_t next = below + times[at->block * DRAW_LANES];
        for (int j = 0; j < 2; j++)
            if (rank[j] >= below && rank[j] < next) value[j] = at->value, found++;
        below = next;
    }
    return found;
}

/* The values at two ranks of each resample, which has below[c] values before the window; NaN:
 * outside it. */
static void find_ranks(const uint8_t *times, const window *w, uint32_t *below,
                       uint32_t rank[DRAW_LANES][2], double value[DRAW_LANES][2]) {
    int left = 0;
    for (int c = 0; c < DRAW_LANES; c++)
        for (int j = 0; j < 2; j++) value[c][j] = NAN, left += rank[c][j] >= below[c];
    for (const member *at = w->in, *last = w->in + w->members, *end; at < last && left; at = end) {
        uint16_t sum[DRAW_LANES];
        end = last - at < GROUP ? last : at + GROUP;
        sum_members(times, at, end, sum);
        for (int c = 0; c < DRAW_LANES; c++) {
            const uint32_t next = below[c] + sum[c];
            if (rank[c][1] >= below[c] && rank[c][0] < next)
                left -= find_in_group(times + c, at, end, below[c], rank[c], value[c]);
            below[c] = next;
        }
    }
}

/* The largest value of each resample. */
static void find_largest(const uint8_t *times, const window *w, double *value) {
    for (int c = 0; c < DRAW_LANES; c++) {
        int64_t k = w->members - 1;
        while (k >= 0 && !times[w->in[k].block * DRAW_LANES + c]) k--;
        value[c] = k < 0 ? NAN : w->in[k].value;
    }
}

static void find_quantiles(const fixed_series *s, const uint8_t *times, int tail, double *value) {
    const double p = tail_quantile[tail];
    const window *w = &s->window[tail && s->windows == 2];
    uint32_t count[DRAW_LANES], below[DRAW_LANES], rank[DRAW_LANES][2];
    double at[DRAW_LANES][2];
    if (tail == MAXIMUM) {
        find_largest(times, w, value);
        return;
    }
    sum_blocks(times, s->blocks, s->length, count);
    sum_blocks(times, s->blocks, w->below, below);
    for (int c = 0; c < DRAW_LANES; c++) {
        rank[c][0] = (uint32_t)quantile_rank(count[c], p);
        rank[c][1] = (uint32_t)quantile_rank_above(count[c], p);
    }
    find_ranks(times, w, below, rank, at);
    for (int c = 0; c < DRAW_LANES; c++)
        value[c] = quantile_between(count[c], p, at[c][0], at[c][1]);
}

/* False: some order statistics are outside their windows. */
static bool find_all(const fixed_series *s, const block_draws *d, int64_t stride, double *result) {
    bool found = true;
    for (int64_t at = 0; at < d->resamples; at += DRAW_LANES) {
        const int64_t left = d->resamples - at, n = left < DRAW_LANES ? left : DRAW_LANES;
        for (int tail = 0; tail < BOOTSTRAP_TAILS; tail++) {
            double value[DRAW_LANES];
            find_quantiles(s, d->times + at * s->blocks, tail, value);
            for (int64_t c = 0; c < n; c++) found = found && !isnan(value[c]);
            memcpy(result + tail * stride + at, value, (size_t)n * sizeof *value);
        }
    }
    return found;
}

static bool all_equal(const double *value, int64_t n) {
    for (int64_t i = 1; i < n; i++)
        if (value[i] != value[0]) return false;
    return true;
}

sr_status bootstrap_fixed(const double *value, int64_t n, const block_draws *d, int64_t stride,
                          double *result, sr_failure *why) {
    bool found = all_equal(value, n);
    for (int64_t b = 0; b < d->resamples && found; b++)
        for (int tail = 0; tail < BOOTSTRAP_TAILS; tail++) result[tail * stride + b] = value[0];
    sr_status status = SR_OK;
    for (int pass = 0; pass < 2 && !found && status == SR_OK; pass++) {
        fixed_series s = {.value = value, .n = n, .blocks = d->blocks};
        status = series_make(&s, pass == 1, why);
        if (status == SR_OK) found = find_all(&s, d, stride, result);
        series_free(&s);
    }
    return status;
}
