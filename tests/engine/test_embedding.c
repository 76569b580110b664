/* op_embedding and its sinusoidal positions against docs/models.md 2.2; the
 * pad row; wrong arguments. */
#include <math.h>
#include <stdlib.h>

#include "engine/ops/ops.h"
#include "reals.h"
#include "testing/check.h"
#include "testing/gradcheck.h"

enum { PAD = 1, VOCABULARY = 9, WIDTH = 70, B = 3, T = 5, P = 12 };
static const int32_t token[B * T] = {5, 2, 5, 3, 2, PAD, PAD, 4, 8, 2, 0, 2, PAD, PAD, PAD};
static const int position[B * T] = {2, 3, 4, 5, 6, 1, 1, 2, 3, 4, 2, 3, 1, 1, 1};

static tensor *positions_create(tape *t, int64_t count, int64_t d) {
    tensor *x = tape_tensor(t, 2, (int64_t[]){count, d});
    assert_non_null(x);
    op_embedding_positions(x->value, count, d, PAD);
    return x;
}

/* Left- and right-padded sentences; one sentence has the same token twice. */
static void values_and_gradient(void **state) {
    (void)state;
    tensor *table = gradcheck_tensor(2, (int64_t[]){VOCABULARY, WIDTH}, 1, true);
    real *dy = reals_random(B * T * WIDTH, 2);
    double *y = calloc(B * T * WIDTH, sizeof *y),
           *dtable = calloc(VOCABULARY * WIDTH, sizeof *dtable);
    tape *t = reals_tape(2);
    tensor *positions = positions_create(t, P, WIDTH);
    for (int i = 0; i < B * T; i++)
        for (int j = 0; j < WIDTH; j++) {
            y[i * WIDTH + j] = 3 * (double)table->value[token[i] * WIDTH + j] +
                               (double)positions->value[position[i] * WIDTH + j];
            if (token[i] != PAD) dtable[token[i] * WIDTH + j] += 3 * (double)dy[i * WIDTH + j];
        }
    tensor *out = op_embedding(t, table, token, B, T, 3, positions, PAD);
    reals_backward(t, out, dy);
    assert_int_equal(out->rank, 3);
    reals_check("y", out->value, y, B * T * WIDTH, 1e-6, 1e-6);
    reals_check("dtable", table->grad, dtable, VOCABULARY * WIDTH, 1e-5, 1e-6);
    for (int j = 0; j < WIDTH; j++) check_equals(table->grad[PAD * WIDTH + j], 0);
    free(dtable);
    free(y);
    free(dy);
    tape_free(t);
    gradcheck_tensor_free(table);
}

static void position_formula(void **state) {
    (void)state;
    enum { D = 6 };
    real table[4 * D];
    double want[4 * D] = {0};
    for (int p = 0; p < 4; p++)
        for (int i = 0; i < 3 && p != 2; i++) {
            double w = pow(10000, -i / 2.0);
            want[p * D + i] = sin(p * w);
            want[p * D + 3 + i] = cos(p * w);
        }
    op_embedding_positions(table, 4, D, 2);
    reals_check("table", table, want, 4 * D, 1e-6, 1e-7);
    op_embedding_positions(table, 3, 1, 0); /* d is too small for a sine: the final zero only */
    for (int p = 0; p < 3; p++) check_equals(table[p], 0);
    op_embedding_positions(table, 3, 2, 0);
    const double narrow[6] = {0, 0, sin(1), cos(1), sin(2), cos(2)};
    reals_check("narrow", table, narrow, 6, 1e-6, 1e-7);
}

static void refuse(int32_t wrong, int64_t count, int64_t d, const char *text) {
    tape *t = reals_tape(1);
    tensor *table = tape_tensor(t, 2, (int64_t[]){VOCABULARY, 4});
    tensor *positions = positions_create(t, count, d);
    const int32_t given[6] = {0, 2, 3, 4, wrong, 0};
    assert_null(op_embedding(t, table, given, 2, 3, 1, positions, PAD));
    check_failure(tape_failure(t), SR_USAGE, text);
    tape_free(t);
}

static void wrong_arguments(void **state) {
    (void)state;
    refuse(VOCABULARY, 5, 4, "token 9 at 4, table has 9 rows");
    refuse(-1, 5, 4, "token -1 at 4");
    refuse(0, 4, 4, "sentence of 3 words, 4 positions");
    refuse(0, 5, 3, "[P, d]");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_and_gradient),
        cmocka_unit_test(position_formula),
        cmocka_unit_test(wrong_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
