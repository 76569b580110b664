/* Many rows to few, for figures: a curve is cut into equal parts of its x axis, and of each part
 * the smallest, the median and the largest finite value of every column remain, in three rows. No
 * value outside the others is lost and, but for medians between two values, none is invented: a
 * spike of one step among a million stays. Columns that grow with x (steps, epochs) keep their
 * place, so who cuts the three rows into the same parts again finds the same three values in each.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "statnet/analysis.h"
#include "statnet/buckets.h"

void parts_begin(parts *p, int columns, int64_t buckets, double low, double high) {
    *p = (parts){.columns = columns, .buckets = buckets, .low = low, .high = high};
}

void parts_free(parts *p) {
    free(p->value);
    free(p->row);
    *p = (parts){0};
}

/* value is [columns, capacity]. */
static sr_status grow_values(parts *p, sr_failure *why) {
    const int64_t capacity = 2 * p->capacity + 64;
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

sr_status parts_end(parts *p, sr_failure *why) {
    if (!p->count) return SR_OK;
    sr_status status = p->rows + 3 > p->row_capacity ? grow_rows(p, why) : SR_OK;
    if (status != SR_OK) return status;
    double *row = p->row + p->rows * p->columns;
    for (int c = 0; c < p->columns; c++) {
        const bucket_range s = bucket_measure(p->value + c * p->capacity, p->count);
        row[c] = s.least;
        row[p->columns + c] = s.median;
        row[2 * p->columns + c] = s.largest;
    }
    p->rows += 3;
    p->count = 0;
    return SR_OK;
}

sr_status parts_add(parts *p, double x, const double *value, sr_failure *why) {
    const int64_t number = bucket_of(x, p->low, p->high, p->buckets);
    sr_status status = number != p->number ? parts_end(p, why) : SR_OK;
    p->number = number;
    if (status == SR_OK && p->count == p->capacity) status = grow_values(p, why);
    if (status != SR_OK) return status;
    for (int c = 0; c < p->columns; c++) p->value[c * p->capacity + p->count] = value[c];
    p->count++;
    return SR_OK;
}
