/* test_tables.c -- stat-table --layout on runs whose evaluations are known, against tables worked
 * out by hand; hostile names. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../check.h"
#include "../programs.h"

/* -- runs ------------------------------------------------------------------------------------ */

/* Three evaluations of a translation run, one site in its encoder. */
typedef struct toy {
    const char *path, *norm, *settings; /* of the configuration, beside what all have */
    uint64_t seed;
    double loss[3], bleu[3];
    double tid_mean, tid_var;
} toy;

static const toy toys[] = {
    {"ln1.h5", "ln", "lr = 0.1\nplacement = pre\n", 1, {3, 2, 2.5}, {10, 20, 30}, NAN, NAN},
    {"ln2.h5", "ln", "lr = 0.1\nplacement = pre\n", 2, {3, 2, 2.5}, {10, 24, 31}, NAN, NAN},
    {"unbiased.h5",
     "ln",
     "lr = 0.1\nplacement = pre\nnorm-unbiased = 1\n",
     1,
     {3, 2, 2.5},
     {10, 25, 32},
     NAN,
     NAN},
    {"bn.h5", "bn", "lr = 0.1\nplacement = pre\n", 1, {3, 2, 2.5}, {10, 18, 9}, 0.02, 0.05},
    {"bn-lr.h5", "bn", "lr = 0.2\nplacement = pre\n", 1, {3, 2, 2.5}, {10, 19, 9}, 0.04, 0.01},
    {"post.h5", "bn", "lr = 0.1\nplacement = post\n", 1, {3, 2, 2.5}, {10, 17, 9}, 0.5, 0.25},
    {"pnls.h5",
     "pn+ls",
     "lr = 0.1\nplacement = pre\n",
     1,
     {NAN, NAN, NAN},
     {NAN, NAN, NAN},
     NAN,
     NAN},
    {"mixed.h5",
     "ln",
     "lr = 0.1\nplacement = pre\nnorm-at = encoder.0.*=bn\n",
     1,
     {3, 2, 2.5},
     {10, 22, 9},
     NAN,
     NAN},
    {"half.h5", "ln", "lr = 0.1\nplacement = pre\n", 3, {3, 2, NAN}, {10, 26, NAN}, NAN, NAN},
    {"ln-lr.h5", "ln", "lr = 0.2\nplacement = pre\n", 1, {3, 2, 2.5}, {10, 40, 9}, NAN, NAN},
    {"simple.h5",
     "ln-simple",
     "placement = pre\ndecoder-norm = ln-simple\n",
     1,
     {3, 2, 2.5},
     {10, 35, 9},
     NAN,
     NAN},
    {"simple-ln.h5", "ln-simple", "placement = pre\n", 1, {3, 2, 2.5}, {10, 36, 9}, NAN, NAN},
    {"all.h5", "bn", "record-sites = *\n", 1, {3, 2, 2.5}, {10, 11, 9}, NAN, NAN},
    {"some.h5", "bn", "record-sites = encoder.0.*\n", 1, {3, 2, 2.5}, {10, 12, 9}, NAN, NAN},
    {"final.h5", "bn", "record-sites = *.final\n", 1, {3, 2, 2.5}, {10, 13, 9}, NAN, NAN},
    {"peri.h5", "bn", "placement = peri\n", 1, {3, 2, 2.5}, {10, 14, 9}, NAN, NAN},
    {"scaled.h5", "bn", "placement = scaled\n", 1, {3, 2, 2.5}, {10, 15, 9}, NAN, NAN},
};
enum { TOYS = sizeof toys / sizeof toys[0] };

static sr_recorder *create(const char *path, const char *config, const char *data, const char *task,
                           uint64_t seed) {
    sr_options o = run_options();
    o.config = config;
    o.data = data;
    o.task = task;
    o.seed = seed;
    sr_recorder *r = run_create(path, o);
    run_add_metrics(r);
    return r;
}

