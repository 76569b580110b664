/* test_judged.c -- the steps that a diagnosis judges, and the edge of a limit. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/bootstrap/bootstrap.h"
#include "analysis/columns/column_summary.h"
#include "base/sort.h"
#include "diagnose/diagnosis.h"
#include "planted.h"
#include "testing/check.h"
#include "testing/programs.h"

static int64_t room = 64 << 20;

/* Replaces the function of memory_limit.c. */
int64_t column_memory_limit(void) {
    return room;
}

/* -- limits ---------------------------------------------------------------------------------- */

static verdict judged(answer a, double value, double low, double high) {
    a.e = (estimate){value, low, high, LEAST_STEPS};
    answer_judge(&a);
    return a.verdict;
}

/* A value is found beyond the limit, not at it. The nearer end of the interval counts, or the value
 * of a single step. */
static void limits(void **state) {
    (void)state;
    const double limit = 0.3, above = nextafter(limit, 1), below = nextafter(limit, 0);
    const answer largest = {.limit = limit}, least = {.limit = limit, .below = true},
                 step = {.limit = limit, .once = true};
    assert_int_equal(judged(largest, 0.5, limit, 0.9), IN_ORDER);
    assert_int_equal(judged(largest, 0.5, above, 0.9), FOUND);
    assert_int_equal(judged(least, 0.1, 0, limit), IN_ORDER);
    assert_int_equal(judged(least, 0.1, 0, below), FOUND);
    assert_int_equal(judged(step, limit, limit, limit), IN_ORDER);
    assert_int_equal(judged(step, above, below, above), FOUND);
    assert_int_equal(judged(largest, 0.5, NAN, 0.9), NOT_ASKED);
    assert_int_equal(judged(largest, 0.5, 0.4, NAN), NOT_ASKED);
}

/* -- intervals ------------------------------------------------------------------------------- */

static void check_bounds(const estimate *e, bool there) {
    if (!there)
        assert_true(isnan(e->low) && isnan(e->high));
    else if (!(e->low <= e->value && e->value <= e->high))
        fail_msg("%g is outside of %g to %g", e->value, e->low, e->high);
}

/* From LEAST_STEPS finite values on, an interval contains the value; for a constant it is a
 * point. */
static void intervals(void **state) {
    (void)state;
    double value[LEAST_STEPS + 1], one[LEAST_STEPS + 1];
    sr_failure why = {0};
    for (int count = LEAST_STEPS - 1; count <= LEAST_STEPS; count++) {
        for (int changes = 0; changes < 2; changes++) {
            estimate e[4];
            for (int i = 0; i < count; i++)
                value[i] = 0.7 + changes * (i * 7 % 11), one[i] = 1 + changes * (i % 3);
            value[count] = NAN, one[count] = 1;
            check_ok(estimate_median(value, count + 1, &e[0], &why), &why);
            check_ok(estimate_ratio(value, one, count + 1, &e[1], &why), &why);
            check_ok(estimate_tail(value, count + 1, TAIL_99, &e[2], &why), &why);
            check_ok(estimate_tail(value, count + 1, TAIL_MOST, &e[3], &why), &why);
            for (int i = 0; i < 4; i++) {
                assert_int_equal(e[i].steps, count);
                check_bounds(&e[i], count == LEAST_STEPS);
                if (changes || count < LEAST_STEPS) continue;
                assert_float_equal(e[i].low, 0.7, 1e-12);
                assert_float_equal(e[i].high, 0.7, 1e-12);
            }
        }
    }
}

/* For independent values both ends are about 1.96 standard errors away. */
static void interval_ends(void **state) {
    (void)state;
    enum { COUNT = 400 };
    double value[COUNT], one[COUNT], sum = 0, squares = 0;
    uint32_t random = 1;
    sr_failure why = {0};
    estimate e;
    for (int i = 0; i < COUNT; i++) {
        random = random * 1664525u + 1013904223u;
        value[i] = 2 + (double)(random >> 8) / 16777216.0, one[i] = 1;
        sum += value[i], squares += value[i] * value[i];
    }
    const double mean = sum / COUNT, far = 1.96 * sqrt((squares / COUNT - mean * mean) / COUNT);
    check_ok(estimate_ratio(value, one, COUNT, &e, &why), &why);
    assert_float_equal(e.value, mean, 1e-12);
    assert_in_range((uintmax_t)(100 * (e.high - mean) / far), 75, 130);
    assert_in_range((uintmax_t)(100 * (mean - e.low) / far), 75, 130);
}

