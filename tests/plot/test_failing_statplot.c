/* test_failing_statplot.c -- statplot while one allocation, system call or access to its files
 * fails. It ends with a reason, or prints the same as without a failure. A complete figure or table
 * replaces the earlier one, and no other file remains. */
#define _GNU_SOURCE 1 /* RTLD_NEXT */
#include "failing_statplot.h"

static const char earlier[] = "of somebody\n";
static const char *output;  /* in drawn/, or NULL */
static char whole[1 << 16]; /* its content after a call without failure */
static bool whole_known;
static bool keeps; /* --keep: the working folder stays */

static void lay_out(void) {
    empty_folder("work"), empty_folder("drawn");
    if (output) program_write(output, earlier);
}

/* A failed call leaves no files; a failed removal is no failure. */
static void look(const char *after, sr_status status) {
    char text[sizeof whole] = "";
    if (status != SR_OK && !keeps && count_entries("work")) complain(after, "a folder is left");
    if (status != SR_OK && count_entries("drawn") != (output != NULL))
        complain(after, "a file is left beside the output");
    if (!output) return;
    read_file(output, text, sizeof text);
    if (strcmp(text, whole) == 0 || (status != SR_OK && strcmp(text, earlier) == 0)) return;
    complain(after, "the output is neither the earlier one nor whole: %.60s", text);
}

static sr_status note_whole(sr_failure *why) {
    const sr_status status = program_deed(why);
    if (!whole_known && output && status == SR_OK) read_file(output, whole, sizeof whole);
    whole_known = true;
    return status;
}

static void fail_statplot(const char *line, const char *writes, failing_kind kind) {
    const deed d = {.name = line, .run = note_whole, .look = look, .prepare = lay_out, .file = ""};
    assert_int_equal(chdir(check_temporary()), 0);
    output = writes, whole_known = false;
    program_called = statplot_main, program_line = line, program_known = false;
    deed_fail_each(&d, kind);
}

/* -- tests ----------------------------------------------------------------------------------- */

static void each_way(const char *line, const char *writes) {
    fail_statplot(line, writes, FAILING_ALLOCATIONS);
    fail_statplot(line, writes, FAILING_SYSTEM);
    fail_statplot(line, writes, FAILING_STREAMS);
}

static void test_list(void **state) {
    (void)state;
    each_way("statplot list", NULL);
}

static void test_figure(void **state) {
    (void)state;
    each_way("statplot fig2 a.h5 b.h5 -o drawn/figure.pdf", "drawn/figure.pdf");
}

/* Only SVG features that PDF lacks: one of each kind is enough. */
static void test_svg(void **state) {
    (void)state;
    keeps = true;
    each_way("statplot tid a.h5 -o drawn/figure.svg --title t --keep", "drawn/figure.svg");
    keeps = false;
}

static void test_shown(void **state) {
    (void)state;
    fail_statplot("statplot curves a.h5 b.h5 --labels=a\\,b,c -o -", NULL, FAILING_STREAMS);
}

static void test_table(void **state) {
    (void)state;
    each_way("statplot pn-table1 a.h5 b.h5 -o drawn/table.tex", "drawn/table.tex");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),  cmocka_unit_test(test_figure), cmocka_unit_test(test_svg),
        cmocka_unit_test(test_shown), cmocka_unit_test(test_table),
    };
    return cmocka_run_group_tests(tests, prepare_all, NULL);
}
