/* test_pass.c -- a normalization site's rows are the rows of its pass. */
#include "nets/pass.h"
#include "testing/check.h"

static sr_status gather(void *context, double *all, int64_t width) {
    (void)context, (void)all, (void)width;
    return SR_OK;
}

static void rows_of_a_pass(void **state) {
    (void)state;
    sr_failure why = {0};
    tape *t = tape_create(1, &why);
    assert_non_null(t);
    tape_reset(t, rng_create(1), true, true);
    const batch b = {.tokens = 37};
    int context;
    pass p = {.tape = t,
              .batch = &b,
              .mode = NORM_BATCH,
              .gather = gather,
              .gather_context = &context,
              .rank = 2,
              .ranks = 5};
    const uint8_t mask[6] = {1, 1, 0, 1, 0, 0};
    const norm_rows *r = pass_rows(&p, 2, 3, mask);
    assert_non_null(r);
    assert_true(r->rows == 6 && r->valid == 3 && r->samples == 2);
    for (int i = 0; i < 6; i++) assert_int_equal(r->sample[i], i / 3);
    assert_true(r->mode == NORM_BATCH);
    check_equals(r->tokens, 37);
    assert_true(r->penalty == &p.penalty);
    assert_true(r->gather == gather && r->gather_context == &context);
    assert_true(r->rank == 2 && r->ranks == 5);
    const norm_rows *all = pass_rows(&p, 2, 3, NULL);
    assert_true(all && all->valid == 6 && !all->mask);
    p.tokens = 90; /* tokens of the whole batch; this is one shard */
    check_equals(pass_rows(&p, 2, 3, mask)->tokens, 90);
    p.absent = true;
    all = pass_rows(&p, 2, 3, NULL);
    assert_true(all && all->rows == 6 && all->valid == 0 && all->mask);
    assert_true(pass_rows_outside(&p, 2, 3)->valid == 0);
    tape_free(t);
}

/* Rows of this process alone, as evaluation uses them, for any kind of pass. */
static void rows_outside(void **state) {
    (void)state;
    static const norm_mode mode[] = {NORM_TRAIN, NORM_BATCH, NORM_RUNNING};
    sr_failure why = {0};
    tape *t = tape_create(1, &why);
    assert_non_null(t);
    tape_reset(t, rng_create(1), true, true);
    const batch b = {.tokens = 37};
    for (int i = 0; i < 3; i++) {
        pass p = {.tape = t, .batch = &b, .mode = mode[i], .gather = gather, .rank = 2, .ranks = 5};
        const norm_rows *r = pass_rows_outside(&p, 3, 2);
        assert_non_null(r);
        assert_true(r->rows == 6 && r->valid == 6 && r->samples == 3);
        check_equals(r->tokens, 37);
        for (int k = 0; k < 6; k++) assert_int_equal(r->sample[k], k / 2);
        assert_true(r->mode == NORM_RUNNING && r->outside && !r->gather);
        assert_true(!pass_rows(&p, 3, 2, NULL)->outside);
    }
    tape_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_of_a_pass),
                                       cmocka_unit_test(rows_outside)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
