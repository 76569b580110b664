/* test_report.c -- statplot report: content and order of its page, for one run and for many. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "statplot_runs.h"
#include "testing/check.h"

/* Returns the text's offset in the page; fails without it. */
static long place_of(const char *page, const char *text) {
    const char *at = strstr(page, text);
    if (!at) fail_msg("the page has no '%s'", text);
    return at - page;
}

/* Fails unless the page contains the texts in this order. */
static void check_order(const char *path, const char *const *text, int count) {
    program_result r = program_run("cat %s", path);
    long before = -1;
    for (int i = 0; i < count; i++) {
        const long at = place_of(r.out, text[i]);
        if (at <= before) fail_msg("%s: '%s' comes before '%s'", path, text[i], text[i - 1]);
        before = at;
    }
    program_free(&r);
}

static void test_report(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_run("statplot report cv.h5 nlp.h5 -o report");
    check_run("cd report; test -s fig2.svg && test -s layers.1.svg && test -s layers.2.svg");
    /* the page names every file, and every named file exists */
    check_run(
        "cd report; sed -n 's/.*<img[^>]* src=.\\([^ \"]*svg\\).*/\\1/p' index.html | xargs ls "
        ">/dev/null");
    check_run("cd report; test $(ls *.svg | wc -l) = $(grep -c '<img' index.html)");
    check_run("cd report; for f in $(ls -A | grep -v '^.table-'); do test $f = index.html || grep "
              "-q \"=.$f\\\"\" "
              "index.html || exit 1; done");
    check_run("cd report; grep -q '<h4>nlp.h5: transformer, bn, iwslt14, seed 1' index.html");
    check_run(
        "cd report; for t in runs diagnosis.1 diagnosis.2 sites.1 sites.2; do test -s $t.tsv && "
        "grep -q \"href=.$t.tsv\" index.html || exit 1; done");
    check_run("cd report; grep -q '<td>late</td><td>dist_psi2</td>' index.html");
    check_run("cd report; grep -q '<dt>tid_var</dt>\\|<dt>median</dt>' index.html");
    /* no table is wider than the page: at most a dozen columns, and long words break */
    check_run("cd report; grep -o '<thead>.*</thead>' index.html | awk 'gsub(/<th[ >]/, \"\") > 12 "
              "{ wide = 1 } END { exit wide || NR < 5 }'");
    /* the page loads nothing from elsewhere */
    check_run("cd report; test $(ls | grep -c stderr) = 0; ! grep -q 'https\\?:\\|<script' "
              "index.html");
    check_run("statplot report nlp.h5 nlp.h5 -o same && grep -q 'no difference shown' "
              "same/compare.tsv && grep -q 'no difference shown' same/index.html && "
              "grep -q 'No difference in model' same/index.html");
    check_run("statplot report cv.h5 nlp.h5 -o again && diff -r report again");
    check_fails("statplot report cv.h5", 2, "needs -o DIRECTORY");
    check_fails("statplot report missing.h5 -o none", 1, "missing.h5");
    check_fails("statplot report cv.h5 -o no/such/folder", 1, "no/such/folder");
    assert_false(exists("none"));
}

/* Drawings of the earlier report are reused if gnuplot would draw the same. Not reused: drawings of
 * a changed run, drawings changed by a user. */
