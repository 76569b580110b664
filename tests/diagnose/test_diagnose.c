/* statrec diagnose on runs that a test records: a healthy one, and the same with one fault each, whose
 * question and site must be found, and no other. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../check.h"
#include "../programs.h"
#include "planted.h"

/* -- reading the table ----------------------------------------------------------------------- */

static program_result diagnose(const char *options) {
    program_result r = program_run("statrec diagnose %s run.h5", options);
    if (r.status) fail_msg("exit %d: %s", r.status, r.err);
    return r;
}

static program_result advice(plan p) {
    write_planted_run(&p);
    return diagnose("--format tsv");
}

static int row_of(const program_result *r, const char *question) {
    for (int i = 0; i < table_rows(r->out); i++) {
        const char *cell = table_cell(r->out, i, "question");
        if (cell && strcmp(cell, question) == 0) return i;
    }
    fail_msg("no question %s in\n%s", question, r->out);
    return -1;
}

static int findings(const program_result *r) {
    int found = 0;
    for (int i = 0; i < table_rows(r->out); i++)
        found += strcmp(table_cell(r->out, i, "verdict"), "found") == 0;
    return found;
}

/* The command that shows a finding, as the table and the page have it, runs. */
static void check_figure(const program_result *r, int row) {
    char command[256];
    snprintf(command, sizeof command, "%s", table_cell(r->out, row, "figure"));
    program_result page =
        program_run("statrec diagnose run.h5 | grep -F '    see         %s run.h5'", command);
    if (page.status) fail_msg("the page does not name %s run.h5", command);
    program_free(&page);
    if (strncmp(command, "statplot", 8) == 0 && !have_gnuplot()) return;
    program_result drawn = program_run("%s run.h5", command);
    if (drawn.status) fail_msg("%s run.h5: %s", command, drawn.err);
    program_free(&drawn);
}

/* One finding: this question, at this site, with an interval around its value beyond the limit. */
static program_result check_found(const plan *p, const char *question, const char *severity,
                                  const char *site) {
    write_planted_run(p);
    program_result r = diagnose("--format tsv");
    const int row = row_of(&r, question);
    if (findings(&r) != 1) {
        program_result page = program_run("statrec diagnose run.h5 | sed -n "
                                          "'/^ 2/,$p'");
        fail_msg("%s: %d findings\n%s", p->name, findings(&r), page.out);
    }
    check_text(&r, row, "verdict", "found");
    check_text(&r, row, "severity", severity);
    check_text(&r, row, "site", site);
    check_cell(&r, row, "rank", 1);
    const double value = table_real(r.out, row, "value"), low = table_real(r.out, row, "low"),
                 high = table_real(r.out, row, "high");
    assert_true(low <= value && value <= high);
    check_figure(&r, row);
    return r;
}

static void found(const plan *p, const char *question, const char *severity, const char *site,
                  double low, double high) {
    program_result r = check_found(p, question, severity, site);
    const double value = table_real(r.out, row_of(&r, question), "value");
    if (!(value > low && value < high)) fail_msg("%s: %g", p->name, value);
    program_free(&r);
}

/* What the row has in this column holds the words, or does not. */
static void holds(const program_result *r, const char *question, const char *column,
                  const char *words, bool wanted) {
    const char *text = table_cell(r->out, row_of(r, question), column);
    if ((strstr(text, words) != NULL) != wanted)
        fail_msg("%s of %s: %s '%s': %s", column, question, wanted ? "no" : "has", words, text);
}

static void says(const program_result *r, const char *question, const char *words) {
    holds(r, question, "text", words, true);
}

static void advises(const program_result *r, const char *question, const char *words, bool wanted) {
    holds(r, question, "advice", words, wanted);
}

/* -- planted faults -------------------------------------------------------------------------- */

static void healthy(void **state) {
    (void)state;
    write_planted_run(&(plan){.name = "healthy", .site = -1});
    program_result r = diagnose("--format tsv");
    if (findings(&r)) fail_msg("%s", r.out);
    for (int i = 0; i < table_rows(r.out); i++) {
        const bool observer = strcmp(table_cell(r.out, i, "question"), "would-bn") == 0;
        if (strcmp(table_cell(r.out, i, "verdict"), observer ? "not-asked" : "in-order") != 0)
            fail_msg("%s: %s", table_cell(r.out, i, "question"), r.out);
        check_text(&r, i, "advice", "-");
    }
    program_free(&r);
    r = diagnose("");
    assert_non_null(strstr(r.out, "HEALTHY: nothing found (12 questions asked, 1 could not"));
    program_free(&r);
}

static void not_finite(void **state) {
    (void)state;
    program_result r = check_found(&(plan){"nan", 1, .nan_at = 150}, "divergence", "severe", "b");
    check_cell(&r, row_of(&r, "divergence"), "at_step", 150);
    program_free(&r);
    r = check_found(&(plan){"one step", 2, .nan_at = 170, .recovers = true}, "divergence",
                    "notable", "c");
    assert_non_null(strstr(table_cell(r.out, row_of(&r, "divergence"), "text"), "went on"));
    program_free(&r);
}

static void loss_rises(void **state) {
    (void)state;
    program_result r =
        check_found(&(plan){"rising", 2, .rising_at = 200}, "divergence", "severe", "c");
    check_cell(&r, row_of(&r, "divergence"), "at_step", 201);
    program_free(&r);
}

