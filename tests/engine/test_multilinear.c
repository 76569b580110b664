/* Multi-linear attention against plain loops, with preceding memory and two cores, masked and not.
 * (Vectors: tests/train/vectors_language.c.) */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/gemm/gemm.h"
#include "engine/ops/attention/attention_ops.h"
#include "testing/check.h"
#include "testing/gradcheck.h"

enum { SEQS = 2, T = 3, K = 5, R = 4, CORES = 2 };

static double at(const tensor *x, int64_t a, int64_t b, int64_t c) {
    return (double)x->value[(a * x->dim[1] + b) * x->dim[2] + c];
}

/* T1 + T2 of query i for keys j and k of sequence b by the formulas, one core after the other. */
static double plain(const multilinear_inputs *in, int b, int i, int j, int k) {
    double sum = 0;
    for (int n = 0; n < CORES; n++)
        for (int h = 0; h < R; h++) {
            const double c = (double)in->core->value[n * R + h], q = at(in->q, b, i, h);
            sum += c * (q + (double)in->u->value[h]) * at(in->k, b, j, h) * at(in->v, b, k, h);
            sum += c * (q + (double)in->z->value[h]) * (double)in->r->value[j * R + h] *
                   at(in->v, b, k, h);
        }
    return sum / CORES;
}

static void as_plain_loops(void **state) {
    (void)state;
    const int64_t dim[7][3] = {{SEQS, T, R}, {SEQS, K, R}, {SEQS, K, R}, {K, R},
                               {CORES, R},   {R},          {R}};
    const int rank[7] = {3, 3, 3, 2, 2, 1, 1};
    tensor *x[7];
    sr_failure why = {0};
    for (int i = 0; i < 7; i++) x[i] = gradcheck_tensor(rank[i], dim[i], (uint64_t)i + 1, false);
    const multilinear_inputs in = {x[0], x[1], x[2], x[3], x[4], x[5], x[6]};
    tape *t = tape_create(2, &why);
    for (int causal = 0; causal < 2; causal++) {
        tape_reset(t, rng_create(1), false, false);
        const tensor *y = op_multilinear(t, &in, causal);
        assert_non_null(y);
        assert_true(y->dim[0] == SEQS && y->dim[1] == T && y->dim[2] == K * K);
        for (int b = 0; b < SEQS; b++)
            for (int i = 0; i < T; i++)
                for (int j = 0; j < K; j++)
                    for (int k = 0; k < K; k++) {
                        const bool hidden = causal && (j > K - T + i || k > K - T + i);
                        const double want = hidden ? 0 : plain(&in, b, i, j, k);
                        check_within(at(y, b, i, j * K + k), want, 1e-4);
                    }
    }
    tape_free(t);
    for (int i = 0; i < 7; i++) gradcheck_tensor_free(x[i]);
}

int main(void) {
    gemm_setup(2);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_plain_loops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
