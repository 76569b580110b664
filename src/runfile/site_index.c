/* site_index.c -- see site_index.h. */
#include "runfile/site_index.h"

#include <stdlib.h>
#include <string.h>

/* FNV-1a, 64 bits. */
static uint64_t hash(const char *name) {
    uint64_t h = 14695981039346656037ull;
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 1099511628211ull;
    return h ^ h >> 32;
}

/* The place of a name, or the free one where it would be. */
static uint32_t *find_place(const site_index *n, const sr_run_site *site, const char *name) {
    uint64_t at = hash(name) & (n->places - 1);
    while (n->place[at] && strcmp(site[n->place[at] - 1].name, name) != 0)
        at = (at + 1) & (n->places - 1);
    return &n->place[at];
}

int64_t site_index_find(const site_index *n, const sr_run_site *site, const char *name) {
    return n->places ? (int64_t)*find_place(n, site, name) - 1 : -1;
}

static bool grow(site_index *n, const sr_run_site *site, int64_t count) {
    site_index larger = {.places = n->places ? 2 * n->places : 64};
    larger.place = calloc(larger.places, sizeof *larger.place);
    if (!larger.place) return false;
    for (int64_t i = count; i-- > 0;) *find_place(&larger, site, site[i].name) = (uint32_t)i + 1;
    free(n->place);
    *n = larger;
    return true;
}

bool site_index_add(site_index *n, const sr_run_site *site, int64_t count) {
    if (2 * (uint64_t)count >= n->places && !grow(n, site, count)) return false;
    uint32_t *place = find_place(n, site, site[count].name);
    if (!*place)
        *place = (uint32_t)count + 1; /* else a file has the name twice: the first has it */
    return true;
}

void site_index_free(site_index *n) {
    free(n->place);
    *n = (site_index){0};
}