/* Blocks for a tail are as long as the median's: longer than one step if steps are dependent. */
static void interval_of_tail(void **state) {
    (void)state;
    enum { COUNT = 600, RESAMPLES = 1000 };
    rng r = rng_create(3);
    static double value[COUNT], drawn[RESAMPLES], copy[COUNT];
    estimate e;
    sr_failure why = {0};
    for (int i = 0; i < COUNT; i++)
        copy[i] = value[i] = rng_normal(&r) + (i ? 0.9 * value[i - 1] : 0);
    summary of;
    summary_range(copy, COUNT, &of);
    const int64_t block = bootstrap_block(value, COUNT, of.median, &why);
    assert_true(block > 5);
    check_ok(bootstrap_tail(value, COUNT, block, TAIL_99, rng_create(1), RESAMPLES, drawn, &why),
             &why);
    sort_reals(drawn, RESAMPLES);
    check_ok(estimate_tail(value, COUNT, TAIL_99, &e, &why), &why);
    check_equals(e.low, quantile_of_sorted(drawn, RESAMPLES, 0.025));
    check_equals(e.high, quantile_of_sorted(drawn, RESAMPLES, 0.975));
}

/* -- steps ----------------------------------------------------------------------------------- */

typedef struct opened {
    sr_runfile *run;
    subject s;
} opened;

static void open_planted(opened *o, const plan *p) {
    sr_failure why = {0};
    write_planted_run(p);
    o->run = sr_run_open(program_file("run.h5"), &why);
    if (!o->run) fail_msg("%s", why.text);
    check_ok(subject_open(&o->s, o->run, "run.h5", &why), &why);
}

static void close_planted(opened *o) {
    subject_free(&o->s);
    sr_run_close(o->run);
}

/* alpha 0.9 needs 44 steps: step 45 is the first judged one. Discrepancies are judged in the second
 * half only. */
static void first_steps(void **state) {
    (void)state;
    static const struct { int steps, half; } run[] = {{300, 151}, {301, 151}, {299, 150}};
    for (int i = 0; i < 3; i++) {
        opened o;
        sr_failure why = {0};
        open_planted(&o, &(plan){.name = "healthy", .site = -1, .steps = run[i].steps});
        const subject *s = &o.s;
        double *value = subject_room(s, 1, &why);
        assert_int_equal(s->begin, 1);
        assert_int_equal(s->window.startup, 44);
        assert_int_equal(s->step[0], 45);
        assert_int_equal(s->count, run[i].steps - 44);
        assert_int_equal(s->step[s->count - 1], run[i].steps);
        assert_int_equal(subject_judged(s, "dist_mu"), 0);
        const int64_t first = subject_judged(s, "tid_mean");
        assert_int_equal(s->step[first], run[i].half);
        check_ok(subject_column(s, 0, "tid_mean", value, &why), &why);
        assert_true(isnan(value[first - 1]) && isfinite(value[first]));
        check_ok(subject_column(s, 0, "dist_mu", value, &why), &why);
        assert_true(isfinite(value[0]));
        answer a = {.statistic = "dist_mu", .limit = 1};
        check_ok(answer_rank(s, measure_median, "dist_mu", &a, &why), &why);
        assert_int_equal(a.from, 45);
        assert_int_equal(a.to, run[i].steps);
        free(value);
        close_planted(&o);
    }
}

static void expect_same(double got, double want) {
    if (!(isnan(got) && isnan(want))) check_equals(got, want);
}

/* The cache holds columns of two of four sites. It returns the requested site, statistic and steps,
 * in any order, whatever was requested before. */
static void kept_columns_are_those_of_the_file(void **state) {
    (void)state;
    static const char *const names[] = {"dist_mu", "rows",    "dist_sigma2", "dx_norm",
                                        "g_mu",    "samples", "dist_psi2"};
    opened o;
    sr_failure why = {0};
    open_planted(&o, &(plan){.name = "healthy", .site = -1, .steps = 300});
    const subject *s = &o.s;
    float file[300];
    double *value = subject_room(s, 2, &why), *all = value + 301;
    room = 2 * 6 * 301 * (int64_t)sizeof(double);
    for (int i = 0; i < 2 * 7 * 4; i++) {
        const char *name = names[i / 4 * 3 % 7];
        const int64_t site = i % 4;
        estimate kept, own;
        check_ok(sr_run_scalar(o.run, name, site, 0, 300, file, &why), &why);
        check_ok(subject_history(s, site, name, all, &why), &why);
        check_ok(subject_column(s, site, name, value, &why), &why);
        for (int k = 0; k < 300; k++) expect_same(all[k], (double)file[k]);
        for (int k = 44; k < 300; k++)
            if (s->usual[k - 44]) expect_same(value[k - 44], (double)file[k]);
        check_ok(measure_median(s, site, name, &kept, &why), &why);
        check_ok(estimate_median(value, s->count, &own, &why), &why);
        expect_same(kept.value, own.value);
        expect_same(kept.low, own.low);
        expect_same(kept.high, own.high);
    }
    room = 64 << 20;
    free(value);
    close_planted(&o);
}

