/* test_tape.c -- memory of values: what ops have taken serves later results, what a backward function reads does not. */
#include "../check.h"
#include "statnet/ops.h"
#include "statnet/tape.h"

enum { COUNT = 64 };

static real numbers[COUNT];

static tensor *leaf(tape *t, tensor *x) {
    *x = *tape_wrap(t, 1, (int64_t[]){COUNT}, numbers);
    x->wants_grad = true;
    return x;
}

static tape *begin(bool recording) {
    sr_failure why = {0};
    tape *t = tape_create(1, &why);
    assert_non_null(t);
    for (int i = 0; i < COUNT; i++) numbers[i] = (real)(i - 10);
    tape_reset(t, rng_create(1), true, recording);
    return t;
}

static void consumed(void **state) {
    (void)state;
    tape *t = begin(true);
    tensor in, *x = op_scale(t, leaf(t, &in), 2);
    const real *memory = x->value;
    tensor *y = tape_consume(t, x, op_scale(t, x, 3));
    assert_null(x->value);
    tensor *z = op_scale(t, y, 4);
    assert_ptr_equal(z->value, memory);
    assert_true(z->value[0] == 24 * numbers[0] && z->value[COUNT - 1] == 24 * numbers[COUNT - 1]);
    tape_backward(t, op_sum(t, z), 1);
    assert_true(in.grad[5] == 24);
    tape_free(t);
}

static void not_consumed(void **state) {
    (void)state;
    tape *t = begin(true);
    tensor in, *x = op_relu(t, leaf(t, &in)); /* its own backward function reads it */
    assert_ptr_equal(tape_consume(t, x, x), x);
    tape_consume(t, x, op_scale(t, x, 3));
    assert_non_null(x->value);
    tensor *y = op_scale(t, x, 2);
    tape_consume(t, y, op_product(t, y, x)); /* that of the op that takes it does */
    assert_non_null(y->value);
    tensor *z = op_scale(t, x, 2), *view = tape_reshape(t, z, 2, (int64_t[]){2, COUNT / 2});
    tape_consume(t, z, view);
    tape_consume(t, view, op_scale(t, view, 2));
    assert_true(z->value && view->value == z->value);
    tape_consume(t, &in, op_scale(t, &in, 2)); /* memory of somebody else */
    assert_ptr_equal(in.value, numbers);
    assert_null(tape_consume(t, NULL, NULL));
    tape_free(t);
}

/* Nobody reads anything later. */
static void consumed_in_evaluation(void **state) {
    (void)state;
    tape *t = begin(false);
    tensor in, *x = op_relu(t, leaf(t, &in));
    tape_consume(t, x, op_scale(t, x, 3));
    assert_null(x->value);
    tensor *z = op_scale(t, &in, 2), *view = tape_reshape(t, z, 2, (int64_t[]){2, COUNT / 2});
    tape_consume(t, z, view);
    tape_consume(t, view, op_scale(t, view, 2));
    assert_true(z->value && view->value == z->value); /* of whom would it be? */
    tape_free(t);
}

static void spent(void **state) {
    (void)state;
    for (int spending = 0; spending < 2; spending++) {
        tape *t = begin(true);
        t->spending = spending;
        tensor in, *x = op_relu(t, leaf(t, &in)), *y = op_scale(t, x, 3), *loss = op_sum(t, y);
        tape_backward(t, loss, 1);
        assert_true((x->value != NULL) == !spending && (y->value != NULL) == !spending);
        assert_true(in.grad[0] == 0 && in.grad[COUNT - 1] == 3); /* x was read before it went */
        assert_true(loss->value[0] == 3 * (real)(COUNT - 11) * (COUNT - 10) / 2);
        tape_free(t);
    }
}

/* The gradient in the place of a value that has one reader. */
static void written_over(void **state) {
    (void)state;
    for (int readers = 1; readers <= 2; readers++) {
        tape *t = begin(true);
        t->spending = true;
        bool add = true;
        tensor in, *x = op_scale(t, leaf(t, &in), 2);
        const real *value = x->value;
        x->readers = readers;
        assert_true((tape_grad_over(t, x, &add) == value) == (readers == 1));
        assert_false(add);
        assert_true((tape_grad_over(t, x, &add) == value) == (readers == 1));
        assert_true(add);
        tape_free(t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(consumed), cmocka_unit_test(not_consumed),
                                       cmocka_unit_test(consumed_in_evaluation),
                                       cmocka_unit_test(spent), cmocka_unit_test(written_over)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
