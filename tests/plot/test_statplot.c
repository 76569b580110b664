/* statplot: figures are complete and repeatable and keep outliers; hostile names have no effect. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "statplot_runs.h"
#include "testing/check.h"

/* A program for templates of tests, found on PATH. */
static void write_program(const char *name, const char *script) {
    program_write(name, script);
    assert_int_equal(chmod(program_file(name), 0755), 0);
}

static void test_same_bytes(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    static const char *const figure[] = {"fig2", "fig3"}, *const ending[] = {"pdf", "svg", "png"};
    for (int f = 0; f < 2; f++)
        for (int e = 0; e < 3; e++) {
            program_result r = program_run("statplot %s cv.h5 nlp.h5 -o a.%s && %s statplot %s "
                                           "cv.h5 nlp.h5 -o b.%s && cmp a.%s b.%s",
                                           figure[f], ending[e], e == 0 ? "sleep 1.1;" : "",
                                           figure[f], ending[e], ending[e], ending[e]);
            if (r.status != 0) fail_msg("%s.%s: %s%s", figure[f], ending[e], r.err, r.out);
            program_free(&r);
        }
    check_run("statplot fig2 cv.h5 -o one.pdf");
    check_run("statplot fig2 cv.h5 nlp.h5 nlp.h5 -o three.pdf");
    check_run("head -c 5 one.pdf | grep -q %PDF-");
    /* a name with a dash is no option of an analysis */
    check_run("cp cv.h5 ./-cv.h5 && statplot fig2 -o dash.svg -- -cv.h5 && statplot fig2 cv.h5 -o "
              "plain.svg && cmp dash.svg plain.svg");
}

/* Each figure with the least number of runs, in every format. Seven need data that this run lacks
 * (spectra, pairs, shards, LN, a reference run): test_sample_runs draws them. */
static void test_every_figure(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_run(
        "statrec list figures | while IFS='\t' read -r name runs title; do\n"
        "  case $name in condition|pairs|ranks|theorem1|replaced|tidgap|parts) continue;; esac\n"
        "  set -- ; for word in $runs; do case $word in [[]*) ;; *) set -- \"$@\" nlp.h5 ;; "
        "esac; done\n"
        "  for ending in pdf svg png; do\n"
        "    statplot \"$name\" \"$@\" -o \"every_$name.$ending\" || exit 1\n"
        "  done\n"
        "done");
    check_run("test $(($(ls every_*.png | wc -l) + 7)) = $(statrec list figures | wc -l)");
    check_run("test $(statrec list figures | wc -l) -ge 9");
    check_run("statplot overview ln.h5 -o ln.pdf"); /* no batch statistics, no evaluations */
    check_run("statplot curves ln.h5 -o ln.pdf");
    check_run("statplot layers nlp.h5 --stat g_psi2 --site 'l*' -o layers.svg");
    check_fails("statplot layers nlp.h5 --stat nothing -o x.svg", 1, "unknown statistic 'nothing'");
    check_fails("statplot layers nlp.h5 --stat g_mu,g_psi2 -o x.svg", 2, "takes one statistic");
    check_run("statplot fig2 nlp.h5 --site 'late,encoder*' -o sites.svg");
    check_run("grep -q '(encoder.0.norm1)' sites.svg");
    check_fails("statplot fig2 nlp.h5 --stat g_mu -o x.svg", 2, "takes no --stat");
}

/* Without run files: the checkout contains sample runs for every figure. */
static void test_sample_runs(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    program_result r =
        program_run("statrec list figures | while IFS='\t' read -r name runs title; do\n"
                    "  for ending in pdf svg png; do\n"
                    "    statplot $name -o sample_$name.$ending || exit 1\n"
                    "    test -s sample_$name.$ending || exit 1\n"
                    "  done\n"
                    "done");
    if (r.status || !only_warnings(r.err) || r.out[0])
        fail_msg("exit %d: %s%s", r.status, r.err, r.out);
    program_free(&r);
    check_run("test $(ls sample_*.svg | wc -l) = $(statrec list figures | wc -l)");
    check_run("test $(find \"$STATREC_SAMPLES\" -name '*.h5' -size +488k | wc -l) = 0");
}

