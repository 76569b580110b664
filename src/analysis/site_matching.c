/* site_matching.c -- matches the sites of runs for stat-compare. Sorts the chosen sites by run and
 * key, so that one is found among 100,000 by bisection.
 */
#include <stdlib.h>
#include <string.h>

#include "analysis/compare_sample.h"
#include "base/containers/hash.h"

static uint64_t key_of(const run_set *set, const site_choice *at, const char *match) {
    const sr_run_site *s = sr_run_get_site(set->run[at->run], at->site);
    if (strcmp(match, "name") == 0) return hash_bytes(s->name, strlen(s->name));
    return strcmp(match, "depth") == 0 ? (uint64_t)s->depth : 0;
}

/* Sites with the same key stay in their order. */
static int by_place(const void *x, const void *y) {
    const compare_place *a = x, *b = y;
    if (a->at->run != b->at->run) return a->at->run < b->at->run ? -1 : 1;
    if (a->key != b->key) return a->key < b->key ? -1 : 1;
    return (a->at > b->at) - (a->at < b->at);
}

sr_status site_matching_make(compare_places *p, const choice *c, const run_set *set,
                             const char *match, sr_failure *why) {
    *p = (compare_places){.set = set, .match = match, .count = c->sites};
    p->place = malloc((size_t)(c->sites + 1) * sizeof *p->place);
    if (!p->place) return sr_fail(why, SR_MEMORY, "out of memory");
    for (int64_t i = 0; i < c->sites; i++)
        p->place[i] = (compare_place){&c->site[i], key_of(set, &c->site[i], match)};
    qsort(p->place, (size_t)p->count, sizeof *p->place, by_place);
    return SR_OK;
}

void site_matching_free(compare_places *p) {
    free(p->place);
    p->place = NULL;
}

/* The first place with this run and key, or after them. */
static int64_t begin_of(const compare_places *p, int run, uint64_t key) {
    int64_t low = 0, high = p->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const compare_place *at = &p->place[middle];
        if (at->at->run < run || (at->at->run == run && at->key < key))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const site_choice *site_matching_find(const compare_places *p, const site_choice *first, int run,
                                      int stat) {
    const bool last = strcmp(p->match, "last") == 0;
    const uint64_t key = first ? key_of(p->set, first, p->match) : 0;
    const int64_t begin = begin_of(p, run, key);
    int64_t end = begin;
    if (last) end = begin_of(p, run + 1, 0);
    while (!last && end < p->count && p->place[end].at->run == run && p->place[end].key == key) {
        const site_choice *at = p->place[end++].at;
        if (!at->has[stat]) continue;
        if (!first || strcmp(p->match, "name") != 0) return at;
        if (strcmp(sr_run_get_site(p->set->run[first->run], first->site)->name,
                   sr_run_get_site(p->set->run[at->run], at->site)->name) == 0)
            return at; /* and no other name with the same hash */
    }
    while (last && end-- > begin)
        if (p->place[end].at->has[stat]) return p->place[end].at;
    return NULL;
}
