/* unreadable_data.c -- lists datasets with unreadable data, each once. */
#include "runfile/repair/unreadable_data.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/containers/vector.h"

void copy_missed(unreadable_data *l, const char *group, const char *name, int64_t rows,
                 const sr_failure *why) {
    missed new = {0};
    int i = 0;
    snprintf(new.dataset, sizeof new.dataset, "/%.*s%s%.*s", SR_NAME_SIZE - 2, group,
             *name ? "/" : "", SR_NAME_SIZE - 1, name);
    while (i < l->count && strcmp(l->entry[i].dataset, new.dataset) != 0) i++;
    if (i < l->count && rows < 0) return; /* noted row by row */
    if (i == l->count) {
        if (!vector_reserve(&l->entry, &l->capacity, i + 1, sizeof *l->entry)) {
            l->full = true;
            return;
        }
        memcpy(new.reason, why->text, sizeof why->text);
        l->entry[l->count++] = new;
    }
    l->entry[i].rows += rows;
}

sr_status unreadable_data_check(const unreadable_data *l, const char *path, sr_failure *why) {
    return l->full ? sr_fail(why, SR_MEMORY, "%s: list of its damaged datasets", path) : SR_OK;
}

void unreadable_data_report(const unreadable_data *l, sr_lost_fn *report, void *context) {
    for (int i = 0; i < l->count && report; i++)
        report(context, l->entry[i].dataset, l->entry[i].rows, l->entry[i].reason);
}

void copy_fill(const run_column *c, int64_t columns, void *to) {
    for (int64_t i = 0; i < columns; i++) {
        if (c->type == H5_INT64) ((int64_t *)to)[i] = -1;
        if (c->type == H5_FLOAT64) ((double *)to)[i] = NAN;
        if (c->type == H5_FLOAT32) ((float *)to)[i] = NAN;
    }
}