/* A figure whose analysis reduces a long run equals the figure of all its steps, to the byte. */
static void test_reduced_by_analysis(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_run("mkdir whole && cp \"$STATREC_PLOTS\"/*.gp whole && "
              "sed -i 's/ --buckets {buckets}//' whole/*.gp && ! grep -q '{buckets}' whole/*.gp");
    check_run("for f in fig2 fig3 compare tid layers overview heatmap; do\n"
              "  statplot $f nlp.h5 -o reduced.svg && statplot ./whole/$f.gp nlp.h5 -o whole.svg "
              "&& cmp reduced.svg whole.svg || exit 1\n"
              "done");
    check_run("test $(stat-tid nlp.h5 --per-step --buckets 25 | grep -vc '^#') = 76");
}

/* Runs of one, two and six steps (the last one with NaN), constant values, two sites or one. */
static void test_short_runs(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    static const char *const run[] = {"one.h5", "two.h5", "six.h5"};
    static const char *const figure[] = {"fig2", "fig3",   "fig6",    "fig7",
                                         "tid",  "curves", "overview"};
    for (int r = 0; r < 3; r++) {
        for (int f = 0; f < 7; f++) {
            program_result got = program_run("statplot %s %s -o short.pdf", figure[f], run[r]);
            if (got.status) fail_msg("%s of %s: %s", figure[f], run[r], got.err);
            program_free(&got);
        }
    }
    check_run("statplot layers six.h5 --stat dist_mu -o short.pdf");
    check_run("statplot layers six.h5 --stat rows -o short.pdf");
}

static void test_default_name_and_screen(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_run("statplot fig2 cv.h5 nlp.h5 && test -s fig2.pdf && test $(ls fig2* | wc -l) = 1");
    check_run("statplot fig2 cv.h5 nlp.h5 -o - | grep -q 'resnet20, cifar10'");
}

static void test_layer_norm_is_refused(void **state) {
    (void)state;
    check_fails("statplot fig2 cv.h5 ln.h5 -o x.pdf", 1, "ln.h5 has no dist_mu or dist_sigma2");
    check_fails("statplot fig2 missing.h5 -o x.pdf", 1, "missing.h5");
    assert_false(exists("x.pdf"));
}

static void test_usage(void **state) {
    (void)state;
    check_fails("statplot", 2, "no figure given");
    check_fails("statplot fig99 cv.h5", 2, "no figure named 'fig99'");
    check_fails("STATREC_SAMPLES=no statplot fig2", 2, "the sample run cv_bn.h5 is not found");
    program_write("bare.gp",
                  "#: title no samples\n#: runs 1 RUN.h5\n#: table t stat-curve {run}\n");
    check_fails("statplot ./bare.gp", 2, "takes 1 run, not 0");
    check_fails("statplot fig2 cv.h5 -o cv.h5", 2, "ends in .pdf, .svg or .png");
    check_fails("statplot fig2 cv.h5 nlp.h5 --labels one", 2, "1 labels for 2 runs");
    program_result r = program_run("statplot list");
    assert_int_equal(r.status, 0);
    assert_non_null(strstr(r.out, "fig2\t"));
    assert_non_null(strstr(r.out, "fig3\t"));
    assert_null(strstr(r.out, "style"));
    assert_non_null(strstr(r.out, "pn-table1\t[RUN.h5...]\ttable: PowerNorm, table 1"));
    program_free(&r);
}

/* A paper's result table: stat-table's output, written like a figure. */
static void test_result_tables(void **state) {
    (void)state;
    check_run("statplot rbn-table1 cv.h5 nlp.h5 -o results.tex");
    check_run("stat-table --layout rbn-table1 --format latex -- cv.h5 nlp.h5 >same.tex\n"
              "cmp results.tex same.tex");
    check_run("statplot an-table3 && grep -q toprule an-table3.tex"); /* with sample runs */
    check_run("grep -q nlp_detach_std an-table3.tex");
    check_run("statplot an-table3 cv.h5 -o an.md && grep -q '| Detach mean |' an.md");
    check_run("statplot an-table3 cv.h5 -o an.tsv && grep -q '^Detach mean' an.tsv");
    check_run("statplot an-table3 cv.h5 - >shown && cmp an.md shown");
    check_fails("statplot an-table3 cv.h5 -o an.pdf", 2, "a table's name ends in .tex, .md or");
    check_fails("statplot an-table3 cv.h5 --site late", 2, "table an-table3 takes no --site");
    check_fails("statplot an-table3 none.h5 -o none.md", 1, "none.h5: No such file");
    check_run("test ! -e none.md");
    check_run("test $(statplot list | grep -c 'table: ') = $(stat-table --layout list | "
              "grep -vc '^#\\|^layout')");
    check_run(
        "for t in $(statplot list | sed -n 's/\t.*\ttable: .*//p'); do "
        "statplot $t -o $t.tex && statplot $t -o t.md && statplot $t -o t.tsv || exit 1; done; "
        "test $(grep -l toprule pn-*.tex rbn-*.tex an-*.tex | wc -l) = 12");
}