static void test_report_again(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_run("mkdir counted && printf '#!/bin/sh\\necho >>calls\\nexec %s \"$@\"\\n' "
              "\"$(command -v gnuplot)\" | sed \"s|>>calls|>>$PWD/calls|\" >counted/gnuplot && "
              "chmod +x counted/gnuplot");
#define COUNTED "PATH=$PWD/counted:$PATH statplot report "
    check_run("cp cv.h5 kept.h5 && " COUNTED "kept.h5 nlp.h5 -o kept && cp -r kept before && "
              "test $(wc -l <calls) -ge $(ls kept/*.svg | wc -l)");
    check_run(": >calls && " COUNTED "kept.h5 nlp.h5 -o kept && diff -r kept before && "
              "test $(wc -l <calls) -lt 5");
    check_run(": >calls && sed -i 's/polyline/polygon/; s/path/p/' kept/fig2.svg && "
              "truncate -s -300 kept/layers.1.svg && : >kept/curves.svg && " COUNTED
              "kept.h5 nlp.h5 -o kept && diff -r kept before && test $(wc -l <calls) -ge 3");
    check_run("cp ln.h5 kept.h5 && touch -r cv.h5 kept.h5 && " COUNTED
              "kept.h5 nlp.h5 -o kept && statplot report kept.h5 nlp.h5 -o fresh && "
              "diff -r kept fresh && ! cmp -s kept/curves.svg before/curves.svg");
#undef COUNTED
}

/* A script replaces the interpreter: it writes the requested file with the names of the runs.
 * Without an interpreter the report is unchanged, and one line names what to install. */
static void test_report_interactive(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_run(
        "printf '#!/bin/sh\\nwhile [ \"$1\" != --export ]; do shift; done\\necho \"$3 $4 $5\" "
        ">\"$2\"\\n' >stand-in && chmod +x stand-in");
    check_run("STATREC_PYTHON=$PWD/stand-in statplot report cv.h5 nlp.h5 -o panels --interactive");
    check_run("grep -qx -e '-- cv.h5 nlp.h5' panels/interactive.html && "
              "grep -q 'href=\"interactive.html\"' panels/index.html");
    check_fails("STATREC_PYTHON=$PWD/none statplot report cv.h5 nlp.h5 -o panels --interactive", 1,
                "pip install \"statrec[view]\"");
    check_run("statplot report cv.h5 nlp.h5 -o static && diff -r static panels");
    check_fails("statplot fig2 cv.h5 --interactive", 2, "--interactive applies to report alone");
}

/* The answers are first: runs, verdicts, three figures, differences. The questions follow; the runs
 * are at the end, their differences first. */
static void test_report_order(void **state) {
    static const char *const order[] = {"<h1>",
                                        "<table class=\"runs\">",
                                        "src=\"answer.1.svg\"",
                                        "src=\"answer.2.svg\"",
                                        "src=\"answer.3.svg\"",
                                        "id=\"report-differences\"",
                                        "<nav ",
                                        "id=\"q-healthy\"",
                                        "id=\"report-diagnosis\"",
                                        "id=\"curves\"",
                                        "id=\"q-running\"",
                                        "id=\"fig2\"",
                                        "id=\"report-sites\"",
                                        "id=\"q-gradient\"",
                                        "id=\"fig3\"",
                                        "id=\"q-compare\"",
                                        "id=\"report-ends\"",
                                        "id=\"report-settings\"",
                                        "id=\"report-all-differences\"",
                                        "id=\"report-run-1\"",
                                        "id=\"report-run-2\"",
                                        "id=\"report-not-drawn\""};
    (void)state;
    if (!have_gnuplot()) skip();
    check_run("statplot report cv.h5 nlp.h5 -o order");
    check_order("order/index.html", order, sizeof order / sizeof order[0]);
    check_run("cd order; test $(grep -c 'src=.answer' index.html) = 3 && "
              "test $(ls answer.*.svg | wc -l) = 3");
    /* a line for each run: task, model, norm, steps, state, last metric */
    check_run("cd order; grep -q '>nlp.h5</a></th><td>[^<]*iwslt14</td><td>transformer</td><td>bn"
              "</td><td class=\"n\">1000</td><td>complete</td><td>valid_' index.html");
    /* the contents link to every figure and question */
    check_run(
        "cd order; sed -n '/<nav/,/<.nav>/p' index.html | grep -o 'href=\"#[^\"]*' | "
        "cut -c 8- | while read -r id; do grep -q \"id=.$id\\\"\" index.html || exit 1; done");
}

/* The verdict is the output of statrec diagnose in its severity's colour. The most severe finding
 * is first, and the figures belong to the findings. */
