/* statplot: options that change any figure have an effect, or are rejected. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testing/check.h"
#include "testing/programs.h"

/* nine.gp draws nine points of stat-nine, which prints its arguments into `words`. */
static int write_templates(void **state) {
    (void)state;
    write_small_run(program_file("run.h5"), 6, true);
    program_write(
        "nine.gp",
        "#: title nine\n#: runs 1 RUN.h5\n#: size 3 2\n#: controls x y scale smooth steps\n"
        "#: table t stat-nine {run} --buckets {buckets} --phase {steps}\n"
        "#: curves t x x y v\n"
        "set multiplot\neval panel(1, 1, 1, 1)\neval x_axis(1, 9, 2)\n"
        "eval linear_y(t_v_least, t_v_largest)\nplot t using t_x:t_v with lines\n"
        "eval LEGEND_DRAW\nunset multiplot\n");
    program_write("stat-nine", "#!/bin/sh\necho \"$*\" | sed 's/.*--phase //' >\"$WORDS\"\n"
                               "awk 'BEGIN { print \"x\\tv\"; for (i = 1; i <= 9; i++)\n"
                               "print i \"\\t\" (i == 5 ? 100 : i == 8 ? \"nan\" : i) }'\n");
    assert_int_equal(chmod(program_file("stat-nine"), 0755), 0);
    return 0;
}

#define NINE   "WORDS=\"$PWD/words\" PATH=.:$PATH statplot ./nine.gp run.h5 -o nine.svg "
#define CV     "statplot fig2 \"$STATREC_SAMPLES\"/cv_bn.h5 "
#define KEPT_D "d=$(sed -n 's/^statplot: kept //p' kept) && "

/* Runs the command; fails with its output if it fails. */
static void check_shell(const char *command) {
    program_result r = program_run("%s", command);
    if (r.status) fail_msg("%s: exit %d: %s%s", command, r.status, r.out, r.err);
    program_free(&r);
}

static void check_refused(const char *command, const char *part) {
    program_result r = program_run("%s", command);
    const char *end = strchr(r.err, '\n');
    if (r.status != 2 || !strstr(r.err, part) || !end || (end[1] && !strstr(end, "hint")))
        fail_msg("%s: exit %d, or no '%s' in: %s", command, r.status, part, r.err);
    program_free(&r);
}

static void test_axes(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_shell(CV "-o plain.svg && grep -q '> 100<' plain.svg && ! grep -q '> 45<' plain.svg");
    check_shell(CV "--xrange 40:55 -o x.svg && grep -q '> 45<' x.svg && ! grep -q '> 100<' x.svg");
    check_shell(CV "--yrange 0:0.011 -o y.svg && test $(grep -c '>0.008<' y.svg) = 2");
    check_shell(
        CV "--log -o log.svg && " CV "--axes log -o same.svg && cmp log.svg same.svg && "
           "grep -q '>0.01<' log.svg && ! grep -q '>0.04<' log.svg && grep -q '>0.04<' plain.svg");
    check_shell(CV "--axes log --linear -o linear.svg && cmp linear.svg plain.svg");
    check_shell(
        "statplot layers \"$STATREC_SAMPLES\"/nlp_bn.h5 --yrange 0.03:0.9 -o a.svg && statplot "
        "layers \"$STATREC_SAMPLES\"/nlp_bn.h5 --yrange 0:0.9 --linear -o b.svg && grep -q "
        "'>0.05<' a.svg && grep -q '>0.6<' b.svg");
    check_refused(CV "--log --linear -o x.svg", "--log and --linear exclude each other");
    check_refused(CV "--log --yrange -1:1 -o x.svg", "a logarithmic axis begins above 0");
    check_refused(CV "--xrange 4 -o x.svg", "--xrange: '4' is not FROM:TO");
    check_refused(CV "--yrange 4:4 -o x.svg", "--yrange: '4:4' is not FROM:TO with FROM below TO");
    check_refused(CV "--yrange a:b -o x.svg", "is not FROM:TO");
}

/* Medians of five values around each: 100 disappears, its neighbours are unchanged; nan stays
 * nan. */
