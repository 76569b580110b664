/* shard_stats.h -- statistics that the layers of a model computed in the passes of one step, as
 * numbers to send to another process. */
#ifndef OBSERVE_SHARD_STATS_H
#define OBSERVE_SHARD_STATS_H

#include "nets/models.h"
#include "observe/running_moves.h"

typedef struct shard_stats shard_stats;

/* Statistics of one site. Absent: rows is NaN. */
typedef struct parcel {
    double rows, samples, padded;
    double scalar[NORM_SCALAR_COUNT];
    double move[MOVES];                      /* moves of the running mean */
    const double *vector[NORM_VECTOR_COUNT]; /* [features], NULL: not sent */
    /* [features] mean of the position encoding; NULL: the input has none */
    const double *position;
} parcel;

/* For `passes` passes of the chosen sites; vectors: include vectors. NULL on failure. */
shard_stats *shard_stats_create(const model *m, const bool *chosen, int passes, bool vectors,
                                sr_failure *why);
void shard_stats_free(shard_stats *p);
/* Sets everything to absent. */
void shard_stats_clear(shard_stats *p);
void shard_stats_take(shard_stats *p, int number, int site, const norm_view *o);

/* All numbers [passes, each], with the same layout in every process. */
const double *shard_stats_numbers(const shard_stats *p);
int64_t shard_stats_each(const shard_stats *p);
/* The statistics of a site and pass in numbers [passes, each]. */
parcel shard_stats_at(const shard_stats *p, const double *numbers, int number, int site);

/* Merges the statistics of part[count] into statistics of all rows, without vectors. Row counts add
 * up. A scalar becomes a mean over rows, a root of a sum of squares or a maximum, by its
 * definition. The batch and running means are the same in all parts, and so are the moves. */
parcel shard_stats_merge(const parcel *part, int count);
/* mean [features] of the position encoding over the rows of all parts. */
void shard_stats_merge_positions(const parcel *part, int count, int64_t features, double *mean);

#endif
