/* scratch.c -- memory that consecutive calls share; it only grows. */
#include "engine/scratch.h"

#include <stdlib.h>

#include "base/large_pages.h"

enum { CACHE_LINE = 64 };

void *scratch_memory_of(scratch_memory *s, size_t bytes, sr_failure *why) {
    if (bytes <= s->bytes) return s->start;
    free(s->start);
    s->bytes = 0;
    bytes = (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    s->start = large_pages_alloc(bytes);
    if (s->start)
        s->bytes = bytes;
    else
        sr_fail(why, SR_MEMORY, "out of memory for %zu bytes of a product", bytes);
    return s->start;
}