static void test_smooth(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    program_result r = program_run(NINE "--smooth 5 --keep 2>kept && " KEPT_D
                                        "grep . $d/t.dat | cut -f1,3 && rm -r $d");
    assert_string_equal(r.out, "1\t2\n2\t2.5\n3\t3\n4\t4\n5\t6\n6\t6.5\n7\t8\n8\tnan\n9\t8\n");
    program_free(&r);
    r = program_run(NINE "--smooth 3 --keep 2>kept && " KEPT_D
                         "grep . $d/t.dat | cut -f2-4 | sed -n 5p && rm -r $d");
    assert_string_equal(r.out, "100\t6\t100\n"); /* the range keeps the outlier */
    program_free(&r);
    check_shell(NINE "--smooth 5 && grep -q '>running medians over 5 buckets<' nine.svg");
    check_shell(NINE "&& ! grep -q 'running' nine.svg");
    check_refused(NINE "--smooth 4", "--smooth: 4 is even");
    check_refused(NINE "--smooth 1", "--smooth");
}

static void test_steps(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_shell(NINE "--steps 2:5 && grep -qx 2:5 words && grep -q '>steps 2:5<' nine.svg");
    check_shell(NINE "&& grep -qx all words");
    check_shell(CV
                "--steps 100:120 -o s.svg --keep 2>kept && " KEPT_D
                "test $(grep -c '^[0-9]' $d/d.dat) = 21 && test $(grep -c '^62.5' $d/d.dat) = 1 && "
                "rm -r $d && grep -q '> 64<' s.svg && ! grep -q 'burn-in' s.svg");
    check_shell(
        "test $(stat-tid run.h5 --site first --per-step --phase 2:4 | grep -c '^run.h5') = 3");
    check_shell("stat-tid run.h5 --burn-in 0 --phase 2:99 | grep -q '^# steps: run.h5: 2 to 6 of "
                "6; as asked for'");
    check_refused("stat-tid run.h5 --phase 7:9", "--phase 7:9: run.h5 has 6 steps");
    check_refused("stat-tid run.h5 --phase 4:2", "--phase: '4:2' is not all,");
    check_refused(CV "--steps 9:3", "--steps: '9:3' is not FROM:TO");
    /* epochs 0.48 to 0.65, on axes of this range; one evaluation */
    check_shell("for f in curves converge modes; do\n"
                "  statplot $f \"$STATREC_SAMPLES\"/nlp_ln.h5 \"$STATREC_SAMPLES\"/nlp_bn.h5 "
                "--steps 90:120 "
                "-o s.svg --keep 2>kept || exit 1\n  " KEPT_D
                "test $(cat $d/t.*.tsv | grep -c 'nlp_.*h5\t.*\t') = 62 || exit 1\n"
                "  test $(cat $d/v.*.tsv | grep -c 'nlp_.*h5\t50\t120\t') = 2 || exit 1\n"
                "  grep -q '>[^<]*steps 90:120<' s.svg && grep -q '> 0.55<' s.svg || exit 1\n"
                "  test $f = converge || ! grep -q '> 0.[14]<' s.svg || exit 1\n"
                "  rm -r $d; done");
}

static void test_size_and_title(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_shell("for f in $(statrec list figures | cut -f1); do statplot $f --size 7x5 --title "
                "'Over <it> `touch "
                "tick`' -o sized.svg || exit 1; grep -q 'width=\"672\" height=\"480\"' sized.svg "
                "&& grep -q "
                "'>Over &lt;it> `touch tick`<' sized.svg && grep -q '>sample runs of statrec: ' "
                "sized.svg || { echo $f >&2; exit 1; }; done; "
                "test ! -e tick");
    check_refused(CV "--size 3 -o x.svg", "--size: '3' is not WIDTHxHEIGHT");
    check_refused(CV "--size 3x -o x.svg", "--size: '3x' is not WIDTHxHEIGHT");
    check_refused(CV "--size 0x3 -o x.svg", "is not WIDTHxHEIGHT of 1 to 100 inches");
    check_shell("! " CV
                "--size 1x1 -o x.svg 2>said && grep -q 'leaves no room for the panels' said");
}

