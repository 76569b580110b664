/* sort.h -- numbers in their order. */
#ifndef BASE_SORT_H
#define BASE_SORT_H

#include <stdint.h>

/* Sorts value [count] upwards; no NaN among them. */
void sort_reals(double *value, int64_t count);
/* Reorders value [count], no NaN among them, so that value[rank[i]] has its sorted value. rank
 * [ranks] is ascending, each below count. */
void quickselect_ranks(double *value, int64_t count, const int64_t *rank, int ranks);

#endif
