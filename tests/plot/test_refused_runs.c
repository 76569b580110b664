/* test_refused_runs.c -- runs that an analysis in a report rejects. A table of {run} rejects all of
 * them at once, one of {run1} or {run2} only the first. Analyses of all runs wait for them. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "plot/plot_command.h"
#include "plot/plot_curves.h"
#include "plot/template/plot_template.h"
#include "testing/check.h"

enum { RUNS = 4 };

/* A program that logs each start in `starts` and fails for each word that starts with "bad". */
static char program[4096], starts_file[4096];
static char run[] = "{run}", runs[] = "{runs}", run1[] = "{run1}", run2[] = "{run2}";
static sr_failure refusal[RUNS];

static int write_program(void **state) {
    char text[9000];
    (void)state;
    snprintf(program, sizeof program, "%.4000s/program", check_temporary());
    snprintf(starts_file, sizeof starts_file, "%.4000s/starts", check_temporary());
    snprintf(
        text, sizeof text,
        "#!/bin/sh\necho start >>'%s'\nfor w; do case $w in bad*) echo \"stat-x: bad $w\" >&2; "
        "exit 1;; esac; done\necho \"$*\"\n",
        starts_file);
    check_write(program, text);
    check_write(starts_file, "");
    return chmod(program, 0755);
}

static int starts(void) {
    int lines = 0;
    FILE *in = fopen(starts_file, "r");
    for (int c; in && (c = getc(in)) != EOF;) lines += c == '\n';
    if (in) fclose(in);
    return lines;
}

/* Returns the first failure of these tables for runs good1, bad2, good3, bad4. */
static sr_failure make_tables(plot_template *t, bool report) {
    static char path[RUNS][8] = {"good1", "bad2", "good3", "bad4"};
    plot_run of[RUNS] = {0};
    plot_data data[PLOT_TABLES] = {{0}};
    sr_failure why = {0};
    for (int i = 0; i < RUNS; i++) of[i].path = path[i];
    memset(refusal, 0, sizeof refusal);
    const plot_sources from = {.template = t,
                               .run = of,
                               .runs = RUNS,
                               .directory = check_temporary(),
                               .refusal = report ? refusal : NULL};
    plot_tables_make(&from, data, &why);
    for (int i = 0; i < t->tables; i++) plot_data_free(&data[i]);
    return why;
}

static void check_refused(int number, const char *text) {
    if (text)
        check_failure(&refusal[number - 1], SR_LIBRARY, text);
    else
        assert_int_equal(refusal[number - 1].status, SR_OK);
}

static void all_refused_runs_are_named_and_others_wait(void **state) {
    (void)state;
    static plot_template t = {.tables = 2};
    t.table[0] = (plot_table){.name = "each", .word = {program, run}, .words = 2};
    t.table[1] = (plot_table){.name = "all", .word = {program, runs, runs}, .words = 3};
    sr_failure why = make_tables(&t, true);
    check_failure(&why, SR_LIBRARY, "stat-x: bad bad2");
    check_refused(1, NULL);
    check_refused(2, "stat-x: bad bad2");
    check_refused(3, NULL);
    check_refused(4, "stat-x: bad bad4");
    assert_int_equal(starts(), RUNS);
    why = make_tables(&t, false);
    check_failure(&why, SR_LIBRARY, "stat-x: bad bad2");
    assert_int_equal(starts(), RUNS + RUNS + 1);
}

/* The second run may fit in place of the first. */
static void the_first_refusal_counts_where_places_differ(void **state) {
    (void)state;
    static char bad[] = "bad";
    static plot_template t = {.tables = 2};
    t.table[0] = (plot_table){.name = "a", .word = {program, run1, bad}, .words = 3};
    t.table[1] = (plot_table){.name = "b", .word = {program, run2}, .words = 2};
    const sr_failure why = make_tables(&t, true);
    check_failure(&why, SR_LIBRARY, "stat-x: bad bad");
    check_refused(1, "stat-x: bad bad");
    check_refused(2, NULL);
}

static void an_optional_table_refuses_no_run(void **state) {
    (void)state;
    static plot_template t = {.tables = 1};
    t.table[0] =
        (plot_table){.name = "maybe", .optional = true, .word = {program, run}, .words = 2};
    const sr_failure why = make_tables(&t, true);
    assert_int_equal(why.status, SR_OK);
    for (int i = 1; i <= RUNS; i++) check_refused(i, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(all_refused_runs_are_named_and_others_wait, write_program),
        cmocka_unit_test_setup(the_first_refusal_counts_where_places_differ, write_program),
        cmocka_unit_test_setup(an_optional_table_refuses_no_run, write_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