static void test_report_verdict(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_run("statplot report cv.h5 nlp.h5 six.h5 -o verdict");
    check_run(
        "for run in cv nlp six; do said=$(statrec diagnose $run.h5 | "
        "grep '^[0-9]* FINDING\\|^HEALTHY\\|^NOTHING FOUND\\|^NO VERDICT'); test \"$said\" && "
        "grep -q \">$run.h5</a></th>.*>$said</td></tr>\" verdict/index.html && "
        "grep -q \"<p class=.verdict.>$said</p>\" verdict/index.html || exit 1; done");
    check_run("worst=$(statrec diagnose --format tsv cv.h5 | awk -F '\\t' '$3 == \"found\" && "
              "$4 == 1 {print $5; exit}'); said=$(grep -c \"<td class=.$worst.>[0-9]* FINDING\" "
              "verdict/index.html); test -z \"$worst\" || test $said -ge 1");
    check_run("statrec diagnose --format tsv nlp.h5 >nlp.tsv && awk -F '\\t' '$3 == \"found\" "
              "{print $2}' nlp.tsv | while read -r q; do grep -q \"#diagnosis-2\\\">$q</a> in "
              "nlp.h5\" verdict/index.html || exit 1; done");
    check_run("rank() { sed -n 's/^<li><b class=\"\\([a-z]*\\)\".*/\\1/p' verdict/index.html; }; "
              "rank | sed 's/severe/3/;s/notable/2/;s/minor/1/' >ranks; sort -rn ranks | "
              "cmp - ranks && test -s ranks");
    /* the findings of each run, by rank */
    check_run("for run in cv nlp six; do statrec diagnose --format tsv $run.h5 | awk -F '\\t' "
              "'$3 == \"found\" {print $4, $2}' | sort -n | cut -d ' ' -f 2; done >ranked; "
              "sed -n 's/.*<h5><b class=[^>]*>[a-z]*<.b> \\([a-z-]*\\).*/\\1/p' "
              "verdict/index.html | cmp - ranked && test -s ranked");
    check_run("sed -n 's/.*Finding: \\([a-z-]*\\)\\..*/\\1/p' verdict/index.html | sort -u >shown; "
              "test -s shown && while read -r q; do grep -q \"^<li>.*>$q</a>\" verdict/index.html "
              "|| exit 1; done <shown");
}

/* Names of run files are plain text. */
static void test_report_hostile(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_run("cp nlp.h5 '<img src=x onerror=alert(1)>&\"q\".h5'; cp nlp.h5 "
              "a_name_without_any_place_to_break_it.h5");
    check_run("statplot report ho*.h5 '<img src=x onerror=alert(1)>&\"q\".h5' a_name*.h5 -o "
              "hostile; grep -q 'tick`&quot;; system' hostile/index.html && "
              "grep -q '&lt;img src=x onerror=alert(1)&gt;&amp;&quot;q&quot;.h5' "
              "hostile/index.html && ! grep -q '<img src=x' hostile/index.html && "
              "grep -q 'class=.long.><a href=.#report-run-3.>' hostile/index.html");
    assert_false(exists("tick") || exists("dollar") || exists("quote"));
    /* every tag is closed, and text from a file adds none: the page is XML too */
    check_run("command -v python3 >/dev/null || exit 0; python3 -c 'import sys; "
              "import xml.etree.ElementTree as tree\n"
              "page = tree.parse(\"hostile/index.html\")\n"
              "ids = [e.get(\"id\") for e in page.iter() if e.get(\"id\")]\n"
              "sys.exit(len(ids) != len(set(ids)) or any(e.tag == \"script\" or any(a.startswith("
              "\"on\") for a in e.attrib) for e in page.iter()))'");
}

/* A figure without data in these runs is named only at the end, with the reason. */
static void test_report_lacking(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_run("statplot report ln.h5 -o bare");
    check_run("cd bare; grep -q 'id=.report-not-drawn.>.*<b>fig4</b> (takes 2 runs of one task)' "
              "index.html && ! grep -q 'id=.fig4.' index.html && ! test -e fig4.svg");
    check_run("grep -q '<b>fig2</b> (stat-distance: ln.h5 has no dist_mu' bare/index.html");
    check_run("! grep -q 'q-gradient' bare/index.html");
}

