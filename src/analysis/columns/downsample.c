/* Many rows to few, for figures: the x axis is cut into equal parts. Each part keeps the smallest,
 * the median and the largest finite value of every column, in three rows.
 *
 * No extreme value is lost: a spike of one step among a million stays. Only medians between two
 * values are new. Columns that grow with x (steps, epochs) keep their order, so cutting the three
 * rows into the same parts again finds the same three values in each.
 */

#include "analysis/columns/downsample.h"

#include <stdlib.h>
#include <string.h>

#include "base/buckets.h"

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

static sr_status grow_rows(parts *p, sr_failure *why) {
    const int64_t capacity = 2 * p->row_capacity + 96;
    double *grown = realloc(p->row, (size_t)(p->columns * capacity) * sizeof *grown);
    if (!grown) return sr_fail(why, SR_MEMORY, "out of memory");
    p->row = grown;
    p->row_capacity = capacity;
    return SR_OK;
}

sr_status parts_end(parts *p, sr_failure *why) {
    if (!p->count) return SR_OK;
    sr_status status = p->rows + 3 > p->row_capacity ? grow_rows(p, why) : SR_OK;
    if (status != SR_OK) return status;
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

/* Rows of the part that is being filled. */
static sr_status add_rows(parts *p, const double *const *value, int64_t from, int64_t count,
                          sr_failure *why) {
    if (reserve_values(p, p->count + count, why) != SR_OK) return why->status;
    for (int c = 0; c < p->columns; c++)
        memcpy(p->value + c * p->capacity + p->count, value[c] + from,
               (size_t)count * sizeof *p->value);
    p->count += count;
    return SR_OK;
}

sr_status parts_add(parts *p, const double *x, const double *const *value, int64_t count,
                    sr_failure *why) {
    sr_status status = SR_OK;
    for (int64_t at = 0, n; at < count && status == SR_OK; at += n) {
        const int64_t number = bucket_of(x[at], p->low, p->high, p->buckets);
        if (number != p->number) status = parts_end(p, why);
        p->number = number;
        n = rows_of_part(p, x + at, count - at);
        if (status == SR_OK) status = add_rows(p, value, at, n, why);
    }
    return status;
}
