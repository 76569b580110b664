/* line_hashes.c -- hashes of sentences; see line_hashes.h. */
#include "data/sets/line_hashes.h"

#include <stdlib.h>

#include "base/containers/map.h"
#include "base/containers/vector.h"

void line_hashes_free(line_hashes *h) {
    free(h->line);
    *h = (line_hashes){0};
}

bool line_hashes_add(line_hashes *h, uint64_t hash, int64_t words) {
    if (!vector_reserve(&h->line, &h->capacity, h->count + 1, sizeof *h->line)) return false;
    h->line[h->count++] = (hashed_line){hash, words};
    return true;
}

bool line_hashes_common(const line_hashes *a, const line_hashes *b, line_count *common) {
    map of_b = {0}; /* the smaller one, as a rule: training text is a */
    bool done = true;
    *common = (line_count){0};
    for (int64_t i = 0; done && i < b->count; i++)
        done = map_add_number(&of_b, b->line[i].hash) >= 0;
    bool *found = done ? calloc((size_t)of_b.count + 1, sizeof *found) : NULL;
    for (int64_t i = 0; found && i < a->count; i++) {
        const int64_t k = map_find_number(&of_b, a->line[i].hash);
        if (k >= 0) found[k] = true;
    }
    for (int64_t i = 0; found && i < b->count; i++)
        if (found[map_find_number(&of_b, b->line[i].hash)])
            common->lines++, common->words += b->line[i].words;
    done = found != NULL;
    free(found);
    map_free(&of_b);
    return done;
}

bool line_hashes_repeated(const line_hashes *h, line_count *repeated) {
    map seen = {0};
    bool done = true;
    *repeated = (line_count){0};
    for (int64_t i = 0; done && i < h->count; i++) {
        const int64_t before = seen.count;
        done = map_add_number(&seen, h->line[i].hash) >= 0;
        if (seen.count == before) repeated->lines++, repeated->words += h->line[i].words;
    }
    map_free(&seen);
    return done;
}
