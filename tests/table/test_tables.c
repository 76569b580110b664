/* test_tables.c -- stat-table --layout on runs with known evaluations, compared with tables worked
 * out by hand. */
#include <string.h>

#include "table_runs.h"
#include "testing/check.h"

#define HEAD                                                                                       \
    "row\tsettings\t" TWO "\t" BLEU "\t" NAME " sd\t" NAME " runs\tWMT14 En-De published bleu ↑"

/* Best: of the second evaluation. 22 is the mean of 20 and 24, their deviation sqrt 8. */
static void test_values(void **state) {
    (void)state;
    check_rows("stat-table bn.h5 ln1.h5 ln2.h5 --layout pn-table1",
               HEAD "\n"
                    "LN\t-\t35.5\t22\t2.82842712\t2\t29.5\n"
                    "BN\t-\t34.4\t18\t-\t1\t28.1\n"
                    "PN-V\t-\t35.5\t-\t-\t0\t28.5\n"
                    "PN\t-\t35.9\t-\t-\t0\t30.1\n");
    check_rows("stat-table bn.h5 ln1.h5 ln2.h5 --layout pn-table1 --pick last",
               HEAD "\n"
                    "LN\t-\t35.5\t30.5\t0.707106781\t2\t29.5\n"
                    "BN\t-\t34.4\t9\t-\t1\t28.1\n"
                    "PN-V\t-\t35.5\t-\t-\t0\t28.5\n"
                    "PN\t-\t35.9\t-\t-\t0\t30.1\n");
}

/* Variants of a norm, settings, placement, mixed sites and other data get their own rows and
 * columns. */
static void test_lines(void **state) {
    (void)state;
    check_rows("stat-table ln1.h5 unbiased.h5 bn.h5 bn-lr.h5 post.h5 pnls.h5 mixed.h5 cv.h5 "
               "--layout pn-table1",
               HEAD "\tcifar10 valid_accuracy ↑\tcifar10 valid_accuracy sd\tcifar10 valid_accuracy "
                    "runs\n"
                    "LN\t-\t35.5\t20\t-\t1\t29.5\t-\t-\t0\n"
                    "LN\tln/unbiased\t-\t25\t-\t1\t-\t-\t-\t0\n"
                    "BN\t-\t34.4\t-\t-\t0\t28.1\t-\t-\t0\n"
                    "BN\tlr=0.1\t-\t18\t-\t1\t-\t-\t-\t0\n"
                    "BN\tlr=0.2\t-\t19\t-\t1\t-\t-\t-\t0\n"
                    "PN-V\t-\t35.5\t-\t-\t0\t28.5\t-\t-\t0\n"
                    "PN\tpn+ls\t35.9\tDiv.\t-\t0\t30.1\t-\t-\t0\n"
                    "bn, post-norm\t-\t-\t17\t-\t1\t-\t-\t-\t0\n"
                    "ln with norm-at, pre-norm\tnorm-at=encoder.0.*=bn\t-\t22\t-\t1\t-\t-\t-\t0\n"
                    "bn+ls\t-\t-\t-\t-\t0\t-\t80\t-\t1\n");
}

/* Parameters of a method that differ are settings; those that make another formula are part of its
   name. */
static void test_params(void **state) {
    (void)state;
    check_rows("stat-table brn-2.h5 brn-4.h5 ln-param.h5 pn-param.h5 pnls.h5 --layout pn-table1",
               HEAD "\n"
                    "LN\tln/unbiased\t35.5\t25\t-\t1\t29.5\n"
                    "BN\t-\t34.4\t-\t-\t0\t28.1\n"
                    "PN-V\t-\t35.5\t-\t-\t0\t28.5\n"
                    "PN\t-\t35.9\t-\t-\t0\t30.1\n"
                    "PN\tpn+ls decoder-norm=ln(eps=1e-6) alpha_bwd=0.5\t-\t26\t-\t1\t-\n"
                    "PN\tpn+ls\t-\tDiv.\t-\t0\t-\n"
                    "brn, pre-norm\tr_max=2\t-\t16\t-\t1\t-\n"
                    "brn, pre-norm\tr_max=4\t-\t17\t-\t1\t-\n");
}

