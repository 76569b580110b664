/* activations.h -- the largest entries and the median of a site's input, and how many are
   saturated. */
#ifndef OBSERVE_ACTIVATIONS_H
#define OBSERVE_ACTIVATIONS_H

#include "observe/hooks.h"

enum { ACTIVATION_NUMBERS = 5, ACTIVATION_TOP = 3, ACTIVATION_BINS = 1 << 13 };

/* In the order in which they are declared. */
typedef enum {
    ACTIVATION_top1,
    ACTIVATION_top2,
    ACTIVATION_top3,
    ACTIVATION_median,
    ACTIVATION_saturated
} activation_number;

/* What one pass tells: x, y [rows, d], gamma, beta [d]. centred: the method takes means over the
 * batch away, and nothing is said of saturation. */
typedef struct activation_input {
    const norm_rows *rows;
    int64_t features;
    const real *x, *y, *gamma, *beta;
    bool centred;
    int threads;
} activation_input;

/* What is known of several passes together, whole numbers alone, so that they add up to the same in
 * any order. All 0: of no pass. */
typedef struct activation_counts {
    int64_t entries, bin[ACTIVATION_BINS];
    int64_t top[ACTIVATION_TOP]; /* bits of the largest |x|, descending; NaN is above infinity */
    int64_t judged, below;       /* entries with gain, of them those that are saturated */
    int64_t lineless;            /* passes that have no line to judge by */
} activation_counts;
/* Adds the valid rows of a pass. */
sr_status activation_counts_take(activation_counts *to, const activation_input *in,
                                 sr_failure *why);
void activation_counts_add(activation_counts *to, const activation_counts *from);
/* NaN where there is none, all of them with a NaN among x. */
void activation_counts_tell(const activation_counts *c, double value[ACTIVATION_NUMBERS]);

/* -- of every site of a model */

typedef struct activations activations;

/* Declares the numbers, before the first step. r NULL: in a process that writes nothing. NULL on
 * failure; recorder, model and hooks outlive it. */
activations *activations_create(const model *m, sr_recorder *r, const hooks *h, sr_failure *why);
void activations_free(activations *a);
/* Whether the step that begins is to tell of them. */
void activations_begin_step(activations *a, bool wanted);
/* A forward pass into a site of the model; of: the activations (a hooks_look_fn). */
void activations_take(void *of, int site, const norm_view *o, sr_failure *why);
/* (all processes) Behind the passes of a step: those of all processes into the recorder. NULL is
   fine. */
sr_status activations_exchange(activations *a, const run_exchange *x, sr_failure *why);

#endif
