/* Summaries of many series of a run, in the order in which the file is read fewest times: from
 * /scalars one statistic after the other, as a dataset holds all sites; from /vectors site by site. */

#include "analysis/series/series_summaries.h"

#include <stdlib.h>

typedef struct placed {
    series s;
    int place; /* of its summary */
} placed;

static int by_dataset(const void *a, const void *b) {
    const placed *x = a, *y = b;
    const uintptr_t first = (uintptr_t)x->s.stat, second = (uintptr_t)y->s.stat;
    if (x->s.source == FROM_SCALARS && first != second) return first < second ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

/* Series that are read together, rows from `first`. */
typedef struct together {
    const series *s; /* [count] */
    int count;
    int64_t first;
} together;

static sr_status together_read(void *context, int64_t first, int64_t count, double *const *value,
                               sr_failure *why) {
    const together *t = context;
    return series_read_all(t->s, t->count, t->first + first, count, value, NULL, why);
}

static sr_status series_column_read(void *context, int64_t first, int64_t count,
                                    double *const *value, sr_failure *why) {
    const series_column *x = context;
    return series_read(x->s, x->first + first, count, *value, NULL, why);
}

sr_status series_column_open(series_column *x, const series *s, int64_t first, int64_t rows,
                             sr_failure *why) {
    *x = (series_column){s, first, {1, rows, false, series_column_read, x}, {0}};
    return column_keep(&x->source, &x->space, why);
}

void series_column_close(series_column *x) {
    column_space_free(&x->space);
}

/* How many of the next ones go together. */
static int count_together(const placed *next, int left, int64_t rows, bool range) {
    int alike = next->s.source == FROM_SCALARS ? 1 : left;
    while (alike < left && next[alike].s.stat == next->s.stat) alike++;
    return columns_together(rows, alike, range);
}

/* Of the same rows of each. */
typedef struct summaries {
    int64_t first, rows;
    bool range;
    column_space space;
    series *s;      /* [count] scratch */
    summary *found; /* [count] scratch */
} summaries;

static sr_status summarise(summaries *m, const placed *next, int count, summary *result,
                           sr_failure *why) {
    together t = {m->s, count, m->first};
    const column_source source = {count, m->rows, m->range, together_read, &t};
    for (int i = 0; i < count; i++) m->s[i] = next[i].s;
    sr_status status = summary_read(&source, &m->space, m->found, why);
    for (int i = 0; i < count && status == SR_OK; i++) result[next[i].place] = m->found[i];
    return status;
}

sr_status series_summaries(const series *s, int count, int64_t first, int64_t rows, bool range,
                           summary *result, sr_failure *why) {
    placed *order = malloc((size_t)(count + 1) * sizeof *order);
    summaries m = {.first = first,
                   .rows = rows,
                   .range = range,
                   .s = malloc((size_t)(count + 1) * sizeof *m.s),
                   .found = malloc((size_t)(count + 1) * sizeof *m.found)};
    sr_status status = order && m.s && m.found ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    for (int i = 0; i < count && order; i++) order[i] = (placed){s[i], i};
    if (order) qsort(order, (size_t)count, sizeof *order, by_dataset);
    for (int at = 0, n; at < count && status == SR_OK; at += n) {
        n = count_together(order + at, count - at, rows, range);
        status = summarise(&m, order + at, n, result, why);
    }
    column_space_free(&m.space);
    free(order);
    free(m.s);
    free(m.found);
    return status;
}
