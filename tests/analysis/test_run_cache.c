/* test_run_cache.c -- runs that stay open: the same for one reader after the other, another for two
 * at a time, for a file that was replaced, and for one that grows. */
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

/* How many files stay open behind the reader. */
static int left_open(const char *name, int64_t steps) {
    const int before = check_descriptors();
    run_close(open_run(name, steps));
    return check_descriptors() - before;
}

/* The first test: from then on runs are kept. */
static void nothing_is_kept_unasked(void **state) {
    (void)state;
    run_finish(begin_run("one.h5", 3));
    assert_int_equal(left_open("one.h5", 3), 0);
}

static void one_reader_after_the_other_has_the_same(void **state) {
    (void)state;
    run_cache_enable();
    assert_int_equal(left_open("one.h5", 3), 1);
    run_finish(begin_run("kept.h5", 3));
    sr_runfile *first = open_run("kept.h5", 3), *beside = open_run("kept.h5", 3);
    assert_ptr_not_equal(first, beside);
    run_close(first);
    sr_runfile *again = open_run("kept.h5", 3);
    assert_ptr_equal(again, first);
    run_close(beside);
    double loss = 0;
    sr_failure why = {0};
    check_ok(sr_run_step_reals(again, "loss", 2, 1, &loss, &why), &why);
    run_close(again);
}

static void another_file_of_the_name_is_opened(void **state) {
    (void)state;
    run_finish(begin_run("other.h5", 5));
    assert_int_equal(rename(program_file("other.h5"), program_file("kept.h5")), 0);
    run_close(open_run("kept.h5", 5));
    unlink(program_file("kept.h5"));
    sr_failure why = {0};
    assert_null(run_open(program_file("kept.h5"), NULL, &why));
    check_failure(&why, SR_IO, "kept.h5: No such file");
}

static void a_run_that_grows_is_opened_again(void **state) {
    (void)state;
    sr_recorder *r = begin_run("grows.h5", 2);
    assert_int_equal(sr_flush(r), SR_OK);
    assert_int_equal(left_open("grows.h5.part", 2), 0);
    sr_begin_step(r, 3);
    run_end_step(r, 3);
    assert_int_equal(sr_flush(r), SR_OK);
    run_close(open_run("grows.h5.part", 3));
    run_finish(r);
    run_close(open_run("grows.h5", 3));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_kept_unasked),
        cmocka_unit_test(one_reader_after_the_other_has_the_same),
        cmocka_unit_test(another_file_of_the_name_is_opened),
        cmocka_unit_test(a_run_that_grows_is_opened_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
