/* test_tape.c -- memory of values: released inputs serve later results; values that a backward
 * function reads do not. */
#include <stdio.h>

#include "engine/ops/ops.h"
#include "engine/tape.h"
#include "reals.h"
#include "testing/check.h"
#include "testing/extra_ops.h"

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
    tensor *y = tape_release_input(t, x, op_scale(t, x, 3));
    assert_null(x->value);
    tensor *z = op_scale(t, y, 4);
    assert_ptr_equal(z->value, memory);
    check_equals(z->value[0], 24 * numbers[0]);
    check_equals(z->value[COUNT - 1], 24 * numbers[COUNT - 1]);
    tape_backward(t, op_sum(t, z), 1);
    check_equals(in.grad[5], 24);
    tape_free(t);
}

static void not_consumed(void **state) {
    (void)state;
    tape *t = begin(true);
    tensor in, *x = op_tanh(t, leaf(t, &in)); /* its own backward function reads it */
    assert_ptr_equal(tape_release_input(t, x, x), x);
    tape_release_input(t, x, op_scale(t, x, 3));
    assert_non_null(x->value);
    tensor *y = op_scale(t, x, 2);
    tape_release_input(t, y, op_multiply(t, y, x)); /* the reader's backward function reads it */
    assert_non_null(y->value);
    tensor *z = op_scale(t, x, 2), *view = tape_reshape(t, z, 2, (int64_t[]){2, COUNT / 2});
    tape_release_input(t, z, view);
    tape_release_input(t, view, op_scale(t, view, 2));
    assert_true(z->value && view->value == z->value);
    tape_release_input(t, &in, op_scale(t, &in, 2)); /* not the tape's memory */
    assert_ptr_equal(in.value, numbers);
    assert_null(tape_release_input(t, NULL, NULL));
    tape_free(t);
}

/* No later reader exists. */
static void consumed_in_evaluation(void **state) {
    (void)state;
    tape *t = begin(false);
    tensor in, *x = op_relu(t, leaf(t, &in));
    tape_release_input(t, x, op_scale(t, x, 3));
    assert_null(x->value);
    tensor *z = op_scale(t, &in, 2), *view = tape_reshape(t, z, 2, (int64_t[]){2, COUNT / 2});
    tape_release_input(t, z, view);
    tape_release_input(t, view, op_scale(t, view, 2));
    assert_true(z->value && view->value == z->value); /* shared, so no single owner */
    tape_free(t);
}

static void spent(void **state) {
    (void)state;
    for (int reuse_activations = 0; reuse_activations < 2; reuse_activations++) {
        tape *t = begin(true);
        t->reuse_activations = reuse_activations;
        tensor in, *x = op_tanh(t, leaf(t, &in)), *y = op_scale(t, x, 3), *loss = op_sum(t, y);
        tape_backward(t, loss, 1);
        assert_true((x->value != NULL) == !reuse_activations &&
                    (y->value != NULL) == !reuse_activations);
        check_equals(in.grad[10], 3);
        check_equals(in.grad[COUNT - 1], 0); /* x was read before its release */
        check_above(loss->value[0], 128.9);
        check_below(loss->value[0], 129.1); /* tanh(-10) .. tanh(53) */
        tape_free(t);
    }
}

/* The gradient overwrites a value whose only reader is the caller. */
static void written_over(void **state) {
    (void)state;
    for (int readers = 1; readers <= 2; readers++)
        for (int reads = 0; reads < 2; reads++) {
            tape *t = begin(true);
            t->reuse_activations = true;
            bool add = true;
            tensor in, *x = op_scale(t, leaf(t, &in), 2);
            const real *value = x->value;
            const tape_node node = {.in = {&in, x}, .reads = reads ? READS_IN(1) : READS_IN(0)};
            const bool over = readers == 1 && reads;
            x->readers = readers;
            assert_true((tape_grad_over(t, &node, 1, &add) == value) == over);
            assert_false(add);
            assert_true((tape_grad_over(t, &node, 1, &add) == value) == over);
            assert_true(add);
            tape_free(t);
        }
}

