/* pair_check.h -- whether the pairs of a site are possible; used by writer and reader. */
#ifndef RUNFILE_PAIR_CHECK_H
#define RUNFILE_PAIR_CHECK_H

#include <stdint.h>

/* The fault of `count` pairs of a site of this width, or NULL. Each feature is one of the site's;
 * or the site has no pairs: all features are -1, all values NaN. */
const char *pair_check_fault(const float *x, const float *y, const int32_t *feature, int64_t count,
                             int64_t width);

#endif
