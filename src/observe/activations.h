/* activations.h -- the largest entries and the median of a site's input, and how many are saturated. */
#ifndef OBSERVE_ACTIVATIONS_H
#define OBSERVE_ACTIVATIONS_H

#include "statnet/norm.h"
#include "statrec/record.h"

enum { ACTIVATION_NUMBERS = 5 };

/* In the order in which they are declared. */
typedef enum {
    ACTIVATION_top1,
    ACTIVATION_top2,
    ACTIVATION_top3,
    ACTIVATION_median,
    ACTIVATION_saturated
} activation_number;

/* Numbers of x, y [rows, d] over the valid rows; NaN where there is none, all of them with a NaN among
 * x. gamma, beta [d]. centred: the method takes means over the batch away, and nothing is said of
 * saturation. */
typedef struct activation_input {
    const norm_rows *rows;
    int64_t features;
    const real *x, *y, *gamma, *beta;
    bool centred;
    int threads;
} activation_input;
sr_status activations_measure(const activation_input *in, double value[ACTIVATION_NUMBERS],
                              sr_failure *why);

/* Declares the numbers; id [ACTIVATION_NUMBERS]. Before the first step. */
sr_status activations_declare(sr_recorder *r, int *id, sr_failure *why);
/* Those of a forward pass into a site of the recorder. */
sr_status activations_put(sr_recorder *r, int site, const int *id, const norm_view *o,
                          sr_failure *why);

#endif
