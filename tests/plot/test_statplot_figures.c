/* stat-gap by hand. Figures of runs of several tasks, published values, diverged runs, and runs
 * without a statistic. */
#include "testing/programs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "statrec/record.h"
#include "testing/check.h"

/* A run of five steps with two sites of width 1, and one evaluation. */
typedef struct short_run {
    const char *name, *data, *norm[2], *config;
    double loss, accuracy; /* at the evaluation */
    double final_tid[2];   /* mean and variance at the second site; 0: no final pass */
    int seed;
} short_run;

static sr_recorder *create(const short_run *run) {
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    sr_failure why = {0};
    o.program = "statrec train";
    o.model = "toy";
    o.data = run->data;
    o.task = "test";
    o.config = run->config;
    o.seed = (uint64_t)run->seed;
    o.vectors_every = 1;
    o.flush_seconds = 1e9;
    o.force = true;
    o.started = 1;
    o.final = run->final_tid[0] > 0;
    sr_recorder *r = sr_create(program_file(run->name), &o, &why);
    if (!r) fail_msg("%s", why.text);
    return r;
}

/* TID of a bn site in step k: mean k/10, variance 0.1 (sigma_B 1.1 against 1). */
static void put_site(sr_recorder *r, int site, bool bn, double k) {
    sr_put_rows(r, site, 4);
    if (!bn) {
        sr_put_scalar(r, site, SR_SCALAR_row_grad_mean, 0);
        sr_put_scalar(r, site, SR_SCALAR_row_grad_var, k);
        return;
    }
    const double value[] = {0.1 * k, 0, 1.21, 1, 1, 0.5, 0.5};
    const sr_vector which[] = {SR_mu_B,  SR_mu,    SR_sigma2_B, SR_sigma2,
                               SR_gamma, SR_sum_g, SR_sum_gx};
    for (int i = 0; i < 7; i++)
        assert_int_equal(sr_put_vector(r, site, which[i], &value[i]), SR_OK);
}

static void write_run(const short_run *run) {
    sr_recorder *r = create(run);
    const sr_finish end = {.size = sizeof(sr_finish), .status = "complete"};
    sr_failure why = {0};
    bool bn[2];
    for (int s = 0; s < 2; s++) {
        bn[s] = strcmp(run->norm[s], "bn") == 0;
        const sr_site site = {.size = sizeof(sr_site),
                              .name = s ? "late" : "early",
                              .norm = run->norm[s],
                              .kind = "encoder",
                              .family = bn[s] ? SR_FAMILY_SIGMA : SR_FAMILY_ROW,
                              .width = 1,
                              .depth = s + 1,
                              .eps = 1e-5,
                              .alpha = bn[s] ? 0.9 : NAN};
        sr_add_site(r, &site);
    }
    run_add_metrics(r);
    for (int step = 1; step <= 5; step++) {
        const sr_step row = {.size = sizeof(sr_step), step, 10, step, run->loss * 6 / step, 0.1, 1};
        sr_begin_step(r, step);
        for (int s = 0; s < 2; s++) put_site(r, s, bn[s], step);
        if (sr_end_step(r, &row) != SR_OK) fail_msg("%s", sr_failed(r)->text);
    }
    run_put_eval(r, 5, 5, "valid_loss valid_ppl valid_accuracy", run->loss, exp(run->loss),
                 run->accuracy);
    const double mean[] = {NAN, run->final_tid[0]}, var[] = {NAN, run->final_tid[1]};
    const double *const final[SR_FINAL_COUNT] = {mean, var};
    if (run->final_tid[0] > 0) assert_int_equal(sr_put_final(r, 3, final), SR_OK);
    check_ok(sr_close(r, &end, &why), &why);
}