/* Checks that stat-table prints `present` and not `absent`; either may be NULL. */
static void check_says(const char *arguments, const char *present, const char *absent) {
    program_result r = program_run("stat-table %s", arguments);
    if (present && !strstr(r.out, present)) fail_msg("no '%s' in: %s", present, r.out);
    if (absent && strstr(r.out, absent)) fail_msg("'%s' in: %s", absent, r.out);
    program_free(&r);
}

/* A metric that differs from the paper's follows the paper's columns, with its name and direction.
 * The same metric is next to the paper's. */
static void test_other_metric(void **state) {
    (void)state;
    static const char said[] =
        "# note: task multi30k-de-en has no bleu, the metric of IWSLT14 De-En: "
        "its valid_ppl comes last\n";
    check_rows("stat-table ppl.h5 ln1.h5 --layout pn-table1",
               HEAD "\tmulti30k-de-en valid_ppl ↓\tmulti30k-de-en valid_ppl sd\tmulti30k-de-en "
                    "valid_ppl runs\n"
                    "LN\t-\t35.5\t-\t-\t0\t29.5\t33\t-\t1\n"
                    "LN\tlr=0.1\t-\t20\t-\t1\t-\t-\t-\t0\n"
                    "BN\t-\t34.4\t-\t-\t0\t28.1\t-\t-\t0\n"
                    "PN-V\t-\t35.5\t-\t-\t0\t28.5\t-\t-\t0\n"
                    "PN\t-\t35.9\t-\t-\t0\t30.1\t-\t-\t0\n");
    program_result r = program_run("stat-table ppl.h5 --layout an-table1");
    assert_non_null(strstr(r.out, "# note: task multi30k-de-en has no bleu"));
    check_cell(&r, 1, "multi30k-de-en valid_ppl ↓", 33);
    program_free(&r);
    check_says("ppl.h5 --layout pn-table1 --format latex",
               "{c}{WMT14 En-De} & \\multicolumn{1}{c}{other metrics or data} ", NULL);
    check_says("ppl.h5 --layout pn-table1 --format latex",
               " & multi30k-de-en, valid\\_ppl $\\downarrow$ \\\\\n", NULL);
    check_says("ppl.h5 --layout pn-table1 --format latex", "\nLN & 35.5 & 29.5 & $33.00$ \\\\\n",
               NULL);
    check_says("ppl.h5 --layout pn-table1 --format markdown",
               "bleu ↑ | multi30k-de-en, valid\\_ppl ↓ |\n", "De-En: multi30k");
    check_says("ptb.h5 --layout pn-table3 --format markdown",
               "| PTB valid: published, ppl ↓ | PTB valid: ptb, valid\\_ppl ↓ | PTB test:",
               "behind the paper's columns");
    check_says("ln1.h5 --layout pn-table1", NULL, "behind the paper's columns");
    check_says("ppl.h5 --layout pn-table1", said, NULL);
}

/* The decoder's norm belongs to a row: LN in PowerNorm's table, the encoder's in AdaNorm's. */
static void test_decoder(void **state) {
    (void)state;
    program_result r = program_run("stat-table simple.h5 simple-ln.h5 --layout an-table1");
    check_text(&r, 2, "row", "LayerNorm-simple");
    check_cell(&r, 2, BLEU, 35);
    check_text(&r, 3, "row", "ln-simple, decoder ln, pre-norm");
    check_cell(&r, 3, BLEU, 36);
    program_free(&r);
    r = program_run("stat-table simple.h5 simple-ln.h5 --layout pn-table1");
    check_text(&r, 4, "row", "ln-simple, decoder ln-simple, pre-norm");
    check_text(&r, 5, "row", "ln-simple, pre-norm");
    program_free(&r);
}

/* If the preset sets the placement, it is inferred from the sites, if all are recorded. */
static void test_placement(void **state) {
    (void)state;
    program_result r = program_run("stat-table all.h5 some.h5 final.h5 --layout pn-table1");
    check_text(&r, 1, "row", "BN");
    check_cell(&r, 1, BLEU, 13);
    check_text(&r, 4, "row", "bn, post-norm");
    check_cell(&r, 4, BLEU, 11);
    check_text(&r, 5, "row", "bn, placement unknown");
    check_cell(&r, 5, BLEU, 12);
    program_free(&r);
    r = program_run("stat-table bn.h5 peri.h5 scaled.h5 --layout pn-table1");
    check_text(&r, 4, "row", "bn, peri-norm");
    check_cell(&r, 4, BLEU, 14);
    check_text(&r, 5, "row", "bn, scaled pre-norm");
    check_cell(&r, 5, BLEU, 15);
    program_free(&r);
}

