/* effective_rank.h -- how many singular values a spectrum has in effect. */
#ifndef BASE_EFFECTIVE_RANK_H
#define BASE_EFFECTIVE_RANK_H

#include <stdint.h>

/* Effective rank of descending singular values (Roy and Vetterli, EUSIPCO 2007): exp(-sum p ln p),
 * p = value/sum of values. NaN if all are 0 or one is not finite. */
double effective_rank(const double *values, int64_t count);

#endif
