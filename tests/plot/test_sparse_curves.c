/* Lines of runs that have values at some steps only. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "testing/check.h"
#include "testing/programs.h"

/* stat-some prints 100 rows: a value in each third one, none in 40 to 69. stat-most prints a value
 * in all rows but two, stat-many in all but each fifth one. */
static int write_templates(void **state) {
    (void)state;
    write_small_run(program_file("run.h5"), 6, true);
    static const char *const program[] = {"some", "most", "many"};
    static const char *const value[] = {"i % 3 || (i >= 40 && i < 70)", "i == 40 || i == 41",
                                        "i % 5 == 0"};
    for (int i = 0; i < 3; i++) {
        char name[32], text[512];
        snprintf(name, sizeof name, "stat-%s", program[i]);
        snprintf(text, sizeof text,
                 "#!/bin/sh\nawk 'BEGIN { print \"x\\tv\"; for (i = 1; i <= 100; i++)\n"
                 "print i \"\\t\" (%s ? \"nan\" : i) }'\n",
                 value[i]);
        program_write(name, text);
        assert_int_equal(chmod(program_file(name), 0755), 0);
    }
    return 0;
}

/* Numbers of rows with and without a value in the data file. */
static void check_rows(const char *program, const char *words, int with, int without) {
    char text[1024];
    snprintf(text, sizeof text,
             "#: title t\n#: runs 1 RUN.h5\n#: size 3 2\n#: table t stat-%s {run}\n"
             "#: curves t x x y v %s\nset multiplot\neval panel(1, 1, 1, 1)\n"
             "eval x_axis(1, 100, 25)\neval linear_y(t_v_least, t_v_largest)\n"
             "plot t using t_x:t_v with lines\neval LEGEND_DRAW\nunset multiplot\n",
             program, words);
    program_write("drawn.gp", text);
    program_result r = program_run("PATH=.:$PATH statplot ./drawn.gp run.h5 -o t.svg --keep 2>kept "
                                   "|| cat kept; d=$(sed -n 's/^statplot: kept //p' kept) && "
                                   "grep . $d/t.dat | cut -f3 >v; rm -r $d; "
                                   "echo $(grep -vc nan v) $(grep -c nan v)");
    snprintf(text, sizeof text, "%d %d\n", with, without);
    assert_string_equal(r.out, text);
    program_free(&r);
}

/* A line leads from value to value, but not over a gap that is unusual for its run. */
static void test_gaps(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_rows("some", "", 23, 2 + 32 + 1); /* before, in the gap, behind */
    check_rows("most", "", 98, 2);
    check_rows("many", "", 80, 1); /* the last one */
}

/* Some buckets of two rows have a value; the gap is 15 buckets. */
static void test_buckets(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_rows("some", "buckets 50", 23, 15 + 1);
}

static void test_heat_maps_keep_gaps(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_rows("some", "gaps kept", 23, 77);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gaps),
        cmocka_unit_test(test_buckets),
        cmocka_unit_test(test_heat_maps_keep_gaps),
    };
    return cmocka_run_group_tests(tests, write_templates, NULL);
}