static void handed(void **state) {
    (void)state;
    tape *t = begin(true);
    bool add;
    tensor in, other, *x = op_scale(t, leaf(t, &in), 2), *y = op_scale(t, x, 3);
    real *g = tape_grad(t, y, &add);
    assert_true(tape_move_grad(y, x));
    assert_true(x->grad == g && x->has_grad && !y->grad);
    g = tape_grad(t, y, &add);
    assert_false(tape_move_grad(y, x)); /* a second gradient adds */
    assert_ptr_equal(y->grad, g);
    *leaf(t, &other) = *tape_wrap(t, 1, (int64_t[]){COUNT}, numbers);
    assert_false(tape_move_grad(y, &other));
    other.wants_grad = true;
    other.count--;
    assert_false(tape_move_grad(y, &other)); /* another number of elements */
    assert_true(y->grad == g && !other.grad);
    other.count++;
    assert_true(tape_move_grad(y, &other));
    tape_free(t);
}

/* Takes dL/dy's memory if x has no gradient yet. Takes separate memory if it must add, and the
 * second time. */
static void in_place(void **state) {
    (void)state;
    tape *t = begin(true);
    bool add = true;
    tensor in, *x = op_scale(t, leaf(t, &in), 2), *y = op_scale(t, x, 3), *z = op_scale(t, x, 3);
    real *dy = tape_grad(t, y, &add), *dz = tape_grad(t, z, &add);
    assert_ptr_equal(tape_grad_in_place(t, y, x, &add), dy);
    assert_false(add || y->grad);
    assert_ptr_equal(tape_grad_in_place(t, z, x, &add), dy);
    assert_true(add && z->grad == dz);
    in.wants_grad = false;
    assert_null(tape_grad_in_place(t, z, &in, &add));
    tape_free(t);
}

/* Two ops that work in place, with gradients that add, after one that passes its own on. */
static void passed_in_place(void **state) {
    (void)state;
    tape *t = begin(true);
    tensor in, *x = leaf(t, &in);
    tensor *y = op_relu(t, x), *z = op_relu(t, x); /* y's gradient adds to z's */
    tape_backward(t, op_sum(t, op_dropout(t, op_add(t, y, z), 0.5)), 1);
    for (int i = 0; i < COUNT; i++) /* 1 + 1 if positive, times 2 if kept */
        assert_true(in.grad[i] == 0 || (numbers[i] > 0 && in.grad[i] == 4));
    check_equals(in.grad[0], 0);
    check_above(in.grad[COUNT - 1] + in.grad[COUNT - 2] + in.grad[COUNT - 3], 0);
    tape_free(t);
}

/* Makes y[3] from x; the first two share one gradient of COUNT ones. */
static tape *begin_shared(tensor *x, tensor *y[3]) {
    tape *t = begin(true);
    bool add;
    leaf(t, x);
    for (int i = 0; i < 3; i++) y[i] = op_scale(t, x, i + 1);
    real *g = tape_grad(t, y[0], &add);
    for (int i = 0; i < COUNT; i++) g[i] = 1;
    assert_true(tape_alias_grad(y[0], y[1]));
    assert_true(y[1]->grad == g && y[1]->has_grad);
    return t;
}

static void shared(void **state) {
    (void)state;
    bool add;
    tensor in, *y[3];
    tape *t = begin_shared(&in, y);
    tensor *a = y[0], *b = y[1], *c = y[2];
    assert_false(tape_alias_grad(a, c) || tape_alias_grad(b, c) || tape_alias_grad(c, a));
    real *before = a->grad,
         *g = tape_grad(t, b, &add); /* a written gradient gets separate memory */
    assert_true(add && g != before);
    check_equals(g[0], 1);
    check_equals(g[COUNT - 1], 1);
    assert_true(a->grad == before);
    assert_ptr_equal(tape_grad(t, a, &add), before);
    assert_false(tape_alias_grad(a, b)); /* it has one */
    in.wants_grad = false;
    assert_false(tape_alias_grad(a, &in));
    tape_free(t);
}

/* The other half of a pair keeps the memory. */
static void shared_and_moved(void **state) {
    (void)state;
    bool add;
    tensor in, *x = &in, *y[3];
    tape *t = begin_shared(x, y);
    tensor *a = y[0], *b = y[1], *c = y[2];
    assert_true(tape_move_grad(a, c));
    real *both = c->grad;
    assert_true(both == b->grad && c->twin == b && b->twin == c && !a->twin);
    assert_ptr_not_equal(tape_grad_in_place(t, b, x, &add), both);
    assert_true(!add && b->grad == both);
    real *kept = tape_keep_grad(t, c);
    assert_true(kept != both);
    check_equals(kept[3], 1);
    assert_true(b->grad == both && !b->twin && !c->grad);
    tape_free(t);
}

