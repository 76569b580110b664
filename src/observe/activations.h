/* activations.h -- largest entries, median and saturation of a site's input. */
#ifndef OBSERVE_ACTIVATIONS_H
#define OBSERVE_ACTIVATIONS_H

#include "observe/hooks.h"

enum { ACTIVATION_NUMBERS = 5, ACTIVATION_TOP = 3, ACTIVATION_BINS = 1 << 13 };

/* In the order of declaration. */
typedef enum {
    ACTIVATION_top1,
    ACTIVATION_top2,
    ACTIVATION_top3,
    ACTIVATION_median,
    ACTIVATION_saturated
} activation_number;

/* One pass: x, y [rows, d], gamma, beta [d]. centred: the method subtracts means over the batch, so
 * saturation is undefined. */
typedef struct activation_input {
    const norm_rows *rows;
    int64_t features;
    const real *x, *y, *gamma, *beta;
    bool centred;
    int threads;
} activation_input;

/* Counts of several passes, integers only: their sum does not depend on the order. Starts as all
 * 0. */
typedef struct activation_counts {
    int64_t entries, bin[ACTIVATION_BINS];
    int64_t top[ACTIVATION_TOP]; /* bits of the largest |x|, descending; NaN is above infinity */
    int64_t judged, below;       /* entries with gain; saturated ones among them */
    int64_t lineless;            /* passes without a line */
} activation_counts;
/* Adds the valid rows of a pass. */
sr_status activation_counts_take(activation_counts *to, const activation_input *in,
                                 sr_failure *why);
void activation_counts_add(activation_counts *to, const activation_counts *from);
/* NaN if undefined; all NaN if an x is NaN. */
void activation_counts_tell(const activation_counts *c, double value[ACTIVATION_NUMBERS]);

/* -- every site of a model */

typedef struct activations activations;

/* Declares the scalars before the first step. r NULL: this process writes nothing. NULL on failure.
 * Recorder, model and hooks outlive it. */
activations *activations_create(const model *m, sr_recorder *r, const hooks *h, sr_failure *why);
void activations_free(activations *a);
/* wanted: the next step records them. */
void activations_begin_step(activations *a, bool wanted);
/* Counts a forward pass of a site; of: the activations (a hooks_look_fn). */
void activations_take(void *of, int site, const norm_view *o, sr_failure *why);
/* (all processes) After the passes of a step: merges and records the counts. NULL is fine. */
sr_status activations_exchange(activations *a, const run_exchange *x, sr_failure *why);

#endif
