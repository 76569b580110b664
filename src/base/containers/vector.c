/* vector.c -- moves an array to a larger block. */
#include "base/containers/vector.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_BYTES = 256 };

bool vector_enlarge(void *array, int64_t *capacity, int64_t count, size_t size) {
    const int64_t most = (int64_t)((size_t)PTRDIFF_MAX / size);
    int64_t larger = *capacity ? *capacity : FIRST_BYTES / (int64_t)size + 1;
    if (count > most) return false;
    if (*capacity) larger = *capacity > most / 2 ? most : 2 * *capacity;
    if (larger < count) larger = count;
    void *old;
    memcpy(&old, array, sizeof old); /* a pointer to any type */
    void *moved = realloc(old, (size_t)larger * size);
    if (!moved) return false;
    memcpy(array, &moved, sizeof moved);
    *capacity = larger;
    return true;
}
