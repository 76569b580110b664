/* h5_sum.h -- see h5_sum.c. */
#ifndef HDF5_V1_10_H5_SUM_H
#define HDF5_V1_10_H5_SUM_H

#include <stddef.h>
#include <stdint.h>

uint32_t h5_sum(const unsigned char *byte, size_t size);

#endif
