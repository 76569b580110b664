/* h5_trees.h -- see h5_trees.c. */
#ifndef HDF5_V1_10_H5_TREES_H
#define HDF5_V1_10_H5_TREES_H

#include "journal/trailer.h"

/* False where these bytes, which were read from a place of the file, are the header of an index
 * that HDF5 would not survive. e: what the file is read by, NULL: nothing; end: of the file. */
bool h5_tree_is_sound(const trailer *e, int fd, const void *bytes, size_t size, uint64_t end);

#endif
