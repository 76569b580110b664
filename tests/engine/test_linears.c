/* test_linears.c -- op_linears against op_linear of each weight: values and gradients, also with an
 * unused result or a frozen weight. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/ops.h"
#include "reals.h"
#include "testing/check.h"
#include "testing/extra_ops.h"

enum { MOST = 4 };

/* unused: the member whose y has no reader; frozen: the one whose weight requires no gradient; -1:
 * none. */
typedef struct problem {
    int64_t rows, in, out;
    int count;
    bool biased;
    int unused, frozen;
    int64_t other; /* rows of the last weight; 0: out */
} problem;

/* All tensors of a problem. */
typedef struct numbers {
    tape *t;
    tensor *x, *w[MOST], *b[MOST], *y[MOST];
} numbers;

static int64_t out_of(const problem *c, int i) {
    return c->other && i == c->count - 1 ? c->other : c->out;
}

/* Requires an empty tape. */
static void numbers_fill(numbers *n, const problem *c) {
    n->x = reals_tensor(n->t, 2, (int64_t[]){c->rows, c->in}, 1);
    for (int i = 0; i < c->count; i++) {
        n->w[i] = reals_tensor(n->t, 2, (int64_t[]){out_of(c, i), c->in}, (uint64_t)i + 2);
        n->w[i]->wants_grad = i != c->frozen;
        if (c->biased) n->b[i] = reals_tensor(n->t, 1, (int64_t[]){out_of(c, i)}, (uint64_t)i + 20);
    }
}

static numbers numbers_create(const problem *c, int threads) {
    numbers n = {.t = reals_tape(threads)};
    numbers_fill(&n, c);
    return n;
}

/* The loss is a weighted sum of all y but one. */
static void numbers_run(numbers *n, const problem *c, int unused, bool together) {
    tensor *loss = NULL;
    if (together)
        assert_true(op_linears(n->t, n->x, c->count, n->w, n->b, n->y));
    else
        for (int i = 0; i < c->count; i++) n->y[i] = op_linear(n->t, n->x, n->w[i], n->b[i]);
    for (int i = 0; i < c->count; i++) {
        if (i == unused) continue;
        tensor *dy = reals_tensor(n->t, 2, n->y[i]->dim, (uint64_t)i + 40);
        dy->wants_grad = false;
        tensor *part = op_sum(n->t, op_multiply(n->t, n->y[i], dy));
        loss = loss ? op_add(n->t, loss, part) : part;
    }
    tape_backward(n->t, loss, 1);
    reals_check_tape(n->t);
    n->t->last = NULL;
}

static void compare(const char *what, const real *got, const real *want, int64_t count) {
    const double tolerance = sizeof(real) == 4 ? 3e-4 : 1e-11;
    assert_true(!got == !want);
    if (got) reals_check_same(what, got, want, count, tolerance, tolerance);
}

static void compare_all(const numbers *got, const numbers *want, const problem *c) {
    compare("dx", got->x->grad, want->x->grad, want->x->count);
    for (int i = 0; i < c->count; i++) {
        compare("y", got->y[i]->value, want->y[i]->value, want->y[i]->count);
        compare("dw", got->w[i]->grad, want->w[i]->grad, want->w[i]->count);
        if (c->biased) compare("db", got->b[i]->grad, want->b[i]->grad, want->b[i]->count);
    }
}

/* Two passes, since gradients add. The second uses all results, so some weights have a gradient and
 * some have none. */
static void check_problem(const problem *c) {
    numbers got = numbers_create(c, 2), want = numbers_create(c, 2);
    for (int pass = 0; pass < 2; pass++) {
        numbers_run(&got, c, pass ? -1 : c->unused, true);
        numbers_run(&want, c, pass ? -1 : c->unused, false);
        compare_all(&got, &want, c);
    }
    tape_free(got.t);
    tape_free(want.t);
}

/* Grouped: columns, rows and depth in one step and in splits. Separate: outputs that do not fill a
 * panel, weights of two sizes. */
