/* statistic.h -- statistics of one site at one step: name, definition, and formula from
   /vectors. */
#ifndef ANALYSIS_SERIES_STATISTIC_H
#define ANALYSIS_SERIES_STATISTIC_H

#include <stdint.h>

#include "analysis/series/statistic_forms.h"

/* One row of /vectors at one site. */
typedef struct vector_row {
    int64_t width;
    double eps;
    const double *v[SR_VECTOR_COUNT]; /* [width]; NULL where the file has none */
    double rows;                      /* valid rows n of that step, NaN if not recorded */
    double alpha;                     /* weight of the OLD running value */
} vector_row;

typedef struct statistic {
    const char *word;                           /* as in --stat: "mu" */
    const char *name;                           /* column, and dataset below /scalars: "dist_mu" */
    const char *definition;                     /* NULL: the definition in format.h */
    unsigned needs;                             /* vectors of recompute: NEEDS(mu_B) | NEEDS(mu) */
    double (*recompute)(const vector_row *row); /* NULL: /vectors do not suffice */
    /* The family that recompute is for: "sigma"; NULL: all families. */
    const char *family;
} statistic;

/* A recompute that has a value wherever the needed vectors have one: finds the sites of programs
 * that read /vectors themselves. */
double first_values(const vector_row *row);

#define NEEDS(vector) (1u << SR_##vector)
#define NEEDS_ROWS    (1u << 31)
enum { ANALYSIS_STATISTICS = 64 };
const char *statistic_definition(const statistic *stat);

/* Every scalar of format.h and every form (statistic_forms.c), by its own name. */
#define COUNT_STATISTIC(name, ...) +1
enum { RECORDED_STATISTICS = 0 SR_SCALARS(COUNT_STATISTIC) FORM_NAMES(COUNT_STATISTIC) };
extern const statistic recorded_statistics[RECORDED_STATISTICS];
_Static_assert(ANALYSIS_STATISTICS >= (int)RECORDED_STATISTICS, "all may be asked for at once");

/* feature_statistics.c: power of a site's input over its features, from /vectors. */
enum { FEATURE_STATISTICS = 6 };
extern const statistic feature_statistics[FEATURE_STATISTICS];

#endif
