/* test_table_formats.c -- stat-table --layout without runs, in LaTeX and Markdown, with a custom
 * layout; hostile names. */
#include <string.h>

#include "table_runs.h"
#include "testing/check.h"

static void test_published_only(void **state) {
    (void)state;
    check_rows("stat-table --layout pn-table1",
               "row\tsettings\t" TWO "\tWMT14 En-De published bleu ↑\nLN\t-\t35.5\t29.5\n"
               "BN\t-\t34.4\t28.1\nPN-V\t-\t35.5\t28.5\nPN\t-\t35.9\t30.1\n");
    program_result r = program_run("stat-table --layout an-table3");
    check_text(&r, 3, "En-De published bleu ↑", "Div."); /* nan in the file */
    check_text(&r, 3, "RT published accuracy ↑", "77.04");
    check_text(&r, 4, "En-De published bleu ↑", "-"); /* the reference diverged */
    check_text(&r, 4, "RT published accuracy ↑", "0.38");
    check_text(&r, 4, "enwik8 published bpc ↓", "-0.03"); /* less is better */
    check_text(&r, 2, "enwik8 published bpc ↓", "0.00");
    program_free(&r);
    r = program_run("stat-table --layout an-table2");
    check_text(&r, 2, "row", "Improvement of DetachNorm over w/o norm");
    check_text(&r, 2, "De-En published bleu ↑", "-0.1");
    check_text(&r, 4, "De-En published bleu ↑", "1.6");
    program_free(&r);
    r = program_run("stat-table --layout pn-table1 --format latex");
    assert_non_null(strstr(
        r.out, " & published, bleu $\\uparrow$ & published, bleu $\\uparrow$ \\\\\n\\midrule\n"
               "LN & 35.5 & 29.5 "));
    program_free(&r);
    r = program_run("stat-table --layout rbn-variants");
    check_text(&r, 1, "row", "Post-PN-only");
    check_text(&r, 1, "WikiText-103 published ppl ↓", "inf");
    check_text(&r, 1, "IWSLT14 published bleu ↑", "0");
    program_free(&r);
    r = program_run("stat-table --layout list");
    assert_int_equal(r.status, 0);
    assert_int_equal(table_rows(r.out), 12);
    check_text(&r, 0, "layout", "pn-table1");
    check_text(&r, 11, "source", "Xu et al., NeurIPS 2019, tables 1 and 4");
    program_free(&r);
    r = program_run("for l in $(stat-table --layout list | sed '/^#/d;/^layout\t/d;s/\t.*//'); do "
                    "for f in tsv latex markdown; do stat-table --layout $l --format $f >$l.$f "
                    "|| exit 1; done; done; ls *.markdown | wc -l");
    assert_int_equal(r.status, 0);
    assert_string_equal(r.out, "12\n");
    program_free(&r);
}

/* Doubt about a printed value: a dagger, and a line below; in TSV the number stays one. */
static void test_doubtful_value(void **state) {
    (void)state;
    static const char *const format[] = {"tsv", "latex", "markdown"},
                             *const cell[] = {"\nBN\t-\t34.4\n", "\nBN & 34.4\\textdagger{} \\\\\n",
                                              "\n| BN | 34.4† |\n"},
                             *const line[] = {
                                 "\n# note: BN, IWSLT14 De-En, published 34.4: smudged | 34.1?\n",
                                 "\\textdagger{} BN, IWSLT14 De-En: smudged \\textbar{} 34.1?\n",
                                 "|\n\n† BN, IWSLT14 De-En: smudged \\| 34.1?\n"};
    for (int i = 0; i < 3; i++) {
        program_result r = program_run(
            "printf 'pn-iwslt14\ta\tbn\tbleu\t34.4\npn-iwslt14\ta\tbn\tbleu.note\tsmudged | "
            "34.1?\n' >doubt.tsv; stat-table --layout pn-table1 --published doubt.tsv --format %s",
            format[i]);
        if (r.status || !strstr(r.out, cell[i]) || !strstr(r.out, line[i]))
            fail_msg("%s: no '%s' or no '%s' in %s%s", format[i], cell[i], line[i], r.out, r.err);
        program_free(&r);
    }
}

static const char *below(const char *text, const char *line) {
    const char *at = strstr(text, line);
    return at ? at : "";
}

