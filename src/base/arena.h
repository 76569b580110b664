/* arena.h -- memory of one step: many allocations, released all at once.
 *
 * arena_reset keeps the memory as one block of the size that the largest step used. So a training
 * loop allocates from the system in its first steps only. The address sanitizer sees a reset arena
 * as poisoned and catches the first use of an older pointer.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

typedef struct arena arena;

enum { ARENA_ALIGN = 64 };

/* block_bytes: size of a block from the system, 0: 16 MiB. A larger request gets its own block.
 * NULL when out of memory. Free with arena_free (NULL is fine). */
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

/* For tests: the next `count` allocations succeed and every later one fails, also across a reset.
 * Negative: no end (the initial state). Returns how many have been asked for since the last
 * call. */
int64_t arena_fail_after(arena *a, int64_t count);

#endif
