/* test_activations.c -- the largest and the median |x| against sorting; saturation against its
 * formula in plain loops. For tanh the fraction is known. Also shards of a batch. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "observe/activations.h"
#include "testing/check.h"

enum { ROWS = 700, D = 6 };

typedef struct sample {
    real x[ROWS * D], y[ROWS * D], gamma[D], beta[D];
    int32_t index[ROWS];
    norm_rows rows;
} sample;

/* Heavy tails; y = gamma tanh(a x) + beta. Every third row is padding, whose entries are large. */
static void fill(sample *s, double a, bool mask) {
    rng random = rng_create(5);
    for (int k = 0; k < D; k++) s->gamma[k] = (real)(0.5 + k), s->beta[k] = (real)(k - 2);
    s->rows = (norm_rows){.rows = ROWS, .valid = ROWS};
    for (int i = 0, n = 0; i < ROWS; i++) {
        for (int k = 0; k < D; k++) {
            const double z = rng_normal(&random), x = z * fabs(z) * z;
            s->x[i * D + k] = (real)(mask && i % 3 == 1 ? 1e6 + i : x);
            s->y[i * D + k] = (real)((double)s->gamma[k] * tanh(a * (double)s->x[i * D + k]) +
                                     (double)s->beta[k]);
        }
        if (!mask || i % 3 != 1) s->index[n++] = i;
        s->rows.valid = mask ? n : ROWS;
    }
    s->rows.index = mask ? s->index : NULL;
}

static void measure_input(const activation_input *in, double value[ACTIVATION_NUMBERS]) {
    static activation_counts c;
    sr_failure why = {0};
    memset(&c, 0, sizeof c);
    check_ok(activation_counts_take(&c, in, &why), &why);
    activation_counts_tell(&c, value);
}

static activation_input input_of(const sample *s, int threads) {
    return (activation_input){&s->rows, D, s->x, s->y, s->gamma, s->beta, false, threads};
}

static void measure(const sample *s, int threads, double value[ACTIVATION_NUMBERS]) {
    const activation_input in = input_of(s, threads);
    measure_input(&in, value);
}

static int descending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* Sorts |x| of valid rows, descending; returns their number. */
static int64_t sorted(const sample *s, double *value) {
    int64_t n = 0;
    for (int i = 0; i < ROWS; i++) {
        const bool valid = !s->rows.index || i % 3 != 1;
        for (int k = 0; k < D && valid; k++) value[n++] = fabs((double)(float)s->x[i * D + k]);
    }
    qsort(value, (size_t)n, sizeof *value, descending);
    return n;
}

static double saturated(const sample *s, double median) {
    double xy = 0, xx = 0, below = 0, n = 0;
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < ROWS; i++) {
            for (int k = 0; k < D; k++) {
                if (s->rows.index && i % 3 == 1) continue;
                const double x = (double)s->x[i * D + k];
                const double xhat =
                    ((double)s->y[i * D + k] - (double)s->beta[k]) / (double)s->gamma[k];
                if (turn == 0 && fabs(x) <= median) xy += x * xhat, xx += x * x;
                below += turn == 1 && fabs(x) > median && fabs(xhat) < 0.5 * fabs(xy / xx * x);
                n += turn;
            }
        }
    }
    return below / n;
}

static void check_sample(sample *s, bool mask) {
    static double value[ROWS * D];
    double got[ACTIVATION_NUMBERS];
    fill(s, 0.5, mask);
    const int64_t n = sorted(s, value);
    measure(s, 1, got);
    for (int i = 0; i < 3; i++) check_equals(got[ACTIVATION_top1 + i], value[i]);
    const double median = value[n - 1 - (n - 1) / 2];
    if (!(fabs(got[ACTIVATION_median] - median) < median / 32))
        fail_msg("median %g, not %g", got[ACTIVATION_median], median);
    const double want = saturated(s, got[ACTIVATION_median]);
    check_near_double("saturated", &got[ACTIVATION_saturated], &want, 1, 1e-12, 0);
    check_above(want, 0.01);
    check_below(want, 0.5);
}

static void against_sorting(void **state) {
    (void)state;
    static sample s;
    check_sample(&s, false);
    check_sample(&s, true);
}

