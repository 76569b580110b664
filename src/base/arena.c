/* arena.c -- a list of blocks filled front to back, one block after a reset. */
#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/large_pages.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define POISON(p, n)   ASAN_POISON_MEMORY_REGION(p, n)
#define UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
enum { REDZONE = ARENA_ALIGN };
#else
#define POISON(p, n)   ((void)0)
#define UNPOISON(p, n) ((void)0)
enum { REDZONE = 0 };
#endif

typedef struct block {
    struct block *next;
    unsigned char *bytes;
    size_t size, used;
} block;

struct arena {
    block *first, *current;
    size_t block_bytes;
    int64_t asked, granted; /* allocations since arena_fail_after; negative granted: no end */
};

static size_t round_up(size_t bytes) {
    return (bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
}

/* Large pages where nothing of the block stays unused. The gaps at the ends of a list of blocks
 * would take memory in them, 9 % of the 1.7 GB of iwslt (docs/performance.md). */
static block *block_create(size_t size, bool without_gaps) {
    block *b = malloc(sizeof *b);
    if (!b) return NULL;
    *b = (block){.size = size};
    b->bytes = without_gaps ? large_pages_alloc(size) : aligned_alloc(ARENA_ALIGN, size);
    if (!b->bytes) {
        free(b);
        return NULL;
    }
    POISON(b->bytes, size);
    return b;
}

/* The block's memory back to the system. */
static void block_free(block *b) {
    UNPOISON(b->bytes, b->size);
    free(b->bytes);
    free(b);
}

arena *arena_create(size_t block_bytes) {
    arena *a = calloc(1, sizeof *a);
    if (!a) return NULL;
    a->granted = -1;
    a->block_bytes = round_up(block_bytes ? block_bytes : (size_t)16 << 20);
    return a;
}

void arena_free(arena *a) {
    if (!a) return;
    for (block *b = a->first, *next; b; b = next) {
        next = b->next;
        block_free(b);
    }
    free(a);
}

void *arena_alloc(arena *a, size_t bytes) {
    a->asked++;
    if (bytes > SIZE_MAX / 2 || (a->granted >= 0 && a->asked > a->granted)) return NULL;
    size_t need = round_up(bytes ? bytes : 1) + REDZONE;
    if (!a->current || a->current->size - a->current->used < need) {
        block *b = block_create(need > a->block_bytes ? need : a->block_bytes, false);
        if (!b) return NULL;
        *(a->current ? &a->current->next : &a->first) = b;
        a->current = b;
    }
    void *p = a->current->bytes + a->current->used;
    a->current->used += need;
    UNPOISON(p, bytes);
    return p;
}

/* One block of the used size has no gaps. A list has one at the end of each block, and grows with
 * the number of different steps. Out of memory: the next step allocates new blocks. */
static void merge_blocks(arena *a) {
    size_t used = arena_used(a);
    for (block *b = a->first, *next; b; b = next) {
        next = b->next;
        block_free(b);
    }
    size_t blocks = (used + a->block_bytes - 1) / a->block_bytes;
    a->first = block_create(blocks * a->block_bytes, true);
}

void arena_reset(arena *a) {
    if (a->first && a->current != a->first) {
        merge_blocks(a);
    } else if (a->first) {
        a->first->used = 0;
        POISON(a->first->bytes, a->first->size);
    }
    a->current = a->first;
}

size_t arena_used(const arena *a) {
    size_t sum = 0;
    for (const block *b = a->first; b; b = b->next) sum += b->used;
    return sum;
}

size_t arena_held(const arena *a) {
    size_t sum = 0;
    for (const block *b = a->first; b; b = b->next) sum += b->size;
    return sum;
}

int64_t arena_fail_after(arena *a, int64_t count) {
    int64_t asked = a->asked;
    a->asked = 0;
    a->granted = count;
    return asked;
}
