#include "testing/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/program/progress.h"
#include "capture.h"

static void clock_goes_forward(void **state) {
    (void)state;
    double before = progress_clock(), now;
    do now = progress_clock();
    while (now == before);
    check_above(now, before);
    check_below(now - before, 1);
}

/* A bar that started `seconds` ago and may print at once. */
static progress begun(double seconds, int64_t total, bool quiet) {
    progress p;
    progress_begin(&p, "train", "updates", total, quiet);
    p.start -= seconds;
    p.interval = 0;
    return p;
}

static int show_once(void *context) {
    (void)context;
    progress p = begun(100, 4000, false);
    progress_show(&p, 1000, "loss 4.21");
    progress_end(&p);
    return p.terminal;
}

static void a_line_of_a_log(void **state) {
    (void)state;
    captured c = capture(show_once, NULL, NULL);
    assert_int_equal(c.status, 0);
    assert_string_equal(c.out, "");
    assert_string_equal(c.err,
                        "train: 1000/4000 updates (25.0%), loss 4.21, 10 updates/s, 5m00s left\n");
}

static int show_without_total(void *context) {
    (void)context;
    progress p = begun(10, 0, false);
    progress_show(&p, 5, NULL);
    return 0;
}

static void unknown_total(void **state) {
    (void)state;
    assert_string_equal(capture(show_without_total, NULL, NULL).err,
                        "train: 5 updates, 0.5 updates/s\n");
}

static int show_times_left(void *context) {
    (void)context;
    static const int64_t total[] = {10, 43, 188, 7501, 1000001};
    for (int i = 0; i < 5; i++) {
        progress p = begun(1, total[i], false);
        progress_show(&p, 1, NULL);
    }
    return 0;
}

static void times_left(void **state) {
    (void)state;
    captured c = capture(show_times_left, NULL, NULL);
    static const char *const left[] = {"9s left", "42s left", "3m07s left", "2h05m left",
                                       "11d13h left"};
    char *line = strtok(c.err, "\n");
    for (int i = 0; i < 5; i++, line = strtok(NULL, "\n")) {
        assert_non_null(line);
        assert_non_null(strstr(line, left[i]));
    }
}

/* A rate over less than a second or ten updates is not shown. */
static int show_early(void *context) {
    (void)context;
    static const struct {
        double seconds;
        int64_t done;
    } at[] = {{0.01, 1}, {0.9, 9}, {1, 1}, {0.5, 10}};
    for (int i = 0; i < 4; i++) {
        progress p = begun(at[i].seconds, 4000, false);
        progress_show(&p, at[i].done, NULL);
    }
    return 0;
}

static void no_early_rate(void **state) {
    (void)state;
    captured c = capture(show_early, NULL, NULL);
    char *line = strtok(c.err, "\n");
    for (int i = 0; i < 4; i++, line = strtok(NULL, "\n")) {
        assert_non_null(line);
        assert_int_equal(strstr(line, "updates/s") != NULL, i >= 2);
        assert_int_equal(strstr(line, "left") != NULL, i >= 2);
    }
}

static int show_often(void *context) {
    (void)context;
    progress p;
    progress_begin(&p, "train", "updates", 100, false);
    for (int i = 1; i <= 100; i++) progress_show(&p, i, NULL);
    progress_end(&p);
    return 0;
}

/* A hundred calls within the interval print one line, the last. */
static void one_line_per_interval_and_the_last(void **state) {
    (void)state;
    captured c = capture(show_often, NULL, NULL);
    assert_non_null(strstr(c.err, "train: 100/100 updates (100.0%), "));
    assert_null(strstr(c.err, "left"));
    assert_ptr_equal(strchr(c.err, '\n'), c.err + strlen(c.err) - 1);
}

static int show_quietly(void *context) {
    (void)context;
    progress p = begun(100, 10, true);
    for (int i = 1; i <= 10; i++) progress_show(&p, i, "x");
    progress_end(&p);
    return 0;
}

static void quiet_prints_nothing(void **state) {
    (void)state;
    assert_string_equal(capture(show_quietly, NULL, NULL).err, "");
}

static int show_twice_on_terminal(void *context) {
    setenv("TERM", context, 1);
    progress p = begun(100, 4000, false);
    progress_show(&p, 1000, "a detail that a narrow terminal has no room for");
    progress_show(&p, 2000, "another detail that a narrow terminal has no room for");
    progress_end(&p);
    progress_end(&p); /* once is enough */
    return p.terminal;
}

static void a_terminal_rewrites_its_line(void **state) {
    (void)state;
    static char xterm[] = "xterm";
    captured c = capture_terminal(show_twice_on_terminal, xterm, 60);
    assert_int_equal(c.status, 1);
    assert_string_equal(c.err,
                        "\rtrain: 1000/4000 updates (25.0%), a detail that a narrow te\033[K"
                        "\rtrain: 2000/4000 updates (50.0%), another detail that a nar\033[K\r\n");
}

static void a_dumb_terminal_is_a_log(void **state) {
    (void)state;
    static char dumb[] = "dumb";
    captured c = capture_terminal(show_twice_on_terminal, dumb, 60);
    assert_int_equal(c.status, 0);
    assert_null(strchr(c.err, '\033'));
    assert_non_null(strstr(c.err, "train: 2000/4000 updates (50.0%), another detail"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clock_goes_forward),
        cmocka_unit_test(a_line_of_a_log),
        cmocka_unit_test(unknown_total),
        cmocka_unit_test(times_left),
        cmocka_unit_test(no_early_rate),
        cmocka_unit_test(one_line_per_interval_and_the_last),
        cmocka_unit_test(quiet_prints_nothing),
        cmocka_unit_test(a_terminal_rewrites_its_line),
        cmocka_unit_test(a_dumb_terminal_is_a_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
