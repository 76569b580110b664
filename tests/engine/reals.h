/* reals.h -- arrays of `real` in tests of the engine. */
#ifndef TESTS_ENGINE_REALS_H
#define TESTS_ENGINE_REALS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/tape.h"

/* malloc'd, normal(0, 1) from the seed, exact in float. */
real *reals_random(int64_t count, uint64_t seed);
/* As check_near_double, for any type `real`. */
void reals_check(const char *name, const real *got, const double *want, int64_t count, double rtol,
                 double atol);
/* The same for two arrays of `real`. */
void reals_check_same(const char *name, const real *got, const real *want, int64_t count,
                      double rtol, double atol);
/* Fails unless equal byte for byte. */
void reals_check_bytes(const char *name, const real *got, const real *want, int64_t count);

/* A tape in training mode that records; fails the test if none can be created. */
tape *reals_tape(int threads);
/* A tensor of the tape that requires a gradient; values as reals_random. */
tensor *reals_tensor(tape *t, int rank, const int64_t *dim, uint64_t seed);
/* Fails the test with the tape's failure, if any. */
void reals_check_tape(const tape *t);
/* Sets y's gradient to dy [count of y] and computes all gradients of the tape: the loss is sum(y
 * dy). */
void reals_backward(tape *t, tensor *y, const real *dy);

#endif