static void gap_by_tid(void **state) {
    (void)state;
    program_result r =
        check_found(&(plan){"gap", 2, .gap = 0.3, .offset = 0.4}, "inference", "severe", "c");
    check_cell(&r, row_of(&r, "inference"), "value", 1 - 1 / 1.3);
    check_cell(&r, row_of(&r, "inference"), "sites_beyond", 1);
    program_free(&r);
}

/* TID is sqrt(0.4^2 + what noise makes, 0.05^2 2/1.9). */
static void tid_alone(void **state) {
    (void)state;
    found(&(plan){"tid", 2, .offset = 0.4, .without_pairs = true}, "inference", "notable", "c",
          0.39, 0.42);
    found(&(plan){"tid, gap open", 2, .offset = 0.4, .uneven = true}, "inference", "notable", "c",
          0.39, 0.42);
    found(&(plan){"tid, no gap", 1, .offset = 0.4}, "inference", "minor", "b", 0.39, 0.42);
}

/* The same distance, of what divides: batches of more power than the running psi2. PN has one psi for training and
 * evaluation, which is no gap. */
static void psi_alone(void **state) {
    (void)state;
    program_result r = check_found(&(plan){"psi", 3, .psi = 1.3, .without_pairs = true},
                                   "inference", "minor", "pn");
    const int row = row_of(&r, "inference");
    check_text(&r, row, "statistic", "rel_psi");
    assert_true(fabs(table_real(r.out, row, "value") - 0.3) < 0.01);
    check_cell(&r, row, "sites_asked", 1);
    says(&r, "inference", "Training divides by that as evaluation does");
    advises(&r, "inference", "PN, which", false);
    program_free(&r);
    r = check_found(&(plan){"psi", 3, .psi = 1.3, .psi_divides = true, .without_pairs = true},
                    "inference", "notable", "pn");
    says(&r, "inference", "that evaluation uses; what it costs is not measured. rel_psi is 0.3 ");
    advises(&r, "inference", "PN, which", true);
    advises(&r, "inference", "RBN", false);
    program_free(&r);
    r = check_found(&(plan){"psi", 3, .psi = 1.3, .psi_divides = true, .gap = 0.3}, "inference",
                    "severe", "pn");
    program_free(&r);
}

/* Its limit is that of sigma, in whose place psi stands, and the one that is told. */
static void psi_limit(void **state) {
    (void)state;
    write_planted_run(&(plan){.name = "healthy", .site = -1});
    program_result r = diagnose("--format tsv");
    const int row = row_of(&r, "inference");
    const double least = table_real(r.out, row, "healthy_high");
    check_cell(&r, row, "limit", 1.5 * least);
    program_free(&r);
    r = program_run("statrec diagnose --format tsv \"$STATREC_SAMPLES\"/cv_bn.h5");
    check_text(&r, row_of(&r, "inference"), "statistic", "tid_var");
    const double limit = table_real(r.out, row_of(&r, "inference"), "limit");
    program_free(&r);
    write_planted_run(&(plan){"psi", 3, .psi = 1 + limit + 0.01});
    r = diagnose("--format tsv");
    check_text(&r, row_of(&r, "inference"), "verdict", "found");
    check_cell(&r, row_of(&r, "inference"), "limit", limit);
    program_free(&r);
    write_planted_run(&(plan){"psi", 3, .psi = 1 + limit - 0.01});
    r = diagnose("--format tsv");
    assert_int_equal(findings(&r), 0);
    program_free(&r);
}

/* -- would BN work here? ----------------------------------------------------------------------- */

/* Sites a, b, c observed; what is beyond is c, and the sites that are left may be tried. */
static void would_bn(void **state) {
    char words[128];
    (void)state;
    program_result r =
        check_found(&(plan){"observed", 2, .offset = 0.4, .samples = 4, .all_observed = true,
                            .more_pn = -1, .without_pairs = true},
                    "would-bn", "notable", "c");
    const int row = row_of(&r, "would-bn");
    const double limit = table_real(r.out, row, "limit"), value = table_real(r.out, row, "value"),
                 low = table_real(r.out, row, "low"), high = table_real(r.out, row, "high");
    check_text(&r, row, "statistic", "tid_mean");
    check_cell(&r, row, "sites_asked", 3);
    check_cell(&r, row, "sites_beyond", 1);
    says(&r, "would-bn", "Not by what is observed: at 1 of 3 sites the running statistics");
    says(&r, "would-bn", "worst: c (tid_mean 0.40");
    says(&r, "would-bn",
         "A batch has 2048 rows of 4 samples at c, and the observer's alpha is 0.9");
    says(&r, "would-bn", "independent rows would have a tid_mean of 0.0227");
    snprintf(words, sizeof words, "within the limit from %g rows on",
             ceil(2 / 1.9 / limit / limit));
    says(&r, "would-bn", words);
    snprintf(words, sizeof words, "it takes about %g [%g, %g] samples",
             ceil(4 * pow(value / limit, 2)), ceil(4 * pow(low / limit, 2)),
             ceil(4 * pow(high / limit, 2)));
    says(&r, "would-bn", words);
    says(&r, "would-bn",
         "are 0 of 3 sites. Within all of these limits, so that BN may be tried "
         "there, are 2 of them: a, b.");
    says(&r, "would-bn", "in a network that was trained with own-rows");
    advises(&r, "would-bn", "own-rows as it is, at these sites; RBN", true);
    advises(&r, "would-bn", "; more rows in a batch", true);
    check_text(&r, row_of(&r, "inference"), "verdict", "not-asked");
    program_free(&r);
    r = diagnose("");
    const char *head = strstr(r.out, "\nWould BN work here?\n"),
               *verdict = strstr(r.out, "1 FINDING");
    assert_true(head && verdict && head < verdict);
    assert_non_null(strstr(verdict, "Said at the head of this page."));
    assert_null(strstr(verdict, "Not by what is observed"));
    program_free(&r);
}

