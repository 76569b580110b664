/* bootstrap_draws.c -- see bootstrap_draws.h and the head of bootstrap_resample.c. */

#include "analysis/bootstrap/bootstrap_draws.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/columns/order_statistics.h"
#include "base/sort.h"

enum {
    MANY = 1 << 18, /* values to draw, for which threads are worth it */
    COUNTERS = 5    /* for a value that is kept: no more memory than while it was sorted */
};

static const double tail_quantile[BOOTSTRAP_TAILS] = {0.5, 0.99, 1};

/* -- drawing --------------------------------------------------------------------------------- */

int draw_next(draw *d, index_range next[PIECES]) {
    rng random = d->random;
    int64_t left = d->left;
    int count = 0;
    while (left && count < PIECES - 1) {
        const int64_t length = d->block < left ? d->block : left;
        const int64_t at = (int64_t)rng_in_range(&random, &d->range), end = at + length;
        left -= length;
        next[count++] = (index_range){at, end < d->n ? end : d->n};
        if (end > d->n) next[count++] = (index_range){0, end - d->n};
    }
    d->random = random;
    d->left = left;
    return count;
}

/* begin[from] is known. */
static void expect_begins(resampling *r, int64_t from, int64_t count) {
    const int64_t blocks = (r->first.n + r->first.block - 1) / r->first.block;
    for (int64_t b = from; b < count; b++) {
        r->begin[b + 1] = r->begin[b];
        r->begin[b + 1].counter += (uint64_t)blocks;
    }
}

/* The first behind `from` that did not begin where the one in front of it ended; it does now. */
static int64_t correct_begins(resampling *r, int64_t from, int64_t count) {
    int64_t b = from;
    bool right = true;
    while (b < count && right) {
        right = r->begin[b + 1].counter == r->end[b].counter;
        r->begin[b + 1] = r->end[b];
        b++;
    }
    return b;
}

static void draw_one(resampling *r, int64_t b, int thread, resample_work *work, void *context) {
    draw d = r->first;
    d.random = r->begin[b];
    work(context, b, &d, thread);
    r->end[b] = d.random;
}

static void draw_all(resampling *r, int64_t from, int64_t count, int threads, resample_work *work,
                     void *context) {
    if (threads < 2 || (count - from) * r->first.n < MANY) {
        for (int64_t b = from; b < count; b++) draw_one(r, b, 0, work, context);
        return;
    }
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (int64_t b = from; b < count; b++) draw_one(r, b, omp_get_thread_num(), work, context);
}

void resamples_draw(resampling *r, int64_t count, int threads, resample_work *work, void *context) {
    for (int64_t from = 0; from < count; from = correct_begins(r, from, count)) {
        expect_begins(r, from, count);
        draw_all(r, from, count, threads, work, context);
    }
}

void resamples_draw_again(resampling *r, int64_t count, int threads, resample_work *work,
                          void *context) {
    draw_all(r, 0, count, threads, work, context);
}

void orders_begin(order *o, int64_t n) {
    for (int i = 0; i < BOOTSTRAP_TAILS; i++) {
        o[2 * i] = (order){.rank = quantile_rank(n, tail_quantile[i])};
        o[2 * i + 1] = (order){.rank = quantile_rank_above(n, tail_quantile[i])};
    }
}

bool orders_ask(const order *o, int first, int spans) {
    bool any = false;
    for (int i = 0; i < WANTED; i++) any |= o[i].span >= first && o[i].span < first + spans;
    return any;
}

void orders_end(const order *o, int64_t n, int64_t resamples, double *result) {
    for (int i = 0; i < BOOTSTRAP_TAILS; i++)
        result[i * resamples] =
            quantile_between(n, tail_quantile[i], o[2 * i].value, o[2 * i + 1].value);
}

/* -- values that are kept -------------------------------------------------------------------- */

void pool_free(pool *p) {
    free(p->value);
    free(p->rank);
    free(p->drawn);
    free(p->member);
    free(p->before);
    *p = (pool){0};
}

sr_status pool_create(pool *p, int64_t capacity, sr_failure *why) {
    p->capacity = capacity;
    p->value = calloc((size_t)capacity + 1, sizeof *p->value);
    p->rank = malloc(((size_t)capacity + 1) * sizeof *p->rank);
    if (p->value && p->rank) return SR_OK;
    return sr_fail(why, SR_MEMORY, "out of memory for resamples of %lld values",
                   (long long)capacity);
}

/* The first that is not smaller. */
static uint32_t rank_of(const double *sorted, int64_t count, double value) {
    int64_t low = 0, high = count - 1;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (sorted[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return (uint32_t)low;
}

static int pool_threads(int64_t capacity) {
    const int64_t fit = COUNTERS * (column_memory_limit() / KEPT_BYTES) / (capacity + 1);
    const int most = omp_get_max_threads();
    return fit < 1 ? 1 : fit < most ? (int)fit : most;
}

/* After the last value. */
sr_status pool_sort(pool *p, sr_failure *why) {
    const size_t count = (size_t)p->capacity;
    double *sorted = malloc((count + 1) * sizeof *sorted);
    if (!sorted) return sr_fail(why, SR_MEMORY, "out of memory for resamples of %zu values", count);
    memcpy(sorted, p->value, count * sizeof *sorted);
    sort_reals(sorted, p->capacity);
    for (int64_t i = 0; i < p->capacity; i++)
        p->rank[i] = rank_of(sorted, p->capacity, p->value[i]);
    free(p->value);
    p->value = sorted;
    p->threads = pool_threads(p->capacity);
    p->drawn = malloc(((size_t)p->threads * count + 1) * sizeof *p->drawn);
    return p->drawn ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
}

/* Members among the first `steps` of the series. */
static int64_t pool_before(const pool *p, int64_t steps) {
    if (!p->member) return steps;
    const uint64_t below = ((uint64_t)1 << steps % WORD) - 1;
    return p->before[steps / WORD] + __builtin_popcountll(p->member[steps / WORD] & below);
}

void pool_draw(const pool *p, draw *d, int thread) {
    index_range next[PIECES];
    uint32_t *drawn = p->drawn + thread * p->capacity;
    memset(drawn, 0, (size_t)p->capacity * sizeof *drawn);
    for (int pieces; (pieces = draw_next(d, next)) > 0;)
        for (int k = 0; k < pieces; k++) {
            const int64_t end = pool_before(p, next[k].end);
            for (int64_t i = pool_before(p, next[k].at); i < end; i++) drawn[p->rank[i]]++;
        }
}

/* Ranks come upwards, so the next one is looked for from the last. */
void pool_find(const pool *p, order *o, int thread) {
    const uint32_t *drawn = p->drawn + thread * p->capacity;
    int64_t at = 0, below = 0;
    int span = FOUND;
    for (int i = 0; i < WANTED; i++) {
        const int64_t number = o[i].span - p->first;
        if (number < 0 || number >= CLASSES || p->begin[number] < 0) continue;
        if (o[i].span != span || o[i].rank < below) at = p->begin[number], below = 0;
        span = o[i].span;
        while (at < p->capacity - 1 && below + drawn[at] <= o[i].rank) below += drawn[at++];
        o[i] = (order){FOUND, 0, p->value[at]};
    }
}
