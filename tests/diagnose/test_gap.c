/* The cost of running statistics in evaluation: judged in the unit of the metric, by its interval,
 * trend and part of the difference from another run. Also the text if it was not measured. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "diagnose/diagnosis.h"
#include "found.h"
#include "testing/check.h"

/* -- limits ---------------------------------------------------------------------------------- */

static severity judged(double value, double low, double high) {
    const gap g = {.e = {value, low, high, 5}, .notable = 0.01, .severe = 0.1};
    return gap_severity(&g);
}

static bool told(double value, double low, double high) {
    const gap g = {.e = {value, low, high, 5}, .notable = 0.01, .severe = 0.1};
    return gap_is_told(&g);
}

/* A value at the limit is found; an interval that reaches zero does not exclude it. */
static void limits(void **state) {
    const double least = nextafter(0, 1);
    (void)state;
    assert_int_equal(judged(0.01, least, 1), NOTABLE);
    assert_int_equal(judged(nextafter(0.01, 0), least, 1), 0);
    assert_int_equal(judged(nextafter(0.1, 0), least, 1), NOTABLE);
    assert_int_equal(judged(0.1, least, 1), SEVERE);
    assert_int_equal(judged(0.1, 0, 1), 0);
    assert_int_equal(judged(0.1, -1, 1), 0);
    assert_int_equal(judged(-0.1, -0.2, -0.05), 0);
    assert_int_equal(judged(0.1, NAN, NAN), 0);
    assert_true(told(0.005, 0.004, nextafter(0.01, 0)));
    assert_false(told(0.005, 0.004, 0.01));
    assert_true(told(0.02, 0.01, 0.03));
    assert_false(told(0.02, 0, 0.04));
    assert_false(told(0.005, NAN, NAN));
}

/* -- in nats --------------------------------------------------------------------------------- */

static void check_gap(const program_result *r, double value, double far) {
    const int row = row_of(r, "inference");
    check_text(r, row, "statistic", "gap");
    check_within(table_real(r->out, row, "value"), value, 1e-9);
    check_within(table_real(r->out, row, "low"), value - far, 1e-4);
    check_within(table_real(r->out, row, "high"), value + far, 1e-4);
}

/* Ten evaluations, every 30 steps. A missing one among them is the host program's choice. */
static void validation_ends(void **state) {
    (void)state;
    program_result r =
        check_found(&(plan){"ends", 1, .validation_ends = 270}, "divergence", "notable", "-");
    check_text(&r, row_of(&r, "divergence"), "statistic", "nonfinite_evaluations");
    check_cell(&r, row_of(&r, "divergence"), "at_step", 270);
    says(&r, "divergence",
         "valid_loss is finite at the first 8 evaluations and not at the other 2");
    advises(&r, "divergence", "the running values of its sites", true);
    advises(&r, "divergence", "warm-up", false);
    program_free(&r);
    r = advice((plan){"gap", 1, .validation_gap = 270});
    check_text(&r, row_of(&r, "divergence"), "verdict", "in-order");
    program_free(&r);
    r = advice((plan){"last", 1, .validation_ends = 300});
    check_cell(&r, row_of(&r, "divergence"), "at_step", 300);
    program_free(&r);
}

