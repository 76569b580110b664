/* test_params.c -- parameter gradients between one update and the next. */
#include <math.h>
#include <string.h>

#include "engine/ops/ops.h"
#include "engine/params.h"
#include "reals.h"
#include "testing/check.h"
#include "testing/extra_ops.h"
#include "testing/failing_malloc.h"

enum { COUNT = 5 };

typedef struct two {
    params p;
    tensor *used, *unused;
    tape *t;
} two;

static void two_open(two *w) {
    params_init(&w->p, 1);
    w->used = params_add(&w->p, "used", 1, (int64_t[]){COUNT}, INIT_CONSTANT, 2);
    w->unused = params_add(&w->p, "unused", 1, (int64_t[]){COUNT}, INIT_CONSTANT, 3);
    w->t = reals_tape(1);
}

static void two_close(two *w) {
    tape_free(w->t);
    params_free(&w->p);
}

static void fill(tensor *x, real value) {
    for (int i = 0; i < COUNT; i++) x->grad[i] = value;
}

/* d/dx sum x^2 = 2 x = 4 */
static void pass(two *w) {
    tape_reset(w->t, rng_create(1), true, true);
    tape_backward(w->t, op_sum(w->t, op_multiply(w->t, w->used, w->used)), 1);
    reals_check_tape(w->t);
    params_finalize_grad(&w->p);
    assert_true(w->used->has_grad && w->unused->has_grad);
}

static void check_all(const tensor *x, double want) {
    for (int i = 0; i < COUNT; i++) check_equals((double)x->grad[i], want);
}

/* Previous memory contents are in no gradient; passes add until the next invalidation. */
static void forgotten(void **state) {
    (void)state;
    two w;
    two_open(&w);
    for (int update = 0; update < 2; update++) {
        fill(w.used, (real)NAN), fill(w.unused, (real)NAN);
        params_invalidate_grad(&w.p);
        pass(&w);
        check_all(w.used, 4), check_all(w.unused, 0);
        pass(&w);
        check_all(w.used, 8), check_all(w.unused, 0);
    }
    two_close(&w);
}

static void zeroed(void **state) {
    (void)state;
    two w;
    two_open(&w);
    fill(w.used, 7), fill(w.unused, 7);
    params_invalidate_grad(&w.p);
    params_zero_grad(&w.p);
    check_all(w.used, 0), check_all(w.unused, 0);
    pass(&w);
    check_all(w.used, 4), check_all(w.unused, 0);
    two_close(&w);
}

/* Each pass reads only one of them. The gradient of the other's previous update must not appear. */
static void taken_in_turn(void **state) {
    (void)state;
    two w;
    two_open(&w);
    tensor *const both[2] = {w.used, w.unused};
    for (int last = 0; last < 4; last++) { /* the one read in the second pass, or in both */
        const int order[2] = {last < 2 ? 1 - last : last - 2, last % 2};
        double want[2] = {0, 0};
        params_invalidate_grad(&w.p);
        for (int k = 0; k < 2; k++) {
            w.used = both[order[k]];
            pass(&w);
            want[order[k]] += order[k] ? 6 : 4;
        }
        check_all(both[0], want[0]), check_all(both[1], want[1]);
    }
    two_close(&w);
}

/* Blocks are cleared together; which of them a pass wrote is not tracked. */
static void blocks(void **state) {
    (void)state;
    two w;
    two_open(&w);
    check_ok(params_blocks(&w.p, 2, NULL), NULL);
    for (int update = 0; update < 2; update++) {
        for (int b = 1; b >= 0; b--) {
            params_use_block(&w.p, b);
            pass(&w);
            check_all(w.used, 4), check_all(w.unused, 0);
        }
        params_invalidate_grad(&w.p);
    }
    two_close(&w);
}

/* One more parameter of this shape is rejected; the previous ones stay. */
static void check_refused(const char *name, int64_t rows, int64_t columns, const char *text) {
    two w;
    two_open(&w);
    assert_null(params_add(&w.p, name, 2, (int64_t[]){rows, columns}, INIT_CONSTANT, 0));
    check_failure(&w.p.failure, SR_USAGE, text);
    assert_null(params_add(&w.p, "next", 1, (int64_t[]){1}, INIT_CONSTANT, 0));
    assert_int_equal(w.p.count, 2);
    assert_true(params_total(&w.p) == 2 * COUNT);
    two_close(&w);
}

static void refused(void **state) {
    (void)state;
    char long_name[2 * PARAM_NAME];
    memset(long_name, 'n', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    check_refused("used", 1, 1, "parameter name used is too long or taken");
    check_refused(long_name, 1, 1, "is too long or taken");
    check_refused("none", 0, 5, "parameter none has no numbers, or too many");
    check_refused("none", 5, -1, "parameter none has no numbers, or too many");
    check_refused("many", INT64_MAX / 2, 3, "parameter many has no numbers, or too many");
    check_refused("many", INT64_MAX, 1, "parameter many has no numbers, or too many");
}

/* Each allocation fails; the model then stays unchanged. */
static void without_memory(void **state) {
    (void)state;
    if (!failing_malloc_there()) skip();
    bool whole = false;
    for (long n = 0; !whole; n++) {
        params p;
        sr_failure why = {0};
        params_init(&p, 1);
        failing_malloc_begin(n);
        const bool added = params_add(&p, "x", 1, (int64_t[]){COUNT}, INIT_CONSTANT, 2);
        sr_status status = added ? params_slots(&p, 2, &why) : sr_fail(&why, SR_MEMORY, "memory");
        if (status == SR_OK) status = params_blocks(&p, 3, &why);
        params_free(&p);
        whole = status == SR_OK;
        assert_int_equal(failing_malloc_end(), 0);
        if (!whole) check_failure(&why, SR_MEMORY, "memory");
        assert_true(n < 20);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forgotten), cmocka_unit_test(zeroed),  cmocka_unit_test(taken_in_turn),
        cmocka_unit_test(blocks),    cmocka_unit_test(refused), cmocka_unit_test(without_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