static const problem problems[] = {
    {300, 96, 64, 3, true, -1, -1, 0},   {300, 96, 64, 2, false, -1, -1, 0},
    {64, 1100, 64, 3, true, -1, -1, 0},  {1300, 64, 32, 3, true, -1, -1, 0},
    {64, 64, 512, 3, false, -1, -1, 0},  {300, 96, 64, 3, true, 0, -1, 0},
    {300, 96, 64, 3, true, 2, -1, 0},    {300, 96, 64, 3, true, -1, 1, 0},
    {40, 36, 32, 2, true, 1, 0, 0},      {300, 96, 70, 3, true, -1, -1, 0},
    {300, 96, 64, 4, true, 3, 2, 0},     {300, 96, 64, 3, true, -1, -1, 96},
    {5, 7, 3, 1, true, -1, -1, 0},       {1300, 64, 32, 3, true, 0, -1, 0},
    {1024, 128, 128, 3, true, -1, -1, 0}};

static void values_and_gradients(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) check_problem(&problems[i]);
}

static void same_bytes_for_any_threads(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        const problem *c = &problems[i];
        numbers one = numbers_create(c, 1), more = numbers_create(c, 3);
        numbers_run(&one, c, c->unused, true);
        numbers_run(&more, c, c->unused, true);
        reals_check_bytes("dx", more.x->grad, one.x->grad, one.x->count);
        for (int j = 0; j < c->count; j++) {
            reals_check_bytes("y", more.y[j]->value, one.y[j]->value, one.y[j]->count);
            if (one.w[j]->grad)
                reals_check_bytes("dw", more.w[j]->grad, one.w[j]->grad, one.w[j]->count);
        }
        tape_free(one.t);
        tape_free(more.t);
    }
}

/* Values that are not finite stay in their rows, columns and products. */
static void not_finite(void **state) {
    (void)state;
    const problem *c = &problems[0];
    numbers n = numbers_create(c, 2);
    n.x->value[5 * c->in + 3] = INFINITY;
    n.w[1]->value[7 * c->in + 2] = (real)NAN;
    numbers_run(&n, c, -1, true);
    for (int i = 0; i < c->count; i++)
        for (int64_t j = 0; j < n.y[i]->count; j++) {
            const bool odd = j / c->out == 5 || (i == 1 && j % c->out == 7);
            assert_true(!isfinite(n.y[i]->value[j]) == odd);
        }
    for (int i = 0; i < c->count; i++)
        for (int64_t j = 0; j < n.w[i]->count; j++)
            assert_true(!isfinite(n.w[i]->grad[j]) == (j % c->in == 3));
    for (int64_t j = 0; j < n.x->count; j++)
        assert_true(!isfinite(n.x->grad[j]) == (j % c->in == 2));
    tape_free(n.t);
}

/* bfloat16 gives the same bytes as separate products. */
static void rounded(void **state) {
    (void)state;
    const problem *c = &problems[0];
    numbers got = numbers_create(c, 2), want = numbers_create(c, 2);
    got.t->bf16 = want.t->bf16 = true;
    numbers_run(&got, c, -1, true);
    numbers_run(&want, c, -1, false);
    reals_check_bytes("dx", got.x->grad, want.x->grad, want.x->count);
    for (int i = 0; i < c->count; i++)
        reals_check_bytes("y", got.y[i]->value, want.y[i]->value, want.y[i]->count);
    tape_free(got.t);
    tape_free(want.t);
}

/* Later operations reuse the memory of y's gradients. */
static void memory(void **state) {
    (void)state;
    const problem *c = &problems[0];
    numbers n = numbers_create(c, 1);
    numbers_run(&n, c, -1, true);
    const size_t used = arena_used(n.t->arena), bytes = (size_t)n.y[0]->count * sizeof(real);
    for (int i = 0; i < c->count; i++) assert_non_null(tape_borrow(n.t, bytes));
    assert_true(arena_used(n.t->arena) == used);
    tape_free(n.t);
}

