/* statrec diagnose on runs that a test records: a healthy one, and the same with one fault each. It
 * must find the question and site of the fault, and no others. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "found.h"
#include "testing/check.h"
#include "testing/programs.h"

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
    assert_non_null(strstr(r.out, "HEALTHY: nothing found (13 of 14 questions asked, 1 could not"));
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
    advises(&r, "divergence", "learning rate", false);
    advises(&r, "divergence", "nothing, if a loss scaler skipped the step", true);
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
    /* 0.3 times the mean of 2 exp(-step/300) over the evaluations of the second half */
    check_within(table_real(r.out, row_of(&r, "inference"), "value"), 0.2723, 0.01);
    check_text(&r, row_of(&r, "inference"), "statistic", "gap");
    check_cell(&r, row_of(&r, "inference"), "sites_beyond", 1);
    program_free(&r);
}

/* TID is sqrt(0.4^2 + 0.05^2 2/1.9); the second term is the noise. */
static void tid_alone(void **state) {
    (void)state;
    found(&(plan){"tid", 2, .offset = 0.4, .without_pairs = true}, "inference", "notable", "c",
          0.39, 0.42);
    found(&(plan){"tid, gap open", 2, .offset = 0.4, .uneven = true}, "inference", "notable", "c",
          0.39, 0.42);
    found(&(plan){"tid, no gap", 1, .offset = 0.4}, "inference", "minor", "b", 0.39, 0.42);
}

static void gap_without_tid(void **state) {
    (void)state;
    program_result r = check_found(&(plan){"gap", -1, .gap = 0.3}, "inference", "severe",
                                   "c"); /* the largest of the sites in order */
    const int row = row_of(&r, "inference");
    check_cell(&r, row, "sites_beyond", 0);
    assert_non_null(strstr(table_cell(r.out, row, "text"), "does not explain it"));
    check_text(&r, row, "figure", "statplot modes");
    program_free(&r);
}

/* Evaluation uses the last running values. An offset in the first half of training that is gone
 * later is not found. The second half suffices for a finding. */
static void tid_of_the_end(void **state) {
    (void)state;
    write_planted_run(&(plan){"early", 2, .offset = 0.6, .offset_at = -150});
    program_result r = diagnose("--format tsv");
    assert_int_equal(findings(&r), 0);
    check_cell(&r, row_of(&r, "inference"), "first_step", 180);
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

static void outliers(void **state) {
    (void)state;
    program_result r =
        check_found(&(plan){"spikes", 1, .spikes_every = 30}, "outliers", "notable", "b");
    check_cell(&r, row_of(&r, "outliers"), "at_step", 60);
    program_free(&r);
}

/* The same spikes, in the short passes at epoch ends. */
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
    /* one step, at the site with the smallest Gamma in all others */
    found(&(plan){"nu of five", 3, .Gamma = 30, .more_pn = 4}, "nu", "severe", "pn", 2.99, 3.01);
}

/* nu is also judged during the burn-in of running values. In its first pass it is 0, unless the run
 * continues another. */
