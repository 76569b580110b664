/* h5_checksum.h -- see h5_checksum.c. */
#ifndef HDF5_V1_10_H5_CHECKSUM_H
#define HDF5_V1_10_H5_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

uint32_t h5_checksum(const unsigned char *byte, size_t size);

#endif
