/* Summaries of many series of a run, in the order that reads the file the fewest times. A dataset
 * of /scalars contains all sites, so it takes one statistic after the other. From /vectors it takes
 * one site after the other.
 */

#include "analysis/series/series_summaries.h"

#include <stdlib.h>

typedef struct placed {
    series s;
    int place; /* index of its summary */
} placed;

static int by_dataset(const void *a, const void *b) {
    const placed *x = a, *y = b;
    const uintptr_t first = (uintptr_t)x->s.stat, second = (uintptr_t)y->s.stat;
    if (x->s.source == FROM_SCALARS && first != second) return first < second ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

sr_status series_summaries(const series *s, int count, int64_t first, int64_t rows, bool range,
                           summary *result, sr_failure *why) {
    placed *order = malloc((size_t)(count + 1) * sizeof *order);
    series *together = malloc((size_t)(count + 1) * sizeof *together);
    summary *found = malloc((size_t)(count + 1) * sizeof *found);
    const int most = columns_together(rows, count);
    column_block b = {0};
    sr_status status =
        order && together && found ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    if (status == SR_OK) status = columns_create(&b, most, rows, why);
    for (int i = 0; i < count && status == SR_OK; i++) order[i] = (placed){s[i], i};
    if (status == SR_OK) qsort(order, (size_t)count, sizeof *order, by_dataset);
    for (int at = 0, n; at < count && status == SR_OK; at += n) {
        int alike = order[at].s.source == FROM_SCALARS ? 1 : count - at; /* are read together */
        while (at + alike < count && order[at + alike].s.stat == order[at].s.stat) alike++;
        n = columns_together(rows, alike); /* equal parts of fewer series may be larger */
        n = n < most ? n : most;
        for (int i = 0; i < n; i++) together[i] = order[at + i].s;
        status = series_read_all(together, n, first, rows, b.value, NULL, why);
        if (status == SR_OK) columns_summarise(&b, n, rows, range, found);
        for (int i = 0; i < n && status == SR_OK; i++) result[order[at + i].place] = found[i];
    }
    columns_free(&b);
    free(order);
    free(together);
    free(found);
    return status;
}
