/* shard_stats.h -- what the layers of a model found in the passes of one step, as numbers that
 * another process can be sent. */
#ifndef OBSERVE_SHARD_STATS_H
#define OBSERVE_SHARD_STATS_H

#include "nets/models.h"

typedef struct shard_stats shard_stats;

/* What one site found. Absent: rows is NaN. */
typedef struct parcel {
    double rows, samples, padded;
    double scalar[NORM_SCALAR_COUNT];
    const double *vector[NORM_VECTOR_COUNT]; /* [features], NULL where it is not sent */
    /* [features] mean of the position encoding; NULL: no part of the input */
    const double *position;
} parcel;

/* For so many passes of the chosen sites; vectors: those of the sites too. NULL on failure. */
shard_stats *shard_stats_create(const model *m, const bool *chosen, int passes, bool vectors,
                                sr_failure *why);
void shard_stats_free(shard_stats *p);
/* Nothing was found yet. */
void shard_stats_clear(shard_stats *p);
void shard_stats_take(shard_stats *p, int number, int site, const norm_view *o);

/* All numbers [passes, each]. Those of another process have the same places. */
const double *shard_stats_numbers(const shard_stats *p);
int64_t shard_stats_each(const shard_stats *p);
/* What stands for a site of a pass in numbers [passes, each]. */
parcel shard_stats_at(const shard_stats *p, const double *numbers, int number, int site);

/* What all rows of a batch say together where parts[count] are of its parts: sums of rows; means
 * over rows, roots of sums of squares and largest values of the scalars, as each is defined. No
 * vectors. */
parcel shard_stats_merge(const parcel *part, int count);
/* mean [features] of the position encoding over the rows of all parts. */
void shard_stats_merge_positions(const parcel *part, int count, int64_t features, double *mean);

#endif
