/* test_tables_refusals.c -- input that stat-table --layout rejects: command lines, and faulty files
 * of published values and layouts. */
#include <stdio.h>
#include <string.h>

#include "testing/check.h"
#include "testing/programs.h"

static int write_run(void **state) {
    (void)state;
    run_finish(run_create(program_file("ln1.h5"), run_options()));
    return 0;
}

static void check_fails(const char *command, int status, const char *want) {
    program_result r = program_run("%s", command);
    if (r.status != status || r.out[0] || !strstr(r.err, want))
        fail_msg("%s: exit %d instead of %d, or no '%s' in: %s%s", command, r.status, status, want,
                 r.err, r.out);
    program_free(&r);
}

static void test_refusals(void **state) {
    (void)state;
    check_fails("stat-table --layout pn-table9", 2, "--layout: unknown layout 'pn-table9'\n");
    check_fails("stat-table --layout pn-table9", 2, "layouts.tsv: pn-table1, pn-table2, pn-table3");
    check_fails("stat-table", 2, "no run file given");
    check_fails("stat-table ln1.h5 --format latex", 2, "--format and --layouts need --layout");
    check_fails("stat-table --layout pn-table1 --published-table a", 2, "does not go with");
    check_fails("stat-table --layout pn-table1 none.h5", 1, "none.h5: No such file");
    check_fails("stat-table --layout pn-table1 --published none.tsv", 1, "none.tsv: No such file");
    check_fails("mkdir -p e; STATREC_PLOTS=e stat-table --layout a --layouts e/none.tsv", 1,
                "e/none.tsv: No such file");
}

/* Each fault of a data file is reported with its line number; `line` is the third line of the
 * file. */
static void check_published(const char *line, const char *want) {
    char command[512];
    snprintf(command, sizeof command,
             "printf '#\\na\\tb\\tln\\tbleu\\t1.5\\n%s\\n' >p.tsv; stat-table --layout pn-table1 "
             "--published p.tsv",
             line);
    check_fails(command, 1, want);
}

static void test_damaged_published(void **state) {
    (void)state;
    check_published("a\\tb\\tbn\\tbleu.note\\tx", "p.tsv:3: a note on no value above it: a bn");
    check_published("a\\tb\\tbn\\tbleu\\t35,5",
                    "stat-table: p.tsv:3: the value '35,5' is not a number\n");
    check_published("a\\tb\\tbn\\tbleu\\t", "p.tsv:3: the value '' is not a number");
    check_published("a\\tb\\tbn\\tbleu", "p.tsv:3: 4 cells instead of 5");
    check_published("a\\tb\\tbn\\tbleu\\t1\\t2", "p.tsv:3: 6 cells instead of 5");
    check_published("a\\tc\\tln\\tbleu\\t3", "p.tsv:3: a second value of a ln bleu");
}

static void check_layouts(const char *lines, const char *want) {
    char command[512];
    snprintf(command, sizeof command,
             "printf 'layout\\tpart\\tlabel\\n%s' >l.tsv; stat-table --layout a --layouts l.tsv",
             lines);
    check_fails(command, 1, want);
}

#define TABLE "a\\ttable\\tT\\n"

static void test_damaged_layouts(void **state) {
    (void)state;
    check_layouts("a\\ttable\\n", "l.tsv:2: 2 cells instead of layout, part and label");
    check_layouts("a\\trow\\tR\\tnorm=ln\\n", "l.tsv:2: a row of a before its table");
    check_layouts(TABLE TABLE, "l.tsv:3: a second table a");
    check_layouts(TABLE "a\\tcell\\tR\\n", "l.tsv:3: 'cell' is neither table, row nor column");
    check_layouts(TABLE "a\\trow\\tR\\n", "l.tsv:3: a row without norm=");
    check_layouts(TABLE "a\\trow\\tR\\tnorm=ln\\tcolour=red\\n", "l.tsv:3: a row has no 'colour'");
    check_layouts(TABLE "a\\trow\\tR\\tnorm\\n", "l.tsv:3: 'norm' is not KEY=VALUE");
    check_layouts(TABLE "a\\trow\\tR\\tnorm=ln\\tquantity=loss\\n",
                  "l.tsv:3: unknown quantity 'loss'");
    check_layouts(TABLE "a\\tcolumn\\tC\\ttable=x\\n", "l.tsv:3: a column without table= and metr");
    check_layouts(TABLE "a\\trow\\tR\\tnorm=ln\\n", "l.tsv: layout a has no rows or no columns");
    check_layouts(TABLE "\\n# c\\na\\tx\\t1\\t2\\t3\\t4\\t5\\t6\\t7\\t8\\t9\\t1\\t2\\t3\\t4\\t5\\t"
                        "6\\n",
                  "l.tsv:5: more than 16 cells");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_damaged_published),
                                       cmocka_unit_test(test_damaged_layouts)};
    return cmocka_run_group_tests(tests, write_run, NULL);
}
