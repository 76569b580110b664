/* Every row of gradcheck_cases.c: gradients against differences, equal bytes for any number of
 * threads, NULL inputs. Also no recording, inputs without gradient, accumulated gradients, and a
 * failure of every allocation. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/gemm/gemm.h"
#include "engine/ops/ops.h"
#include "gradcheck_cases.h"
#include "testing/check.h"
#include "testing/extra_ops.h"

#ifdef REAL_DOUBLE
static const double STEP = 1e-5, TOLERANCE = 1e-6;
#else
static const double STEP = 4e-3, TOLERANCE = 2e-3;
#endif

/* Inputs of a row, one tape, and the results. */
typedef struct bench {
    const engine_case *row;
    tensor *in[CASE_INPUTS];
    int count;
    tape *tape;
    tensor *y;
} bench;

static bench bench_create(const engine_case *row, int threads) {
    bench b = {.row = row, .count = case_inputs(row)};
    for (int i = 0; i < b.count; i++) {
        b.in[i] = gradcheck_tensor(row->input[i].rank, row->input[i].dim, (uint64_t)i + 1, true);
        assert_non_null(b.in[i]);
    }
    sr_failure why = {0};
    b.tape = tape_create(threads, &why);
    assert_non_null(b.tape);
    return b;
}

static void bench_free(bench *b) {
    for (int i = 0; i < b->count; i++) gradcheck_tensor_free(b->in[i]);
    tape_free(b->tape);
}

static void dot_backward(tape *t, const tape_node *node) {
    bool add;
    real *g = tape_grad(t, node->in[0], &add);
    for (int64_t i = 0; g && i < node->in[0]->count; i++)
        g[i] = node->out->grad[0] * (real)cos((double)i) + (add ? g[i] : 0);
}

/* Forward and backward of L = sum_i y_i cos(i). */
static void bench_run(bench *b, bool recording) {
    for (int i = 0; i < b->count; i++)
        if (b->in[i]) memset(b->in[i]->grad, 0, (size_t)b->in[i]->count * sizeof(real));
    tape_reset(b->tape, rng_create(3), true, recording);
    b->y = b->row->build(b->tape, b->in, (void *)b->row);
    if (!b->y || !recording) return;
    tensor *loss = tape_tensor(b->tape, 1, (int64_t[]){1});
    if (!loss) return;
    loss->value[0] = 0;
    loss = tape_push(b->tape, "dot", dot_backward, loss, (tensor *[]){b->y, NULL}, NULL);
    tape_backward(b->tape, loss, 1);
}

static void bench_fail_with_tape(const bench *b) {
    const sr_failure *why = tape_failure(b->tape);
    if (why) fail_msg("%s: %s", b->row->name, why->text);
    assert_non_null(b->y);
}

static void bench_run_ok(bench *b, bool recording) {
    bench_run(b, recording);
    bench_fail_with_tape(b);
}

static bool same_bytes(const real *a, const real *b, int64_t count) {
    return memcmp(a, b, (size_t)count * sizeof *a) == 0;
}

static bool is_zero(const tensor *x) {
    for (int64_t i = 0; i < x->count; i++)
        if (x->grad[i] != 0) return false;
    return true;
}

static void gradients(void **state) {
    (void)state;
    for (int c = 0; c < engine_case_count; c++) {
        if (engine_cases[c].large) continue;
        bench b = bench_create(&engine_cases[c], 1);
        gradcheck_result r;
        sr_failure why = {0};
        check_ok(gradcheck(b.row->build, b.in, b.count, (void *)b.row, STEP, &r, &why), &why);
        if (!(r.worst < TOLERANCE))
            fail_msg("%s: input %d element %lld: analytic %.9g (%s), numeric %.9g, error %.3g",
                     b.row->name, r.input, (long long)r.element, r.analytic, r.how, r.numeric,
                     r.worst);
        bench_free(&b);
    }
}

/* -- the gradient check must detect faulty ops ------------------------------------------------- */

/* y = x^2, with a backward function that is wrong in one way. */
typedef enum {
    RIGHT,
    WRONG_FACTOR,
    READS_UNDECLARED,
    KEEPS_THE_PLACE,
    ALWAYS_ADDS,
    ALWAYS_WRITES,
    FORGETS_THE_LAST,
    MAKES_OTHER_BYTES,
    MAKES_FROM_UNDECLARED,
    FAULTS
} fault;

typedef struct squares {
    fault is;
    const real *place;
} squares;

