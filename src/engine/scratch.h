/* scratch.h -- memory that consecutive calls share. */
#ifndef ENGINE_SCRATCH_H
#define ENGINE_SCRATCH_H

#include <stddef.h>

#include "statrec/base.h"

/* Grows to the largest request. Initialize with {0}; the owner frees `start`. One caller at a
 * time. */
typedef struct scratch_memory {
    void *start; /* aligned to a cache line */
    size_t bytes;
} scratch_memory;

/* Returns at least `bytes`, contents undefined; NULL when out of memory. */
void *scratch_memory_of(scratch_memory *s, size_t bytes, sr_failure *why);

#endif