static int write_runs(void **state) {
    (void)state;
    static const short_run run[] = {
        {"pre_ln.h5", "a", {"ln", "ln"}, "norm = ln\nplacement = pre\n", 4, 60, {0, 0}, 1},
        {"post_ln.h5", "a", {"ln", "ln"}, "norm = ln\nplacement = post\n", 5, 50, {0, 0}, 1},
        {"pre_bn.h5", "a", {"bn", "bn"}, "norm = bn\nplacement = pre\n", 3.5, 66, {0.25, 0.125}, 1},
        {"post_bn.h5", "a", {"bn", "bn"}, "norm = bn\nplacement = post\n", 5.25, 49, {0, 0}, 1},
        {"half.h5", "a", {"bn", "ln"}, "norm = ln\nplacement = pre\n", 4.5, 58, {0, 0}, 1},
        {"other.h5", "b", {"bn", "bn"}, "norm = bn\nplacement = pre\n", 1, 90, {0, 0}, 1},
        {"wild.h5", "a", {"bn", "bn"}, "norm = bn\nplacement = pre\nlr = 9\n", NAN, NAN, {0, 0}, 1},
    };
    const short_run replicate[] = {
        {"seed2.h5", "a", {"bn", "bn"}, run[2].config, 3.25, 66, {0.25, 0.105}, 2},
        {"seed3.h5", "a", {"bn", "bn"}, run[2].config, 3, 66, {0.25, 0.145}, 3},
    };
    for (size_t i = 0; i < sizeof run / sizeof run[0]; i++) write_run(&run[i]);
    for (int i = 0; i < 2; i++) write_run(&replicate[i]);
    return 0;
}

/* Returns whether the only notes name sample runs. */
static bool only_samples(const char *err) {
    static const char told[] = "statplot: no run file given: ";
    for (const char *at = err; *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : "")
        if (strncmp(at, told, sizeof told - 1) != 0) return false;
    return true;
}

/* Fails unless the command ends with this status and its errors contain this part. */
static void check_run(const char *command, int status, const char *part) {
    program_result r = program_run("%s", command);
    if (r.status != status || (status ? !strstr(r.err, part) : !only_samples(r.err)))
        fail_msg("%s: exit %d: %s", command, r.status, r.err);
    program_free(&r);
}

/* -- stat-gap -------------------------------------------------------------------------------- */

static void test_gap(void **state) {
    (void)state;
    program_result r =
        program_run("stat-gap post_ln.h5 pre_ln.h5 pre_bn.h5 post_bn.h5 half.h5 other.h5 wild.h5");
    assert_int_equal(r.status, 0);
    assert_int_equal(table_rows(r.out), 7);
    static const char *const reference[] = {"post_ln.h5", "pre_ln.h5", "pre_ln.h5", "post_ln.h5",
                                            "pre_ln.h5",  "other.h5",  "pre_ln.h5"};
    static const double gap[] = {0, 0, 0.5, -0.25, -0.5, 0, NAN}, sites[] = {0, 0, 2, 2, 1, 2, 2};
    for (int i = 0; i < 7; i++) {
        check_text(&r, i, "reference", reference[i]);
        check_cell(&r, i, "gap", gap[i]);
        check_cell(&r, i, "batch_sites", sites[i]);
        check_cell(&r, i, "task", i == 5 ? 2 : 1);
    }
    /* the final pass; the last tenth of five steps is the fifth: 0.5 and 0.1 */
    check_text(&r, 2, "tid_from", "final");
    check_cell(&r, 2, "tid_mean", 25);
    check_cell(&r, 2, "tid_total", 37.5);
    check_text(&r, 3, "tid_from", "steps");
    check_cell(&r, 3, "tid_mean", 50);
    check_cell(&r, 3, "tid_var", 10);
    check_text(&r, 4, "tid_site", "early");
    check_text(&r, 0, "tid_site", "-");
    program_free(&r);
}

/* 3.5, 3.25 and 3: mean 3.25, standard deviation 0.25. Student's 0.975 quantile with 2 degrees of
 * freedom is 4.302653. Total TID 37.5, 35.5 and 39.5. */