/* Text widths of venues. Panels that do not fit side by side are stacked, and the figure is higher.
 * A user's size is kept. */
static void test_venues(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_shell("for v in icml:312 icml-wide:648 neurips:528 iclr:528 acl:291 acl-wide:605 "
                "springer:317 springer-wide:658; do "
                "statplot curves --size ${v%:*} -o v.svg && "
                "grep -q \"width=\\\"${v#*:}\\\" height\" v.svg || { echo $v >&2; exit 1; }; done");
    check_shell("high() { sed -n 's/.*height=\"\\([0-9]*\\)\".*/\\1/p' $1 | head -1; }; "
                "statplot curves --size icml -o one.svg && statplot curves --size icml-wide -o "
                "two.svg && statplot curves --size 3.25x2.3 -o fixed.svg && "
                "test $(high one.svg) -gt $((3 * $(high two.svg) / 2)) && "
                "test $(high fixed.svg) = 221");
    check_shell("for f in $(statrec list figures | cut -f1); do for v in acl icml-wide; do "
                "statplot $f --size $v -o v.png || { echo $f $v >&2; exit 1; }; done; done");
    check_refused(CV "--size icm -o x.svg", "none of icml, icml-wide, neurips");
}

static void test_labels(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_shell(
        "statplot curves run.h5 run.h5 --labels 'one\\, with comma,back\\\\slash' -o l.svg && "
        "grep -q '>one, with comma<' l.svg && grep -q '>back.slash<' l.svg");
    check_shell("statplot report run.h5 run.h5 --labels 'a\\,b,c\\\\' -o labels && "
                "grep -q '>a,b<' labels/curves.svg && grep -q '>c.<' labels/curves.svg");
    check_refused("statplot curves run.h5 run.h5 --labels 'a\\,b' -o l.svg", "1 labels for 2 runs");
    check_shell("mkdir -p one/x two/x && cp run.h5 one/x && cp run.h5 two/x && "
                "statplot curves one/x/run.h5 two/x/run.h5 one/x/../../run.h5 -o l.svg && "
                "grep -q '>one/x/run.h5<' l.svg && grep -q '>two/x/run.h5<' l.svg");
}

/* Labels that are too long keep the parts that differ; others are cut in the middle. */
static void test_long_labels(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
#define BEGIN "a transformer with many layers\\, data of several languages\\, seed "
#define END   "\\, and an end that all labels here have in common"
#define LONG  "a transformer with many layers and data of several languages of seed "
#define REST  " and an end that all labels here have in common"
    check_shell("statplot fig6 \"$STATREC_SAMPLES\"/nlp_ln.h5 \"$STATREC_SAMPLES\"/nlp_bn.h5 "
                "\"$STATREC_SAMPLES\"/nlp_pnv.h5 --labels '" LONG "1" REST "," LONG "2" REST
                ",another one" REST "' -o l.svg && grep -q '>…1 and an end.*…<' l.svg && grep -q "
                "'>…2 and an end' l.svg && grep -q '>another one.*….*in common<' l.svg");
    check_shell("statplot fig6 \"$STATREC_SAMPLES\"/nlp_ln.h5 \"$STATREC_SAMPLES\"/nlp_bn.h5 "
                "\"$STATREC_SAMPLES\"/nlp_pnv.h5 --labels '" BEGIN "1" END "," BEGIN "2" END
                ",another one" END "' -o l.svg && grep -q '>seed 1, and an' l.svg && grep -q "
                "'>seed 2, and an' l.svg && grep -q '>and an end' l.svg"); /* cuts parts first */
    check_shell("statplot tiddepth \"$STATREC_SAMPLES\"/nlp_bn.h5 \"$STATREC_SAMPLES\"/nlp_rbn.h5 "
                "--labels '" BEGIN "1" END "," BEGIN "2" END "' --size 3.3x3 -o l.svg && "
                "grep -q '>seed 1, and' l.svg && grep -q '>seed 2, and' l.svg");
    /* names of rows; panel titles */
    check_shell("statplot ablation \"$STATREC_SAMPLES\"/nlp_bn.h5 \"$STATREC_SAMPLES\"/nlp_rbn.h5 "
                "--labels '" BEGIN "1" END "," BEGIN "2" END "' -o l.svg && "
                "grep -q '>…seed 1, and' l.svg && grep -q '>…seed 2, and' l.svg");
    check_shell("statplot features \"$STATREC_SAMPLES\"/nlp_bn.h5 "
                "\"$STATREC_SAMPLES\"/cv_bn_every.h5 "
                "--labels '" BEGIN "1" END "," BEGIN "2" END "' -o l.svg && "
                "grep -q '>…seed 1, and' l.svg && grep -q '>…seed 2, and' l.svg");
}

