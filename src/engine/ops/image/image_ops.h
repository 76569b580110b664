/* image_ops.h -- operations on images [N, H, W, C]. See ops.h. */
#ifndef ENGINE_OPS_IMAGE_IMAGE_OPS_H
#define ENGINE_OPS_IMAGE_IMAGE_OPS_H

#include "engine/tape.h"

/* x [N, H, W, Ci], w [Co, kh, kw, Ci] -> [N, Ho, Wo, Co]. Zero padding `pad` on each side,
 * Ho = (H + 2 pad - kh)/stride + 1. No bias. */
tensor *op_conv2d(tape *t, tensor *x, tensor *w, int stride, int pad);
/* The same as a direct convolution: never by Winograd (conv_winograd.c). */
tensor *op_conv2d_direct(tape *t, tensor *x, tensor *w, int stride, int pad);

/* Option-A shortcut (docs/models.md 1.1): takes every stride-th row and column from index 0. Zero
 * channels fill up to `channels`, half before and half after. stride 1 and equal channels:
 * returns x. */
tensor *op_shortcut(tape *t, tensor *x, int stride, int64_t channels);

/* Largest value of each k x k window, every stride pixels, without padding. Ties: the first one;
 * NaN is larger than every number. [N, H, W, C] -> [N, (H - k)/stride + 1, (W - k)/stride + 1, C].
 */
tensor *op_max_pool(tape *t, tensor *x, int k, int stride);

/* Mean over all positions: [N, H, W, C] -> [N, C]. */
tensor *op_average_pool(tape *t, tensor *x);

#endif
