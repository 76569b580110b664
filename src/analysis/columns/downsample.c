/* Many rows to few, for figures: a curve is cut into equal parts of its x axis, and of each part
 * the smallest, the median and the largest finite value of every column remain, in three rows. No
 * value outside the others is lost and, but for medians between two values, none is invented: a
 * spike of one step among a million stays. Columns that grow with x (steps, epochs) keep their
 * place, so who cuts the three rows into the same parts again finds the same three values in each.
 *
 * A part's rows are kept until its last one, where they fit; else it is read again (ranges_stream).
 */

#include "analysis/columns/downsample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void parts_begin(parts *p, const column_source *all, int64_t room, int64_t buckets, double low,
                 double high) {
    *p = (parts){.columns = all->columns,
                 .buckets = buckets,
                 .most = room / (all->columns * (int64_t)sizeof(double)),
                 .low = low,
                 .high = high,
                 .all = *all};
}

void parts_free(parts *p) {
    free(p->value);
    free(p->row);
    column_space_free(&p->space);
    *p = (parts){0};
}

/* value is [columns, capacity]; count is at most p->most. */
static sr_status reserve_values(parts *p, int64_t count, sr_failure *why) {
    if (count <= p->capacity) return SR_OK;
    const int64_t wanted = count > 2 * p->capacity ? count + 64 : 2 * p->capacity;
    const int64_t capacity = wanted < p->most ? wanted : p->most;
    double *grown = malloc((size_t)(p->columns * capacity) * sizeof *grown);
    if (!grown) return sr_fail(why, SR_MEMORY, "out of memory");
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

static sr_status read_part(void *context, int64_t first, int64_t count, double *const *value,
                           sr_failure *why) {
    const parts *p = context;
    return p->all.read(p->all.context, p->first + first, count, value, why);
}

/* result [columns] */
static sr_status part_measure(parts *p, bucket_range *result, sr_failure *why) {
    const column_source part = {p->columns, p->count, true, read_part, p};
    if (p->count > p->most) return ranges_stream(&part, &p->space, result, why);
    for (int c = 0; c < p->columns; c++)
        result[c] = bucket_measure(p->value + c * p->capacity, p->count);
    return SR_OK;
}

static void add_part(parts *p, const bucket_range *of) {
    double *row = p->row + p->rows * p->columns;
    for (int c = 0; c < p->columns; c++) {
        row[c] = of[c].least;
        row[p->columns + c] = of[c].median;
        row[2 * p->columns + c] = of[c].largest;
    }
    p->rows += 3;
    p->first += p->count;
    p->count = 0;
}

sr_status parts_end(parts *p, sr_failure *why) {
    bucket_range of[TSV_COLUMNS];
    if (!p->count) return SR_OK;
    sr_status status = p->rows + 3 > p->row_capacity ? grow_rows(p, why) : SR_OK;
    if (status == SR_OK) status = part_measure(p, of, why);
    if (status == SR_OK) add_part(p, of);
    return status;
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
    const bool kept = p->count + count <= p->most;
    sr_status status = kept ? reserve_values(p, p->count + count, why) : SR_OK;
    if (status != SR_OK) return status;
    for (int c = 0; c < p->columns && kept; c++)
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
