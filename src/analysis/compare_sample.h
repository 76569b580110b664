/* compare_sample.h -- one series of stat-compare: its tails in a window, and resamples of them; and
 * which sites belong together (site_matching.c). */
#ifndef ANALYSIS_COMPARE_SAMPLE_H
#define ANALYSIS_COMPARE_SAMPLE_H

#include "analysis/bootstrap/bootstrap.h"
#include "analysis/frame/site_selection.h"
#include "analysis/frame/step_range.h"

enum { LEAST_STEPS = 20 };

/* The user's options. */
typedef struct sample_plan {
    double after;             /* percent of training that is left out at the beginning */
    int64_t resamples, block; /* block: steps, 0 = from the autocorrelation */
} sample_plan;

typedef struct sample {
    int64_t count, nonfinite; /* finite values, and others */
    int64_t block;
    double *drawn;                 /* [BOOTSTRAP_TAILS, resamples]; NULL below LEAST_STEPS */
    double exact[BOOTSTRAP_TAILS]; /* tails of the series itself */
} sample;

/* The rows of a run's series in the window, without the steps before --after. */
sr_status sample_rows(const series *of, const step_window *w, double after, int64_t *first,
                      int64_t *rows, sr_failure *why);
/* Tails and block length of value [rows]; its finite values come to the front, in their order. Free
 * the sample after a failure too. */
sr_status sample_measure(sample *x, const sample_plan *plan, double *value, int64_t rows,
                         sr_failure *why);
/* x->drawn, from the finite values, by circular blocks from the sample's own stream. */
sr_status sample_draw(sample *x, const sample_plan *plan, const double *finite, rng random,
                      sr_failure *why);
void sample_free(sample *x);

typedef struct compare_place {
    const site_choice *at;
    uint64_t key; /* hash of the name, depth, or 0 */
} compare_place;

typedef struct compare_places {
    const run_set *set;
    const char *match;    /* name, depth, first or last */
    compare_place *place; /* [count] by run, key, order */
    int64_t count;
} compare_places;

sr_status site_matching_make(compare_places *p, const choice *c, const run_set *set,
                             const char *match, sr_failure *why);
void site_matching_free(compare_places *p);
/* The chosen site of `run` with this statistic that matches `first`. With --match first and last,
 * the one at that end. NULL if there is none. */
const site_choice *site_matching_find(const compare_places *p, const site_choice *first, int run,
                                      int stat);

#endif