static void nu_early(void **state) {
    plan p = {"nu", 3, .Gamma = 30, .Gamma_at = 20};
    (void)state;
    program_result r = check_found(&p, "nu", "severe", "pn");
    check_cell(&r, row_of(&r, "nu"), "at_step", 20);
    check_cell(&r, row_of(&r, "nu"), "first_step", 1);
    check_cell(&r, row_of(&r, "nu"), "last_step", 300);
    says(&r, "nu", "It was in the burn-in of running statistics (44 steps)");
    program_free(&r);
    p.Gamma_at = 45;
    r = check_found(&p, "nu", "severe", "pn");
    holds(&r, "nu", "text", "burn-in", false);
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

/* A site that divides by psi does not need the variance. */
static void dead_by_psi(void **state) {
    (void)state;
    write_planted_run(&(plan){"flat", -1, .own_psi = true});
    program_result r = diagnose("--format tsv");
    assert_int_equal(findings(&r), 0);
    program_free(&r);
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
    found(&(plan){"alike", 1, .samples = 1024, .noise = 0.12}, "alike", "notable", "b", 3.70, 3.79);
}

static void too_slow(void **state) {
    (void)state;
    program_result r =
        check_found(&(plan){"slow", 2, .noise = 0.015, .drift = 0.012}, "alpha", "notable", "c");
    assert_non_null(strstr(table_cell(r.out, row_of(&r, "alpha"), "text"), "too slow"));
    program_free(&r);
}

/* 0.999^300 and 0.99^300: the run is too short for these running values. No interval is needed. */
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

/* Other noise is not a fault. */
static void no_false_alarm(void **state) {
    (void)state;
    for (uint32_t seed = 1; seed <= 12; seed++) {
        write_planted_run(&(plan){.name = "healthy", .site = -1, .seed = 1000 * seed});
        program_result r = diagnose("--format tsv");
        if (findings(&r)) fail_msg("seed %u: %s", seed, r.out);
        program_free(&r);
    }
}

/* -- ranking, missing statistics, incomplete files -------------------------------------------- */

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

/* A command can be copied whatever the file's name and its length. */
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
    assert_non_null(strstr(r.out, "NOTHING FOUND in what could be asked; what evaluation loses is "
                                  "not measured"));
    assert_null(strstr(r.out, "HEALTHY"));
    program_free(&r);
    r = program_run(
        "statrec train --model transformer --preset mini --data synth-pairs --embed-dim 16 "
        "--ffn-dim 16 --norm un --max-tokens 256 --max-steps 60 --threads 1 --quiet --force "
        "-o run.h5 >train.out && statrec diagnose run.h5");
    assert_non_null(strstr(r.out, "NOTHING FOUND in what could be asked; what evaluation loses is "
                                  "not measured"));
    assert_non_null(strstr(r.out, "record      validation with running and with batch statistics "
                                  "(--validate-batch)"));
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

/* Allocation failures after the questions, while the head is written, are reported as any other.
 * They are in the fourth sixth of a short run's allocations. `make torture` fails every
 * allocation. */
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

/* The program's ranges equal the ranges of the recorded runs. */
static void ranges(void **state) {
    static const char *const made_by[] = {"healthy", "healthy_ranges.h", "harm", "harm_ranges.h"};
    (void)state;
    for (int i = 0; i < 4; i += 2) {
        program_result r =
            program_run("cd \"$STATREC_SAMPLES/..\" && sample_runs/%s.sh \"$(dirname "
                        "\"$(command -v statrec)\")\" | diff - src/diagnose/%s",
                        made_by[i], made_by[i + 1]);
        if (r.status)
            fail_msg("sample_runs/%s.sh prints other ranges:\n%s%s", made_by[i], r.out, r.err);
        program_free(&r);
    }
}

/* Each line printed by the commands, a pattern, is on docs/diagnose.md; one of them contains the
 * word. */
static void check_page(const char *commands, const char *word) {
    program_result r =
        program_run("cd \"$STATREC_SAMPLES/..\" && { %s; } | while read -r text; do "
                    "grep -e \"$text\" docs/diagnose.md || echo \"lacks $text\"; done",
                    commands);
    const char *lack = strstr(r.out, "lacks ");
    if (lack) fail_msg("docs/diagnose.md %s", lack);
    assert_non_null(strstr(r.out, word));
    program_free(&r);
}

/* Ranges and limits of docs/diagnose.md equal the program's. */
static void documented(void **state) {
    (void)state;
    /* harm: least to largest (runs) */
    check_page("sed -n 's/^ *X(\\([a-z0-9_]*\\), \\([^,]*\\), \\([^,]*\\), \\([0-9]*\\), .*/\\2 to "
               "\\3 (\\4)/p' src/diagnose/harm_ranges.h",
               " to 0.121 (14)");
    /* largest of the runs without a loss, and with one */
    check_page("sed -n 's/^ *X([a-z0-9_]*, [^,]*, \\([^,]*\\), [0-9]*, [^,]*, \\([^,]*\\), "
               "[1-9][0-9]*).*/up to \\1 without loss, \\2 with it/p' src/diagnose/harm_ranges.h",
               "without loss");
    /* `statistic` | kind | least | largest | runs | sites */
    check_page("sed -n '/^ *X(/s/^ *X(\\([a-z0-9_]*\\), \"\\([a-z]*\\)\", \\(.*\\)).*/`\\1`, \\2, "
               "\\3/p' src/diagnose/healthy_ranges.h | sed 's/, / | /g'",
               "`tid_var`");
    /* limits, 1.5 times the largest: vision runs (at least the watched ones' limit) */
    check_page("awk -F'[(,]' '/^ *X\\(/ && $5 {limit = 1.5 * $5; "
               "if ($3 ~ /vision/) vision[$2] = limit; if ($3 ~ /watched/ && vision[$2]) "
               "printf \"`%s`.*| %.3g (%.3g) |\\n\", $2, vision[$2], "
               "(limit > vision[$2] ? limit : vision[$2])}' src/diagnose/healthy_ranges.h",
               "`like_samples`");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(healthy),
        cmocka_unit_test(not_finite),
        cmocka_unit_test(loss_rises),
        cmocka_unit_test(gap_by_tid),
        cmocka_unit_test(tid_alone),
        cmocka_unit_test(gap_without_tid),
        cmocka_unit_test(tid_of_the_end),
        cmocka_unit_test(nu_early),
        cmocka_unit_test(nu_of_few),
        cmocka_unit_test(outliers),
        cmocka_unit_test(short_passes),
        cmocka_unit_test(gradient),
        cmocka_unit_test(nu),
        cmocka_unit_test(dead),
        cmocka_unit_test(dead_by_psi),
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
        cmocka_unit_test(documented),
        cmocka_unit_test(no_false_alarm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