/* A site is beyond by either discrepancy, whichever the row is about. */
static void would_bn_either(void **state) {
    (void)state;
    program_result r = advice((plan){"both", 2, .offset = 0.4, .sigma = 1.3, .all_observed = true});
    check_cell(&r, row_of(&r, "would-bn"), "sites_beyond", 2);
    says(&r, "would-bn", "at 2 of 3 sites the running statistics would not");
    says(&r, "would-bn", "c (tid_mean 0.4");
    says(&r, "would-bn", "a (tid_var 0.3");
    says(&r, "would-bn", "is 1 of them: b.");
    program_free(&r);
}

/* Runs of statrec train are given the option, in front of what they have for it. */
static void would_bn_placed(void **state) {
    plan p = {"observed", 2, .offset = 0.4, .all_observed = true,
              .config = "norm-at = a=rmsnorm\n"};
    (void)state;
    write_planted_run(&p);
    program_result r = diagnose("--format tsv");
    says(&r, "would-bn",
         "are 2 of them (--norm-at 'a=bn,b=bn,a=rmsnorm', the others as they are).");
    program_free(&r);
    p = (plan){"gradient", 0, .gradient = 8, .all_observed = true, .config = "record-sites = *\n"};
    write_planted_run(&p);
    r = diagnose("--format tsv");
    check_text(&r, row_of(&r, "would-bn"), "verdict", "in-order");
    says(&r, "would-bn", "of the norm of the input gradient at a, the worst (g_mu_share)");
    says(&r, "would-bn", "are 1 of 3 sites.");
    says(&r, "would-bn", "are 2 of them (--norm-at 'b=bn,c=bn', the others");
    program_free(&r);
    /* with nothing but sites that may have BN, and none that the file leaves out */
    p = (plan){"all", -1, .all_observed = true, .more_pn = -1, .config = "record-sites = *\n"};
    write_planted_run(&p);
    r = diagnose("--format tsv");
    says(&r, "would-bn", "are 3 of them (--norm-at '*=bn').");
    program_free(&r);
    p.config = "record-sites = a,b,c\n";
    write_planted_run(&p);
    r = diagnose("--format tsv");
    says(&r, "would-bn", "are 3 of them (--norm-at 'a=bn,b=bn,c=bn', the others as they are).");
    program_free(&r);
}

static void would_bn_healthy(void **state) {
    (void)state;
    write_planted_run(&(plan){"observed", -1, .all_observed = true});
    program_result r = diagnose("--format tsv");
    assert_int_equal(findings(&r), 0);
    says(&r, "would-bn", "The running statistics would stand for those of batches at all of 3 ");
    says(&r, "would-bn",
         "how one trained with BN would fare, whose x and g are others, it does not");
    program_free(&r);
    r = diagnose("");
    assert_non_null(strstr(r.out, "\nWould BN work here?\n"));
    assert_non_null(strstr(r.out, "HEALTHY: nothing found"));
    program_free(&r);
}

/* An interval that holds the limit is neither; such a site is not one to be tried. */
static void would_bn_open(void **state) {
    (void)state;
    write_planted_run(&(plan){"observed", 2, .offset = 0.4, .all_observed = true});
    program_result r = diagnose("--format tsv");
    const double limit = table_real(r.out, row_of(&r, "would-bn"), "limit");
    program_free(&r);
    write_planted_run(
        &(plan){"open", 2, .offset = sqrt(limit * limit - 0.0025 * 2 / 1.9), .all_observed = true});
    r = diagnose("--format tsv");
    check_text(&r, row_of(&r, "would-bn"), "verdict", "in-order");
    says(&r, "would-bn", "Not told by what is observed: at none of 3 sites");
    says(&r, "would-bn", "but at 1 the interval holds the limit; worst: c (tid_mean");
    holds(&r, "would-bn", "text", "), b (", false);
    says(&r, "would-bn", "are 2 of them: a, b.");
    program_free(&r);
}

/* More samples of the same kind do not help where they are alike; of independent rows there is nothing to say. */
static void would_bn_alike(void **state) {
    (void)state;
    write_planted_run(&(plan){"alike", 1, .samples = 1024, .noise = 0.12, .all_observed = true});
    program_result r = diagnose("--format tsv");
    says(&r, "would-bn", "More than independent samples could show is seen (like_samples 3.");
    says(&r, "would-bn", "more of them need not help.");
    holds(&r, "would-bn", "text", "it takes about", false);
    program_free(&r);
    r = advice((plan){"alike", 1, .samples = 1024, .offset = 0.4, .all_observed = true});
    check_text(&r, row_of(&r, "would-bn"), "verdict", "found");
    advises(&r, "would-bn", "more rows", false);
    program_free(&r);
    write_planted_run(&(plan){"rows", 1, .rows = 64, .noise = 0.1, .all_observed = true});
    r = diagnose("--format tsv");
    holds(&r, "would-bn", "text", "Rows of a sample are not", false);
    holds(&r, "would-bn", "text", "like_samples", false);
    program_free(&r);
}

