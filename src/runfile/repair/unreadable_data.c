/* unreadable_data.c -- see unreadable_data.h. */
#include "runfile/repair/unreadable_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void copy_missed(unreadable_data *l, const char *group, const char *name, int64_t rows,
                 const sr_failure *why) {
    char dataset[2 * SR_NAME_SIZE];
    missed **at = &l->first;
    snprintf(dataset, sizeof dataset, "/%.*s%s%.*s", SR_NAME_SIZE - 2, group, *name ? "/" : "",
             SR_NAME_SIZE - 1, name);
    while (*at && strcmp((*at)->dataset, dataset) != 0) at = &(*at)->next;
    if (*at && rows < 0) return; /* told row by row */
    if (!*at) {
        *at = calloc(1, sizeof **at);
        if (!*at) return;
        memcpy((*at)->dataset, dataset, sizeof dataset);
        memcpy((*at)->reason, why->text, sizeof why->text);
        l->count++;
    }
    (*at)->rows += rows;
}

void unreadable_data_report(const unreadable_data *l, sr_lost_fn *tell, void *context) {
    for (const missed *m = l->first; m && tell; m = m->next)
        tell(context, m->dataset, m->rows, m->reason);
}

void unreadable_data_free(unreadable_data *l) {
    for (missed *m = l->first, *next; m; m = next) {
        next = m->next;
        free(m);
    }
}
