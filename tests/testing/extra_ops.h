/* extra_ops.h -- operations that only tests use: another non-linear one, and one that reads both of
 * its inputs in backward. */
#ifndef TESTS_TESTING_EXTRA_OPS_H
#define TESTS_TESTING_EXTRA_OPS_H

#include "engine/tape.h"

tensor *op_sigmoid(tape *t, tensor *x);
/* Element-wise; equal counts. */
tensor *op_multiply(tape *t, tensor *a, tensor *b);

#endif
