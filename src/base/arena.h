/* arena.h -- memory of one step: allocated piece by piece, given back all at once.
 *
 * Memory is kept over arena_reset as one block of the size that the largest step used, so that a
 * training loop allocates from the system in its first steps only. Under the address sanitizer a reset arena is poisoned: a pointer kept from an
 * earlier step is caught at its first use.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

typedef struct arena arena;

enum { ARENA_ALIGN = 64 };

/* block_bytes: size of the blocks asked from the system (larger requests get their own block);
 * 0 means 16 MiB. NULL when out of memory. Free with arena_free (NULL is fine). */
arena *arena_create(size_t block_bytes);
void arena_free(arena *a);

/* bytes, aligned to ARENA_ALIGN, contents undefined. NULL when out of memory;
 * the arena stays usable. Lives until arena_reset. */
void *arena_alloc(arena *a, size_t bytes);

/* Forgets every allocation; keeps the memory, as one block. */
void arena_reset(arena *a);

/* Bytes handed out since the last reset, and held from the system. */
size_t arena_used(const arena *a);
size_t arena_held(const arena *a);

/* For tests of running out of memory: of the allocations from now on, `count` succeed and every later
 * one fails, whether or not the arena is reset in between. Negative: no end (the initial state).
 * Returns how many have been asked for since the last call. */
int64_t arena_fail_after(arena *a, int64_t count);

#endif