/* Evaluations 6 to 10 are in the second half: 0.03 + 0.005 (k - 5.5); Student's t is 2.7764. */
static void grows(void **state) {
    (void)state;
    program_result r = check_found(&(plan){"grows", -1, .cost = 0.03, .cost_grows = 0.005},
                                   "inference", "notable", "c");
    const double far = 2.7764 * 0.005 * sqrt(2.5 / 5);
    check_gap(&r, 0.0425, far);
    check_cell(&r, row_of(&r, "inference"), "limit", 0.01);
    check_cell(&r, row_of(&r, "inference"), "first_step", 180);
    check_cell(&r, row_of(&r, "inference"), "last_step", 300);
    says(&r, "inference", "valid_loss is 0.0425 [0.0327, 0.0523] nats");
    says(&r, "inference", "worse with running than with batch statistics");
    says(&r, "inference", "mean of 5 evaluations");
    says(&r, "inference",
         "It grows: 0.015 in the first third of all 10 evaluations, 0.045 in the "
         "last.");
    program_free(&r);
    r = diagnose("");
    assert_non_null(strstr(r.out, "measured    gap 0.0425 [0.0327, 0.0523] nats"));
    assert_non_null(strstr(r.out, "limit       notable from 0.01, severe from 0.1 on, interval "
                                  "above zero"));
    program_free(&r);
    r = advice((plan){"shrinks", -1, .cost = 0.05, .cost_grows = -0.005});
    says(&r, "inference", "It shrinks: 0.065 in");
    program_free(&r);
    r = advice((plan){"stays", -1, .cost = 0.05, .cost_grows = 0.001});
    says(&r, "inference", "It stays: 0.047 in");
    program_free(&r);
}

static void severities(void **state) {
    (void)state;
    program_result r = check_found(&(plan){"much", -1, .cost = 0.15}, "inference", "severe", "c");
    check_gap(&r, 0.15, 0);
    program_free(&r);
    r = check_found(&(plan){"some", -1, .cost = 0.0101}, "inference", "notable", "c");
    program_free(&r);
    r = advice((plan){"little", -1, .cost = 0.0099});
    check_text(&r, row_of(&r, "inference"), "verdict", "in-order");
    check_gap(&r, 0.0099, 0);
    says(&r, "inference", "gap 0.0099 [0.0099, 0.0099]");
    says(&r, "inference",
         "in 5 evaluations, notable from 0.01 on; largest discrepancy: tid_var 0.0242 at c.");
    program_free(&r);
    r = advice((plan){"better", -1, .cost = -0.15});
    check_text(&r, row_of(&r, "inference"), "verdict", "in-order");
    program_free(&r);
}

/* An interval that contains the limit is inconclusive, whatever its value: not healthy, not
 * found. */
static void uneven(void **state) {
    static const double cost[] = {0.02, 0.005, -0.02};
    (void)state;
    for (int i = 0; i < 3; i++) {
        program_result r = advice((plan){"uneven", -1, .cost = cost[i], .cost_uneven = 0.2});
        assert_int_equal(findings(&r), 0);
        check_text(&r, row_of(&r, "inference"), "verdict", "not-told");
        says(&r, "inference", "The interval holds that limit: more evaluations would tell.");
        program_free(&r);
    }
    program_result r = diagnose("");
    assert_null(strstr(r.out, "HEALTHY"));
    assert_non_null(strstr(r.out, "NOTHING FOUND in what could be asked; what evaluation loses is "
                                  "not certain"));
    assert_non_null(strstr(r.out, "record      more evaluations in the second half of training"));
    assert_non_null(strstr(r.out, "Asked, harm cannot be told from it"));
    program_free(&r);
}