static void write_toy(const toy *t) {
    char config[1024];
    snprintf(config, sizeof config,
             "norm = %s\n%sdata-dir = /data/multi30k-de-en/\nsource = de\ntarget = en\nseed = %d\n"
             "output = %s\n%s",
             t->norm, strstr(t->settings, "decoder-norm") ? "" : "decoder-norm = ln\n",
             (int)t->seed, t->path, t->settings);
    sr_recorder *r = create(program_file(t->path), config, "parallel", "pairs", t->seed);
    const char *site = strstr(t->settings, "final") ? "encoder.final" : "encoder.0.norm1";
    run_add_bn(r, site, 2, 1, 1e-5);
    for (int step = 1; step <= 3; step++) {
        sr_begin_step(r, step);
        sr_put_rows(r, 0, 4);
        sr_put_scalar(r, 0, SR_SCALAR_tid_mean, step == 3 ? t->tid_mean : 9);
        sr_put_scalar(r, 0, SR_SCALAR_tid_var, step == 3 ? t->tid_var : 9);
        run_end_step(r, step);
        run_put_eval(r, step, step, "valid_loss bleu", t->loss[step - 1], t->bleu[step - 1]);
    }
    run_finish(r);
}

/* A run whose evaluations have a perplexity, not BLEU: a translation where data say a direction. */
static void write_perplexity(const char *path, const char *data, double value) {
    char config[256];
    const bool pairs = strstr(data, "-") != NULL;
    snprintf(config, sizeof config,
             "norm = ln\ndecoder-norm = ln\nplacement = pre\ndata-dir = /data/%s\n%s", data,
             pairs ? "source = de\ntarget = en\n" : "");
    sr_recorder *r = create(program_file(path), config, "parallel", pairs ? "pairs" : "text", 1);
    sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                              .name = "encoder.0.norm1",
                              .norm = "ln",
                              .kind = "encoder",
                              .width = 2,
                              .depth = 1,
                              .eps = 1e-5,
                              .alpha = NAN});
    sr_begin_step(r, 1);
    run_end_step(r, 1);
    run_put_eval(r, 1, 1, "valid_loss valid_ppl", 3.0, value);
    run_finish(r);
}

/* A run of another program: no configuration, names that would break a table. */
static const char hostile[] = "a%b_$c`d`\n\\end{document}\t|<x>~^#&{*}";

static void write_foreign(const char *path, const char *data, const char *norm, double accuracy) {
    sr_recorder *r = create(program_file(path), "", data, "images", 1);
    sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                              .name = "stem",
                              .norm = norm,
                              .kind = "conv",
                              .family = SR_FAMILY_SIGMA,
                              .width = 2,
                              .depth = 1,
                              .layer_scale = 4,
                              .eps = 1e-5,
                              .alpha = 0.9});
    sr_begin_step(r, 1);
    run_end_step(r, 1);
    run_put_eval(r, 1, 1, "valid_loss valid_accuracy", 1.0, accuracy);
    run_finish(r);
}

static int write_runs(void **state) {
    (void)state;
    for (int i = 0; i < TOYS; i++) write_toy(&toys[i]);
    write_perplexity("ppl.h5", "multi30k-de-en", 33);
    write_perplexity("ptb.h5", "ptb", 44);
    write_foreign("cv.h5", "cifar10", "bn", 80);
    write_foreign("evil.h5", hostile, "x$`y`&\n|\\z", 70);
    return 0;
}

/* -- values ---------------------------------------------------------------------------------- */

/* What is printed below the comments. */
static void check_rows(const char *command, const char *want) {
    program_result r = program_run("%s", command);
    const char *at = r.out;
    while (*at == '#') at += strcspn(at, "\n") + 1;
    if (r.status || r.err[0] || strcmp(at, want) != 0)
        fail_msg("%s: exit %d: %s\n%s\ninstead of\n%s", command, r.status, r.err, at, want);
    program_free(&r);
}

#define TWO  "IWSLT14 De-En published bleu ↑"
#define NAME "multi30k-de-en bleu"
#define BLEU NAME " ↑"
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

/* Forms of a norm, settings, placement, mixed sites, other data: lines and columns of their own. */
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

/* What stat-table prints holds `present` and does not hold `absent`; either may be NULL. */
static void check_says(const char *arguments, const char *present, const char *absent) {
    program_result r = program_run("stat-table %s", arguments);
    if (present && !strstr(r.out, present)) fail_msg("no '%s' in: %s", present, r.out);
    if (absent && strstr(r.out, absent)) fail_msg("'%s' in: %s", absent, r.out);
    program_free(&r);
}

/* Another metric than the paper's stands behind the paper's columns, and names itself and its
 * direction; the same one stands beside the paper's. */