static void test_latex(void **state) {
    (void)state;
    program_result r = program_run("stat-table ln1.h5 ln2.h5 bn.h5 post.h5 --layout pn-table1 "
                                   "--format latex");
    assert_int_equal(r.status, 0);
    assert_string_equal(
        below(r.out, "\\begin{tabular}"),
        "\\begin{tabular}{lrrr}\n"
        "\\toprule\n"
        " & \\multicolumn{2}{c}{IWSLT14 De-En} & \\multicolumn{1}{c}{WMT14 En-De} "
        "\\\\\n"
        "\\cmidrule(lr){2-3}\\cmidrule(lr){4-4}\n"
        " & published, bleu $\\uparrow$ & multi30k-de-en, bleu $\\uparrow$ & "
        "published, bleu $\\uparrow$ \\\\\n"
        "\\midrule\n"
        "LN & 35.5 & $22.00 \\pm 2.83$ (2) & 29.5 \\\\\n"
        "BN & 34.4 & $18.00$ & 28.1 \\\\\n"
        "PN-V & 35.5\\textdagger{} & -- & 28.5 \\\\\n"
        "PN & 35.9 & -- & 30.1 \\\\\n"
        "\\midrule\n"
        "bn, post-norm & -- & $17.00$ & -- \\\\\n"
        "\\bottomrule\n"
        "\\end{tabular}\n"
        "\n\\smallskip\\footnotesize \\textdagger{} PN-V, IWSLT14 De-En: uncertain: "
        "PowerNorm prints both 35.4 and 35.5 for PN-V here\n"
        "\\end{table}\n");
    for (const char *line = r.out; *line; line += strcspn(line, "\n") + 1)
        if (line < strstr(r.out, "\\begin{table}")) assert_int_equal(line[0], '%');
    assert_non_null(strstr(r.out, "% definition: measured values: from the evaluation with "));
    assert_non_null(strstr(r.out, "% source: Shen et al., ICML 2020, table 1\n"));
    program_free(&r);
}

static void test_markdown(void **state) {
    (void)state;
    program_result r = program_run("stat-table ln1.h5 ln2.h5 --layout pn-table1 --format markdown");
    assert_int_equal(r.status, 0);
    assert_string_equal(
        below(r.out, "|  |"),
        "|  | IWSLT14 De-En: published, bleu ↑ | IWSLT14 De-En: multi30k-de-en, bleu ↑ | WMT14 "
        "En-De: "
        "published, bleu ↑ |\n|---|---:|---:|---:|\n| LN | 35.5 | 22.00 ± 2.83 (2) | 29.5 |\n"
        "| BN | 34.4 |  | 28.1 |\n| PN-V | 35.5† |  | 28.5 |\n| PN | 35.9 |  | 30.1 |\n"
        "\n† PN-V, IWSLT14 De-En: uncertain: PowerNorm prints both 35.4 and 35.5 for PN-V here\n");
    assert_true(strncmp(r.out, "<!--\n", 5) == 0);
    const char *end = strstr(r.out, "--"); /* the opening <!-- */
    assert_string_equal(below(end + 2, "-->") + 0, strstr(end + 2, "--"));
    program_free(&r);
}

/* Names from a run file print as text and cannot end a line, a cell or a comment. */
static void test_hostile_names(void **state) {
    (void)state;
    static const char latex[] = "a\\%b\\_\\$c\\textasciigrave{}d\\textasciigrave{} "
                                "\\textbackslash{}end\\{document\\} \\textbar{}\\textless{}x"
                                "\\textgreater{}\\textasciitilde{}\\textasciicircum{}\\#\\&\\{*\\}";
    program_result r = program_run("stat-table evil.h5 --layout pn-table1 --format latex");
    assert_int_equal(r.status, 0);
    assert_non_null(strstr(below(r.out, "\\begin{table}"), latex));
    assert_null(strstr(below(r.out, "\\begin{table}"), "\\end{document}"));
    assert_non_null(strstr(r.out, "\nx\\$\\textasciigrave{}y\\textasciigrave{}\\& \\textbar{}"
                                  "\\textbackslash{}z+ls & "));
    program_free(&r);
    r = program_run("stat-table evil.h5 --layout pn-table1 --format markdown");
    assert_non_null(strstr(r.out, "| x\\$\\`y\\`&amp; \\|\\\\z+ls |"));
    program_free(&r);
    r = program_run("stat-table evil.h5 --layout pn-table1 >t.tsv\n"
                    "awk -F '\\t' '/^#/ { next } { print NF }' t.tsv | sort | uniq -c | wc -l");
    assert_string_equal(r.out, "1\n");
    program_free(&r);
}

/* A table of one's own. */
static void test_own_layout(void **state) {
    (void)state;
    check_rows(
        "printf 'mine\\ttable\\tMy table\\tdecoder=ln\\nmine\\trow\\tours\\tnorm=bn\\n"
        "mine\\tcolumn\\tC\\ttable=-\\tmetric=bleu\\tmeasured=f1,bleu\\ttasks=*\\n' >own.tsv;"
        " stat-table bn.h5 --layout mine --layouts own.tsv",
        "row\tsettings\t" BLEU "\t" NAME " sd\t" NAME " runs\nours\t-\t18\t-\t1\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_only), cmocka_unit_test(test_doubtful_value),
        cmocka_unit_test(test_latex),          cmocka_unit_test(test_markdown),
        cmocka_unit_test(test_hostile_names),  cmocka_unit_test(test_own_layout),
    };
    return cmocka_run_group_tests(tests, table_runs, NULL);
}
