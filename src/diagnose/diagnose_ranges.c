/* diagnose_ranges.c -- what healthy runs show; the numbers are in healthy_ranges.h, which
 * sample_runs/healthy.sh makes from recorded runs. */
#include <math.h>
#include <string.h>

#include "diagnose/diagnosis.h"
#include "diagnose/healthy_ranges.h"

#define RANGE(statistic, kind, low, high, runs, sites) {#statistic, kind, low, high, runs, sites},
static const healthy_range ranges[] = {
    HEALTHY_RANGES(RANGE){NULL, NULL, 0, 0, 0, 0} /* the last one ends the table */
};

const healthy_range *healthy_find(const char *name) {
    for (const healthy_range *r = ranges; r->statistic; r++)
        if (strcmp(r->statistic, name) == 0) return r;
    return NULL;
}

double healthy_limit(const char *name) {
    const healthy_range *r = healthy_find(name);
    return r ? HEALTHY_MARGIN * r->high : NAN;
}