static void test_other_metric(void **state) {
    (void)state;
    static const char said[] =
        "# note: task multi30k-de-en has no bleu, the metric of IWSLT14 De-En: "
        "its valid_ppl stands behind the paper's columns\n";
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

/* Where the configuration leaves the placement to the preset, the sites tell, if all are there. */
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

/* Half of the LN runs has lost its way: told, and not in the mean. */
static void test_diverged(void **state) {
    (void)state;
    program_result r =
        program_run("stat-table ln1.h5 half.h5 ln1.h5 --layout pn-table1 --pick last");
    assert_int_equal(r.status, 0);
    check_cell(&r, 0, BLEU, 30);
    check_cell(&r, 0, NAME " runs", 2);
    assert_non_null(strstr(r.out, "LN, multi30k-de-en bleu: 1 of 3 runs diverged"));
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
    assert_non_null(strstr(r.out, "# note: bn.h5: tid_* of encoder.0.norm1\n"));
    /* gaps: of the paper's values, 45.9 against 54.5 of a perplexity; of the run, 18 against 20 */
    check_text(&r, 7, "row", "Pre-BN: performance gap to Pre-LN");
    check_text(&r, 7, "PTB published ppl ↓", "8.6");
    check_text(&r, 7, "IWSLT14 published bleu ↑", "-0.7");
    check_text(&r, 7, "DBPedia published accuracy ↑", "0.0");
    check_cell(&r, 7, BLEU, -2);
    check_text(&r, 2, BLEU, "-"); /* no ln run is post-norm */
    program_free(&r);
}

/* References have the run's settings: 20 and 24 for bn.h5, 40 for bn-lr.h5. */
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
    check_cell(&r, 4, BLEU, 18 - 22);
    check_cell(&r, 5, BLEU, 19 - 40);
    assert_int_equal(table_rows(r.out), 6);
    assert_non_null(strstr(r.out, "# note: ln1.h5 (ln, task multi30k-de-en) has no row"));
    program_free(&r);
}

/* -- without runs, formats ------------------------------------------------------------------- */

static void test_published_only(void **state) {
    (void)state;
    check_rows("stat-table --layout pn-table1",
               "row\tsettings\t" TWO "\tWMT14 En-De published bleu ↑\nLN\t-\t35.5\t29.5\n"
               "BN\t-\t34.4\t28.1\nPN-V\t-\t35.5\t28.5\nPN\t-\t35.9\t30.1\n");
    program_result r = program_run("stat-table --layout an-table3");
    check_text(&r, 3, "En-De published bleu ↑", "Div."); /* nan in the file */
    check_text(&r, 3, "RT published accuracy ↑", "77.04");
    check_text(&r, 4, "En-De published bleu ↑", "-"); /* nothing minus what diverged */
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
    assert_string_equal(below(r.out, "\\begin{tabular}"),
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
                        "PN-V & 35.5 & -- & 28.5 \\\\\n"
                        "PN & 35.9 & -- & 30.1 \\\\\n"
                        "\\midrule\n"
                        "bn, post-norm & -- & $17.00$ & -- \\\\\n"
                        "\\bottomrule\n"
                        "\\end{tabular}\n"
                        "\\end{table}\n");
    for (const char *line = r.out; *line; line += strcspn(line, "\n") + 1)
        if (line < strstr(r.out, "\\begin{table}")) assert_int_equal(line[0], '%');
    assert_non_null(
        strstr(r.out, "% definition: a measured value is that of the evaluation with "));
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
        "| BN | 34.4 |  | 28.1 |\n| PN-V | 35.5 |  | 28.5 |\n| PN | 35.9 |  | 30.1 |\n");
    assert_true(strncmp(r.out, "<!--\n", 5) == 0);
    const char *end = strstr(r.out, "--"); /* of the comment's begin */
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
        cmocka_unit_test(test_values),         cmocka_unit_test(test_lines),
        cmocka_unit_test(test_other_metric),   cmocka_unit_test(test_decoder),
        cmocka_unit_test(test_placement),      cmocka_unit_test(test_diverged),
        cmocka_unit_test(test_quantities),     cmocka_unit_test(test_gap),
        cmocka_unit_test(test_published_only), cmocka_unit_test(test_latex),
        cmocka_unit_test(test_markdown),       cmocka_unit_test(test_hostile_names),
        cmocka_unit_test(test_doubtful_value), cmocka_unit_test(test_own_layout),
    };
    return cmocka_run_group_tests(tests, write_runs, NULL);
}
