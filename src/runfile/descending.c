/* descending.c -- singular values descend and are not negative. */
#include "runfile/descending.h"

bool run_descends(const double *value, int64_t count) {
    for (int64_t k = 0; k < count; k++)
        if (value[k] < 0 || (k > 0 && value[k] > value[k - 1])) return false;
    return true;
}
