/* batchmix.h -- parts of stat-batchmix: rows of a site, covariates of its batches, least squares
 * out of sample. Formulas: batchmix_covariates.c, batchmix_fit.c, stat-batchmix.c. */
#ifndef ANALYSIS_BATCHMIX_BATCHMIX_H
#define ANALYSIS_BATCHMIX_BATCHMIX_H

#include "analysis/frame/step_range.h"

/* The part that is subtracted from mu_B - mu. MIX_MORE: first its exact position part, then a
 * regression. */
typedef enum {
    MIX_NONE,
    MIX_POSITION,
    MIX_LENGTH,
    MIX_PADDING,
    MIX_BOTH,
    MIX_MORE,
    MIX_PARTS
} mix_part;

enum { MIX_FOLDS = 10, MIX_STEPS_PER_TERM = 10, MIX_TERMS = 6 }; /* MIX_TERMS: of one covariate */

/* -- one site of one run --------------------------------------------------------------------- */

typedef struct mix_wanted {
    const step_window *window;
    int length_terms, padding_terms;
} mix_wanted;

/* Whether a covariate varies. */
typedef enum { MIX_VARIES, MIX_CONSTANT, MIX_UNKNOWN } mix_known;

typedef struct mix_site {
    const sr_runfile *run;
    const sr_run_site *at;
    int64_t site;
    bool position;       /* the file has position_B and position */
    int64_t first, rows; /* rows of /vectors in the window */
    int64_t block;       /* rows that stay together */
    int length, padding; /* terms of the two covariates, in this order */
    mix_known known[2];  /* the same order */
    double *z;           /* [rows, length + padding] terms less their running means */
    double *n;           /* [rows] valid rows of the batch */
    int64_t *step;       /* [rows] */
} mix_site;

/* The terms that explain a part, and their vector. */
typedef struct mix_model {
    int target, first, count; /* row.y[target]; terms first .. first + count - 1 */
} mix_model;

mix_model mix_model_of(const mix_site *m, mix_part part);
extern const char *const mix_part_name[MIX_PARTS];

/* m->run, at, site, position: given. Free it after a failure too. */
sr_status mix_site_read(mix_site *m, const mix_wanted *wanted, sr_failure *why);
void mix_site_free(mix_site *m);

/* A row of /vectors in the window. */
typedef struct mix_row {
    int64_t at;         /* 0 .. m->rows - 1 */
    const double *y[2]; /* [width] mu_B - mu; the same less its position part, or NULL */
    const double *z;    /* [length + padding] */
    double delta2, rest2, position2, sigma2; /* squares of y[0], y[1], the position part, sigma */
    bool finite;                             /* all of these, and sigma2 > 0 */
} mix_row;

typedef void (*mix_visitor)(void *context, const mix_row *row);
sr_status mix_each_row(const mix_site *m, mix_visitor visit, void *context, sr_failure *why);

/* -- least squares --------------------------------------------------------------------------- */

/* Sums of products over the rows of each fold, for `targets` vectors of `width` numbers. */
typedef struct mix_fit {
    int terms, targets;
    int64_t width;
    double *zz; /* [folds, terms, terms] */
    double *zy; /* [folds, targets, terms, width] */
    double *yy; /* [folds, targets] */
} mix_fit;

sr_status mix_fit_create(mix_fit *f, int terms, int targets, int64_t width, sr_failure *why);
void mix_fit_free(mix_fit *f);
/* z [terms]; y[targets] [width]. */
void mix_fit_add(mix_fit *f, int fold, const double *z, const double *const *y);
/* b [count, width]: the coefficients from all folds but this one. */
void mix_fit_solve(const mix_fit *f, int fold, const mix_model *m, double *b);
/* Remaining sum of squares, each fold by the coefficients of the others; b: memory for them. */
double mix_fit_left(const mix_fit *f, const mix_model *m, double *b);

/* -- shares: batchmix_explain.c -------------------------------------------------------------- */

typedef struct mix_intervals {
    int64_t shifts, resamples, seed;
    double level; /* percent */
} mix_intervals;

typedef struct mix_share {
    bool there;
    double share, low, high, control_low, control_high, tid; /* NaN if undefined */
} mix_share;

typedef struct mix_outcome {
    int64_t used, nonfinite; /* rows of /vectors */
    mix_share part[MIX_PARTS];
    double slope;       /* slope of mu_B - mu on its position part; NaN without one */
    double independent; /* the share that the means of independent rows would have */
} mix_outcome;

/* part[].there: wanted. */
sr_status mix_explain(const mix_site *m, const mix_intervals *of, mix_outcome *o, sr_failure *why);

#endif