static void test_gap_intervals(void **state) {
    (void)state;
    const double student = 4.302652729911275 / sqrt(3);
    program_result r = program_run("stat-gap pre_ln.h5 pre_bn.h5 seed2.h5 post_bn.h5 seed3.h5");
    assert_int_equal(r.status, 0);
    static const int same[] = {1, 2, 4};
    for (int i = 0; i < 3; i++) {
        check_cell(&r, same[i], "replicates", 3);
        check_cell(&r, same[i], "value_low", 3.25 - 0.25 * student);
        check_cell(&r, same[i], "value_high", 3.25 + 0.25 * student);
        check_cell(&r, same[i], "gap_low", NAN); /* pairs with one reference */
        check_cell(&r, same[i], "gap_high", NAN);
        check_cell(&r, same[i], "tid_low", 37.5 - 2 * student);
        check_cell(&r, same[i], "tid_high", 37.5 + 2 * student);
    }
    check_cell(&r, 3, "replicates", 1);
    check_cell(&r, 3, "value_low", NAN);
    program_free(&r);
    r = program_run("stat-gap pre_bn.h5 seed2.h5"); /* no run to compute a gap to */
    check_cell(&r, 0, "gap", 0);
    check_cell(&r, 0, "gap_low", NAN);
    program_free(&r);
}

/* tid_mean of step k is k/10; the final pass gives 0.25. Two of five steps are the first half. */
static void test_gap_phases(void **state) {
    (void)state;
    program_result r = program_run("stat-gap pre_bn.h5 --phase first-half --burn-in 0");
    check_cell(&r, 0, "tid_mean", 15);
    check_text(&r, 0, "tid_from", "steps");
    assert_non_null(strstr(r.out, "# steps: pre_bn.h5: 1 to 2 of 5; first half"));
    program_free(&r);
    r = program_run("stat-gap pre_bn.h5 --phase second-half --burn-in 3");
    check_cell(&r, 0, "tid_mean", 45);
    program_free(&r);
    check_run("stat-gap pre_bn.h5 --phase third", 2, "--phase: 'third' is not");
}

static void test_gap_of_metrics(void **state) {
    (void)state;
    program_result r = program_run("stat-gap pre_ln.h5 pre_bn.h5 --metric bleu,valid_accuracy");
    check_text(&r, 1, "metric", "valid_accuracy");
    check_cell(&r, 1, "gap", 6); /* more is better */
    program_free(&r);
    check_run("stat-gap wild.h5", 1, "no finite value of valid_loss");
    check_run("stat-gap pre_ln.h5 --metric loss", 2, "no run declares 'loss'");
    check_run("stat-gap --help | grep -q 'A batch site is one whose'", 0, "");
}

/* -- figures --------------------------------------------------------------------------------- */

static void test_tasks(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_run("statplot tidgap pre_ln.h5 pre_bn.h5 post_ln.h5 post_bn.h5 other.h5 -o gap.svg", 0,
              "");
    /* options distinguish runs that model, norm, data and seed do not */
    check_run("grep -q 'bn, a, placement post' gap.svg && ! grep -q placement.*wild gap.svg", 0,
              "");
    /* replicates have intervals: grey bars, in a colour otherwise used only for axis names */
    check_run("statplot tidgap pre_ln.h5 pre_bn.h5 seed2.h5 seed3.h5 -o three.svg", 0, "");
    check_run("statplot results pre_ln.h5 pre_bn.h5 seed2.h5 -o bars.svg", 0, "");
    check_run("statplot results pre_ln.h5 pre_bn.h5 post_bn.h5 -o none.svg", 0, "");
    check_run("test $(grep -c 'rgb(153, 153, 153)' bars.svg) -gt $(grep -c 'rgb(153, 153, 153)' "
              "none.svg)",
              0, "");
    check_run("statplot replaced pre_ln.h5 half.h5 pre_bn.h5 -o replaced.svg", 0, "");
    check_run("statplot ablation pre_bn.h5 wild.h5 -o ablation.pdf", 0, "");
    check_run("statplot results pre_ln.h5 pre_bn.h5 --metric valid_accuracy -o results.pdf", 0, "");
    check_run("statplot tidgap pre_ln.h5 post_ln.h5 -o x.svg", 1, "no run with batch statistics");
    check_run("statplot tidgap pre_ln.h5 pre_bn.h5 --stat rows -o x.svg", 1, "--stat is tid_mean");
}