static void squares_backward(tape *t, const tape_node *node) {
    const squares *s = node->kept;
    const real *x = s->is == KEEPS_THE_PLACE ? s->place : node->in[0]->value;
    bool add;
    real *g = tape_grad(t, node->in[0], &add);
    if (s->is == ALWAYS_ADDS || s->is == ALWAYS_WRITES) add = s->is == ALWAYS_ADDS;
    for (int64_t i = 0; g && i < node->out->count - (s->is == FORGETS_THE_LAST && !add); i++)
        g[i] =
            (add ? g[i] : 0) + node->out->grad[i] * x[i] * (s->is == WRONG_FACTOR ? (real)2.02 : 2);
}

static void squares_again(tape *t, const tape_node *node) {
    (void)t;
    const fault is = ((const squares *)node->kept)->is;
    const tensor *x = node->in[0];
    for (int64_t i = 0; i < x->count; i++) node->out->value[i] = x->value[i] * x->value[i];
    if (is == MAKES_OTHER_BYTES) node->out->value[x->count - 1] *= (real)1.0001;
}

/* Squares, read by a product. */
static tensor *squares_op(tape *t, tensor *const *in, void *context) {
    squares *s = tape_alloc(t, sizeof *s);
    tensor *y = tape_like(t, in[0]);
    if (!s || !y) return NULL;
    *s = (squares){*(const fault *)context, in[0]->value};
    for (int64_t i = 0; i < y->count; i++) y->value[i] = in[0]->value[i] * in[0]->value[i];
    const bool undeclared = s->is == READS_UNDECLARED || s->is == MAKES_FROM_UNDECLARED;
    y = tape_push_reading(t, "squares", squares_backward, y, (tensor *[]){in[0], NULL}, s,
                          undeclared ? READS_NOTHING : READS_IN(0));
    if (s->is != READS_UNDECLARED) y = tape_set_recompute(t, y, squares_again);
    return undeclared ? y : op_multiply(t, y, y);
}

static void what_is_wrong_is_seen(void **state) {
    (void)state;
    for (fault is = RIGHT; is < FAULTS; is++) {
        tensor *x = gradcheck_tensor(1, (int64_t[]){20}, 1, true);
        gradcheck_result r;
        sr_failure why = {0};
        const sr_status status = gradcheck(squares_op, &x, 1, &is, STEP, &r, &why);
        if (is == MAKES_OTHER_BYTES || is == MAKES_FROM_UNDECLARED) {
            check_failure(&why, SR_USAGE, "squares: made again, the result has other bytes");
        } else {
            check_ok(status, &why);
            if ((r.worst > TOLERANCE) != (is != RIGHT))
                fail_msg("fault %d: error %.3g", (int)is, r.worst);
        }
        gradcheck_tensor_free(x);
    }
}

static void threads_do_not_change_bytes(void **state) {
    (void)state;
    for (int c = 0; c < engine_case_count; c++) {
        bench one = bench_create(&engine_cases[c], 1);
        bench_run_ok(&one, true);
        for (int threads = 2; threads <= 3; threads++) {
            bench many = bench_create(&engine_cases[c], threads);
            bench_run_ok(&many, true);
            if (!same_bytes(one.y->value, many.y->value, one.y->count))
                fail_msg("%s: value differs on %d threads", one.row->name, threads);
            for (int i = 0; i < one.count; i++)
                if (!same_bytes(one.in[i]->grad, many.in[i]->grad, one.in[i]->count))
                    fail_msg("%s: gradient %d differs on %d threads", one.row->name, i, threads);
            bench_free(&many);
        }
        bench_free(&one);
    }
}

static void null_in_null_out(void **state) {
    (void)state;
    for (int c = 0; c < engine_case_count; c++) {
        bench b = bench_create(&engine_cases[c], 1);
        for (int i = 0; i < b.count; i++) {
            if (b.row->input[i].optional) continue;
            tensor *held = b.in[i];
            b.in[i] = NULL;
            bench_run(&b, true);
            if (b.y) fail_msg("%s: result in spite of NULL input %d", b.row->name, i);
            if (tape_failure(b.tape)) fail_msg("%s: NULL is a failure", b.row->name);
            b.in[i] = held;
        }
        bench_free(&b);
    }
}

static void evaluation_leaves_no_nodes(void **state) {
    (void)state;
    for (int c = 0; c < engine_case_count; c++) {
        bench b = bench_create(&engine_cases[c], 2), same = bench_create(&engine_cases[c], 2);
        bench_run_ok(&b, false);
        bench_run_ok(&same, true);
        if (b.tape->last) fail_msg("%s: node without recording", b.row->name);
        if (!same_bytes(b.y->value, same.y->value, b.y->count))
            fail_msg("%s: value depends on recording", b.row->name);
        bench_free(&b);
        bench_free(&same);
    }
}

