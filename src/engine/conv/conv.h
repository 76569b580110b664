/* conv.h -- the three passes of a convolution on plain arrays.
 *
 * conv_run chooses among three implementations. im2col and gemm: conv_im2col.c, any build. oneDNN:
 * onednn.c, float with USE_DNNL. Winograd: conv_winograd.c, any build, 3 x 3 of stride 1. */
#ifndef ENGINE_CONV_CONV_H
#define ENGINE_CONV_CONV_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/conv_shape.h"
#include "engine/scratch.h"
#include "statrec/base.h"

sr_status conv_im2col(int threads, conv_pass pass, const conv_shape *s, const conv_arrays *a,
                      sr_failure *why);

/* State that calls share; one caller at a time. NULL when out of memory; free with conv_free. */
typedef struct conv_state conv_state;
conv_state *conv_create(sr_failure *why);
void conv_free(void *state);

/* Runs a pass by the fastest implementation. direct: never Winograd. */
sr_status conv_run(conv_state *c, bool direct, int threads, conv_pass pass, const conv_shape *s,
                   const conv_arrays *a, sr_failure *why);

/* Winograd F(4 x 4, 3 x 3). fits: 3 x 3 taps, stride and padding 1, channels that are multiples of
 * 16 (double: of 8). pays: it fits and is faster than direct sums. */
bool conv_winograd_fits(const conv_shape *s);
bool conv_winograd_pays(const conv_shape *s);
sr_status conv_winograd(scratch_memory *memory, int threads, conv_pass pass, const conv_shape *s,
                        const conv_arrays *a, sr_failure *why);

#endif