static void test_published(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_run(
        "cp \"$STATREC_PLOTS\"/*.gp . && printf 'table\\tsource\\tnorm\\tmetric\\tvalue\\n"
        "t1\\tPaper `touch tick` A\\tln\\taccuracy\\t61\\n"
        "t1\\tPaper `touch tick` A\\tnew\\taccuracy\\t70\\n"
        "t2\\tPaper B\\tbn\\taccuracy\\tnan\\nt2\\tPaper B\\tbn\\tbleu\\t30\\n' >published.tsv",
        0, "");
    const char *const results = "statplot ./results.gp pre_ln.h5 --metric valid_accuracy";
    char command[256];
    snprintf(command, sizeof command, "%s --published -o p.svg", results);
    check_run(command, 0, "");
    check_run("grep -q 'Paper `touch tick` A' p.svg && grep -q 'Paper B' p.svg && "
              "grep -q '>new<' p.svg && test ! -e tick",
              0, "");
    snprintf(command, sizeof command, "%s --published-table 't[2-9]' -o p.svg", results);
    check_run(command, 0, "");
    check_run("! grep -q 'Paper `' p.svg && grep -q 'Paper B' p.svg", 0, "");
    snprintf(command, sizeof command, "%s -o p.svg && ! grep Paper p.svg", results);
    check_run(command, 0, "");
    snprintf(command, sizeof command, "%s --published-table t3 -o p.svg", results);
    check_run(command, 2, "no published value of accuracy in a table 't3'");
    check_run("statplot fig2 pre_bn.h5 --published -o p.svg", 2, "takes no --published");
    /* published values of the project */
    check_run(
        "statplot tidgap --published -o p.svg 2>told && grep -q 'RBN' p.svg && "
        "grep -q 'tid_mean is not comparable between these runs (different rows' told && "
        "statplot batchmix -o p.svg 2>told && grep -q 'comparable.*(different batching)' told",
        0, "");
    check_run("statplot results --published-table 'rbn-ptb-*' -o p.svg && grep -q rbn-ptb-p p.svg",
              0, "");
}

/* The axis of the runs never has values of other data, or of another metric. */
static void test_published_axes(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_run(
        "statplot results --published-table '*-ptb*' -o p.svg && "
        "grep -q '>transformer, multi30k-de-en<' p.svg && grep -q '>ptb (published)<' p.svg && "
        "grep -q '>ptb-valid (published)<' p.svg && test $(grep -c '>validation perplexity ↓<' "
        "p.svg) = 1 && test $(grep -c '>perplexity ↓<' p.svg) = 2",
        0, "");
    check_run(
        "statplot results \"$STATREC_SAMPLES\"/cv_bn.h5 \"$STATREC_SAMPLES\"/nlp_bn.h5 --metric "
        "valid_accuracy -o p.svg && test $(grep -c '>validation accuracy (%) ↑<' p.svg) = 2",
        0, "");
    check_run("statplot ablation --published-table 'rbn-ptb-*' --metric valid_ppl -o p.svg && "
              "test $(grep -c '>validation perplexity ↓<' p.svg) = 1 && "
              "grep -q '>perplexity ↓, published<' p.svg",
              0, "");
    check_run(
        "statplot tidgap --published -o p.svg 2>told && grep -q '>published gap, points<' p.svg "
        "&& grep -q '>gap (above 0: better), validation loss (nats)<' p.svg",
        0, "");
}

/* 24 runs need more than eight colours: no two have equal colour and dashes, or equal colour and
 * point. */
static void test_looks(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    program_result r = program_run(
        "statplot curves pre_ln.h5 -o looks.svg --keep 2>kept; d=$(sed 's/.*kept //' kept); "
        "{ grep '^look_count\\|^array look\\|^look(n)' $d/style.gp; echo 'set print \"-\"; do for "
        "[n=1:look_count] { print look(n) }'; } >looks.gp; grep -c '^array line_look.24.' "
        "$d/figure.gp; "
        "rm -r $d; gnuplot looks.gp >all; wc -l <all; sed 's/ pt.*//' all | sort -u | wc -l; "
        "sed 's/ dt.*pt/pt/' all | sort -u | wc -l");
    assert_string_equal(r.err, "");
    assert_string_equal(r.out, "1\n24\n24\n24\n");
    program_free(&r);
    check_run("statplot curves $(yes pre_bn.h5 | head -n 16) -o looks.svg && "
              "sed -n 's/.*stroke=.\\(rgb([^)]*)\\).*\\(stroke-dasharray=[^ ]*\\).*/\\1 \\2/p' "
              "looks.svg | "
              "sort -u >all; test $(wc -l <all) -ge 14",
              0, "");
}

