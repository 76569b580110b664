/* column_summary.h -- summaries of columns of numbers of any length. Needs no run file.
 *
 * Columns that do not fit into memory are read several times; results are bit-identical.
 */
#ifndef ANALYSIS_COLUMNS_COLUMN_SUMMARY_H
#define ANALYSIS_COLUMNS_COLUMN_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buckets.h"
#include "base/tsv.h"
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
/* Columns steps, nonfinite, median, mean, quantiles, max; and one row's cells of them. */
void summary_columns(tsv *table);
void summary_cells(tsv *table, const summary *s);

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

#endif
