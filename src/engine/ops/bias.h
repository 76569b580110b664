/* bias.h -- the gradient of a vector that is added to every row. */
#ifndef ENGINE_OPS_BIAS_H
#define ENGINE_OPS_BIAS_H

#include "engine/tape.h"

/* Adds b's gradient from dy [rows, out]: the sum of dy over the rows, in double. Fixed blocks of
 * rows are merged in order. */
void bias_gradient(tape *t, const real *dy, int64_t rows, int64_t out, tensor *b);

#endif
