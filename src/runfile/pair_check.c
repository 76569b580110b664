/* pair_check.c -- checks pairs of input and output values: a feature index belongs to the site, and
 * a site without pairs has -1 and NaN only. */
#include "runfile/pair_check.h"

#include <math.h>
#include <stddef.h>

const char *pair_check_fault(const float *x, const float *y, const int32_t *feature, int64_t count,
                             int64_t width) {
    for (int64_t i = 0; i < count; i++) {
        if (feature[i] < -1 || feature[i] >= width) return "a feature that the site does not have";
        if ((feature[i] < 0) != (feature[0] < 0)) return "-1 at some of its pairs alone";
        if (feature[i] < 0 && !(isnan(x[i]) && isnan(y[i]))) return "-1 at pairs that have values";
    }
    return NULL;
}
