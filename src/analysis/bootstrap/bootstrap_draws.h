/* bootstrap_draws.h -- what resamples of a series are made of (bootstrap_resample.c): the places that are drawn, the order
 * statistics that are wanted, and values that are kept.
 */
#ifndef ANALYSIS_BOOTSTRAP_BOOTSTRAP_DRAWS_H
#define ANALYSIS_BOOTSTRAP_BOOTSTRAP_DRAWS_H

#include "analysis/bootstrap/bootstrap.h"

enum {
    CLASSES = 256,
    WANTED = 2 * BOOTSTRAP_TAILS,
    WORD = 64,
    PIECES = 64, /* of a resample, that are drawn before they are looked at */
    FOUND = -1,
    TOGETHER = 1024, /* resamples that share the passes over the file */
    KEPT_BYTES =
        64 /* of column_memory_limit() for a value that is kept: 32 of them while it is sorted */
};

/* One resample: places in the series, piece by piece. */
typedef struct draw {
    rng random;
    rng_range range; /* of n */
    int64_t n, block;
    int64_t left; /* values to draw */
} draw;

typedef struct index_range {
    int64_t at, end;
} index_range;

/* The next pieces, 0: there are none. A block that goes beyond the end of the series has two. */
int draw_next(draw *d, index_range next[PIECES]);

/* Resamples that are drawn side by side, with the bytes of one after the other. In the stream of random numbers each
 * begins where the one before it ended: a number for each block further, and one for each that rng_in_range refuses,
 * which is one of 2^32 at most. All begin as if none were refused; what began too early is drawn again. */
typedef struct resampling {
    draw first;                             /* of each, but for where it begins */
    rng begin[TOGETHER + 1], end[TOGETHER]; /* of each, and of the one behind them */
} resampling;

/* What is done with resample number b, which d draws; the bytes that it leaves may hang on b and d alone. Called in any
 * order, by `thread` one after the other, maybe twice. */
typedef void resample_work(void *context, int64_t b, draw *d, int thread);

/* `count` resamples, at most TOGETHER, from begin[0], on so many threads; all of begin is known then. */
void resamples_draw(resampling *r, int64_t count, int threads, resample_work *work, void *context);
/* The same once more. */
void resamples_draw_again(resampling *r, int64_t count, int threads, resample_work *work,
                          void *context);

/* An order statistic of a resample: its rank among the values that were drawn of those in span number
 * `span`. */
typedef struct order {
    int span; /* FOUND: value is it */
    int64_t rank;
    double value;
} order;

/* o [WANTED] of a resample of n values: those around its median and its 99 % quantile, and the largest. */
void orders_begin(order *o, int64_t n);
/* Whether one is still looked for in spans first .. first + spans - 1. */
bool orders_ask(const order *o, int first, int spans);
/* Quantiles, `resamples` apart. */
void orders_end(const order *o, int64_t n, int64_t resamples, double *result);

typedef struct pool {
    int64_t capacity, count;
    double *value;          /* [capacity] by step, then in order */
    uint32_t *rank;         /* [capacity] by step; equal values are one rank */
    int threads;            /* that may draw at once */
    uint32_t *drawn;        /* [threads, capacity] times, of each rank */
    uint64_t *member;       /* a bit for each step of the series; NULL: all are here */
    uint32_t *before;       /* members in front of each word of them */
    int first;              /* the spans of these values are those numbers */
    int64_t begin[CLASSES]; /* rank of the least value of each span; -1: not here */
} pool;

/* {0} is free; the rest is pool_free's after a failure too. Between pool_create and pool_sort the caller fills value. */
void pool_free(pool *p);
sr_status pool_create(pool *p, int64_t capacity, sr_failure *why);
sr_status pool_sort(pool *p, sr_failure *why);
/* Draws one resample. */
void pool_draw(const pool *p, draw *d, int thread);
/* The order statistics o [WANTED] whose spans are here, of what the thread drew last. */
void pool_find(const pool *p, order *o, int thread);

#endif
