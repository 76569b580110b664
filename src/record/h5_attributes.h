/* h5_attributes.h -- see h5_attributes.c. Internal to src/record. */
#ifndef RECORD_H5_ATTRIBUTES_H
#define RECORD_H5_ATTRIBUTES_H

#include <stdbool.h>
#include <stddef.h>

/* False where these bytes, which were read from a place of the file, are a node of an index of attributes of which
 * one is said to be shared. */
bool h5_attributes_are_own(const void *bytes, size_t size);

#endif
