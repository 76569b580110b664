/* The adaptive softmax: the probabilities of all words sum to 1 for any cut-offs; the column of
 * each cluster; errors. (Vectors: tests/train/vectors_language.c.) */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/gemm/gemm.h"
#include "engine/ops/loss/loss_ops.h"
#include "reals.h"
#include "testing/check.h"

enum { H, W, B, WC, BC, INPUTS };

/* Sum over all words of exp(-nll) for one hidden vector. */
static double whole(int cutoffs, const int64_t *cutoff) {
    enum { V = 23, D = 5 };
    tape *t = reals_tape(1);
    real *one = reals_random(D, 7);
    tensor *h = reals_tensor(t, 2, (int64_t[]){V, D}, 1);
    int32_t target[V];
    double sum = 0;
    for (int v = 0; v < V; v++) {
        memcpy(h->value + v * D, one, D * sizeof *one);
        target[v] = v;
    }
    const adaptive_inputs a = {h,
                               reals_tensor(t, 2, (int64_t[]){V, D}, 2),
                               reals_tensor(t, 1, (int64_t[]){V}, 3),
                               reals_tensor(t, 2, (int64_t[]){cutoffs ? cutoffs : 1, D}, 4),
                               reals_tensor(t, 1, (int64_t[]){cutoffs ? cutoffs : 1}, 5),
                               cutoff,
                               cutoffs};
    const tensor *nll = op_adaptive_softmax(t, &a, target);
    reals_check_tape(t);
    for (int v = 0; v < V; v++) sum += exp(-(double)nll->value[v]);
    tape_free(t);
    free(one);
    return sum;
}

static void probabilities_sum_to_one(void **state) {
    (void)state;
    static const int64_t cutoff[] = {3, 4, 19, 22};
    for (int n = 0; n <= 4; n++) check_within(whole(n, cutoff), 1, 1e-5);
}

/* Words 0, 1 | 2 | 3, 4, all weights 0, cluster biases log 3 and log 5. The head's four columns
 * have weights 1, 1, 3, 5; the last column is the first cluster. */
static void last_column_is_the_first_cluster(void **state) {
    (void)state;
    static const int64_t cutoff[] = {2, 3};
    static const int32_t target[5] = {0, 1, 2, 3, 4};
    static const double want[5] = {0.1, 0.1, 0.5, 0.15, 0.15};
    tape *t = reals_tape(1);
    tensor *in[INPUTS] = {
        reals_tensor(t, 2, (int64_t[]){5, 2}, 1), reals_tensor(t, 2, (int64_t[]){5, 2}, 2),
        reals_tensor(t, 1, (int64_t[]){5}, 3), reals_tensor(t, 2, (int64_t[]){2, 2}, 4),
        reals_tensor(t, 1, (int64_t[]){2}, 5)};
    for (int i = W; i <= WC; i++) memset(in[i]->value, 0, (size_t)in[i]->count * sizeof(real));
    in[BC]->value[0] = (real)log(3), in[BC]->value[1] = (real)log(5);
    const adaptive_inputs a = {in[H], in[W], in[B], in[WC], in[BC], cutoff, 2};
    const tensor *nll = op_adaptive_softmax(t, &a, target);
    reals_check_tape(t);
    for (int i = 0; i < 5; i++) check_within(exp(-(double)nll->value[i]), want[i], 1e-6);
    tape_free(t);
}

static void expect_refusal(const int64_t *cutoff, int cutoffs, int32_t word, const char *part) {
    tape *t = reals_tape(1);
    const int32_t target[2] = {0, word};
    const adaptive_inputs a = {reals_tensor(t, 2, (int64_t[]){2, 3}, 1),
                               reals_tensor(t, 2, (int64_t[]){9, 3}, 2),
                               reals_tensor(t, 1, (int64_t[]){9}, 3),
                               reals_tensor(t, 2, (int64_t[]){2, 3}, 4),
                               reals_tensor(t, 1, (int64_t[]){2}, 5),
                               cutoff,
                               cutoffs};
    assert_null(op_adaptive_softmax(t, &a, target));
    check_failure(tape_failure(t), SR_USAGE, part);
    tape_free(t);
}

static void refusals(void **state) {
    (void)state;
    static const int64_t good[] = {3, 5}, falling[] = {5, 3}, far[] = {3, 9};
    expect_refusal(falling, 2, 1, "cut-off 3 of 9 words");
    expect_refusal(far, 2, 1, "cut-off 9 of 9 words");
    expect_refusal(good, 2, 9, "target 9 of row 1");
    expect_refusal(good, 2, -1, "target -1 of row 1");
    expect_refusal(good, 1, 1, "wc [n, d]");
}

int main(void) {
    gemm_setup(2);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(probabilities_sum_to_one),
        cmocka_unit_test(last_column_is_the_first_cluster),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