/* One of the three LN runs diverged: it is reported and left out of the mean. */
static void test_diverged(void **state) {
    (void)state;
    program_result r =
        program_run("stat-table ln1.h5 half.h5 ln1.h5 --layout pn-table1 --pick last");
    assert_int_equal(r.status, 0);
    check_cell(&r, 0, BLEU, 30);
    check_cell(&r, 0, NAME " runs", 2);
    assert_non_null(strstr(r.out, "LN, multi30k-de-en bleu: skipped 1 of 3 runs: diverged"));
    assert_non_null(strstr(r.out, "# note: ln1.h5 and ln1.h5 have the same seed"));
    program_free(&r);
}

/* TID of the last step in percent; published values of the pre-norm block are its own. */
static void test_quantities(void **state) {
    (void)state;
    program_result r = program_run("stat-table bn.h5 post.h5 ln1.h5 --layout rbn-table1");
    assert_int_equal(r.status, 0);
    assert_int_equal(table_rows(r.out), 10);
    check_text(&r, 1, "row", "Post-BN");
    check_cell(&r, 1, BLEU, 17);
    check_text(&r, 3, "IWSLT14 published bleu ↑", "1.5");
    check_cell(&r, 3, BLEU, 50);
    check_text(&r, 4, "CoNLL published f1 ↑", "9.5");
    check_cell(&r, 4, BLEU, 25);
    check_cell(&r, 5, BLEU, 20);
    check_text(&r, 6, "IWSLT14 published bleu ↑", "34.8");
    check_cell(&r, 8, BLEU, 2);
    check_text(&r, 9, "IWSLT14 published bleu ↑", "4.6");
    check_cell(&r, 9, BLEU, 5);
    check_text(&r, 9, "Yelp published accuracy ↑", "8.6");
    assert_non_null(strstr(r.out, "# note: bn.h5: tid_* of encoder.0.norm1, from the last "));
    /* gaps: of the paper's values, 45.9 against 54.5 of a perplexity; of the run, 18 against 20 */
    check_text(&r, 7, "row", "Pre-BN: performance gap to Pre-LN");
    check_text(&r, 7, "PTB published ppl ↓", "8.6");
    check_text(&r, 7, "IWSLT14 published bleu ↑", "-0.7");
    check_text(&r, 7, "DBPedia published accuracy ↑", "0.0");
    check_cell(&r, 7, BLEU, -2);
    check_text(&r, 2, BLEU, "-"); /* no ln run is post-norm */
    program_free(&r);
}

/* References have the run's settings and seed: of 20 and 24 the first for bn.h5, 40 for bn-lr.h5. */
static void test_gap(void **state) {
    (void)state;
    program_result r =
        program_run("stat-table bn.h5 bn-lr.h5 ln1.h5 ln2.h5 ln-lr.h5 --layout rbn-tid");
    assert_int_equal(r.status, 0);
    check_text(&r, 0, "WMT16 published bleu ↑", "38");
    check_text(&r, 1, "settings", "lr=0.1");
    check_cell(&r, 1, BLEU, 7);
    check_cell(&r, 2, BLEU, 5);
    check_text(&r, 3, "WikiText-103 published ppl ↓", "6.8");
    check_cell(&r, 4, BLEU, 18 - 20);
    check_cell(&r, 5, BLEU, 19 - 40);
    assert_int_equal(table_rows(r.out), 6);
    assert_non_null(strstr(r.out, "# note: ln1.h5 (ln, task multi30k-de-en) has no row"));
    program_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),   cmocka_unit_test(test_lines),
        cmocka_unit_test(test_params),   cmocka_unit_test(test_other_metric),
        cmocka_unit_test(test_decoder),  cmocka_unit_test(test_placement),
        cmocka_unit_test(test_diverged), cmocka_unit_test(test_quantities),
        cmocka_unit_test(test_gap),
    };
    return cmocka_run_group_tests(tests, table_runs, NULL);
}