/* Prints the default file name, and the replacement of a file that statplot did not write. */
static void test_tables_told(void **state) {
    (void)state;
    program_result r =
        program_run("statplot an-table3 cv.h5 && for t in md tex tsv; do\n"
                    "statplot an-table3 cv.h5 -o told.$t && statplot an-table3 cv.h5 -o told.$t && "
                    "echo mine >mine.$t && statplot an-table3 cv.h5 -o mine.$t || exit 1; done");
    if (r.status) fail_msg("%s", r.err);
    assert_string_equal(r.out, "an-table3.tex: written\n"
                               "mine.md: written, in place of another file\n"
                               "mine.tex: written, in place of another file\n"
                               "mine.tsv: written, in place of another file\n");
    program_free(&r);
}

static void test_without_gnuplot(void **state) {
    (void)state;
    check_fails("B=$(dirname $(command -v statplot)); PATH=/nonexistent \"$B\"/statplot fig2 cv.h5",
                1, "cannot find the program gnuplot\nstatplot: hint: install gnuplot");
}

static void test_hostile_labels(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_run("statplot fig2 ho*.h5 cv.h5 -o hostile.svg");
    check_run("statplot fig3 ho*.h5 -o hostile.pdf");
    check_run("statplot fig2 cv.h5 --labels '`touch tick`$(touch dollar)' -o hostile.png");
    assert_false(exists("tick") || exists("dollar") || exists("quote"));
    /* the backticks are drawn, not run */
    check_run("grep -q '`touch tick`' hostile.svg");
}

/* One step among a million, far above the rest, must be in the drawing. */
static void test_spike_survives(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    write_program("stat-million", "#!/bin/sh\n"
                                  "printf 'site\\tpercent\\tv\\n'\n"
                                  "awk 'BEGIN { for (i = 1; i <= 1000000; i++)\n"
                                  "  printf \"a\\t%.9g\\t%s\\n\", i / 1e4, i == 700001 ? 123.5 : "
                                  "i == 300001 ? -7 : i % 5 ? 1 : \"nan\" }'\n");
    program_write(
        "spike.gp",
        "#: title one spike\n#: runs 1 RUN.h5\n#: size 3 2\n"
        "#: table t stat-million\n#: curves t by site x percent y v buckets 400\n"
        "plot t using t_x:t_v_low:t_v_high with filledcurves, t using t_x:t_v with lines\n");
    program_result r =
        program_run("PATH=.:$PATH statplot ./spike.gp cv.h5 -o spike.svg --keep 2>kept && "
                    "d=$(sed 's/.*kept //' kept) && cat $d/t.dat && rm -r $d");
    assert_int_equal(r.status, 0);
    int rows = 0, high = 0, low = 0;
    for (char *line = strtok(r.out, "\n"); line; line = strtok(NULL, "\n")) {
        double x, least, median, most;
        assert_int_equal(sscanf(line, "%lf %lf %lf %lf", &x, &least, &median, &most), 4);
        check_equals(median, 1);
        if (most == 123.5 && fabs(x - 70) < 0.26) high++;
        if (least == -7 && fabs(x - 30) < 0.26) low++;
        rows++;
    }
    assert_int_equal(rows, 400);
    assert_int_equal(high, 1);
    assert_int_equal(low, 1);
    program_free(&r);
}

/* A template whose table comes from the given script. */
static void check_table(const char *script, int status, const char *part) {
    write_program("stat-made", script);
    program_write("made.gp",
                  "#: title made\n#: runs 1 RUN.h5\n#: size 3 2\n#: table t stat-made {run}\n"
                  "#: curves t x percent y v\nplot t using t_x:t_v with lines\n");
    check_fails("rm -f made.svg; PATH=.:$PATH statplot ./made.gp cv.h5 -o made.svg", status, part);
    assert_false(exists("made.svg"));
}