/* A sum whose terms have other readers: three gradients share one memory chunk, and the first one
 * passed on does not release it. */
static void shared_in_a_sum(void **state) {
    (void)state;
    tape *t = begin(true);
    tensor in, *x = op_scale(t, leaf(t, &in), 1), *branch = op_scale(t, op_scale(t, x, 2), 3);
    tensor *sum = op_add(t, x, branch),
           *late = op_scale(t, x, 4); /* x has late's gradient before the sum's */
    tensor *y = op_add(t, sum, late);
    tape_backward(t, op_sum(t, op_scale(t, y, 5)), 1);
    for (int i = 0; i < COUNT; i++) check_equals(in.grad[i], 5 * (1 + 6 + 4));
    tape_free(t);
}

/* Passed to both terms, to one term twice, to a term with a gradient, to a view. */
static void added(void **state) {
    (void)state;
    tape *t = begin(true);
    tensor a, b, c, *x = op_scale(t, leaf(t, &a), 1), *z;
    z = op_add(t, op_add(t, x, leaf(t, &b)), op_add(t, x, x));
    z = tape_reshape(t, op_add(t, z, op_scale(t, leaf(t, &c), 5)), 2, (int64_t[]){2, COUNT / 2});
    tape_backward(t, op_sum(t, z), 1);
    for (int i = 0; i < COUNT; i++) {
        check_equals(a.grad[i], 3);
        check_equals(b.grad[i], 1);
        check_equals(c.grad[i], 5);
    }
    tape_free(t);
}

/* y = 2 x, which can be recomputed. */
static int made;

static void twice(tape *t, const tape_node *node) {
    (void)t;
    made++;
    for (int64_t i = 0; i < node->out->count; i++) node->out->value[i] = 2 * node->in[0]->value[i];
}

static void twice_backward(tape *t, const tape_node *node) {
    bool add;
    real *dx = tape_grad(t, node->in[0], &add);
    for (int64_t i = 0; dx && i < node->out->count; i++)
        dx[i] = (add ? dx[i] : 0) + 2 * node->out->grad[i];
}

static tensor *op_twice(tape *t, tensor *x) {
    tensor *y = tape_like(t, x);
    for (int64_t i = 0; i < y->count; i++) y->value[i] = 2 * x->value[i];
    y = tape_push_reading(t, "twice", twice_backward, y, (tensor *[]){x, NULL}, NULL, READS_IN(0));
    return tape_set_recompute(t, y, twice);
}

/* Two products read a dropped value, and its input is dropped, too. y = 4 in, so the sum of 2 y in
 * is 8 in^2 and its gradient 16 in. */
static void lapsed(void **state) {
    (void)state;
    tape *t = begin(true);
    t->reuse_activations = true;
    made = 0;
    tensor in, *x = op_twice(t, op_scale(t, leaf(t, &in), 1)), *y = op_twice(t, x);
    const real *memory = y->value;
    tensor *z = op_add(t, op_multiply(t, y, &in), op_multiply(t, y, &in));
    tape_drop_value(t, y);
    assert_null(y->value);
    assert_ptr_equal(op_scale(t, &in, 5)->value, memory);
    tape_drop_value(t, x);
    assert_null(x->value);
    tape_backward(t, op_sum(t, z), 1);
    assert_int_equal(made, 2);
    for (int i = 0; i < COUNT; i++) check_equals(in.grad[i], 16 * numbers[i]); /* 8 in^2 */
    assert_true(x->value == NULL && y->value == NULL);
    tape_free(t);
}