static void would_bn_not_asked(void **state) {
    (void)state;
    write_planted_run(&(plan){.name = "own", .site = -1});
    program_result r = diagnose("--format tsv");
    check_text(&r, row_of(&r, "would-bn"), "text",
               "sites have batch statistics of their own, none is observed");
    program_free(&r);
    write_ln_run(program_file("run.h5"));
    r = diagnose("--format tsv");
    check_text(&r, row_of(&r, "would-bn"), "text", "nothing is observed");
    program_free(&r);
}

/* Nobody evaluates with the observer's statistics: a finding says what BN would meet. */
static void dead_observed(void **state) {
    (void)state;
    program_result r =
        check_found(&(plan){"observed", 1, .dead = 3, .observed = true}, "dead", "notable", "b");
    says(&r, "dead", "of own-rows.");
    program_free(&r);
}

static void gap_without_tid(void **state) {
    (void)state;
    program_result r = check_found(&(plan){"gap", -1, .gap = 0.3}, "inference", "severe",
                                   "c"); /* the largest of those that are all in order */
    const int row = row_of(&r, "inference");
    check_cell(&r, row, "sites_beyond", 0);
    assert_non_null(strstr(table_cell(r.out, row, "text"), "does not explain it"));
    check_text(&r, row, "figure", "statplot modes");
    program_free(&r);
}

/* Evaluation uses the running values of the end: what was off in the first half of training, and is not
 * now, is nothing; the second half alone is enough. */
static void tid_of_the_end(void **state) {
    (void)state;
    write_planted_run(&(plan){"early", 2, .offset = 0.6, .offset_at = -150});
    program_result r = diagnose("--format tsv");
    assert_int_equal(findings(&r), 0);
    check_cell(&r, row_of(&r, "inference"), "first_step", 150);
    program_free(&r);
    r = check_found(&(plan){"late", 2, .offset = 0.6, .offset_at = 150}, "inference", "minor", "c");
    check_cell(&r, row_of(&r, "inference"), "last_step", 300);
    program_free(&r);
    write_planted_run(
        &(plan){"early observed", 2, .offset = 0.6, .offset_at = -150, .all_observed = true});
    r = diagnose("--format tsv");
    check_text(&r, row_of(&r, "would-bn"), "verdict", "in-order");
    program_free(&r);
    write_planted_run(&(plan){"early psi", 3, .psi = 1.6, .offset_at = -150});
    r = diagnose("--format tsv");
    assert_int_equal(findings(&r), 0);
    program_free(&r);
    found(&(plan){"late psi", 3, .psi = 1.6, .offset_at = 150}, "inference", "minor", "pn", 0.3, 1);
}

/* More is better: a metric that is larger with running statistics is no gap. */
static void gap_of_accuracy(void **state) {
    (void)state;
    program_result r = check_found(&(plan){"fewer hits", -1, .gap = 0.3, .accuracy = true},
                                   "inference", "severe", "c");
    check_cell(&r, row_of(&r, "inference"), "value", 0.3 / 0.7);
    program_free(&r);
    write_planted_run(&(plan){"more hits", -1, .gap = -0.3, .accuracy = true});
    r = diagnose("--format tsv");
    assert_int_equal(findings(&r), 0);
    program_free(&r);
}

static void outliers(void **state) {
    (void)state;
    program_result r =
        check_found(&(plan){"spikes", 1, .spikes_every = 30}, "outliers", "notable", "b");
    check_cell(&r, row_of(&r, "outliers"), "at_step", 60);
    program_free(&r);
}

/* The same spikes, in passes that are the short ends of epochs. */
static void short_passes(void **state) {
    (void)state;
    write_planted_run(&(plan){"short", 1, .spikes_every = 30, .short_every = 30});
    program_result r = diagnose("--format tsv");
    check_text(&r, row_of(&r, "outliers"), "verdict", "in-order");
    program_free(&r);
    r = diagnose("");
    assert_non_null(strstr(r.out, "; 9 passes with less than half"));
    program_free(&r);
}

static void gradient(void **state) {
    (void)state;
    found(&(plan){"gradient", 2, .gradient = 8}, "gradient", "notable", "c", 0.3, 0.5);
}

static void nu(void **state) {
    (void)state;
    program_result r = check_found(&(plan){"nu", 3, .Gamma = 30}, "nu", "severe", "pn");
    check_cell(&r, row_of(&r, "nu"), "at_step", 200);
    check_cell(&r, row_of(&r, "nu"), "value", 3);
    program_free(&r);
    found(&(plan){"nu turns", 3, .Gamma = 15}, "nu", "notable", "pn", 1.49, 1.51);
    /* one step, at the site that has the least Gamma at all others */
    found(&(plan){"nu of five", 3, .Gamma = 30, .more_pn = 4}, "nu", "severe", "pn", 2.99, 3.01);
}

/* nu goes through the start-up of running values too; in its first pass it is 0, unless the run took it over. */
static void nu_early(void **state) {
    plan p = {"nu", 3, .Gamma = 30, .Gamma_at = 20};
    (void)state;
    program_result r = check_found(&p, "nu", "severe", "pn");
    check_cell(&r, row_of(&r, "nu"), "at_step", 20);
    check_cell(&r, row_of(&r, "nu"), "first_step", 1);
    check_cell(&r, row_of(&r, "nu"), "last_step", 300);
    says(&r, "nu", "It was in the start-up of running values (44 steps)");
    program_free(&r);
    p.Gamma_at = 45;
    r = check_found(&p, "nu", "severe", "pn");
    holds(&r, "nu", "text", "start-up", false);
    program_free(&r);
    p.Gamma_at = 1;
    write_planted_run(&p);
    r = diagnose("--format tsv");
    assert_int_equal(findings(&r), 0);
    program_free(&r);
    p.nu = 0.01;
    r = check_found(&p, "nu", "severe", "pn");
    check_cell(&r, row_of(&r, "nu"), "at_step", 1);
    program_free(&r);
    p.nu = 0, p.config = "weights = other.ckpt\n";
    r = check_found(&p, "nu", "severe", "pn");
    program_free(&r);
}

