/* bias.h -- a vector that is added to every row, and its gradient. */
#ifndef ENGINE_OPS_BIAS_H
#define ENGINE_OPS_BIAS_H

#include "engine/tape.h"

/* b's gradient from dy [rows, out]: sum over rows of dy, in double, by fixed blocks of rows merged
 * in their order. */
void bias_gradient(tape *t, const real *dy, int64_t rows, int64_t out, tensor *b);

#endif
