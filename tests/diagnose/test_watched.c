/* Usual ranges of watched models, and false alarms in healthy trainings of PyTorch
 * (sample_runs/watched). These trainings did not contribute to the ranges. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "found.h"
#include "testing/check.h"

enum { TRAININGS = 20, NOTABLE_AT_MOST = 2 };

/* -- ranges ---------------------------------------------------------------------------------- */

static double limit_of(plan p, const char *question) {
    program_result r = advice(p);
    const int row = row_of(&r, question);
    const double limit = table_real(r.out, row, "limit");
    check_within(limit, 1.5 * table_real(r.out, row, "usual_high"), 1e-9);
    program_free(&r);
    return limit;
}

/* The limits of watched models are not lower. Other programs have the limits of statrec train. */
static void limits(void **state) {
    static const char *const questions[] = {"gradient", "outliers", "rows", "alike"};
    (void)state;
    for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++) {
        const plan host = {.name = "host", .site = -1}, watch = {"watch", -1, .watched = true},
                   train = {"train", -1, .config = "norm = bn\n"};
        const double of_host = limit_of(host, questions[i]);
        check_at_most(of_host, limit_of(watch, questions[i]));
        check_within(of_host, limit_of(train, questions[i]), 1e-12);
    }
}

/* A fraction that is usual for watched models, and one that is not. */
static void gradient(void **state) {
    (void)state;
    found(&(plan){"gradient", 2, .gradient = 8}, "gradient", "notable", "c", 0.3, 0.5);
    program_result r = advice((plan){"gradient", 2, .gradient = 8, .watched = true});
    check_text(&r, row_of(&r, "gradient"), "verdict", "in-order");
    assert_int_equal(findings(&r), 0);
    program_free(&r);
    found(&(plan){"gradient", 2, .gradient = 16, .watched = true}, "gradient", "notable", "c", 0.6,
          1);
}

static void discrepancy(void **state) {
    const plan narrow = {"tid", 0, .sigma = 1.15, .without_pairs = true};
    plan watch = narrow, wide = narrow;
    (void)state;
    found(&narrow, "inference", "notable", "a", 0.14, 0.16);
    watch.watched = wide.watched = true;
    program_result r = advice(watch);
    check_text(&r, row_of(&r, "inference"), "verdict", "not-told");
    program_free(&r);
    wide.sigma = 1.4;
    found(&wide, "inference", "notable", "a", 0.38, 0.42);
}

/* -- healthy trainings ----------------------------------------------------------------------- */

typedef struct counts {
    int runs, notable, severe;
} counts;

static counts count(const program_result *r) {
    counts all = {0};
    for (int i = 0; i < table_rows(r->out); i++) {
        const char *severity = table_cell(r->out, i, "severity");
        all.runs += strcmp(table_cell(r->out, i, "question"), "divergence") == 0;
        all.notable += strcmp(severity, "notable") == 0;
        all.severe += strcmp(severity, "severe") == 0;
    }
    return all;
}

static void false_alarms(void **state) {
    (void)state;
    program_result r = program_run(
        "mkdir healthy && tar -xJf \"$STATREC_SAMPLES\"/watched/healthy.tar.xz -C healthy && "
        "statrec diagnose --format tsv healthy/*.h5");
    if (r.status) fail_msg("%s", r.err);
    const counts all = count(&r);
    assert_int_equal(all.runs, TRAININGS);
    assert_int_equal(all.severe, 0);
    if (all.notable > NOTABLE_AT_MOST) fail_msg("%d notable findings\n%s", all.notable, r.out);
    program_free(&r);
    r = program_run("rm -r healthy");
    program_free(&r);
}

/* The ranges come from other trainings. */
static void other_trainings(void **state) {
    (void)state;
    program_result r =
        program_run("cd \"$STATREC_SAMPLES\"/watched && for set in healthy calibration; do "
                    "tar -tJf $set.tar.xz | sed -n 's/[.]h5$//p'; done | sort | uniq -c | "
                    "awk '{ n += $1 != 1; c += $2 ~ /^c_/ } END { print NR, n + 0, c }'");
    assert_string_equal(r.out, "30 0 10\n");
    program_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits),          cmocka_unit_test(gradient),
        cmocka_unit_test(discrepancy),     cmocka_unit_test(false_alarms),
        cmocka_unit_test(other_trainings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