/* An event needs neither an interval nor the usual number of tokens. */
static void nu_of_few(void **state) {
    (void)state;
    program_result r = check_found(&(plan){"few", 3, .Gamma = 30, .Gamma_at = 10, .steps = 12},
                                   "nu", "severe", "pn");
    program_free(&r);
    write_planted_run(&(plan){"few", 3, .steps = 12});
    r = diagnose("--format tsv");
    check_text(&r, row_of(&r, "nu"), "text", "an interval needs 20 steps, there are 11");
    program_free(&r);
    found(&(plan){"short", 3, .Gamma = 30, .short_every = 50}, "nu", "severe", "pn", 2.9, 3.1);
}

static void dead(void **state) {
    (void)state;
    found(&(plan){"dead", 1, .dead = 3}, "dead", "notable", "b", 0.374, 0.376);
}

static void growth(void **state) {
    (void)state;
    found(&(plan){"growth", 2, .growth = 12}, "growth", "notable", "c", 3, 9);
}

static void padding(void **state) {
    (void)state;
    found(&(plan){"padding", -1, .padded = 2}, "padding", "minor", "a", 0.63, 0.65);
}

static void few_rows(void **state) {
    (void)state;
    found(&(plan){"rows", -1, .rows = 8}, "rows", "notable", "a", 0.362, 0.363);
}

static void alike(void **state) {
    (void)state;
    found(&(plan){"alike", 1, .samples = 1024, .noise = 0.12}, "alike", "notable", "b", 3.65, 3.74);
}

static void too_slow(void **state) {
    (void)state;
    program_result r =
        check_found(&(plan){"slow", 2, .noise = 0.015, .drift = 0.012}, "alpha", "notable", "c");
    assert_non_null(strstr(table_cell(r.out, row_of(&r, "alpha"), "text"), "too slow"));
    program_free(&r);
}

/* 0.999^300 and 0.99^300: running values that the run is too short for. No interval is needed. */
static void too_short(void **state) {
    (void)state;
    found(&(plan){"start", 2, .alpha = 0.999, .anew = true}, "alpha", "notable", "c", 0.7406,
          0.7408);
    found(&(plan){"start", 1, .alpha = 0.99, .anew = true}, "alpha", "minor", "b", 0.0490, 0.0491);
    write_planted_run(&(plan){"taken over", 2, .alpha = 0.999});
    program_result r = diagnose("--format tsv");
    assert_int_equal(findings(&r), 0);
    program_free(&r);
    remove(program_file("run.h5"));
    write_planted_run(&(plan){"goes on", 2, .alpha = 0.999, .anew = true, .abandoned = true});
    r = diagnose("--format tsv");
    assert_int_equal(findings(&r), 0);
    program_free(&r);
    remove(program_file("run.h5.part"));
}

static void too_fast(void **state) {
    (void)state;
    program_result r = check_found(&(plan){"fast", 1, .alpha = 0.1}, "alpha", "notable", "b");
    assert_non_null(strstr(table_cell(r.out, row_of(&r, "alpha"), "text"), "too fast"));
    program_free(&r);
}

static void collapse(void **state) {
    (void)state;
    found(&(plan){"collapse", -1, .collapses = true}, "embedding", "notable", "-", 0.1, 0.3);
}

/* Other noise is no fault. */
static void no_false_alarm(void **state) {
    (void)state;
    for (uint32_t seed = 1; seed <= 12; seed++) {
        write_planted_run(&(plan){.name = "healthy", .site = -1, .seed = 1000 * seed});
        program_result r = diagnose("--format tsv");
        if (findings(&r)) fail_msg("seed %u: %s", seed, r.out);
        program_free(&r);
    }
}

/* -- advice --------------------------------------------------------------------------------------- */

/* A host of its own has no option of statrec train. */
static void advice_of_hosts(void **state) {
    static const plan plans[] = {
        {"nan", 1, .nan_at = 150},
        {"gap", 2, .gap = 0.3, .offset = 0.4},
        {"spikes", 1, .spikes_every = 30},
        {"gradient", 2, .gradient = 8},
        {"nu", 3, .Gamma = 30},
        {"dead", 1, .dead = 3},
        {"growth", 2, .growth = 12},
        {"padding", -1, .padded = 2},
        {"rows", -1, .rows = 8},
        {"alike", 1, .samples = 1024, .noise = 0.12},
        {"slow", 2, .alpha = 0.999, .anew = true},
        {"collapse", -1, .collapses = true},
        {"observed", 2, .offset = 0.4, .all_observed = true},
    };
    (void)state;
    for (size_t k = 0; k < sizeof plans / sizeof plans[0]; k++) {
        program_result r = advice(plans[k]);
        if (findings(&r) == 0) fail_msg("%s is not found", plans[k].name);
        for (int i = 0; i < table_rows(r.out); i++) {
            const char *text = table_cell(r.out, i, "advice");
            if (strstr(text, "--") || strstr(text, "statrec"))
                fail_msg("%s: %s", plans[k].name, text);
            const bool any = strlen(text) > 5;
            assert_int_equal(any, strcmp(table_cell(r.out, i, "verdict"), "found") == 0);
            assert_null(strstr(table_cell(r.out, i, "text"), "--"));
        }
        program_free(&r);
    }
    program_result r = advice((plan){"spikes", 1, .spikes_every = 30, .other_host = true,
                                     .config = "batching = bucketed\nbatch-size = 8\n"});
    advises(&r, "outliers", "; more rows in a batch", true);
    advises(&r, "outliers", "a pass", false);
    advises(&r, "outliers", "drawn at random", false);
    program_free(&r);
}