/* Values spread evenly, or all at one end of a bin: the median is in its bin. */
static void median_in_its_bin(void **state) {
    (void)state;
    static sample s;
    double got[ACTIVATION_NUMBERS];
    fill(&s, 1, false);
    for (int turn = -40; turn < 40; turn++) {
        static double value[ROWS * D];
        for (int i = 0; i < ROWS * D; i++)
            s.x[i] = (real)(turn % 2 ? ldexp(1 + (double)(i * 37 % 4096) / 4096, turn + i % 2)
                                     : ldexp(1 + 1e-5 * (i % 4), turn));
        const int64_t n = sorted(&s, value);
        measure(&s, 1, got);
        const double median = value[n - 1 - (n - 1) / 2];
        check_within(got[ACTIVATION_median], median, median / 32);
    }
}

/* tanh(u)/u = 1/2 at u = 1.91501: a line through small values only gives a known fraction. */
static void known_share(void **state) {
    (void)state;
    static sample s;
    double got[ACTIVATION_NUMBERS];
    for (int scale = 0; scale < 2; scale++) {
        int64_t beyond = 0;
        fill(&s, 1, false);
        for (int i = 0; i < ROWS * D; i++) {
            const double u = i % 5 < 3 ? 1e-3 * (1 + i % 7) : 1.5 + 0.001 * (i % 1000);
            beyond += u > 1.9150080;
            s.x[i] = (real)((i % 2 ? -u : u) * (scale ? 8 : 1));
            s.y[i] = (real)((double)s.gamma[i % D] * tanh(i % 2 ? -u : u) + (double)s.beta[i % D]);
        }
        measure(&s, 1, got);
        const double want = (double)beyond / (ROWS * D);
        check_above(want, 0.1);
        check_near_double("share", &got[ACTIVATION_saturated], &want, 1, 0.003, 0);
    }
}

static void any_number_of_threads(void **state) {
    (void)state;
    static sample s;
    double one[ACTIVATION_NUMBERS], many[ACTIVATION_NUMBERS];
    fill(&s, 0.7, true);
    measure(&s, 1, one);
    for (int threads = 2; threads < 7; threads++) {
        measure(&s, threads, many);
        assert_memory_equal(one, many, sizeof one);
    }
}

static void edges(void **state) {
    (void)state;
    static sample s;
    double got[ACTIVATION_NUMBERS];
    fill(&s, 1, false);
    s.rows.valid = s.rows.rows = 0;
    measure(&s, 2, got);
    for (int i = 0; i < ACTIVATION_NUMBERS; i++) assert_true(isnan(got[i]));
    fill(&s, 1, false);
    s.x[40] = (real)NAN;
    measure(&s, 2, got);
    for (int i = 0; i < ACTIVATION_NUMBERS; i++) assert_true(isnan(got[i]));
    fill(&s, 1, false);
    s.x[40] = (real)-INFINITY;
    measure(&s, 2, got);
    assert_true(isinf(got[ACTIVATION_top1]) && isfinite(got[ACTIVATION_top2]));
    assert_true(isfinite(got[ACTIVATION_median]));
    memset(s.x, 0, sizeof s.x);
    measure(&s, 2, got);
    check_equals(got[ACTIVATION_top1], 0);
    check_equals(got[ACTIVATION_median], 0);
    assert_true(isnan(got[ACTIVATION_saturated]));
}

/* A feature without gain is left out; with a mean over the batch, all features are. */
static void left_out(void **state) {
    (void)state;
    static sample s;
    double got[ACTIVATION_NUMBERS], want[ACTIVATION_NUMBERS];
    fill(&s, 1, false);
    for (int i = 0; i < ROWS; i++)
        for (int k = 1; k < D; k++) s.x[i * D + k] = s.x[i * D], s.y[i * D + k] = s.beta[k];
    for (int k = 1; k < D; k++) s.gamma[k] = 0;
    measure(&s, 1, got);
    for (int i = 0; i < ROWS; i++)
        for (int k = 1; k < D; k++)
            s.y[i * D + k] = (real)(((double)s.y[i * D] - (double)s.beta[0]) / (double)s.gamma[0] +
                                    (double)s.beta[k]);
    for (int k = 1; k < D; k++) s.gamma[k] = 1;
    measure(&s, 1, want);
    check_near_double("gain", &got[ACTIVATION_saturated], &want[ACTIVATION_saturated], 1, 0.01, 0);
    activation_input centred = input_of(&s, 1);
    centred.centred = true;
    measure_input(&centred, got);
    assert_true(isnan(got[ACTIVATION_saturated]));
    check_above(got[ACTIVATION_top1], 0);
}