/* Differences between the runs: few runs have a column each; for many, each value lists its
 * runs. */
static void test_report_differences(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_run("statplot report cv.h5 nlp.h5 -o differ");
    check_run("sed -n '/report-differences/,/<.table>/p' differ/index.html >first; "
              "grep -q '<th scope=.row.>model</th><td>resnet20</td><td>transformer</td>' first && "
              "grep -q '<th scope=.row.>data</th><td>cifar10</td><td>iwslt14</td>' first && "
              "! grep -q '>norm</th>' first && ! grep -q '>seed</th>' first");
    check_run("for i in 1 2 3 4 5 6; do cp nlp.h5 n$i.h5; done; "
              "statplot report cv.h5 n?.h5 -o differ --max-runs 7 && grep -q '<th scope=.row.>model"
              "</th><td class=.long.><b>resnet20</b>: cv.h5<br/><b>transformer</b>: n1.h5, n2.h5, "
              "n3.h5, n4.h5, "
              "n5.h5, n6.h5</td>' differ/index.html");
}

/* With many runs, only the first ones get figures of one run, and lines. Tables, and figures with a
 * point per run, contain all. */
static void test_report_of_many(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_run("for i in 1 2 3; do cp nlp.h5 many$i.h5; done; rm -rf many");
    check_run("statplot report many?.h5 --max-runs 1 -o many");
    check_run("cd many; test -s layers.1.svg && ! test -e layers.2.svg && test -s sites.1.tsv && "
              "! test -e sites.2.tsv && ! test -e diagnosis.2.tsv");
    check_run("cd many; test $(grep -c '2 more runs (--max-runs 1)' index.html) -ge 4");
    check_run("cd many; test $(grep -v '^#' runs.tsv | grep -c many) = 3");
    check_run("statplot report many?.h5 --max-runs 2 -o many && grep -q 'Left out: 1 more run "
              "(--max-runs "
              "2)' many/index.html && test -s many/layers.2.svg");
    check_run("statplot report many?.h5 --max-runs 2 --labels a1,a2,a3 -o many && cd many && "
              "grep -q '>a2<' curves.svg && ! grep -q '>a3<' curves.svg && "
              "grep -q '>a2<' tidgap.svg && ! grep -q '>a3<' tidgap.svg");
    check_fails("statplot report many1.h5 --max-runs 0 -o none", 2, "--max-runs");
    check_fails("statplot curves many1.h5 --max-runs 2", 2, "max-runs");
}

/* Images and text have separate figures; narrow figures stay narrow. */
static void test_report_tasks(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_run("statplot report cv.h5 nlp.h5 -o tasks");
    check_run("cd tasks; grep -q 'cifar10, seed\\|resnet20' curves.svg && ! grep -q transformer "
              "curves.svg && "
              "grep -q transformer curves.2.svg && ! grep -q resnet20 curves.2.svg && "
              "grep -q '<h4>transformer, iwslt14</h4>' index.html && grep -q resnet20 fig2.svg && "
              "grep -q transformer fig2.svg");
    check_run("cd tasks; grep -q 'class=.narrow. src=.results.svg' index.html && "
              "! grep 'src=.fig2.svg' index.html | grep -q narrow");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_report),
        cmocka_unit_test(test_report_again),
        cmocka_unit_test(test_report_order),
        cmocka_unit_test(test_report_verdict),
        cmocka_unit_test(test_report_hostile),
        cmocka_unit_test(test_report_lacking),
        cmocka_unit_test(test_report_differences),
        cmocka_unit_test(test_report_of_many),
        cmocka_unit_test(test_report_tasks),
        cmocka_unit_test(test_report_interactive),
    };
    return cmocka_run_group_tests(tests, statplot_runs, NULL);
}
