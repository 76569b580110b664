/* op_feature_embedding and op_cube against plain loops; numbers outside the tables. */
#include <stdlib.h>

#include "engine/ops/ops.h"
#include "reals.h"
#include "testing/check.h"
#include "testing/gradcheck.h"

enum {
    ROWS = 4,
    WORDS = 3,
    TAGS = 2,
    COLUMNS = WORDS + TAGS,
    D = 37,
    E = 3,
    WIDTH = WORDS * D + TAGS * E
};
static const int32_t number[ROWS * COLUMNS] = {6, 0, 6, 1, 4, 2, 2, 2, 0, 0,
                                               5, 3, 1, 4, 1, 0, 6, 5, 2, 3};

/* Returns the index within the embedding row of column c of y; *column: its column of numbers. */
static int place(int c, int *column) {
    *column = c < WORDS * D ? c / D : WORDS + (c - WORDS * D) / E;
    return c < WORDS * D ? c % D : (c - WORDS * D) % E;
}

static void values_and_gradients(void **state) {
    (void)state;
    tensor *words = gradcheck_tensor(2, (int64_t[]){7, D}, 1, true);
    tensor *tags = gradcheck_tensor(2, (int64_t[]){5, E}, 2, true);
    real *dy = reals_random(ROWS * WIDTH, 3);
    double y[ROWS * WIDTH], dwords[7 * D] = {0}, dtags[5 * E] = {0};
    for (int i = 0; i < ROWS; i++)
        for (int c = 0; c < WIDTH; c++) {
            int column, at = place(c, &column);
            const int32_t n = number[i * COLUMNS + column];
            const bool word = column < WORDS;
            y[i * WIDTH + c] = (double)(word ? words->value[n * D + at] : tags->value[n * E + at]);
            *(word ? &dwords[n * D + at] : &dtags[n * E + at]) += (double)dy[i * WIDTH + c];
        }
    tape *t = reals_tape(2);
    const feature_table table[] = {{words, WORDS}, {tags, TAGS}};
    tensor *out = op_feature_embedding(t, table, 2, number, ROWS);
    reals_backward(t, out, dy);
    assert_int_equal(out->rank, 2);
    assert_int_equal(out->dim[1], WIDTH);
    reals_check("y", out->value, y, ROWS * WIDTH, 0, 0);
    reals_check("dwords", words->grad, dwords, 7 * D, 1e-5, 1e-6);
    reals_check("dtags", tags->grad, dtags, 5 * E, 1e-5, 1e-6);
    tape_free(t);
    free(dy);
    gradcheck_tensor_free(words);
    gradcheck_tensor_free(tags);
}

static void refuse(int32_t wrong, int at, int64_t columns, int tables, const char *text) {
    int32_t given[4] = {0, 1, 2, 0};
    given[at] = wrong;
    tape *t = reals_tape(1);
    const feature_table table[] = {{tape_tensor(t, 2, (int64_t[]){7, 4}), 1},
                                   {tape_tensor(t, 2, (int64_t[]){3, 4}), columns}};
    assert_null(op_feature_embedding(t, table, tables, given, 2));
    check_failure(tape_failure(t), SR_USAGE, text);
    tape_free(t);
}

static void wrong_arguments(void **state) {
    (void)state;
    refuse(7, 0, 1, 2, "number 7 at row 0, column 0; table 0 has 7 rows");
    refuse(3, 3, 1, 2, "number 3 at row 1, column 1; table 1 has 3 rows");
    refuse(-1, 2, 1, 2, "number -1 at row 1, column 0");
    refuse(0, 0, 0, 2, "table 1 must be [V, d], of one column or more");
    refuse(0, 0, 1, 0, "0 tables; 1 to 4");
}

static void cube(void **state) {
    (void)state;
    tape *t = reals_tape(1);
    tensor *x = gradcheck_tensor(1, (int64_t[]){3}, 1, true);
    const real at[] = {-2, 0, (real)0.5}, dy[] = {1, 5, 2};
    const double y[] = {-8, 0, 0.125}, dx[] = {12, 0, 1.5};
    for (int i = 0; i < 3; i++) x->value[i] = at[i];
    tensor *out = op_cube(t, x);
    reals_backward(t, out, dy);
    reals_check("y", out->value, y, 3, 1e-6, 0);
    reals_check("dx", x->grad, dx, 3, 1e-6, 0);
    tape_free(t);
    gradcheck_tensor_free(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(values_and_gradients),
                                       cmocka_unit_test(wrong_arguments), cmocka_unit_test(cube)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
