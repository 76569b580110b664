/* test_gradient_sum.c -- the sum over shards is bit-identical to the tree of gradient_sum.c in
 * every bucket. A backward pass may start it; the next update starts at zero. */
#include <stdlib.h>
#include <string.h>

#include "engine/ops/ops.h"
#include "testing/check.h"
#include "train/gradient_sum.h"

enum { MOST = 9, ROWS = 3, WIDE = 700, LARGE = (1 << 20) + 7 };

static params make_params(void) {
    params p;
    params_init(&p, 1);
    params_add(&p, "small", 1, (int64_t[]){5}, INIT_CONSTANT, 0);
    params_add(&p, "large", 1, (int64_t[]){LARGE}, INIT_CONSTANT, 0);
    params_add(&p, "weight", 2, (int64_t[]){4, WIDE}, INIT_NORMAL, 0.1);
    params_add(&p, "bias", 1, (int64_t[]){4}, INIT_CONSTANT, 0);
    return p;
}

/* Values of very different sizes, so that the order of addition matters. */
static real number_of(int share, int number, int64_t i) {
    const uint64_t bits = rng_at((uint64_t)(100 * share + number), (uint64_t)i);
    return (real)((double)(bits >> 40) * (bits % 3 ? 1e-3 : 1e4));
}

static real tree(int number, int64_t i, int a, int b) {
    int half = 1;
    if (b - a == 1) return number_of(a, number, i);
    while (2 * half < b - a) half *= 2;
    return tree(number, i, a, a + half) + tree(number, i, a + half, b);
}

static void fill(params *p, int share) {
    params_use_block(p, share);
    for (int k = 0; k < p->count; k++)
        for (int64_t i = 0; i < p->item[k]->t.count; i++)
            p->item[k]->t.grad[i] = number_of(share, k, i);
}

static void sums_are_the_tree(void **state) {
    (void)state;
    sr_failure why = {0};
    ranks *k = ranks_open_one(&why);
    tape *t = tape_create(1, &why);
    for (int shares = 1; shares <= MOST; shares += shares < 5 ? 1 : 4) {
        params p = make_params();
        gradient_sum *g = gradient_sum_create(k, &p, shares, 2, &why);
        assert_non_null(g);
        for (int s = 0; s < shares; s++) fill(&p, s);
        assert_int_equal(gradient_sum_finish(g, t, &why), SR_OK);
        for (int n = 0; n < p.count; n++)
            for (int64_t i = 0; i < p.item[n]->t.count; i += n == 1 ? 997 : 1)
                check_equals(p.item[n]->t.grad[i], tree(n, i, 0, shares));
        params_zero_grad(&p);
        for (int s = 0; s < shares; s++) check_equals(params_block(&p, s)[0], 0);
        gradient_sum_free(g);
        params_free(&p);
    }
    tape_free(t);
    ranks_close(k, NULL);
}

/* Backward pass of the sum of x W' + b, with W used twice: its gradient is complete only after the
 * second of its nodes. */
static void backward(params *p, tape *t, int share, gradient_sum *g) {
    tape_reset(t, rng_create(1), true, true);
    params_use_block(p, share);
    tensor *x = tape_tensor(t, 2, (int64_t[]){ROWS, WIDE});
    for (int64_t i = 0; i < x->count; i++) x->value[i] = number_of(share, 50, i);
    tensor *w = &params_find(p, "weight")->t, *b = &params_find(p, "bias")->t;
    tensor *y = op_add(t, op_linear(t, x, w, b), op_linear(t, x, w, NULL));
    tensor *loss = op_sum(t, tape_reshape(t, y, 1, &y->count));
    if (g) gradient_sum_watch(g, t);
    tape_backward(t, loss, 1);
    assert_null(tape_failure(t));
}

static void set_off_by_the_last_pass(void **state) {
    (void)state;
    sr_failure why = {0};
    ranks *k = ranks_open_one(&why);
    tape *t = tape_create(1, &why);
    params watched = make_params(), plain = make_params();
    gradient_sum *g = gradient_sum_create(k, &watched, 3, 1, &why),
                 *h = gradient_sum_create(k, &plain, 3, 1, &why);
    for (int update = 0; update < 2; update++) {
        for (int s = 0; s < 3; s++) {
            backward(&watched, t, s, s == 2 ? g : NULL);
            t->passed = NULL;
            backward(&plain, t, s, NULL);
        }
        assert_int_equal(gradient_sum_finish(g, t, &why), SR_OK);
        assert_int_equal(gradient_sum_finish(h, t, &why), SR_OK);
        assert_memory_equal(params_block(&watched, 0), params_block(&plain, 0),
                            (size_t)plain.block_length * sizeof(real));
        check_equals(params_find(&watched, "bias")->t.grad[0], 3 * ROWS);
        params_zero_grad(&watched);
        params_zero_grad(&plain);
    }
    gradient_sum_free(g);
    gradient_sum_free(h);
    params_free(&watched);
    params_free(&plain);
    tape_free(t);
    ranks_close(k, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums_are_the_tree),
                                       cmocka_unit_test(set_off_by_the_last_pass)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
