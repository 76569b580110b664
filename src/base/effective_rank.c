/* effective_rank.c -- see effective_rank.h. Apart from svd.c, whose programs load a library of
 * matrices. */
#include "base/effective_rank.h"

#include <math.h>

/* Relative to the largest, so that no sum overflows. */
double effective_rank(const double *values, int64_t count) {
    double sum = 0, entropy = 0;
    for (int64_t i = 0; i < count; i++) sum += values[i] / values[0];
    for (int64_t i = 0; i < count; i++) {
        const double part = values[i] / values[0] / sum;
        if (!isfinite(part)) return NAN;
        if (part > 0) entropy -= part * log(part);
    }
    return exp(entropy);
}
