/* diagnose_ranges.c -- results of recorded runs: usual values (healthy_ranges.h, made by
 * sample_runs/healthy.sh), and values beside a measured gap (harm_ranges.h, made by
 * sample_runs/harm.sh). */
#include <math.h>
#include <string.h>

#include "diagnose/diagnosis.h"
#include "diagnose/harm_ranges.h"
#include "diagnose/healthy_ranges.h"

#define RANGE(statistic, kind, low, high, runs, sites) {#statistic, kind, low, high, runs, sites},
static const healthy_range ranges[] = {
    HEALTHY_RANGES(RANGE){NULL, NULL, 0, 0, 0, 0} /* the last one ends the table */
};

#define HARM(statistic, less_low, less_high, less, ful_low, ful_high, ful)                         \
    {#statistic, less_low, less_high, less, ful_low, ful_high, ful},
static const harm_range harms[] = {HARM_RANGES(HARM){NULL, 0, 0, 0, 0, 0, 0}};

static bool is_for(const healthy_range *r, const subject *s, const char *name) {
    const bool watched = strcmp(r->kind, "watched") == 0;
    return strcmp(r->statistic, name) == 0 && (!watched || s->watched);
}

bool healthy_find(const subject *s, const char *name, healthy_range *range) {
    *range = (healthy_range){0};
    for (const healthy_range *r = ranges; r->statistic; r++) {
        if (!is_for(r, s, name)) continue;
        if (range->runs) {
            range->low = fmin(range->low, r->low), range->high = fmax(range->high, r->high);
            range->runs += r->runs, range->sites += r->sites;
            range->kind = "recorded";
        } else {
            *range = *r;
        }
    }
    return range->runs > 0;
}

double healthy_limit(const subject *s, const char *name) {
    healthy_range r;
    return healthy_find(s, name, &r) ? HEALTHY_MARGIN * r.high : NAN;
}

const harm_range *harm_find(const char *name) {
    for (const harm_range *r = harms; r->statistic; r++)
        if (strcmp(r->statistic, name) == 0) return r;
    return NULL;
}