/* What a run is already is no advice. */
static void advice_of_method(void **state) {
    plan p = {"gap", 2, .gap = 0.3, .offset = 0.4, .config = "norm = x\n"};
    (void)state;
    program_result r = advice(p);
    advises(&r, "inference", "RBN, whose penalty draws the two together (--norm rbn", true);
    advises(&r, "inference", "more weight", false);
    advises(&r, "inference", "(--norm-at 'c=ln')", true);
    program_free(&r);
    p.method = "rbn";
    r = advice(p);
    advises(&r, "inference", "RBN, whose", false);
    advises(&r, "inference", "more weight of the penalty that draws the two together (--rbn-lam",
            true);
    program_free(&r);
    r = advice((plan){"nu", 3, .Gamma = 30, .config = "norm = pn\n"});
    advises(&r, "nu", "a layer scale in front", true);
    advises(&r, "nu", "--norm pn-released", true);
    program_free(&r);
    r = advice((plan){"nu", 3, .Gamma = 30, .config = "norm = pn\n", .layer_scale = 2});
    advises(&r, "nu", "a layer scale", false);
    program_free(&r);
    r = advice((plan){"slow", 2, .alpha = 0.999, .anew = true});
    advises(&r, "alpha", "the alpha that is named, which changes nothing but evaluation", true);
    program_free(&r);
    r = advice((plan){"slow", 2, .alpha = 0.999, .anew = true, .method = "rbn"});
    check_text(&r, row_of(&r, "alpha"), "advice", "the alpha that is named");
    program_free(&r);
}

/* Options that the run has or lacks, and what it has set them to. */
static void advice_of_options(void **state) {
    static const struct {
        const char *config, *question, *words;
        bool wanted;
    } cases[] = {
        {"placement = pre\n", "divergence", "--placement", false},
        {"placement = post\n", "divergence", "--placement pre", true},
        {"init = he\n", "divergence", "--placement", false},
        {"warmup-updates = 0\n", "divergence", "a warm-up (--warmup-updates)", true},
        {"warmup-updates = 100\n", "divergence", "a longer warm-up (--warmup-updates)", true},
        {"warmup-updates = 100\n", "divergence", "; a warm-up", false},
        {"clip-norm = 0\n", "divergence", "; a bound of the gradient's norm (--clip-norm)", true},
        {"clip-norm = 1\n", "divergence", "a lower bound of the gradient's norm (--clip", true},
        {"batching = bucketed\n", "outliers", "--batching random", true},
        {"batching = random\n", "outliers", "--batching", false},
        {"batch-size = 8\n", "outliers", "--batching", false},
        {"batch-size = 8\n", "outliers", "more rows in a pass (--batch-size)", true},
        {"max-tokens = 8\n", "outliers", "more rows in a pass (--max-tokens)", true},
        {"max-tokens = 8\n", "outliers", "--batch-size", false},
        {"batch-size = 8\nmax-tokens = 8\nbatch-by = tokens\n", "outliers", "--batch-size", false},
        {"batch-size = 8\nmax-tokens = 8\nbatch-by = sentences\n", "outliers", "--max-tok", false},
        {"update-freq = 4\n", "outliers", "--update-freq", true},
        {"update-freq = 1\n", "outliers", "--update-freq", false},
        {"shares = 2\nsync-norm = no\n", "outliers", "--sync-norm", true},
        {"shares = 2\nsync-norm = yes\n", "outliers", "--sync-norm", false},
        {"shares = 1\n", "outliers", "--sync-norm", false},
        {"batching = random\n", "padding", "--batching bucketed", true},
        {"batching = bucketed\nmax-tokens-of = padded\n", "padding", "--batching", false},
        {"batching = bucketed\nmax-tokens-of = padded\n", "padding", "--max-tokens-of valid", true},
        {"batching = bucketed\nmax-tokens-of = valid\n", "padding", "--", false},
        {"batching = bucketed\nmax-tokens-of = valid\n", "padding", "a look at the batches", true},
        {"weight-decay = 0\n", "growth", "; weight decay (--weight-decay)", true},
        {"weight-decay = 0.1\n", "growth", "more weight decay (--weight-decay)", true},
        {"checkpoint-every = none\n", "inference", "--checkpoint-every end; then statrec av", true},
        {"checkpoint-every = end\n", "inference", "--checkpoint-every", false},
        {"checkpoint-every = end\n", "inference", "(statrec evaluate X.ckpt --each-site)", true},
        {"norm-at = a=bn\n", "inference", "(--norm-at 'c=ln,a=bn')", true},
        {"norm-at = a=bn\n", "inference", "(--norm-at 'c=pn+ls,a=bn')", true},
        {"decoder-norm = ln\n", "inference", "(--norm pn+ls)", true},
    };
    (void)state;
    program_result r = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (i == 0 || strcmp(cases[i].config, cases[i - 1].config) != 0) {
            program_free(&r);
            r = advice((plan){"all", 2, .nan_at = 290, .recovers = true, .spikes_every = 30,
                              .padded = 2, .growth = 12, .offset = 0.6, .method = "bn",
                              .config = cases[i].config});
        }
        check_text(&r, row_of(&r, cases[i].question), "verdict", "found");
        advises(&r, cases[i].question, cases[i].words, cases[i].wanted);
    }
    program_free(&r);
}

