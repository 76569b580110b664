/* raw_passes.h -- forward and backward passes of a site in the current step, on their way from
 * sr_take_*, sr_put_forward and sr_put_backward (raw_passes.c) to the vectors of the step
 * (raw_statistics.c). Vectors are double [width]. */
#ifndef RECORD_RAW_PASSES_H
#define RECORD_RAW_PASSES_H

#include <stdbool.h>

#include "statrec/moments.h"
#include "statrec/record.h"

/* A forward pass that has no backward pass yet. */
typedef struct raw_pass {
    int64_t rows, samples, padded;
    sr_tensor x;
    bool of_sums;                            /* the host made the sums: x is nothing */
    double *mean, *variance, *square, *gain; /* one block */
} raw_pass;

/* The passes that count, merged. */
typedef struct raw_total {
    int passes; /* with a backward pass */
    bool has_gg;
    int64_t rows, samples, padded; /* samples -1: not known */
    double *mean, *variance, *square, *gain;
    double *sum_g, *sum_gc, *sum_gg, *reference; /* sum_gc = sum of g (x - reference) */
} raw_total;

/* What is kept between calls, and from step to step. */
typedef struct raw_state {
    double *mu, *sigma2, *psi2, *nu; /* running values; NULL until first observed, one block with */
    double *work;                    /* [RAW_WORK, width] scratch */
    raw_total total;
    raw_pass *pending; /* [pending_capacity], the last one on top */
    int pendings, pending_capacity;
} raw_state;
enum { RAW_WORK = 6, RAW_PENDING_MAX = 4096 };

/* Allocates the passes and running statistics of a site. */
sr_status raw_reserve(sr_recorder *r, int site);
/* Forgets the passes of the step before. */
void raw_begin_step(raw_state *raw);
/* Without any backward pass the last forward pass counts. False: there was none either. */
bool raw_finish_passes(raw_state *raw, int64_t width);
void raw_free(raw_state *raw);

#endif