/* Two losses on one tape: the second ignores the first's gradients. */
static void two_losses(void **state) {
    (void)state;
    const problem *c = &problems[0];
    numbers got = numbers_create(c, 2), want = numbers_create(c, 2);
    assert_true(op_linears(got.t, got.x, c->count, got.w, got.b, got.y));
    for (int i = 0; i < c->count; i++) want.y[i] = op_linear(want.t, want.x, want.w[i], want.b[i]);
    tensor *first[2] = {op_sum(got.t, got.y[0]), op_sum(want.t, want.y[0])};
    tensor *second[2] = {op_sum(got.t, got.y[2]), op_sum(want.t, want.y[2])};
    tape_backward(got.t, first[0], 1), tape_backward(want.t, first[1], 1);
    tape_backward(got.t, second[0], 1), tape_backward(want.t, second[1], 1);
    compare_all(&got, &want, c);
    tape_free(got.t);
    tape_free(want.t);
}

/* One weight used twice is not grouped: both products would write its gradient. */
static void tied(void **state) {
    (void)state;
    const problem *c = &problems[0];
    numbers got = numbers_create(c, 2), want = numbers_create(c, 2);
    got.w[2] = got.w[0], want.w[2] = want.w[0];
    numbers_run(&got, c, -1, true);
    numbers_run(&want, c, -1, false);
    compare_all(&got, &want, c);
    got.t->last = NULL;
    assert_true(op_linears(got.t, got.x, c->count, got.w, got.b, got.y));
    assert_ptr_equal(got.t->last->in[0], got.x);
    tape_free(got.t);
    tape_free(want.t);
}

/* Without a backward pass no node is kept. */
static void in_evaluation(void **state) {
    (void)state;
    const problem *c = &problems[0];
    numbers n = {.t = reals_tape(1)};
    tape_reset(n.t, rng_create(1), false, false);
    numbers_fill(&n, c);
    assert_true(op_linears(n.t, n.x, c->count, n.w, n.b, n.y));
    assert_null(n.t->last);
    tensor *y = op_linear(n.t, n.x, n.w[2], n.b[2]);
    compare("y", n.y[2]->value, y->value, y->count);
    tape_free(n.t);
}

/* A tape that runs out of memory at any allocation returns no result. */
static void memory_runs_out(void **state) {
    (void)state;
    const problem *c = &problems[0];
    for (int64_t k = 0, enough = 0; !enough; k++) {
        numbers n = numbers_create(c, 1);
        arena_fail_after(n.t->arena, k);
        enough = op_linears(n.t, n.x, c->count, n.w, n.b, n.y);
        arena_fail_after(n.t->arena, -1);
        assert_true(enough == !tape_failure(n.t));
        for (int i = 0; i < c->count; i++) assert_true(enough == (n.y[i] != NULL));
        assert_true(k < 100);
        tape_free(n.t);
    }
}

static void refused(void **state) {
    (void)state;
    const problem *c = &problems[0];
    numbers n = numbers_create(c, 1);
    assert_false(op_linears(n.t, NULL, 3, n.w, n.b, n.y));
    assert_null(n.y[0]);
    assert_null(tape_failure(n.t));
    tensor *w[2] = {n.w[0], n.x};
    assert_false(op_linears(n.t, n.x, 2, w, n.b, n.y));
    check_failure(tape_failure(n.t), SR_USAGE, "linear: 300 outputs, bias of 64");
    tape_free(n.t);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(values_and_gradients),
                                       cmocka_unit_test(same_bytes_for_any_threads),
                                       cmocka_unit_test(not_finite),
                                       cmocka_unit_test(rounded),
                                       cmocka_unit_test(memory),
                                       cmocka_unit_test(two_losses),
                                       cmocka_unit_test(tied),
                                       cmocka_unit_test(in_evaluation),
                                       cmocka_unit_test(memory_runs_out),
                                       cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
