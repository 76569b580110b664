/* h5_sum.h -- see h5_sum.c. Internal to src/record. */
#ifndef RECORD_H5_SUM_H
#define RECORD_H5_SUM_H

#include <stddef.h>
#include <stdint.h>

uint32_t h5_sum(const unsigned char *byte, size_t size);

#endif