/* 0.2 % and 2 % of the value with running statistics; more hits are better. */
static void other_metrics(void **state) {
    static const struct {
        double gap;
        const char *verdict, *severity;
    } cases[] = {{-0.3, "in-order", "-"},
                 {0.0019, "in-order", "-"},
                 {0.0021, "found", "notable"},
                 {0.0195, "found", "notable"},
                 {0.0197, "found", "severe"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        program_result r = advice((plan){"hits", -1, .gap = cases[i].gap, .accuracy = true});
        const int row = row_of(&r, "inference");
        check_text(&r, row, "verdict", cases[i].verdict);
        check_text(&r, row, "severity", cases[i].severity);
        check_within(table_real(r.out, row, "value"), 50 * cases[i].gap, 1e-9);
        check_within(table_real(r.out, row, "limit"), 0.1 * (1 - cases[i].gap), 1e-9);
        program_free(&r);
    }
}

/* The loss added by label smoothing is not part of the cost. */
static void without_smoothing(void **state) {
    (void)state;
    program_result r = advice((plan){"nll", -1, .cost = 0.001, .nll_cost = 0.03});
    const int row = row_of(&r, "inference");
    check_text(&r, row, "verdict", "found");
    check_text(&r, row, "severity", "notable");
    check_gap(&r, 0.03, 0);
    says(&r, "inference", "valid_nll is 0.03 [0.03, 0.03] nats per token worse");
    check_text(&r, row, "figure", "statplot modes");
    program_free(&r);
    r = advice((plan){"nll", -1, .cost = 0.2, .nll_cost = 0.001});
    check_text(&r, row_of(&r, "inference"), "verdict", "in-order");
    says(&r, "inference", "valid_nll: gap 0.001 [0.001, 0.001] nats per token");
    program_free(&r);
}

/* -- compared with another run --------------------------------------------------------------- */

/* The gap is 0.045 in the last third; without it the run is 0.03 better than the other. */
static void part_of_difference(void **state) {
    (void)state;
    write_planted_run(&(plan){.name = "other", .site = -1});
    program_result r = program_run("mv run.h5 other.h5");
    program_free(&r);
    write_planted_run(&(plan){"grows", -1, .cost = 0.03, .cost_grows = 0.005, .lower = 0.03});
    static const char wanted[] =
        "Against other.h5 valid_loss is 0.015 worse (last third of the evaluations). The gap is "
        "0.045 of that (gap/difference 3): with batch statistics it would be 0.03 better.";
    r = program_run("statrec diagnose --format tsv run.h5 other.h5");
    says(&r, "inference", wanted);
    program_free(&r);
    r = program_run("statrec diagnose --format tsv other.h5 run.h5 | sed 2,15d");
    assert_non_null(strstr(r.out, wanted));
    program_free(&r);
    r = diagnose("--format tsv");
    holds(&r, "inference", "text", "Against", false);
    program_free(&r);
    write_planted_run(&(plan){"grows", -1, .cost = 0.03, .cost_grows = 0.005, .lower = 0.1});
    r = program_run("statrec diagnose --format tsv run.h5 other.h5");
    says(&r, "inference",
         "Against other.h5 valid_loss is 0.055 better (last third of the "
         "evaluations). Without the gap of 0.045 it would be 0.1 better.");
    program_free(&r);
    r = program_run("rm other.h5");
    program_free(&r);
}

/* A value beyond the limit whose interval reaches below it is neither found nor called usual. */
#define AT_LIMIT 0.2105
static void at_the_limit(void **state) {
    (void)state;
    program_result r = advice(
        (plan){.name = "near", .site = 1, .noise = AT_LIMIT, .without_pairs = true, .rows = 20000});
    const int row = row_of(&r, "inference");
    const double limit = table_real(r.out, row, "limit");
    check_text(&r, row, "verdict", "not-told");
    check_below(table_real(r.out, row, "low"), limit);
    check_above(table_real(r.out, row, "high"), limit);
    says(&r, "inference", "Its interval holds the limit 0.216, so it may be more than usual.");
    program_free(&r);
    r = advice((plan){.name = "near", .site = 1, .noise = AT_LIMIT, .nll_cost = 0.05});
    says(&r, "inference", "; its interval holds the limit 0.216: it may be more than usual.");
    program_free(&r);
}

/* -- not measured ---------------------------------------------------------------------------- */

static void not_measured(void **state) {
    (void)state;
    program_result r = advice((plan){.name = "unmeasured", .site = -1, .without_pairs = true});
    const int row = row_of(&r, "inference");
    check_text(&r, row, "verdict", "not-told");
    check_text(&r, row, "severity", "-");
    says(&r, "inference",
         "That is usual, but harm cannot be told from it: recorded runs that lose "
         "nothing have up to");
    says(&r, "inference", "Validate with running and with batch statistics.");
    program_free(&r);
    r = diagnose("");
    assert_null(strstr(r.out, "HEALTHY"));
    assert_non_null(strstr(r.out, "NOTHING FOUND in what could be asked; what evaluation loses is "
                                  "not measured"));
    assert_non_null(strstr(r.out, "record      validation with running and with batch statistics, "
                                  "as NAME and NAME_batch"));
    program_free(&r);
    r = advice(
        (plan){.name = "unmeasured", .site = -1, .without_pairs = true, .config = "norm = x\n"});
    says(&r, "inference", "with batch statistics (--validate-batch).");
    program_free(&r);
}

/* PN divides by the same psi in training and evaluation: a gap is impossible. */
static void nothing_to_measure(void **state) {
    (void)state;
    write_planted_run(
        &(plan){.name = "pn", .site = -1, .all_observed = true, .without_pairs = true});
    program_result r = diagnose("");
    assert_non_null(strstr(r.out, "HEALTHY: nothing found"));
    program_free(&r);
}

/* The advice lists the causes first. */
static void causes(void **state) {
    (void)state;
    plan p = {"gap", -1, .cost = 0.03, .method = "bn",
              .config = "batching = bucketed\ncheckpoint-every = end\n"};
    program_result r = advice(p);
    const char *text = table_cell(r.out, row_of(&r, "inference"), "advice");
    const char *stale = strstr(text, "(statrec average X.ckpt --recompute-stats)"),
               *place = strstr(text, "(statrec evaluate X.ckpt --each-site)"),
               *length = strstr(text, "(--batching random)"), *other = strstr(text, "RBN");
    assert_true(stale && place && length && other);
    assert_true(stale < place && place < length && length < other);
    advises(&r, "inference", "--validate-batch", false);
    program_free(&r);
    p.config = "batching = random\ncheckpoint-every = end\n";
    r = advice(p);
    advises(&r, "inference", "--batching", false);
    program_free(&r);
    r = advice((plan){"tid", 2, .offset = 0.4, .without_pairs = true, .config = "norm = x\n"});
    advises(&r, "inference", "validation with running and with batch statistics (--validate-batch)",
            true);
    program_free(&r);
}

/* A run that validates both ways is not told to, whether or not the gap is what was found. */
static void measured_beside(void **state) {
    (void)state;
    plan p = {"tid", 2, .offset = 0.4, .config = "norm = x\n"};
    program_result r = check_found(&p, "inference", "minor", "c");
    says(&r, "inference", "evaluation does not suffer from it so far");
    advises(&r, "inference", "validation with running", false);
    program_free(&r);
    p.config = NULL;
    r = advice(p);
    advises(&r, "inference", "validation with running", false);
    program_free(&r);
    p.steps = 100; /* evaluations are too few */
    r = advice(p);
    says(&r, "inference", "valid_loss is there both ways, but not at three evaluations");
    holds(&r, "inference", "text", "validate both ways", false);
    advises(&r, "inference", "validation with running", false);
    program_free(&r);
}

/* A site counts where any discrepancy is beyond its limit, and the other one is told. */
static void both_discrepancies(void **state) {
    (void)state;
    program_result r = advice((plan){"both", 2, .offset = 0.8, .sigma = 1.3});
    check_text(&r, row_of(&r, "inference"), "statistic", "tid_mean");
    check_text(&r, row_of(&r, "inference"), "site", "c");
    check_cell(&r, row_of(&r, "inference"), "sites_beyond", 2);
    says(&r, "inference", ", beyond 0.216, and tid_var 0.3");
    says(&r, "inference", " at a, beyond 0.");
    program_free(&r);
    r = diagnose("");
    assert_non_null(strstr(r.out, "some by another"));
    program_free(&r);
}

/* -- psi ------------------------------------------------------------------------------------- */

/* The same distance, of the divisor: batches with more power than the running psi2. PN has one psi
 * for training and evaluation, so it has no gap. */
static void psi_alone(void **state) {
    (void)state;
    program_result r = check_found(&(plan){"psi", 3, .psi = 1.3, .without_pairs = true},
                                   "inference", "minor", "pn");
    const int row = row_of(&r, "inference");
    check_text(&r, row, "statistic", "rel_psi");
    check_within(table_real(r.out, row, "value"), 0.3, 0.01);
    check_cell(&r, row, "sites_asked", 4); /* the others have a TID */
    check_cell(&r, row, "sites_beyond", 1);
    says(&r, "inference", "Training divides by that as evaluation does");
    advises(&r, "inference", "PN, which", false);
    program_free(&r);
    r = check_found(&(plan){"psi", 3, .psi = 1.3, .psi_divides = true, .without_pairs = true},
                    "inference", "notable", "pn");
    says(&r, "inference",
         "that evaluation uses; what it costs is not measured: validate both ways. "
         "rel_psi is 0.3 ");
    advises(&r, "inference", "PN, which", true);
    advises(&r, "inference", "RBN", false);
    program_free(&r);
    r = check_found(&(plan){"psi", 3, .psi = 1.3, .psi_divides = true, .gap = 0.3}, "inference",
                    "severe", "pn");
    program_free(&r);
}

/* Its limit equals the limit of sigma, which psi replaces, and is the reported one. */
static void psi_limit(void **state) {
    (void)state;
    write_planted_run(&(plan){.name = "psi", .site = 3, .psi = 1.5});
    program_result r = diagnose("--format tsv");
    const int row = row_of(&r, "inference");
    check_text(&r, row, "statistic", "rel_psi");
    const double limit = table_real(r.out, row, "limit");
    check_cell(&r, row, "limit", 1.5 * table_real(r.out, row, "usual_high"));
    program_free(&r);
    write_planted_run(&(plan){"sigma", 0, .sigma = 1.5});
    r = diagnose("--format tsv");
    check_text(&r, row_of(&r, "inference"), "statistic", "tid_var");
    check_cell(&r, row_of(&r, "inference"), "limit", limit);
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

/* A psi that a site does not divide by is not a discrepancy. */
static void unused_psi(void **state) {
    (void)state;
    program_result r = advice((plan){.name = "psi", .site = -1, .unused_psi = 3});
    assert_int_equal(findings(&r), 0);
    check_text(&r, row_of(&r, "inference"), "verdict", "in-order");
    holds(&r, "inference", "text", "rel_psi", false);
    program_free(&r);
}

/* -- exit status ----------------------------------------------------------------------------- */

static void fails(const char *options, int status) {
    program_result r = program_run("statrec diagnose %s run.h5", options);
    if (r.status != status) fail_msg("%s: exit status %d, not %d", options, r.status, status);
    program_free(&r);
}

static void fail_on(void **state) {
    (void)state;
    write_planted_run(&(plan){"notable", -1, .cost = 0.03});
    fails("", 0);
    fails("--fail-on no", 0);
    fails("--fail-on severe", 0);
    fails("--fail-on notable", 4);
    fails("--fail-on notable --format json", 4);
    write_planted_run(&(plan){"severe", -1, .cost = 0.3});
    fails("--fail-on severe", 4);
    fails("--fail-on severe --format tsv", 4);
    fails("--fail-on notable", 4);
    write_planted_run(&(plan){"minor", -1, .padded = 2});
    fails("--fail-on notable", 0);
}

/* -- recorded runs --------------------------------------------------------------------------- */

static void check_nothing(const program_result *r, const char *run) {
    int rows = 0;
    for (int i = 0; i < table_rows(r->out); i++) {
        if (strcmp(table_cell(r->out, i, "run"), run) != 0) continue;
        rows++;
        if (strcmp(table_cell(r->out, i, "verdict"), "found") == 0)
            fail_msg("%s: %s", run, table_cell(r->out, i, "text"));
    }
    assert_int_equal(rows, diagnose_question_count);
}

/* Two trainings that differ only in the norm. With batches of one sentence length, BN loses in
 * evaluation as much as it gains from batch statistics. Its discrepancy is usual. */
static void recorded(void **state) {
    (void)state;
    program_result r = program_run(
        "tar -xJf \"$STATREC_SAMPLES\"/gap_translation.tar.xz && "
        "statrec diagnose --format tsv gap-translation-1-bn.h5 gap-translation-1-ln.h5");
    if (r.status) fail_msg("%s", r.err);
    const int row = row_of(&r, "inference");
    check_text(&r, row, "verdict", "found");
    check_text(&r, row, "severity", "notable");
    check_text(&r, row, "statistic", "gap");
    check_within(table_real(r.out, row, "value"), 0.0317, 1e-4);
    assert_true(table_real(r.out, row, "low") > 0.02);
    says(&r, "inference", "valid_nll is 0.03");
    says(&r, "inference", "nats per token worse with running than with batch statistics");
    says(&r, "inference", "It grows: 0.0139 in the first third of all 20 evaluations, 0.0362 in");
    says(&r, "inference", "Against gap-translation-1-ln.h5 valid_nll is 0.0112 worse");
    says(&r, "inference",
         "The gap is 0.0362 of that (gap/difference 3.22): with batch statistics "
         "it would be 0.025 better.");
    advises(&r, "inference", "(statrec average X.ckpt --recompute-stats)", true);
    advises(&r, "inference", "(statrec evaluate X.ckpt --each-site)", true);
    advises(&r, "inference", "(--batching random)", true);
    check_nothing(&r, "gap-translation-1-ln.h5");
    program_free(&r);
    r = program_run("stat-gap gap-translation-1-ln.h5 gap-translation-1-bn.h5 --split last-third "
                    "--metric valid_nll");
    check_within(table_real(r.out, 0, "discrepancy"), 0.0362, 1e-4); /* the same third */
    check_within(table_real(r.out, 0, "total"), 0.0112, 1e-4);
    program_free(&r);
    r = program_run("statrec diagnose gap-translation-1-ln.h5 && rm gap-translation-*.h5");
    assert_null(strstr(r.out, "FINDING"));
    program_free(&r);
}

/* Parts of the cost recovered by each kind of statistics at the run's last evaluation. The numbers
 * of docs/diagnose.md equal the tables written by statrec evaluate. */
static void recorded_causes(void **state) {
    (void)state;
    program_result r = program_run(
        "cd \"$STATREC_SAMPLES\"/gap_translation && awk -F '\\t' '"
        "$2 == \"-\" && $1 == \"valid_nll\" { if (!running) running = $3; "
        "else printf \"%%.3f\\n\", running - $3 } "
        "FNR == NR && $1 == \"valid_nll_batch\" && $2 ~ /^-|^encoder.0.norm1|^encoder.final/ "
        "{ printf \"%%.3f\\n\", running - $3 }' bn_sites.tsv bn_recomputed.tsv | "
        "while read -r number; do grep -qF \"| $number |\" ../../docs/diagnose.md && "
        "echo \"$number\"; done");
    if (strcmp(r.out, "0.031\n0.015\n0.021\n0.004\n") != 0) fail_msg("%s%s", r.out, r.err);
    program_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits),
        cmocka_unit_test(validation_ends),
        cmocka_unit_test(grows),
        cmocka_unit_test(severities),
        cmocka_unit_test(uneven),
        cmocka_unit_test(other_metrics),
        cmocka_unit_test(without_smoothing),
        cmocka_unit_test(part_of_difference),
        cmocka_unit_test(at_the_limit),
        cmocka_unit_test(not_measured),
        cmocka_unit_test(nothing_to_measure),
        cmocka_unit_test(causes),
        cmocka_unit_test(measured_beside),
        cmocka_unit_test(both_discrepancies),
        cmocka_unit_test(unused_psi),
        cmocka_unit_test(psi_alone),
        cmocka_unit_test(psi_limit),
        cmocka_unit_test(fail_on),
        cmocka_unit_test(recorded),
        cmocka_unit_test(recorded_causes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
