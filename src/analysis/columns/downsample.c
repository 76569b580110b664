/* Many rows to few, for figures: the x axis is cut into equal parts. Each part keeps the smallest,
 * the median and the largest finite value of every column, in three rows.
 *
 * No extreme value is lost: a spike of one step among a million stays. Only medians between two
 * values are new. Columns that grow with x (steps, epochs) keep their order. So cutting the three
 * rows into the same parts again finds the same three values.
 */

#include "analysis/columns/downsample.h"

#include <stdlib.h>
#include <string.h>

#include "base/buckets.h"
#include "base/containers/vector.h"

void parts_begin(parts *p, int columns, int64_t buckets, double low, double high) {
    *p = (parts){.columns = columns, .buckets = buckets, .low = low, .high = high};
}

void parts_free(parts *p) {
    free(p->value);
    free(p->row);
    *p = (parts){0};
}

/* value is [columns, capacity]. */
static sr_status reserve_values(parts *p, int64_t count, sr_failure *why) {
    if (count <= p->capacity) return SR_OK;
    const int64_t capacity = count > 2 * p->capacity ? count + 64 : 2 * p->capacity;
    double *grown = malloc((size_t)(p->columns * capacity) * sizeof *grown);
    if (!grown)
        return sr_fail(why, SR_MEMORY, "out of memory for a part of %lld rows", (long long)count);
    for (int c = 0; c < p->columns && p->count; c++)
        memcpy(grown + c * capacity, p->value + c * p->capacity, (size_t)p->count * sizeof *grown);
    free(p->value);
    p->value = grown;
    p->capacity = capacity;
    return SR_OK;
}

sr_status parts_end(parts *p, sr_failure *why) {
    if (!p->count) return SR_OK;
    if (!vector_reserve(&p->row, &p->row_capacity, p->rows + 3,
                        (size_t)p->columns * sizeof *p->row))
        return sr_fail(why, SR_MEMORY, "out of memory");
    double *row = p->row + p->rows * p->columns;
    for (int c = 0; c < p->columns; c++) {
        const bucket_range of = bucket_measure(p->value + c * p->capacity, p->count);
        row[c] = of.least;
        row[p->columns + c] = of.median;
        row[2 * p->columns + c] = of.largest;
    }
    p->rows += 3;
    p->count = 0;
    return SR_OK;
}

/* How many rows are in the part of the first. */
static int64_t rows_of_part(const parts *p, const double *x, int64_t count) {
    int64_t low = 1, high = count; /* the answer is in low .. high */
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (bucket_of(x[middle], p->low, p->high, p->buckets) == p->number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static sr_status keep_rows(parts *p, const double *const *value, int64_t count, sr_failure *why) {
    if (!vector_reserve(&p->row, &p->row_capacity, p->rows + count,
                        (size_t)p->columns * sizeof *p->row))
        return sr_fail(why, SR_MEMORY, "out of memory");
    for (int64_t i = 0; i < count; i++, p->rows++)
        for (int c = 0; c < p->columns; c++) p->row[p->rows * p->columns + c] = value[c][i];
    return SR_OK;
}

sr_status parts_add(parts *p, const double *x, const double *const *value, int64_t count,
                    sr_failure *why) {
    if (!p->buckets) return keep_rows(p, value, count, why);
    sr_status status = SR_OK;
    for (int64_t at = 0, n; at < count && status == SR_OK; at += n) {
        const int64_t number = bucket_of(x[at], p->low, p->high, p->buckets);
        if (number != p->number) status = parts_end(p, why);
        p->number = number;
        n = rows_of_part(p, x + at, count - at);
        if (status == SR_OK) status = reserve_values(p, p->count + n, why);
        for (int c = 0; c < p->columns && status == SR_OK; c++)
            memcpy(p->value + c * p->capacity + p->count, value[c] + at,
                   (size_t)n * sizeof *p->value);
        p->count += status == SR_OK ? n : 0;
    }
    return status;
}
