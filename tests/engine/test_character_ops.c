/* op_unfold and op_masked_max. With op_linear between them they are a 1-D convolution over
 * characters and its maximum: against plain loops in double, with padding. */
#include <math.h>
#include <string.h>

#include "engine/ops/ops.h"
#include "reals.h"
#include "testing/check.h"

enum { N = 5, C = 6, D = 4, F = 7, WIDTH = 3 };

/* Words of 6, 1, 3, 0 and 4 characters. */
static const uint8_t valid[N * C] = {1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 1, 1, 1,
                                     0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0};

static void window_values(void **state) {
    (void)state;
    tape *t = reals_tape(1);
    tensor *x = tape_tensor(t, 3, (int64_t[]){2, 3, 1});
    for (int i = 0; i < 6; i++) x->value[i] = (real)(i + 1);
    tensor *y = op_unfold(t, x, 3), *same = op_unfold(t, x, 1), *wide = op_unfold(t, x, 5);
    reals_check_tape(t);
    const double want[18] = {0, 1, 2, 1, 2, 3, 2, 3, 0, 0, 4, 5, 4, 5, 6, 5, 6, 0};
    reals_check("three", y->value, want, 18, 0, 0);
    reals_check_bytes("one", same->value, x->value, 6);
    reals_check("five", wide->value, (const double[]){0, 0, 1, 2, 3, 0, 1, 2, 3, 0}, 10, 0, 0);
    assert_null(op_unfold(t, x, 2));
    check_failure(tape_failure(t), SR_USAGE, "windows: rank 3, windows of 2");
    tape_free(t);
}

static void maximum_of_special_values(void **state) {
    (void)state;
    enum { ROWS = 4 };
    real x[ROWS * 3 * 1] = {1, 3, 2, -5, -7, 9, 2, (real)NAN, 4, (real)-INFINITY, 0, 0};
    const uint8_t seen[ROWS * 3] = {1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 0, 0};
    const double want[ROWS] = {3, -5, NAN, -INFINITY};
    tape *t = reals_tape(1);
    tensor *y = op_masked_max(t, tape_wrap(t, 3, (int64_t[]){ROWS, 3, 1}, x), seen);
    reals_check_tape(t);
    reals_check("max", y->value, want, ROWS, 0, 0);
    assert_null(op_masked_max(t, y, NULL));
    check_failure(tape_failure(t), SR_USAGE, "masked_max: rank 2, not [N, C, F]");
    tape_free(t);
}

/* The first of equal values gets the gradient; a word without characters gives 0 and passes
 * none. */
static void ties_and_empty_words(void **state) {
    (void)state;
    tape *t = reals_tape(1);
    tensor *x = reals_tensor(t, 3, (int64_t[]){2, 3, 1}, 1);
    for (int i = 0; i < 6; i++) x->value[i] = -2;
    const uint8_t seen[6] = {0, 1, 1, 0, 0, 0};
    tensor *y = op_masked_max(t, x, seen);
    reals_backward(t, y, (real[]){5, 7});
    reals_check("y", y->value, (const double[]){-2, 0}, 2, 0, 0);
    reals_check("dx", x->grad, (const double[]){0, 5, 0, 0, 0, 0}, 6, 0, 0);
    tape_free(t);
}

/* Features of one word by the definition: the convolution at each character, then the maximum, then
 * ReLU. Zeros pad the first and last character. */
static void plain_word(const tensor *x, const tensor *w, const tensor *b, int64_t n, double *y) {
    for (int f = 0; f < F; f++) {
        double best = -INFINITY;
        int characters = 0;
        for (int c = 0; c < C && valid[n * C + c]; c++, characters++) {
            double sum = (double)b->value[f];
            for (int k = 0; k < WIDTH; k++) {
                const int at = c + k - WIDTH / 2;
                if (at < 0 || at >= C || !valid[n * C + at]) continue;
                for (int m = 0; m < D; m++)
                    sum += (double)w->value[(f * WIDTH + k) * D + m] *
                           (double)x->value[(n * C + at) * D + m];
            }
            best = fmax(best, sum);
        }
        y[f] = characters && best > 0 ? best : 0;
    }
}

/* Embeddings of padding are zero, as the table's pad row. */
static void convolution_over_characters(void **state) {
    (void)state;
    tape *t = reals_tape(2);
    tensor *x = reals_tensor(t, 3, (int64_t[]){N, C, D}, 1);
    tensor *w = reals_tensor(t, 2, (int64_t[]){F, WIDTH * D}, 2);
    tensor *b = reals_tensor(t, 1, (int64_t[]){F}, 3);
    for (int i = 0; i < N * C; i++)
        if (!valid[i]) memset(x->value + i * D, 0, D * sizeof(real));
    double want[N * F];
    for (int n = 0; n < N; n++) plain_word(x, w, b, n, want + n * F);
    tensor *y = op_linear(t, op_unfold(t, x, WIDTH), w, b);
    y = op_relu(t, op_masked_max(t, y, valid));
    reals_check_tape(t);
    reals_check("features", y->value, want, N * F, 1e-5, 1e-5);
    tape_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(window_values),
        cmocka_unit_test(maximum_of_special_values),
        cmocka_unit_test(ties_and_empty_words),
        cmocka_unit_test(convolution_over_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