static void not_lapsed(void **state) {
    (void)state;
    for (int reuse_activations = 0; reuse_activations < 2; reuse_activations++) {
        tape *t = begin(reuse_activations);
        t->reuse_activations = reuse_activations;
        tensor in, *x = op_twice(t, leaf(t, &in)), *y = op_scale(t, x, 3), *view;
        tape_drop_value(t, y); /* cannot be recomputed */
        tape_drop_value(t, &in);
        tape_drop_value(t, NULL);
        view = tape_reshape(t, x, 2, (int64_t[]){2, COUNT / 2});
        tape_drop_value(t, x); /* the tape keeps all values, or a view shares the memory */
        assert_true(y->value && in.value && view->value && x->value == view->value);
        tape_free(t);
    }
    tape *t = begin(false); /* no backward pass would recompute it */
    t->reuse_activations = true;
    tensor in, *x = op_twice(t, leaf(t, &in));
    tape_drop_value(t, x);
    assert_non_null(x->value);
    tape_free(t);
}

static void borrowed(void **state) {
    (void)state;
    tape *t = begin(true);
    tensor in, *x = op_scale(t, leaf(t, &in), 2);
    void *memory = x->value;
    tape_release_input(t, x, op_scale(t, x, 3));
    void *room = tape_borrow(t, COUNT * sizeof(real) - 1);
    assert_ptr_equal(room, memory);
    assert_ptr_not_equal(op_scale(t, &in, 2)->value, memory);
    tape_return(t, room, COUNT * sizeof(real) - 1);
    assert_ptr_equal(op_scale(t, &in, 2)->value, memory);
    tape_return(t, NULL, 5);
    tape_free(t);
}

/* -- errors, and measurements */

static void refused(void **state) {
    (void)state;
    static const struct {
        int rank;
        int64_t dim[4];
        const char *text;
    } wrong[] = {{0, {1}, "tensor of rank 0"},
                 {5, {1, 1, 1, 1}, "tensor of rank 5"},
                 {2, {3, 0}, "tensor dimension 1 is 0"},
                 {2, {INT64_MAX / 8, 16}, "tensor dimension 1 is 16"}};
    tape *t = reals_tape(1);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tape_reset(t, rng_create(1), true, true);
        assert_null(tape_tensor(t, wrong[i].rank, wrong[i].dim));
        check_failure(tape_failure(t), SR_USAGE, wrong[i].text);
    }
    tape_reset(t, rng_create(1), true, true);
    tensor *x = reals_tensor(t, 2, (int64_t[]){3, 4}, 1);
    assert_null(tape_reshape(t, NULL, 1, (int64_t[]){12}));
    assert_null(tape_failure(t));
    assert_null(tape_reshape(t, x, 2, (int64_t[]){3, 5}));
    check_failure(tape_failure(t), SR_USAGE, "reshape of 12 numbers to 15");
    tape_free(t);
}

/* The last row has all operations without a separate row. */
static void profiled(void **state) {
    (void)state;
    enum { OPS = PROFILE_OPS + 3 };
    char name[OPS][8];
    tape *t = reals_tape(1);
    t->profiling = true;
    tape_reset(t, rng_create(1), true, true);
    tensor *x = reals_tensor(t, 1, (int64_t[]){1}, 1);
    for (int i = 0; i < OPS; i++) {
        snprintf(name[i], sizeof name[i], "op%d", i);
        assert_non_null(tape_push(t, name[i], twice_backward, tape_tensor(t, 1, (int64_t[]){1}),
                                  (tensor *[]){x, NULL}, NULL));
    }
    for (int i = 0; i < PROFILE_OPS; i++) {
        assert_string_equal(t->profile[i].op, name[i]);
        assert_int_equal(t->profile[i].calls, i < PROFILE_OPS - 1 ? 1 : OPS - PROFILE_OPS + 1);
    }
    tape_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(consumed),
                                       cmocka_unit_test(not_consumed),
                                       cmocka_unit_test(consumed_in_evaluation),
                                       cmocka_unit_test(spent),
                                       cmocka_unit_test(written_over),
                                       cmocka_unit_test(handed),
                                       cmocka_unit_test(in_place),
                                       cmocka_unit_test(passed_in_place),
                                       cmocka_unit_test(shared),
                                       cmocka_unit_test(shared_and_moved),
                                       cmocka_unit_test(shared_in_a_sum),
                                       cmocka_unit_test(added),
                                       cmocka_unit_test(lapsed),
                                       cmocka_unit_test(not_lapsed),
                                       cmocka_unit_test(borrowed),
                                       cmocka_unit_test(refused),
                                       cmocka_unit_test(profiled)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
