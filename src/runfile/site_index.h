/* site_index.h -- whether a site of that name is there: one look, however many there are. */
#ifndef RUNFILE_SITE_INDEX_H
#define RUNFILE_SITE_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "statrec/runfile.h"

/* Places of an open-addressed table, a power of two, half of them free; each a site's number and 1, 0: free. */
typedef struct site_index {
    uint32_t *place;
    uint64_t places;
} site_index;

/* Of the sites [count] that were added, the one called so, or -1. */
int64_t site_index_find(const site_index *n, const sr_run_site *site, const char *name);
/* Adds site number `count`, which stands behind site [count]. False: out of memory. */
bool site_index_add(site_index *n, const sr_run_site *site, int64_t count);
void site_index_free(site_index *n);

#endif