/* More runs and rows than the former limits of a template: all of them are drawn. */
static void test_many(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_run("statplot tidgap pre_ln.h5 $(yes pre_bn.h5 | head -n 75) -o many.svg", 0, "");
    check_run("test $(grep -o '>[^<]*pre_bn.h5' many.svg | wc -l) = 75", 0, "");
    check_run(
        "cp \"$STATREC_PLOTS\"/*.gp . && { printf 'table\\tsource\\tnorm\\tmetric\\tvalue\\n';"
        " for i in $(seq 80); do printf \"t$i\\tpaper\\tnorm$i\\taccuracy\\t$i\\n\"; done; } "
        ">published.tsv",
        0, "");
    check_run("statplot ./results.gp pre_ln.h5 --metric valid_accuracy --published -o many.svg", 0,
              "");
    check_run("test $(grep -o '>norm[0-9]*<' many.svg | wc -l) = 80", 0, "");
    check_run("test $(grep -o '>t[0-9]*, paper<' many.svg | wc -l) = 80", 0, "");
}

/* Runs of one kind have no gap. */
static void test_no_gap(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_run("statplot replaced pre_bn.h5 pre_bn.h5 -o none.svg", 0, "");
    check_run("statplot tidgap pre_bn.h5 pre_bn.h5 -o none.svg", 0, "");
}

/* Reports gnuplot's error and its line, not the command that gnuplot prints above. */
static void test_template_error(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_run("printf '#: title x\\n#: table t stat-table {run}\\neval log10(0)\\n' >bad.gp; "
              "statplot ./bad.gp wild.h5 -o x.svg",
              1, "statplot: gnuplot, figure bad: \"template.gp\" line 3: ");
}

static void test_published_line(void **state) {
    (void)state;
    check_run(
        "printf '#: title x\\n#: published a*\\n' >bad.gp; statplot ./bad.gp wild.h5 -o x.svg", 1,
        "bad.gp:2: published needs TABLES and METRICS");
    check_run(
        "printf '#: title x\\n#: published a* b-c\\n' >bad.gp; statplot ./bad.gp wild.h5 -o x.svg",
        1, "bad.gp:2: cannot read");
}

/* A run without a finite number, beside a good one and alone. */
static void test_diverged(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_run("for f in curves converge modes ablation results tidgap replaced fig2 fig3; do\n"
              "  statplot $f pre_ln.h5 pre_bn.h5 wild.h5 -o d.pdf 2>said.txt ||\n"
              "    grep -q 'pre_ln.h5 has no' said.txt || { cat said.txt >&2; exit 1; }\n"
              "done; statplot curves pre_bn.h5 wild.h5 -o d.svg && statplot fig2 wild.h5 -o d.svg",
              0, "");
    check_run("statplot converge wild.h5 wild.h5 -o d.svg", 1, "no finite value of loss");
}

/* Figures of a report leave out runs without the necessary statistics. */
static void test_mixed_report(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_run("statplot report pre_ln.h5 pre_bn.h5 other.h5 --labels one,two,three -o mixed", 0,
              "");
    check_run("cd mixed; grep -q 'Left out: stat-distance: pre_ln.h5' index.html && "
              "grep -q 'img src=.fig2.svg' index.html && grep -q 'two (early)' fig2.svg && "
              "grep -q 'three (early)' fig2.svg && ! grep -q 'one (' fig2.svg",
              0, "");
    /* the second run has the second colour there too */
    check_run("cd mixed; ! grep -qi 0072b2 fig2.svg && grep -qi 'd55e00\\|213, *94, *0' fig2.svg",
              0, "");
    check_run("test $(ls mixed/*.svg | wc -l) = $(grep -c '<img' mixed/index.html)", 0, "");
    check_run(
        "cd mixed; test -s compare.tsv || grep -q 'One run per task\\|No table: stat-compare' "
        "index.html",
        0, "");
}

/* The kept directory reproduces the figure. */
static void test_kept(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_run(
        "for f in results tidgap ablation; do\n"
        "  statplot $f pre_ln.h5 pre_bn.h5 -o k.svg --keep 2>kept &&\n"
        "  d=$(sed 's/.*kept //' kept) && (cd $d && rm figure.svg && gnuplot -d figure.gp) &&\n"
        "  cmp $d/figure.svg k.svg && rm -r $d || exit 1\n"
        "done",
        0, "");
}

