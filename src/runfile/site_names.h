/* site_names.h -- whether a site of that name is there: one look, however many there are. */
#ifndef RUNFILE_SITE_NAMES_H
#define RUNFILE_SITE_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "statrec/runfile.h"

/* Places of an open-addressed table, a power of two, half of them free; each a site's number and 1, 0: free. */
typedef struct site_names {
    uint32_t *place;
    uint64_t places;
} site_names;

/* Of the sites [count] that were added, the one called so, or -1. */
int64_t site_names_find(const site_names *n, const sr_run_site *site, const char *name);
/* Adds site number `count`, which stands behind site [count]. False: out of memory. */
bool site_names_add(site_names *n, const sr_run_site *site, int64_t count);
void site_names_free(site_names *n);

#endif