static void inputs_without_gradient(void **state) {
    (void)state;
    for (int c = 0; c < engine_case_count; c++) {
        bench all = bench_create(&engine_cases[c], 2), b = bench_create(&engine_cases[c], 2);
        bench_run_ok(&all, true);
        for (int i = 0; i < b.count; i++) {
            b.in[i]->wants_grad = false;
            bench_run_ok(&b, true);
            for (int j = 0; j < b.count; j++)
                if (j == i ? !is_zero(b.in[j])
                           : !same_bytes(b.in[j]->grad, all.in[j]->grad, b.in[j]->count))
                    fail_msg("%s: gradient %d without that of %d", b.row->name, j, i);
            b.in[i]->wants_grad = true;
        }
        for (int i = 0; i < b.count; i++) b.in[i]->wants_grad = false;
        for (int i = 0; i < b.count; i++) {
            b.in[i]->wants_grad = true;
            bench_run_ok(&b, true);
            if (!same_bytes(b.in[i]->grad, all.in[i]->grad, b.in[i]->count))
                fail_msg("%s: gradient %d where no other is wanted", b.row->name, i);
            b.in[i]->wants_grad = false;
        }
        bench_run_ok(&b, true);
        for (const tape_node *n = b.tape->last; n; n = n->before)
            fail_msg("%s: node %s though nothing wants a gradient", b.row->name, n->op);
        bench_free(&all);
        bench_free(&b);
    }
}

/* Leaves the gradients' memory unchanged before it runs. */
static void run_again(bench *b) {
    tape_reset(b->tape, rng_create(3), true, true);
    b->y = b->row->build(b->tape, b->in, (void *)b->row);
    tensor *loss = tape_tensor(b->tape, 1, (int64_t[]){1});
    loss = tape_push(b->tape, "dot", dot_backward, loss, (tensor *[]){b->y, NULL}, NULL);
    tape_backward(b->tape, loss, 1);
    bench_fail_with_tape(b);
}

/* An existing gradient is added to; otherwise it is written, whatever its memory holds. */
static void check_begun(const bench *once, int input, bool begun) {
    const tensor *had = once->in[input];
    bench b = bench_create(once->row, 2);
    tensor *x = b.in[input];
    x->has_grad = begun;
    for (int64_t j = 0; j < x->count; j++) x->grad[j] = begun ? (real)sin((double)j) : (real)NAN;
    run_again(&b);
    for (int64_t j = 0; j < x->count && x->has_grad; j++) {
        const double want = (double)had->grad[j] + (begun ? (double)(real)sin((double)j) : 0);
        if (!(fabs((double)x->grad[j] - want) <= 1e-4 * (1 + fabs(want))))
            fail_msg("%s: gradient %d is not %s", b.row->name, input,
                     begun ? "added to" : "written");
    }
    assert_true(x->has_grad || is_zero(had));
    bench_free(&b);
}

static void gradients_add(void **state) {
    (void)state;
    for (int c = 0; c < engine_case_count; c++) {
        bench once = bench_create(&engine_cases[c], 2);
        bench_run_ok(&once, true);
        for (int i = 0; i < once.count; i++)
            for (int begun = 0; begun < 2; begun++) check_begun(&once, i, begun);
        bench_free(&once);
    }
}

/* Inputs i and j are the same tensor; its gradient is the sum of theirs. */
static void check_one_tensor(const engine_case *row, int i, int j, bool begun) {
    bench two = bench_create(row, 2), one = bench_create(row, 2);
    tensor *x = one.in[i], *other = one.in[j];
    memcpy(two.in[j]->value, two.in[i]->value, (size_t)x->count * sizeof(real));
    run_again(&two);
    one.in[j] = x;
    x->has_grad = begun;
    for (int64_t k = 0; k < x->count; k++) x->grad[k] = begun ? 0 : (real)NAN;
    run_again(&one);
    assert_true(x->has_grad);
    for (int64_t k = 0; k < x->count; k++) {
        const double want = (double)two.in[i]->grad[k] + (double)two.in[j]->grad[k];
        if (!(fabs((double)x->grad[k] - want) <= 1e-4 * (1 + fabs(want))))
            fail_msg("%s: gradient of inputs %d and %d that are one tensor: %g, not %g", row->name,
                     i, j, (double)x->grad[k], want);
    }
    one.in[j] = other;
    bench_free(&one);
    bench_free(&two);
}

