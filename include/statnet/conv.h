/* conv.h -- the three passes of a convolution on plain arrays, in three implementations behind
 * conv_run: im2col and gemm (conv_reference.c, any build), oneDNN (dnnl.c, float with USE_DNNL), and
 * minimal filtering (conv_winograd.c, any build, 3 x 3 of stride 1). */
#ifndef STATNET_CONV_H
#define STATNET_CONV_H

#include <stdbool.h>
#include <stdint.h>

#include "statnet/real.h"
#include "statnet/scratch.h"
#include "statrec/base.h"

/* x [images, height, width, in], w [out, kernel_h, kernel_w, in],
 * y [images, out_height, out_width, out], zero padding `pad` on each side. */
typedef struct conv_shape {
    int64_t images, height, width, in;
    int64_t out, kernel_h, kernel_w;
    int64_t stride, pad;
    int64_t out_height, out_width;
} conv_shape;

typedef enum { CONV_FORWARD, CONV_BACKWARD_DATA, CONV_BACKWARD_WEIGHTS } conv_pass;

/* CONV_FORWARD:          y = x * w        reads x, w
 * CONV_BACKWARD_DATA:    x = (+=) ...     x is dx, y is dy; reads w, y
 * CONV_BACKWARD_WEIGHTS: w = (+=) ...     w is dw, y is dy; reads x, y
 * add: the gradient is added to what is there, else written. */
typedef struct conv_arrays {
    real *x, *w, *y;
    bool add;
} conv_arrays;

/* Images of a fixed piece of work. Large enough to hide the cost of a call (a tenth of a
 * millisecond on ResNet20), small enough to leave 16 pieces of a batch of 128. */
enum { CONV_PIECE = 8 };

static inline int64_t conv_pieces(const conv_shape *s) {
    return (s->images + CONV_PIECE - 1) / CONV_PIECE;
}

sr_status conv_reference(int threads, conv_pass pass, const conv_shape *s, const conv_arrays *a,
                         sr_failure *why);

/* What calls share. One caller at a time. NULL when out of memory; free with conv_free. */
typedef struct conv_state conv_state;
conv_state *conv_create(sr_failure *why);
void conv_free(void *state);

/* A pass by the code that is right for it. direct: not by minimal filtering. */
sr_status conv_run(conv_state *c, bool direct, int threads, conv_pass pass, const conv_shape *s,
                   const conv_arrays *a, sr_failure *why);

/* F(4 x 4, 3 x 3). fits: 3 x 3 taps, stride and padding 1, channels that are multiples of 16 (double:
 * of 8). pays: and it is faster than direct sums. */
bool conv_winograd_fits(const conv_shape *s);
bool conv_winograd_pays(const conv_shape *s);
sr_status conv_winograd(scratch_memory *memory, int threads, conv_pass pass, const conv_shape *s,
                        const conv_arrays *a, sr_failure *why);

/* What oneDNN prepared, by pass and shape; `memory` outlives it. */
typedef struct conv_plans conv_plans;
conv_plans *conv_plans_create(scratch_memory *memory, sr_failure *why);
void conv_plans_free(void *plans);

/* *done false (and SR_OK): oneDNN has no fast code for this shape, call conv_reference. That
 * depends on the shape and the CPU only. */
sr_status conv_dnnl(conv_plans *plans, int threads, conv_pass pass, const conv_shape *s,
                    const conv_arrays *a, bool *done, sr_failure *why);

#endif
