/* sample_run.h -- a small run whose numbers are functions of their positions, so that a reader can
 * check each row. */
#ifndef TESTS_SAMPLE_RUN_H
#define TESTS_SAMPLE_RUN_H

#include "statrec/record.h"
#include "statrec/runfile.h"

enum { SAMPLE_SITES = 4, SAMPLE_PN = 2, SAMPLE_WIDTH = 5 + 3 + 7 + 4, SAMPLE_EMBEDDING = 3 };

extern const sr_site sample_sites[SAMPLE_SITES];

/* Value k of a vector at a site in a step. Variances and mean squares are positive. */
double sample_vector(int64_t step, int site, int vector, int64_t k);
/* True when the sample puts this vector at this site. */
bool sample_puts(int site, int vector);
int64_t sample_rows(int64_t step, int site);
sr_step sample_row(int64_t step);
/* The sample's metrics: valid_nll (less), bleu (more, never put), "span f1" (neither, no unit). */
enum { SAMPLE_METRICS = 3 };
extern const sr_run_metric sample_metrics[SAMPLE_METRICS];
void sample_eval(int64_t step, double value[SAMPLE_METRICS]);
sr_status sample_put_eval(sr_recorder *r, int64_t step);

/* Creates PATH with the sample's sites, metrics and one embedding "shared". */
sr_recorder *sample_create(const char *path, const sr_options *options, sr_failure *why);
/* The same, and an open run file; the test fails on an error. */
sr_recorder *sample_begin(const char *path, const sr_options *options);
sr_runfile *sample_open(const char *path);
/* One whole step. */
sr_status sample_step(sr_recorder *r, int64_t step);
/* Steps first .. last, an evaluation after every `eval_every` (0: none). */
sr_status sample_steps(sr_recorder *r, int64_t first, int64_t last, int64_t eval_every);

/* Fails the test unless every readable row of f is the sample's, from step `first` on, vectors in
 * steps divisible by `every`. */
void sample_check(sr_runfile *f, int64_t first, int64_t every);

/* DIR/name in the test's temporary directory. Stays valid; at most 64 names. */
const char *sample_path(const char *name);

#endif