/* A decoder has an option of its own; the first files have options that had no use in them. */
static void advice_of_places(void **state) {
    plan p = {"gap", 2, .gap = 0.3, .offset = 0.4, .kind = "decoder", .config = "norm = bn\n"};
    (void)state;
    program_result r = advice(p);
    advises(&r, "inference", "(--norm pn+ls)", true);
    program_free(&r);
    p.config = "norm = bn\ndecoder-norm = bn\n";
    r = advice(p);
    advises(&r, "inference", "(--decoder-norm pn+ls)", true);
    program_free(&r);
    r = advice((plan){"spikes", 1, .spikes_every = 30, .whole = true,
                      .config = "batching = bucketed\nbatch-size = 8\nmax-tokens = 8\n"});
    advises(&r, "outliers", "(--batch-size)", true);
    advises(&r, "outliers", "--batching", false);
    advises(&r, "outliers", "--max-tokens", false);
    program_free(&r);
}

/* -- ranking, missing statistics, files that are not whole ------------------------------------ */

static void ranking(void **state) {
    (void)state;
    write_planted_run(&(plan){"three", 1, .padded = 2, .dead = 2, .nan_at = 150});
    program_result r = diagnose("--format tsv");
    assert_int_equal(findings(&r), 3);
    check_cell(&r, row_of(&r, "divergence"), "rank", 1);
    check_cell(&r, row_of(&r, "dead"), "rank", 2);
    check_cell(&r, row_of(&r, "padding"), "rank", 3);
    program_free(&r);
    r = diagnose("");
    const char *first = strstr(r.out, " 1. Divergence (severe"),
               *second = strstr(r.out, " 2. Dead");
    assert_true(first && second && first < second);
    assert_non_null(strstr(r.out, "3 FINDINGS, the weightiest first"));
    program_free(&r);
}

/* A command can be copied whatever the file is called, and however long that is. */
static void path_of_words(void **state) {
    (void)state;
    if (!have_gnuplot()) return;
    write_planted_run(&(plan){"words", 1, .dead = 3});
    program_result r = program_run("mv run.h5 \"a  run's file of a name that is longer than a line "
                                   "of the page of text is.h5\" && "
                                   "statrec diagnose a*.h5 | sed -n 's/^    see  *//p' >see && "
                                   "test -s see && sh see; status=$?; "
                                   "rm a*.h5; exit $status");
    if (r.status) fail_msg("%s", r.err);
    program_free(&r);
}

static void missing(void **state) {
    (void)state;
    write_planted_run(&(plan){"bare", -1, .bare = true, .without_pairs = true});
    program_result r = diagnose("--format tsv");
    assert_int_equal(findings(&r), 0);
    check_text(&r, row_of(&r, "divergence"), "verdict", "in-order");
    for (int i = 1; i < table_rows(r.out); i++) {
        check_text(&r, i, "verdict", "not-asked");
        check_text(&r, i, "value", "nan");
        assert_true(strlen(table_cell(r.out, i, "text")) > 5);
    }
    program_free(&r);
    r = diagnose("");
    assert_non_null(strstr(r.out, "NOTHING FOUND, but no batch statistics are recorded"));
    assert_null(strstr(r.out, "HEALTHY"));
    program_free(&r);
    r = program_run(
        "statrec train --model transformer --preset mini --data synth-pairs --embed-dim 16 "
        "--ffn-dim 16 --norm un --max-tokens 256 --max-steps 60 --threads 1 --quiet --force "
        "-o run.h5 >train.out && statrec diagnose run.h5");
    assert_non_null(strstr(r.out, "NOTHING FOUND, but too few steps"));
    program_free(&r);
}

static void unfinished(void **state) {
    (void)state;
    remove(program_file("run.h5"));
    write_planted_run(&(plan){"unfinished", 1, .dead = 3, .abandoned = true});
    program_result r = diagnose("--format tsv");
    assert_int_equal(findings(&r), 1);
    check_text(&r, row_of(&r, "dead"), "site", "b");
    program_free(&r);
    r = diagnose("");
    assert_non_null(strstr(r.out, "300 steps, unfinished"));
    program_free(&r);
    remove(program_file("run.h5.part"));
}

static void short_run(void **state) {
    (void)state;
    write_small_run(program_file("run.h5"), 6, true);
    program_result r = diagnose("--format tsv");
    assert_int_equal(findings(&r), 1); /* its step 6 has mu_B NaN */
    check_text(&r, row_of(&r, "divergence"), "site", "stem");
    check_cell(&r, row_of(&r, "divergence"), "at_step", 6);
    program_free(&r);
    write_small_run(program_file("run.h5"), 5, true);
    r = diagnose("");
    assert_non_null(strstr(r.out, "NO VERDICT"));
    program_free(&r);
}

