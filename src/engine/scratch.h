/* scratch.h -- memory that calls share one after the other. */
#ifndef ENGINE_SCRATCH_H
#define ENGINE_SCRATCH_H

#include <stddef.h>

#include "statrec/base.h"

/* Grows to the largest request; begins as {0}, its owner frees `start`. One caller at a time. */
typedef struct scratch_memory {
    void *start; /* of a cache line */
    size_t bytes;
} scratch_memory;

/* At least `bytes`, contents undefined; NULL when out of memory. */
void *scratch_memory_of(scratch_memory *s, size_t bytes, sr_failure *why);

#endif
