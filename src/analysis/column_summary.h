/* column_summary.h -- columns of numbers of any length: their summaries, and many rows to few. For who has no run.
 *
 * What does not fit into memory is read several times; results are the same to the last bit.
 */
#ifndef ANALYSIS_COLUMN_SUMMARY_H
#define ANALYSIS_COLUMN_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buckets.h"
#include "statrec/base.h"

/* -- summaries ------------------------------------------------------------------------------- */

typedef struct summary {
    int64_t values, nonfinite;
    double mean, min, q01, q25, median, q75, q99, max; /* of the finite values; NaN without any */
} summary;

/* Reorders value [count]. */
void summary_make(double *value, int64_t count, summary *result);
/* The same for who needs only count, mean, min, median and max; the quantiles are NaN. */
void summary_range(double *value, int64_t count, summary *result);
/* Quantile p of sorted [count]: linear between the order statistics around (count - 1) p. */
double quantile_of_sorted(const double *sorted, int64_t count, double p);

/* -- summaries of columns of any length: streaming_quantiles.c ------------------------------------- */

/* Columns side by side. */
typedef struct column_source {
    int columns;
    int64_t rows;
    bool range; /* summaries as of summary_range */
    /* Fills value [columns][count] with rows first .. first + count - 1. Asked for all rows in their
     * order, at once or block by block, and maybe for all of them again, several times. */
    sr_status (*read)(void *context, int64_t first, int64_t count, double *const *value,
                      sr_failure *why);
    void *context;
} column_source;

/* Bytes of columns that are kept in memory (memory_limit.c). */
int64_t column_memory_limit(void);

/* Memory that goes from one summary_read to the next; {0} at first, column_space_free in the end. */
typedef struct column_space {
    double *memory;
    size_t size; /* doubles */
} column_space;

void column_space_free(column_space *space);
/* result [columns], what summary_make or summary_range finds, to the last bit. Columns that do not fit
 * into column_memory_limit() together are not kept but read several times. */
sr_status summary_read(const column_source *c, column_space *space, summary *result,
                       sr_failure *why);
/* Quantiles of finite values, and what lies around them. */
enum { QUANTILES_MOST = 5 };
typedef struct column_quantiles {
    int64_t finite;            /* values */
    double least, largest;     /* infinite, the least above the largest, where there are none */
    double at[QUANTILES_MOST]; /* NaN where there are none */
} column_quantiles;
/* result [columns]; quantile [quantiles] upwards, 1 to QUANTILES_MOST of them. Otherwise as summary_read. */
sr_status quantiles_read(const column_source *c, column_space *space, const double *quantile,
                         int quantiles, column_quantiles *result, sr_failure *why);
/* One column of what is in memory, which must stay. And the column of c, of which there is one, from `space`
 * where it fits beside all that is made of it: what is read several times is read once then. */
column_source column_in_memory(const double *value, int64_t count);
sr_status column_keep(column_source *c, column_space *space, sr_failure *why);
/* result [columns], what bucket_measure finds, to the last bit, of columns that do not fit: c->range
 * must be true. */
sr_status ranges_stream(const column_source *c, column_space *space, bucket_range *result,
                        sr_failure *why);
/* Of so many columns, how many to give to summary_read at once, so that they are read as few times as
 * memory allows; at least one. */
int columns_together(int64_t rows, int columns, bool range);

/* -- many rows to few: downsample.c -------------------------------------------------------- */

typedef struct parts {
    int columns;
    int64_t buckets, most; /* rows of a part that is kept */
    double low, high;      /* of x */
    column_source all;     /* the rows that parts_add is given, to be read again */
    int64_t first, number, count,
        capacity;  /* the part that is being filled: its number, its rows */
    double *value; /* [columns, capacity] */
    column_space space;
    int64_t rows, row_capacity; /* what is done: three rows for each part that has any */
    double *row;                /* [rows, columns] smallest, median, largest; NaN: none finite */
} parts;

/* all: the columns and their rows, of which `range` does not matter; a part that is longer than `room`
 * bytes is not kept but read again, several times. */
void parts_begin(parts *p, const column_source *all, int64_t room, int64_t buckets, double low,
                 double high);
/* The next rows, x not falling: x [count], value [columns][count]. */
sr_status parts_add(parts *p, const double *x, const double *const *value, int64_t count,
                    sr_failure *why);
/* After the last row. */
sr_status parts_end(parts *p, sr_failure *why);
void parts_free(parts *p);

#endif
