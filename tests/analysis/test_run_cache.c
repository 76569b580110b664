/* test_run_cache.c -- open runs lent by run_open: to one reader after the other, never to two at a
 * time, and not while the run grows. */
#include <stdio.h>
#include <unistd.h>

#include "analysis/runs/run_cache.h"
#include "testing/check.h"
#include "testing/programs.h"

static sr_recorder *begin_run(const char *name, int steps) {
    sr_recorder *r = run_create(program_file(name), run_options());
    run_add_bn(r, "a", 1, 0, 1e-5);
    for (int step = 1; step <= steps; step++) {
        sr_begin_step(r, step);
        run_end_step(r, step);
    }
    return r;
}

static sr_runfile *open_run(const char *name, int64_t steps) {
    sr_failure why = {0};
    sr_runfile *run = run_open(program_file(name), NULL, &why);
    if (!run) fail_msg("%s", why.text);
    assert_int_equal(sr_run_get_info(run)->steps, steps);
    return run;
}

static void an_offered_run_is_lent_to_one_reader(void **state) {
    (void)state;
    run_finish(begin_run("kept.h5", 3));
    sr_runfile *own = open_run("kept.h5", 3);
    sr_runfile *other = open_run("kept.h5", 3);
    assert_ptr_not_equal(other, own);
    run_close(other);
    run_cache_offer(&own, 1);
    sr_runfile *first = open_run("kept.h5", 3), *beside = open_run("kept.h5", 3);
    assert_ptr_equal(first, own);
    assert_ptr_not_equal(beside, own);
    run_close(first);
    sr_runfile *again = open_run("kept.h5", 3);
    assert_ptr_equal(again, own);
    run_close(beside);
    double loss = 0;
    sr_failure why = {0};
    check_ok(sr_run_step_reals(again, "loss", 2, 1, &loss, &why), &why);
    run_close(again);
    run_cache_offer(NULL, 0);
    run_close(own);
}

static void another_path_is_opened(void **state) {
    (void)state;
    run_finish(begin_run("other.h5", 5));
    sr_runfile *own = open_run("kept.h5", 3);
    run_cache_offer(&own, 1);
    run_close(open_run("other.h5", 5));
    sr_failure why = {0};
    assert_null(run_open(program_file("none.h5"), NULL, &why));
    check_failure(&why, SR_IO, "none.h5: No such file");
    run_cache_offer(NULL, 0);
    run_close(own);
}

/* After the offer ends, run_close closes the file. */
static void nothing_stays_open(void **state) {
    (void)state;
    const int before = check_descriptors();
    sr_runfile *own = open_run("kept.h5", 3);
    run_cache_offer(&own, 1);
    run_close(open_run("kept.h5", 3));
    assert_int_equal(check_descriptors() - before, 1);
    run_cache_offer(NULL, 0);
    run_close(own);
    assert_int_equal(check_descriptors() - before, 0);
}

static void a_run_that_grows_is_opened_again(void **state) {
    (void)state;
    sr_recorder *r = begin_run("grows.h5", 2);
    assert_int_equal(sr_flush(r), SR_OK);
    sr_runfile *own = open_run("grows.h5.part", 2);
    run_cache_offer(&own, 1);
    sr_begin_step(r, 3);
    run_end_step(r, 3);
    assert_int_equal(sr_flush(r), SR_OK);
    sr_runfile *grown = open_run("grows.h5.part", 3);
    assert_ptr_not_equal(grown, own);
    run_close(grown);
    run_cache_offer(NULL, 0);
    run_close(own);
    run_finish(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_offered_run_is_lent_to_one_reader),
        cmocka_unit_test(another_path_is_opened),
        cmocka_unit_test(nothing_stays_open),
        cmocka_unit_test(a_run_that_grows_is_opened_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