/* -- recomputed running averages ------------------------------------------------------------- */

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *value, int64_t count) {
    double sorted[400];
    memcpy(sorted, value, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, ascending);
    return 0.5 * (sorted[(count - 1) / 2] + sorted[count / 2]);
}

/* Distances with the weight alpha, starting from the run's running mean at row `first` of
 * /vectors. */
static void distances(const sr_runfile *run, int64_t first, int64_t count, double alpha,
                      double *value) {
    enum { WIDTH = 8 };
    float x[WIDTH];
    double r[WIDTH];
    sr_failure why = {0};
    check_ok(sr_run_vector(run, "mu", 2, first, 1, x, &why), &why);
    for (int k = 0; k < WIDTH; k++) r[k] = x[k];
    for (int64_t row = 0; row < count; row++) {
        double sum = 0;
        check_ok(sr_run_vector(run, "mu_B", 2, first + row, 1, x, &why), &why);
        for (int k = 0; k < WIDTH; k++) {
            sum += (x[k] - r[k]) * (x[k] - r[k]);
            r[k] += (1 - alpha) * (x[k] - r[k]);
        }
        value[row] = sqrt(sum);
    }
}

static const double alphas[] = {0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999};
enum { ALPHAS = sizeof alphas / sizeof alphas[0] };

/* Returns the weight with the smallest median distance without the first `skip` steps; best: its
 * distances. */
static double best_weight(const opened *o, int64_t skip, double best[400]) {
    double other[400], least = INFINITY, weight = NAN;
    for (int i = 0; i < ALPHAS; i++) {
        distances(o->run, 44, o->s.count, alphas[i], other);
        const double here = median(other + skip, o->s.count - skip);
        if (here < least) least = here, weight = alphas[i], memcpy(best, other, sizeof other);
    }
    return weight;
}

/* All averages start at the same value. The first LEAST_STEPS steps, while they separate, are not
 * judged. */
static void lag_without_first(void **state) {
    (void)state;
    opened o;
    estimate e;
    sr_failure why = {0};
    double own[400], best[400];
    open_planted(&o, &(plan){"slow", 2, .noise = 0.015, .drift = 0.012, .steps = 44 + 41});
    const int64_t n = o.s.count, judged_steps = n - LEAST_STEPS;
    assert_int_equal(n, 41);
    best_weight(&o, LEAST_STEPS, best);
    distances(o.run, 44, n, 0.9, own);
    for (int64_t row = 0; row < n; row++) own[row] /= best[row];
    check_ok(measure_slow(&o.s, 2, NULL, &e, &why), &why);
    assert_int_equal(e.steps, judged_steps);
    assert_float_equal(e.value, median(own + LEAST_STEPS, judged_steps), 1e-6);
    assert_true(fabs(median(own, n) - e.value) > 0.01);
    close_planted(&o);
}

/* The first steps do not select the best weight either. Here the averages start far away, so short
 * memories are best over all steps. In the later steps no weight below the run's is best. */
static void best_without_first(void **state) {
    (void)state;
    opened o;
    estimate e;
    sr_failure why = {0};
    double best[400];
    open_planted(&o, &(plan){"away", 2, .offset = 0.2, .offset_at = 45, .steps = 44 + 41});
    const double late = best_weight(&o, LEAST_STEPS, best), all = best_weight(&o, 0, best);
    if (!(all < 0.9 && late >= 0.9)) fail_msg("the best weights are %g and %g", all, late);
    check_ok(measure_slow(&o.s, 2, NULL, &e, &why), &why);
    assert_float_equal(e.value, 1, 0);
    close_planted(&o);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits),
        cmocka_unit_test(intervals),
        cmocka_unit_test(interval_ends),
        cmocka_unit_test(best_without_first),
        cmocka_unit_test(first_steps),
        cmocka_unit_test(lag_without_first),
        cmocka_unit_test(kept_columns_are_those_of_the_file),
        cmocka_unit_test(interval_of_tail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