static void inputs_may_be_one_tensor(void **state) {
    (void)state;
    int pairs = 0;
    for (int c = 0; c < engine_case_count; c++) {
        const engine_case *row = &engine_cases[c];
        for (int i = 0; i < case_inputs(row); i++)
            for (int j = i + 1; j < case_inputs(row); j++) {
                if (row->input[i].rank != row->input[j].rank ||
                    memcmp(row->input[i].dim, row->input[j].dim, sizeof row->input[i].dim))
                    continue;
                for (int begun = 0; begun < 2; begun++) check_one_tensor(row, i, j, begun);
                pairs++;
            }
    }
    assert_true(pairs > 30);
}

static void memory_runs_out(void **state) {
    (void)state;
    for (int c = 0; c < engine_case_count; c++) {
        bench b = bench_create(&engine_cases[c], 2);
        arena_fail_after(b.tape->arena, -1);
        bench_run_ok(&b, true);
        int64_t needed = arena_fail_after(b.tape->arena, -1);
        assert_true(needed > 0);
        for (int64_t k = 0; k < needed; k++) {
            arena_fail_after(b.tape->arena, k);
            bench_run(&b, true);
            const sr_failure *why = tape_failure(b.tape);
            if (!why || why->status != SR_MEMORY)
                fail_msg("%s: no failure with %lld of %lld allocations", b.row->name, (long long)k,
                         (long long)needed);
        }
        arena_fail_after(b.tape->arena, needed);
        bench_run_ok(&b, true);
        bench_free(&b);
    }
}

/* A deep chain needs memory for a few gradients, not for one per layer. Branches and other sizes
 * get correct gradients. y = sum over layers of relu(...relu(x + x)...): the gradient of x is
 * known. */
static void gradients_share_memory(void **state) {
    (void)state;
    enum { LAYERS = 30, N = 50000 };
    sr_failure why = {0};
    tape *t = tape_create(1, &why);
    real *value = malloc(N * sizeof *value), *grad = calloc(N, sizeof *grad);
    assert_non_null(t);
    assert_true(value && grad);
    for (int i = 0; i < N; i++) value[i] = (real)(i % 7 - 3);
    tape_reset(t, rng_create(1), true, true);
    tensor x = {.rank = 2,
                .dim = {N / 10, 10, 1, 1},
                .count = N,
                .value = value,
                .grad = grad,
                .wants_grad = true,
                .has_grad = true};
    tensor *h = op_add(t, &x, &x);
    for (int i = 0; i < LAYERS; i++) h = op_add(t, op_relu(t, h), op_relu(t, h));
    tensor *loss = tape_tensor(t, 1, (int64_t[]){1});
    loss = tape_push(t, "sum", dot_backward, loss, (tensor *[]){h, NULL}, NULL);
    const size_t before = arena_used(t->arena);
    tape_backward(t, loss, 1);
    assert_true(arena_used(t->arena) - before < 6 * N * sizeof(real));
    /* dot_backward's weights are dL/dh; every layer doubles them where x > 0 */
    real *weight = calloc(N, sizeof *weight);
    tensor same = {.rank = 1,
                   .dim = {N, 1, 1, 1},
                   .count = N,
                   .value = value,
                   .grad = weight,
                   .wants_grad = true,
                   .has_grad = true};
    tape_reset(t, rng_create(1), true, true);
    tensor *alone = tape_tensor(t, 1, (int64_t[]){1});
    alone = tape_push(t, "sum", dot_backward, alone, (tensor *[]){&same, NULL}, NULL);
    tape_backward(t, alone, 1);
    for (int i = 0; i < N; i++) {
        const double want = value[i] > 0 ? ldexp((double)weight[i], LAYERS + 1) : 0;
        check_within_inclusive((double)grad[i], want, 1e-5 * fabs(want));
    }
    free(weight), free(grad), free(value);
    tape_free(t);
}

int main(void) {
    gemm_setup(3);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients),
        cmocka_unit_test(what_is_wrong_is_seen),
        cmocka_unit_test(threads_do_not_change_bytes),
        cmocka_unit_test(null_in_null_out),
        cmocka_unit_test(evaluation_leaves_no_nodes),
        cmocka_unit_test(inputs_without_gradient),
        cmocka_unit_test(gradients_add),
        cmocka_unit_test(inputs_may_be_one_tensor),
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(gradients_share_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
