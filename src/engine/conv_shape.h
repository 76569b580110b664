/* conv_shape.h -- the arrays of a convolution. */
#ifndef ENGINE_CONV_SHAPE_H
#define ENGINE_CONV_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/real.h"

/* x [images, height, width, in], w [out, kernel_h, kernel_w, in],
 * y [images, out_height, out_width, out], zero padding `pad` on each side. */
typedef struct conv_shape {
    int64_t images, height, width, in;
    int64_t out, kernel_h, kernel_w;
    int64_t stride, pad;
    int64_t out_height, out_width;
} conv_shape;

typedef enum { CONV_FORWARD, CONV_BACKWARD_DATA, CONV_BACKWARD_WEIGHTS } conv_pass;

/* The arrays of each pass:
 *   CONV_FORWARD:          y = x * w        reads x, w
 *   CONV_BACKWARD_DATA:    x = (+=) ...     x is dx, y is dy; reads w, y
 *   CONV_BACKWARD_WEIGHTS: w = (+=) ...     w is dw, y is dy; reads x, y
 * add: the gradient is added; otherwise it overwrites. */
typedef struct conv_arrays {
    real *x, *w, *y;
    bool add;
} conv_arrays;

/* Images of one chunk of work. A chunk hides the cost of a call (a tenth of a millisecond on
 * ResNet20). A batch of 128 has 16 chunks. */
enum { CONV_CHUNK = 8 };

static inline int64_t conv_chunks(const conv_shape *s) {
    return (s->images + CONV_CHUNK - 1) / CONV_CHUNK;
}

#endif
