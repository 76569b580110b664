/* h5_heaps.h -- see h5_heaps.c. */
#ifndef HDF5_V1_10_H5_HEAPS_H
#define HDF5_V1_10_H5_HEAPS_H

#include <stdbool.h>
#include <stddef.h>

/* False where a heap begins in these bytes, which were read from a place of the file, whose blocks
 * are too large, or no powers of two. */
bool h5_heap_is_small(const void *bytes, size_t size);

#endif