/* Three lines beside a row of several marks; a line without spaces ends after a hyphen. */
static void test_lines_of_names(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_shell("for f in nlp_ln nlp_bn cv_ln cv_bn; do echo \"$STATREC_SAMPLES\"/$f.h5; done | "
                "xargs statplot parts --size 5.5x3 -o n.svg --labels "
                "'a,normalized by multi30k-german-english-spoken texts in any order,c,d' && "
                "grep -q '>normalized by *<' n.svg && grep -q '>multi30k-german-english-<' n.svg "
                "&& grep -q '>spoken texts in any order<' n.svg && ! grep -q 'multi…' n.svg");
}

static void write_heads(const char *name, int heads) {
    char config[160];
    sr_options o = run_options();
    snprintf(config, sizeof config,
             "data-dir = /some/where/pairs/\nsource = de\ntarget = en\nheads = %d\n", heads);
    o.config = config, o.program = "statrec train", o.model = "toy", o.data = "parallel",
    o.task = "pairs";
    sr_recorder *r = run_create(program_file(name), o);
    run_add_bn(r, "top", 2, 1, 1e-5);
    for (int step = 1; step <= 3; step++) {
        sr_begin_step(r, step);
        run_end_step(r, step);
    }
    run_finish(r);
}

/* Data have their name from tables; an unset size has a word. */
static void test_names(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    write_heads("preset.h5", 0);
    write_heads("four.h5", 4);
    check_shell("statplot curves preset.h5 four.h5 -o n.svg && grep -q '>heads preset<' n.svg && "
                "grep -q '>heads 4<' n.svg && ! grep -q parallel n.svg");
    check_shell(
        "statplot overview four.h5 -o n.svg && grep -q '>toy, bn, pairs de-en, seed' n.svg");
    sr_options unknown = run_options();
    unknown.data = NULL;
    sr_recorder *r = run_create(program_file("own.h5"), unknown);
    run_add_bn(r, "top", 2, 1, 1e-5);
    run_put_step(r, 1);
    run_finish(r);
    check_shell("statplot overview own.h5 -o n.svg && grep -q '>toy, bn, seed' n.svg && "
                "! grep -q ', ?' n.svg");
    check_shell(
        "for f in overview layers compare tidloss tidgap results replaced fig5 ablation; do "
        "statplot $f -o n.svg || exit 1; ! grep "
        "'>[^<]*\\(tid_\\|valid_\\|dist_\\|g_mu\\|g_sigma\\)[^<]*<' n.svg "
        "|| exit 1; done");
}

/* Sample runs are named on stderr and in the figure. */
static void test_sample_runs(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_shell(
        "statplot fig2 -o s.svg 2>said && grep -q '>sample runs of statrec: cv_bn nlp_bn<' s.svg "
        "&& "
        "grep -qx 'statplot: no run file given: using the sample runs cv_bn nlp_bn' said");
    check_shell(CV "-o s.svg 2>said && ! grep -q 'sample' s.svg && ! grep -q 'no run file' said");
    check_shell("statplot pn-table1 -o t.md 2>said && grep -q 'no run file given: using the "
                "sample runs' said");
}