static void json(void **state) {
    (void)state;
    write_planted_run(&(plan){"json", 1, .dead = 3});
    program_result r = diagnose("--format json");
    assert_int_equal(r.out[0], '{');
    assert_non_null(strstr(r.out, "\"program\": \"statrec diagnose\""));
    assert_non_null(strstr(r.out, "[\"run.h5\", \"dead\", \"found\", 1, \"notable\""));
    assert_null(strstr(r.out, "nan"));
    program_free(&r);
}

static void wrong(void **state) {
    (void)state;
    program_result r = program_run("statrec diagnose");
    assert_int_equal(r.status, 2);
    program_free(&r);
    r = program_run("statrec diagnose none.h5");
    assert_int_equal(r.status, 1);
    assert_string_equal(r.out, "");
    program_free(&r);
    r = program_run("echo text >text.h5; statrec diagnose --format json text.h5");
    assert_int_equal(r.status, 1);
    assert_string_equal(r.out, "");
    program_free(&r);
}

/* Memory that fails behind the questions, while the head is written (the fourth sixth of a short run's
 * allocations), is told as any other. All allocations are a row of `make torture`. */
static void no_memory(void **state) {
    (void)state;
    long last = 0, failed = 0;
    write_small_run(program_file("run.h5"), 6, true);
    program_result r =
        program_run("PATH='%s/../faulty':\"$PATH\" STATREC_FAULT_COUNT=\"$PWD/count\" "
                    "statrec diagnose run.h5 && cut -d ' ' -f 2 count >&2",
                    program_directory());
    last = strtol(r.err, NULL, 10);
    program_free(&r);
    assert_true(last > 100);
    for (long k = last / 2; k < last * 2 / 3; k++) {
        r = program_run(
            "PATH='%s/../faulty':\"$PATH\" STATREC_FAULT=alloc:%ld statrec diagnose run.h5",
            program_directory(), k);
        if (r.status > 1 || (r.status == 1 && !strstr(r.err, "memory")))
            fail_msg("allocation %ld of %ld: exit status %d: %s", k, last, r.status, r.err);
        failed += r.status == 1;
        program_free(&r);
    }
    assert_true(failed > 0);
}

/* The recorded vision runs are healthy, and no recorded text run has a severe finding. */
static void samples(void **state) {
    (void)state;
    program_result r = program_run("statrec diagnose --format tsv \"$STATREC_SAMPLES\"/cv_*.h5");
    assert_int_equal(r.status, 0);
    assert_true(table_rows(r.out) >= 36);
    if (findings(&r)) fail_msg("%s", r.out);
    program_free(&r);
    r = program_run("statrec diagnose --format tsv \"$STATREC_SAMPLES\"/nlp_*.h5");
    assert_int_equal(r.status, 0);
    for (int i = 0; i < table_rows(r.out); i++)
        assert_string_not_equal(table_cell(r.out, i, "severity"), "severe");
    program_free(&r);
}

/* Ranges that are in the program are those that the recorded runs have. */
static void ranges(void **state) {
    (void)state;
    program_result r =
        program_run("cd \"$STATREC_SAMPLES/..\" && sample_runs/healthy.sh \"$(dirname "
                    "\"$(command -v statrec)\")\" | diff - src/diagnose/healthy_ranges.h");
    if (r.status) fail_msg("sample_runs/healthy.sh prints other ranges:\n%s%s", r.out, r.err);
    program_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(healthy),
        cmocka_unit_test(not_finite),
        cmocka_unit_test(loss_rises),
        cmocka_unit_test(gap_by_tid),
        cmocka_unit_test(tid_alone),
        cmocka_unit_test(gap_without_tid),
        cmocka_unit_test(psi_alone),
        cmocka_unit_test(psi_limit),
        cmocka_unit_test(would_bn),
        cmocka_unit_test(would_bn_either),
        cmocka_unit_test(would_bn_placed),
        cmocka_unit_test(would_bn_open),
        cmocka_unit_test(would_bn_healthy),
        cmocka_unit_test(would_bn_alike),
        cmocka_unit_test(would_bn_not_asked),
        cmocka_unit_test(dead_observed),
        cmocka_unit_test(tid_of_the_end),
        cmocka_unit_test(gap_of_accuracy),
        cmocka_unit_test(nu_early),
        cmocka_unit_test(nu_of_few),
        cmocka_unit_test(advice_of_hosts),
        cmocka_unit_test(advice_of_method),
        cmocka_unit_test(advice_of_options),
        cmocka_unit_test(advice_of_places),
        cmocka_unit_test(outliers),
        cmocka_unit_test(short_passes),
        cmocka_unit_test(gradient),
        cmocka_unit_test(nu),
        cmocka_unit_test(dead),
        cmocka_unit_test(growth),
        cmocka_unit_test(padding),
        cmocka_unit_test(few_rows),
        cmocka_unit_test(alike),
        cmocka_unit_test(too_slow),
        cmocka_unit_test(too_fast),
        cmocka_unit_test(too_short),
        cmocka_unit_test(collapse),
        cmocka_unit_test(ranking),
        cmocka_unit_test(missing),
        cmocka_unit_test(path_of_words),
        cmocka_unit_test(unfinished),
        cmocka_unit_test(short_run),
        cmocka_unit_test(json),
        cmocka_unit_test(wrong),
        cmocka_unit_test(no_memory),
        cmocka_unit_test(samples),
        cmocka_unit_test(ranges),
        cmocka_unit_test(no_false_alarm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
