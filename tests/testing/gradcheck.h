/* gradcheck.h -- derivatives of a scalar function of tensors against central differences.
 * Meaningful in the double build (1e-6 relative); runs in float too, for memory checks. */
#ifndef TESTS_GRADCHECK_H
#define TESTS_GRADCHECK_H

#include "engine/tape.h"

/* Builds the expression from in[count] (persistent tensors with wants_grad) and returns any
 * tensor; the check takes sum(value * fixed random weights) as the loss. Called many times with the
 * same random stream, so dropout masks repeat. */
typedef tensor *gradcheck_fn(tape *t, tensor *const *in, void *context);

typedef struct gradcheck_result {
    double worst; /* largest |analytic - numeric| / max(1, largest |numeric| of that input) */
    int input;    /* where */
    int64_t element;
    double analytic, numeric;
    const char *how; /* the gradient came: "of a result", "written" or "added"; static */
    double apart; /* largest difference between these, by the same measure; includes backward passes
                   * that are no derivative */
} gradcheck_result;

/* The worst gradient of f over three passes: in[] as results of other ops, as parameters to
 * overwrite, as parameters to accumulate into. It is not finite if a backward function reads an
 * undeclared value or the forward pass's address of one, or leaves a gradient element unwritten.
 * Fails too if a recomputed result (tape_set_recompute) has other bytes. Leaves the gradients in
 * in[]. */
sr_status gradcheck(gradcheck_fn *f, tensor *const *in, int count, void *context, double step,
                    gradcheck_result *result, sr_failure *why);

/* A tensor outside any tape, values normal(0, 1) from the seed, with room for a gradient. Free
 * with gradcheck_tensor_free. */
tensor *gradcheck_tensor(int rank, const int64_t *dim, uint64_t seed, bool wants_grad);
void gradcheck_tensor_free(tensor *x);

#endif
