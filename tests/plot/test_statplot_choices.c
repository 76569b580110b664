/* statplot: a template's choices, from the option to the command, the columns and gnuplot's
 * variables. */
#include "testing/programs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testing/check.h"

/* plots/open.gp has two choices; plots/more.gp has one of the same name with another value;
 * plots/closed.gp has none. stat-words prints its arguments into the file `words`, and a table. */
static int write_templates(void **state) {
    (void)state;
    write_small_run(program_file("run.h5"), 6, true);
    assert_int_equal(mkdir(program_file("plots"), 0755), 0);
    program_write("plots/style.gp", "\n");
    program_write("plots/open.gp",
                  "#: title open\n#: runs 1 RUN.h5\n#: stat a\n"
                  "#: choice form plain|both|un-named which column is drawn\n"
                  "#: choice extent small|large\n"
                  "#: word tail form |b|_b\n#: word more form |--more|--name={form}\n"
                  "#: table t stat-words {more} --form={form},{stat}{tail} {other} {extent}\n"
                  "#: curves t x x y {stat},a{tail}\n"
                  "set title 'drawn:'.form.':'.extent.':'.tail.':'.t_y2_largest noenhanced\n"
                  "plot t using t_x:t_y2 with lines\n");
    program_write("plots/more.gp", "#: title more\n#: runs 1 RUN.h5\n#: choice form plain|other\n"
                                   "#: table t stat-words {form}\n#: curves t x x y a\n"
                                   "plot t using t_x:t_a with lines\n");
    program_write("plots/closed.gp", "#: title closed\n#: runs 1 RUN.h5\n#: table t stat-words\n"
                                     "#: curves t x x y a\nplot t using t_x:t_a with lines\n");
    program_write("stat-words", "#!/bin/sh\necho \"$@\" >\"$WORDS\"\n"
                                "printf 'x\\ta\\tab\\ta_b\\n1\\t0\\t0\\t0\\n2\\t1\\t2\\t3\\n'\n");
    assert_int_equal(chmod(program_file("stat-words"), 0755), 0);
    return 0;
}

#define STATPLOT "WORDS=\"$PWD/words\" PATH=.:$PATH STATREC_PLOTS=plots statplot "

static void check_run(const char *command) {
    program_result r = program_run("%s", command);
    if (r.status != 0 || r.err[0]) fail_msg("%s: exit %d: %s", command, r.status, r.err);
    program_free(&r);
}

static void check_fails(const char *command, const char *line) {
    program_result r = program_run("rm -f x.svg; " STATPLOT "%s", command);
    if (r.status != 2 || !strstr(r.err, line))
        fail_msg("%s: exit %d, or no '%s' in: %s", command, r.status, line, r.err);
    assert_int_not_equal(access(program_file("x.svg"), F_OK), 0);
    program_free(&r);
}

/* The command's words, and the title with the value of the second column. */
static void check_drawn(const char *options, const char *words, const char *title) {
    char expected[256];
    program_result r = program_run(STATPLOT "%s -o drawn.svg && cat words drawn.svg", options);
    if (r.status != 0 || r.err[0]) fail_msg("%s: exit %d: %s", options, r.status, r.err);
    snprintf(expected, sizeof expected, "%s\n", words);
    if (strncmp(r.out, expected, strlen(expected)) != 0)
        fail_msg("%s: not '%s' but %.80s", options, words, r.out);
    if (!strstr(r.out, title)) fail_msg("%s: no '%s' in %s", options, title, r.out);
    program_free(&r);
}

static void test_words(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_drawn("open run.h5", "--form=plain,a {other} small", "drawn:plain:small::1");
    check_drawn("open run.h5 --form both", "--more --form=both,ab {other} small",
                "drawn:both:small:b:2");
    check_drawn("--extent=large --form un-named open run.h5",
                "--name={form} --form=un-named,a_b {other} large", "drawn:un-named:large:_b:3");
    check_drawn("-o other.svg --extent large open run.h5", "--form=plain,a {other} large",
                "drawn:plain:large::1");
    check_drawn("./plots/open.gp --no-keep --form both run.h5",
                "--more --form=both,ab {other} small", "drawn:both:small:b:2");
}

static void test_refused(void **state) {
    (void)state;
    check_fails("open run.h5 --form bath -o x.svg",
                "--form: value 'bath' is not one of plain|both|un-named");
    check_fails("open run.h5 --form other -o x.svg", "is not one of plain|both|un-named");
    check_fails("closed run.h5 --form both -o x.svg", "figure closed takes no --form");
    check_fails("more run.h5 --extent small -o x.svg", "figure more takes no --extent");
    check_fails("open run.h5 --fork both -o x.svg", "did you mean --form?");
    check_fails("closed run.h5 --form -o x.svg", "--form: needs a value");
    check_fails("report run.h5 -o page --form nothing", "not one of plain|other|both|un-named");
}

static void test_told(void **state) {
    (void)state;
    program_result r =
        program_run(STATPLOT "list && " STATPLOT "open --help && " STATPLOT "--help");
    assert_int_equal(r.status, 0);
    assert_non_null(
        strstr(r.out, "open\tRUN.h5 [--form=plain|both|un-named] [--extent=small|large]\topen\n"));
    assert_non_null(strstr(r.out, "usage: statplot open RUN.h5 [--form=plain|both|un-named] ["));
    assert_non_null(strstr(r.out, "which column is drawn (plain|both|un-named; default plain)"));
    assert_non_null(strstr(r.out, "(plain|other|both|un-named)"));
    assert_non_null(strstr(r.out, "of open: see the figure's template (small|large)"));
    program_free(&r);
    r = program_run(STATPLOT "closed --help");
    assert_null(strstr(r.out, "--form"));
    program_free(&r);
}

/* Every figure takes the options that it supports. */
static void test_report(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_run(STATPLOT "report run.h5 -o page --form both && grep -q drawn:both page/open.svg");
    check_run("test -s page/more.svg && test -s page/closed.svg");
    check_run(STATPLOT "report run.h5 -o page --form other && grep -q drawn:plain page/open.svg");
}

static void check_line(const char *line, const char *fault) {
    char text[512];
    snprintf(text, sizeof text, "#: title x\n#: runs 1 RUN.h5\n#: choice form a|b\n%s\n", line);
    program_write("bad.gp", text);
    program_result r = program_run("statplot ./bad.gp run.h5");
    if (r.status != 1 || !strstr(r.err, "./bad.gp:4: ") || !strstr(r.err, fault))
        fail_msg("%s: exit %d, or no '%s' in: %s", line, r.status, fault, r.err);
    program_free(&r);
}

static void test_bad_lines(void **state) {
    (void)state;
    check_line("#: choice size", "choice needs NAME WORD|WORD, not 'size'");
    check_line("#: choice size one", "a choice needs WORD|WORD: 'size'");
    check_line("#: choice size one||two", "a choice needs WORD|WORD: 'size'");
    check_line("#: choice form c|d", "has a meaning already: 'form'");
    check_line("#: choice output c|d", "has a meaning already: 'output'");
    check_line("#: word x form", "word needs NAME CHOICE TEXT|TEXT, not 'x'");
    check_line("#: word x from a|b", "no choice of that name before the word 'x'");
    check_line("#: word x form a|b|c", "not one text for every word of the choice: 'x'");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),     cmocka_unit_test(test_refused),
        cmocka_unit_test(test_told),      cmocka_unit_test(test_report),
        cmocka_unit_test(test_bad_lines),
    };
    return cmocka_run_group_tests(tests, write_templates, NULL);
}