static void test_broken_tables(void **state) {
    (void)state;
    program_write("empty.gp", "#: title empty\n#: runs 1- RUN.h5\n#: size 3 2\n"
                              "#: table t stat-outlier {run} --list --deviations 1e9\n"
                              "#: curves t by site x step y value\nplot 1\n");
    check_fails("statplot ./empty.gp cv.h5 nlp.h5 -o x.svg", 1,
                "statplot: stat-outlier: the table of run 1 has no rows");
    check_table("#!/bin/sh\nprintf 'percent\\tv\\n1\\t2\\n2\\t3'\n", 1, "breaks off");
    check_table("#!/bin/sh\nprintf 'percent\\tv\\n1\\t2\\n2\\n'\n", 1, "1 cells under 2 columns");
    check_table("#!/bin/sh\nprintf '# note: x\\n'\n", 1, "no header line");
    check_table("#!/bin/sh\nprintf 'percent\\tv\\n'\n", 1, "no rows");
    check_table("#!/bin/sh\nprintf 'percent\\tw\\n1\\t2\\n'\n", 1, "no column v");
    check_table("#!/bin/sh\nprintf 'percent\\tv\\n1\\tx\\n'\n", 1, "is no number");
    check_table("#!/bin/sh\nprintf 'percent\\tv\\n1\\tnan\\n'\n", 1, "no finite value of v");
    check_table("#!/bin/sh\nprintf 'percent\\tv\\n2\\t1\\n1\\t1\\n'\n", 1, "percent falls");
    check_table("#!/bin/sh\nprintf 'percent\\tv\\n1\\t2\\n'; exit 1\n", 1, "stat-made failed");
    check_table("#!/bin/sh\nkill -9 $$\n", 1, "killed by signal 9");
}

static void test_gnuplot_warning_is_failure(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    program_write("warn.gp",
                  "#: title warns\n#: runs 1 RUN.h5\n#: size 3 2\n#: table t stat-curve {run}\n"
                  "#: curves t x percent y loss\nplot t using t_x:t_loss, 'no such file'\n");
    program_write("warn.svg", "the old figure\n");
    check_fails("statplot ./warn.gp cv.h5 -o warn.svg", 1, "gnuplot, figure warn:");
    check_run("grep -q 'the old figure' warn.svg && test $(ls warn.svg* | wc -l) = 1");
}

/* A terminated statplot ends its analysis, leaves no files, and reports the signal. */
static void test_terminated(void **state) {
    (void)state;
    write_program("stat-slow", "#!/bin/sh\nexec sleep 20\n");
    program_write("slow.gp",
                  "#: title slow\n#: runs 1 RUN.h5\n#: table t stat-slow {run}\nplot t\n");
    program_result r = program_run("mkdir tmp; export TMPDIR=$PWD/tmp PATH=.:$PATH\n"
                                   "statplot ./slow.gp cv.h5 -o slow.svg & p=$!\n"
                                   "sleep 0.5; kill -TERM $p; wait $p; echo $? $(ls tmp | wc -l)");
    assert_string_equal(r.out, "143 0\n");
    assert_false(exists("slow.svg"));
    program_free(&r);
}

static void test_bad_templates(void **state) {
    (void)state;
    static const char *const bad[][2] = {
        {"#: title x\n#: tabel t stat-curve\n", "bad.gp:2: unknown word"},
        {"#: title x\n#: curves t x a y b\n", "bad.gp:2: no table named"},
        {"#: title x\n#: runs few\n", "bad.gp:2: not a number of runs"},
        {"#: title x\n#: size 3\n", "bad.gp:2: not a size"},
        {"#: title x\n#: table 9 stat-curve\n", "bad.gp:2: no name"},
        {"plot sin(x)\n", "no `#: title`"},
    };
    for (int i = 0; i < 6; i++) {
        program_write("bad.gp", bad[i][0]);
        check_fails("statplot ./bad.gp cv.h5 -o bad.svg", 1, bad[i][1]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_every_figure),
        cmocka_unit_test(test_sample_runs),
        cmocka_unit_test(test_reduced_by_analysis),
        cmocka_unit_test(test_short_runs),
        cmocka_unit_test(test_default_name_and_screen),
        cmocka_unit_test(test_layer_norm_is_refused),
        cmocka_unit_test(test_usage),
        cmocka_unit_test(test_without_gnuplot),
        cmocka_unit_test(test_result_tables),
        cmocka_unit_test(test_tables_told),
        cmocka_unit_test(test_hostile_labels),
        cmocka_unit_test(test_spike_survives),
        cmocka_unit_test(test_broken_tables),
        cmocka_unit_test(test_gnuplot_warning_is_failure),
        cmocka_unit_test(test_terminated),
        cmocka_unit_test(test_bad_templates),
    };
    return cmocka_run_group_tests(tests, statplot_runs, NULL);
}
