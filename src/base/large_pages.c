/* large_pages.c -- aligns memory to large pages and asks the system for them. */
#define _DEFAULT_SOURCE /* madvise */
#include "base/large_pages.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { CACHE_LINE = 64 };

static size_t round_up(size_t bytes, size_t to) {
    return (bytes + to - 1) / to * to;
}

void *large_pages_alloc(size_t bytes) {
    if (bytes <= LARGE_PAGE / 2) return aligned_alloc(CACHE_LINE, round_up(bytes, CACHE_LINE));
    void *memory = aligned_alloc(LARGE_PAGE, round_up(bytes, LARGE_PAGE));
#ifdef MADV_HUGEPAGE
    /* if it fails, pages stay small */
    if (memory) madvise(memory, round_up(bytes - LARGE_PAGE / 2, LARGE_PAGE), MADV_HUGEPAGE);
#endif
    return memory;
}