/* -- shards ---------------------------------------------------------------------------------- */

enum { PARTS = 4 };
static const int rows_of[PARTS + 1] = {0, 150, 150, 320, ROWS}; /* the second has none */

/* The valid rows of a shard. */
static void take_part(const sample *s, int part, activation_counts *to) {
    sr_failure why = {0};
    int32_t index[ROWS];
    norm_rows rows = {.rows = ROWS, .index = index};
    for (int i = rows_of[part]; i < rows_of[part + 1]; i++)
        if (!s->rows.index || i % 3 != 1) index[rows.valid++] = i;
    activation_input in = input_of(s, 2);
    in.rows = &rows;
    check_ok(activation_counts_take(to, &in, &why), &why);
}

/* Merged shards give the histograms and largest entries of all rows, in any order. Saturated
 * entries add up. */
static void parts_add_up(void **state) {
    (void)state;
    static sample s;
    static activation_counts whole, one[PARTS], sum, reversed;
    double all[ACTIVATION_NUMBERS], got[ACTIVATION_NUMBERS], below = 0;
    sr_failure why = {0};
    fill(&s, 0.5, true);
    const activation_input in = input_of(&s, 2);
    check_ok(activation_counts_take(&whole, &in, &why), &why);
    for (int k = 0; k < PARTS; k++) {
        take_part(&s, k, &one[k]);
        activation_counts_add(&sum, &one[k]);
        activation_counts_tell(&one[k], got);
        if (k != 1) below += got[ACTIVATION_saturated] * (double)one[k].entries;
    }
    for (int k = PARTS - 1; k >= 0; k--) take_part(&s, k, &reversed);
    assert_memory_equal(&sum, &reversed, sizeof sum);
    assert_int_equal(sum.entries, whole.entries);
    assert_memory_equal(sum.bin, whole.bin, sizeof sum.bin);
    assert_memory_equal(sum.top, whole.top, sizeof sum.top);
    activation_counts_tell(&whole, all);
    activation_counts_tell(&sum, got);
    for (int i = 0; i <= ACTIVATION_median; i++) check_equals(got[i], all[i]);
    const double want = below / (double)whole.entries;
    check_near_double("of parts", &got[ACTIVATION_saturated], &want, 1, 1e-12, 0);
    check_near_double("of all", &got[ACTIVATION_saturated], &all[ACTIVATION_saturated], 1, 0.1, 0);
}

/* A value unknown in one shard is unknown for the batch: NaN, no line. */
static void parts_without(void **state) {
    (void)state;
    static sample s;
    static activation_counts a, b;
    double got[ACTIVATION_NUMBERS];
    fill(&s, 0.5, false);
    memset(s.x, 0, 150 * D * sizeof *s.x);
    for (int k = 0; k < PARTS; k++) take_part(&s, k, &a);
    activation_counts_tell(&a, got);
    check_above(got[ACTIVATION_top3], 0);
    assert_true(isnan(got[ACTIVATION_saturated]));
    s.x[400 * D] = (real)NAN;
    for (int k = PARTS - 1; k >= 0; k--) take_part(&s, k, &b);
    activation_counts_tell(&b, got);
    for (int i = 0; i < ACTIVATION_NUMBERS; i++) assert_true(isnan(got[i]));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_sorting), cmocka_unit_test(median_in_its_bin),
        cmocka_unit_test(known_share),     cmocka_unit_test(any_number_of_threads),
        cmocka_unit_test(edges),           cmocka_unit_test(left_out),
        cmocka_unit_test(parts_add_up),    cmocka_unit_test(parts_without),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
