/* sort.c -- sorts numbers; see sort.h. */
#include "base/sort.h"

#include <stdlib.h>

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void sort_reals(double *value, int64_t count) {
    qsort(value, (size_t)count, sizeof *value, ascending);
}