/* Fields of heat maps have edges; characters on a terminal have no markup. */
static void test_formats(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_shell(
        "for f in layers overview; do statplot $f -o heat.svg && test $(grep -c '<image ' "
        "heat.svg) -gt 1 "
        "&& ! grep '<image ' heat.svg | grep -v \"style='image-rendering: pixelated'\"; done");
    check_shell("statplot fig2 -o - >shown && test -s shown && ! grep -q '{' shown");
}

/* Markup is written to files and pipes, not to a terminal. */
static void test_terminal(void **state) {
    (void)state;
    if (system("command -v script >/dev/null 2>&1") != 0) {
        print_message("skipped: script not found\n");
        skip();
    }
    check_shell("statplot pn-table1 -o - >piped && grep -q '^| LN |' piped");
    check_shell("script -qec 'statplot pn-table1 -o -' /dev/null </dev/null >shown; test $? = 2 && "
                "grep -q 'is not for a terminal' shown && ! grep -q 'LN' shown");
}

/* A task's line connects the means of its runs, which are also drawn: two runs have equal numbers
 * of sites. */
static void test_replaced_means(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_shell("s=$STATREC_SAMPLES; statplot replaced \"$s/nlp_ln.h5\" \"$s/nlp_bn_first1.h5\" "
                "\"$s/nlp_bn.h5\" \"$s/nlp_rbn.h5\" -o means.svg && "
                "test $(grep -c '<use .*gpPt6.*scale(1.50)' means.svg) = 7 && "
                "test $(grep -c '<use .*gpPt6.*scale(0.75)' means.svg) = 10");
}

/* A figure's help lists all its options and no others, whether --help is before or after the
 * figure's name. */
static void test_help(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    program_write(
        "try.sh",
        "value() { case $1 in xrange|steps) echo 1:60;; yrange) echo 0.1:2;; smooth) echo 3;; "
        "size) echo 9x9;; esac; }\n"
        "for f in $(statrec list figures | cut -f1); do\n"
        "  statplot --help $f >help || exit 1\n"
        "  statplot $f --help | cmp - help && grep -q \"^usage: statplot $f \" help || exit 1\n"
        "  for o in xrange yrange steps smooth size log linear published; do\n"
        "    listed=$(grep -c -- \" --\\(.no-.\\)\\?$o \" help)\n"
        "    statplot $f none.h5 none.h5 --$o $(value $o) -o o.svg 2>said\n"
        "    refused=$(grep -c \"figure $f takes no --\" said)\n"
        "    test $((listed + refused)) = 1 || { echo $f --$o: $listed listed, $refused refused "
        ">&2; exit 1; }\n"
        "  done\n"
        "done\n");
    check_shell("sh try.sh");
    check_shell("statplot --help pn-table1 >help && grep -q -- '--output' help && ! grep -q -- "
                "'--title\\|--site\\|--labels' help");
    check_refused("statplot pn-table1 --title x -o t.md", "table pn-table1 takes no --title");
    check_refused("statplot pn-table1 --smooth 3 -o t.md", "table pn-table1 takes no --smooth");
    check_refused("statplot results --xrange 1:2 -o x.svg", "figure results takes no --xrange");
}

static void test_bad_line(void **state) {
    (void)state;
    program_write("bad.gp", "#: title x\n#: controls x z\n#: table t stat-curve {run}\n");
    check_shell(
        "! statplot ./bad.gp run.h5 2>said && grep -q \"bad.gp:2: no such control in 'x z'\" said");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_axes),           cmocka_unit_test(test_smooth),
        cmocka_unit_test(test_steps),          cmocka_unit_test(test_size_and_title),
        cmocka_unit_test(test_venues),         cmocka_unit_test(test_labels),
        cmocka_unit_test(test_lines_of_names), cmocka_unit_test(test_names),
        cmocka_unit_test(test_sample_runs),    cmocka_unit_test(test_formats),
        cmocka_unit_test(test_help),           cmocka_unit_test(test_bad_line),
        cmocka_unit_test(test_terminal),       cmocka_unit_test(test_replaced_means),
        cmocka_unit_test(test_long_labels),
    };
    return cmocka_run_group_tests(tests, write_templates, NULL);
}