/* Figures that name their statistics, with the sample runs. */
static void test_told_in_figures(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_run("statplot fig4 -o told.svg && grep -q 'bn: σ², gradient of σ²' told.svg", 0, "");
    check_run(
        "statplot fig4 --reading roots -o roots.svg && grep -q 'bn: σ, gradient of σ²' roots.svg "
        "&& grep -q 'pnv: ψ, gradient of ψ²' roots.svg && ! cmp -s told.svg roots.svg",
        0, "");
    check_run("statplot condition -o told.svg && grep -q 'rbn, N 880' told.svg", 0, "");
    check_run("statplot fig6 -o told.svg && grep -q '>pn+ls<' told.svg", 0, "");
    check_run("statplot tidloss -o told.svg && grep -q '>encoder.2.norm2<' told.svg", 0, "");
    check_run("statplot tidloss --site last -o told.svg && grep -q '>encoder.final<' told.svg", 0,
              "");
    check_run("statplot theorem1 -o told.svg && grep -q '>variance, encoder.0.norm1<' told.svg && "
              "grep -q '>variance of dx / (D_g / s²)<' told.svg",
              0, "");
    check_run("statplot tidloss pre_bn.h5 -o told.svg", 1,
              "no evaluation has a finite valid_loss_batch");
    check_run("statplot parts half.h5 pre_bn.h5 -o told.svg && ! grep -q 'The bar of' told.svg", 0,
              "");
    check_run("statplot gap half.h5 wild.h5 -o told.svg", 1, "no finite valid_loss after the same");
}

/* One run shows its sites and their median; a chosen site is named. Several runs show only
 * medians. */
static void test_scatter_of_ranks(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_run("statplot ranks -o told.svg && grep -q '(median of the sites)<' told.svg && grep -q "
              "'>each site<' told.svg && grep -q '>independent rows<' told.svg",
              0, "");
    check_run(
        "statplot ranks --site last -o last.svg && grep -q '(encoder.2.norm1)<' last.svg && ! "
        "grep -q 'each site' last.svg",
        0, "");
    check_run("run=$STATREC_SAMPLES/shares_bn.h5; statplot ranks $run $run --labels a,b -o two.svg "
              "&& grep -q '>a (median of the sites)<' two.svg && ! grep -q 'each site' two.svg",
              0, "");
    check_run("statplot ranks pre_bn.h5 -o told.svg", 1, "has statistics of one shard alone");
}

/* --reading selects the data of fig4's left panel. */
static void test_fig4_reading(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    static const char *const reading[] = {"squares", "roots"}, *const stat[] = {"dist_sigma2",
                                                                                "dist_sigma"};
    for (int i = 0; i < 2; i++) {
        program_result r = program_run(
            "statplot fig4 --reading %s -o kept.svg --keep 2>kept.txt; d=$(sed -n 's/^statplot: "
            "kept //p' "
            "kept.txt); "
            "grep -v '^#' $d/b.*.tsv | head -1; grep -c \"bn = 'sigma\" $d/figure.gp; rm -r $d",
            reading[i]);
        char end[32];
        snprintf(end, sizeof end, "\t%s\n1\n", stat[i]);
        if (!strstr(r.out, end)) fail_msg("%s: %s%s", reading[i], r.out, r.err);
        program_free(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gap),
        cmocka_unit_test(test_gap_intervals),
        cmocka_unit_test(test_gap_phases),
        cmocka_unit_test(test_gap_of_metrics),
        cmocka_unit_test(test_tasks),
        cmocka_unit_test(test_published),
        cmocka_unit_test(test_published_axes),
        cmocka_unit_test(test_looks),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_no_gap),
        cmocka_unit_test(test_template_error),
        cmocka_unit_test(test_published_line),
        cmocka_unit_test(test_diverged),
        cmocka_unit_test(test_mixed_report),
        cmocka_unit_test(test_told_in_figures),
        cmocka_unit_test(test_scatter_of_ranks),
        cmocka_unit_test(test_fig4_reading),
        cmocka_unit_test(test_kept),
    };
    return cmocka_run_group_tests(tests, write_runs, NULL);
}
