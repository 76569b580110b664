/* bootstrap_fixed.h -- resamples of long series from blocks with fixed ends. */
#ifndef ANALYSIS_BOOTSTRAP_BOOTSTRAP_FIXED_H
#define ANALYSIS_BOOTSTRAP_BOOTSTRAP_FIXED_H

#include "analysis/bootstrap/bootstrap.h"

/* Values of the shortest series with fixed blocks. */
enum { FIXED_LEAST = 1 << 16 };
/* Number of fixed blocks of a series of n values with blocks of `block` values. 0: the series is
 * short, or has more than 4096 blocks. bootstrap_tails is for these. */
int64_t fixed_blocks(int64_t n, int64_t block);

/* Resamples that are counted side by side, and most resamples of a draw. */
enum { DRAW_LANES = 64, DRAWS_MOST = 1024 };

/* How often each resample has each block. Any series with as many blocks can use it: resamples of
 * several series then consist of the same steps. */
typedef struct block_draws {
    int64_t blocks, resamples;
    uint8_t *times; /* [slices, blocks, DRAW_LANES], DRAW_LANES resamples in each slice */
} block_draws;

/* Resamples first .. first + resamples - 1 of the stream, at most DRAWS_MOST; the same for any
 * number of threads. blocks: of fixed_blocks. Free it after a failure too. */
sr_status block_draws_make(block_draws *d, int64_t blocks, rng random, int64_t first,
                           int64_t resamples, sr_failure *why);
void block_draws_free(block_draws *d);
/* Median, 99 % quantile and maximum of each resample of value [n], which is finite: result
 * [BOOTSTRAP_TAILS], `stride` numbers apart, [resamples] each. fixed_blocks(n, ...) == d->blocks */
sr_status bootstrap_fixed(const double *value, int64_t n, const block_draws *d, int64_t stride,
                          double *result, sr_failure *why);

#endif
