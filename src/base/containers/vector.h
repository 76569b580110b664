/* vector.h -- arrays that grow. The caller owns the array and its capacity, both zero at first. */
#ifndef BASE_VECTOR_H
#define BASE_VECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool vector_enlarge(void *array, int64_t *capacity, int64_t count, size_t size);

/* Allocates memory for `count` elements of `size` bytes. array: address of a pointer that is NULL
 * or came from malloc; free() it. The capacity at least doubles, so that appending costs constant
 * time. False when out of memory or beyond size_t; the array stays as it was. */
static inline bool vector_reserve(void *array, int64_t *capacity, int64_t count, size_t size) {
    return count <= *capacity || vector_enlarge(array, capacity, count, size);
}

#endif
