/* sort.h -- sorting numbers. */
#ifndef STATNET_SORT_H
#define STATNET_SORT_H

#include <stdint.h>

/* Sorts value [count] upwards; no NaN among them. */
void sort_reals(double *value, int64_t count);

#endif
