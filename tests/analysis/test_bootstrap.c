/* test_bootstrap.c -- resamples against a plain bootstrap that sorts each of them; block lengths
 * against covariances summed value by value. */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/bootstrap/bootstrap.h"
#include "analysis/columns/column_summary.h"
#include "base/sort.h"
#include "refused.h"
#include "statrec/format.h"
#include "testing/check.h"
#include "testing/failing_malloc.h"
#include "testing/programs.h"

enum { LONGEST = 3001, SOME = 24, MANY = 1030 };

/* -- series ---------------------------------------------------------------------------------- */

enum { SERIES = 13 };

static double value_of(int kind, int i, double *state, rng *r) {
    *state = 0.95 * *state + 0.3 * rng_normal(r);
    switch (kind) {
    case 0:
        return rng_normal(r);
    case 1:
        return *state;
    case 2:
        return floor(2 * *state); /* ties */
    case 3:
        return -7.25;
    case 4:
        return rng_below(r, 20) ? 1 : rng_normal(r); /* nearly all are equal */
    case 5:
        return i % 2 ? 0.0 : -0.0;
    case 6:
        return i % 3 ? *state : (i % 9 ? -0.0 : 0.0);
    case 7:
        return i % 2 ? 1 + 1e-9 * rng_uniform(r) : 2; /* a period, as epochs have */
    case 8:
        return i;
    case 9:
        return i % 7 == 3 ? NAN : i % 31 == 0 ? INFINITY : *state;
    case 10:
        return ldexp(rng_normal(r), (int)rng_below(r, 2000) - 1070);
    case 11:
        return 1 + ldexp((double)rng_below(r, 9), -52); /* equal but for the last digit */
    default:
        return rng_below(r, 50) ? (double)(i % 5) : -1e308 - 1e307 * rng_uniform(r);
    }
}

/* All of it, and the finite ones. */
typedef struct sequence {
    double value[LONGEST], finite[LONGEST];
    int rows, n;
} sequence;

static void sequence_make(sequence *s, int kind, int length, rng *r) {
    double state = 0;
    *s = (sequence){.rows = length};
    for (int i = 0; i < length; i++) {
        s->value[i] = value_of(kind, i, &state, r);
        if (isfinite(s->value[i])) s->finite[s->n++] = s->value[i];
    }
}

/* -- plain bootstrap ------------------------------------------------------------------------- */

/* Values in order, how often each rank was drawn, and the drawn values in order. */
typedef struct plain {
    double sorted[LONGEST], resample[LONGEST];
    int64_t n, drawn[LONGEST];
} plain;

static int64_t plain_rank(const plain *p, double value) {
    int64_t rank = 0;
    while (p->sorted[rank] < value) rank++;
    return rank;
}

static void plain_order(plain *p) {
    int64_t to = 0;
    for (int64_t i = 0; i < p->n; i++)
        for (int64_t k = 0; k < p->drawn[i]; k++) p->resample[to++] = p->sorted[i];
    assert_int_equal(to, p->n);
}

static void plain_draw(plain *p, const int64_t *rank, int64_t block, rng *r) {
    memset(p->drawn, 0, sizeof p->drawn);
    for (int64_t drawn = 0; drawn < p->n;) {
        int64_t at = (int64_t)rng_below(r, (uint64_t)p->n);
        for (int64_t i = 0; i < block && drawn < p->n; i++, drawn++, at = (at + 1) % p->n)
            p->drawn[rank[at]]++;
    }
}

static void plain_tails(const double *value, int n, int64_t block, rng r, int64_t resamples,
                        double *result) {
    static plain p;
    static int64_t rank[LONGEST];
    p.n = n;
    memcpy(p.sorted, value, (size_t)n * sizeof *value);
    sort_reals(p.sorted, n);
    for (int i = 0; i < n; i++) rank[i] = plain_rank(&p, value[i]);
    for (int64_t b = 0; b < resamples; b++) {
        plain_draw(&p, rank, block, &r);
        plain_order(&p);
        result[b] = quantile_of_sorted(p.resample, n, 0.5);
        result[resamples + b] = quantile_of_sorted(p.resample, n, 0.99);
        result[2 * resamples + b] = quantile_of_sorted(p.resample, n, 1);
    }
}

/* -- tails ----------------------------------------------------------------------------------- */

static void expect_tails_of(sequence *s, int64_t block, rng from, int64_t resamples,
                            const double *want, const char *what) {
    static double got[BOOTSTRAP_TAILS * MANY];
    sr_failure why = {0};
    check_ok(bootstrap_tails(s->finite, s->n, block, from, resamples, got, &why), &why);
    for (int64_t k = 0; k < BOOTSTRAP_TAILS * resamples; k++)
        if (got[k] != want[k])
            fail_msg("%s, %d values, blocks of %d: number %d is %a, not %a", what, s->n, (int)block,
                     (int)k, got[k], want[k]);
    for (int tail = 0; tail < BOOTSTRAP_TAILS; tail++) {
        check_ok(bootstrap_tail(s->finite, s->n, block, tail, from, resamples, got, &why), &why);
        for (int64_t k = 0; k < resamples; k++)
            if (got[k] != want[tail * resamples + k])
                fail_msg("%s, %d values, blocks of %d: number %d of tail %d is %a, not %a", what,
                         s->n, (int)block, (int)k, tail, got[k], want[tail * resamples + k]);
    }
}

static void expect_tails(sequence *s, int64_t block, int64_t resamples, const char *what) {
    static double want[BOOTSTRAP_TAILS * MANY];
    plain_tails(s->finite, s->n, block, rng_create(5), resamples, want);
    expect_tails_of(s, block, rng_create(5), resamples, want, what);
}

static void tails_are_exact(void **state) {
    (void)state;
    static const int length[] = {1, 2, 3, 4, 5, 20, 63, 64, 65, 256, 700, LONGEST};
    static sequence s;
    rng r = rng_create(11);
    for (int kind = 0; kind < SERIES; kind++)
        for (size_t i = 0; i < sizeof length / sizeof *length; i++) {
            char what[32];
            sequence_make(&s, kind, length[i], &r);
            if (!s.n) continue;
            snprintf(what, sizeof what, "series %d", kind);
            expect_tails(&s, 1, SOME, what);
            expect_tails(&s, s.n / 9 + 1, SOME, what);
            expect_tails(&s, s.n, SOME, what);
        }
}

static void tails_of_many_resamples(void **state) {
    (void)state;
    static sequence s;
    rng r = rng_create(12);
    sequence_make(&s, 1, 900, &r);
    expect_tails(&s, 10, MANY, "many");
}

enum { THREADS_MOST = 3 };

/* Enough work that threads would collide if they shared private data. */
static void tails_on_any_threads(void **state) {
    (void)state;
    static double want[BOOTSTRAP_TAILS * MANY];
    static sequence s;
    const int before = omp_get_max_threads();
    rng r = rng_create(16);
    sequence_make(&s, 1, LONGEST, &r);
    for (int64_t block = 1; block < 100; block += 60) {
        plain_tails(s.finite, s.n, block, rng_create(5), MANY, want);
        for (int threads = 1; threads <= THREADS_MOST; threads++) {
            char what[32];
            snprintf(what, sizeof what, "%d threads", threads);
            omp_set_num_threads(threads);
            expect_tails_of(&s, block, rng_create(5), MANY, want, what);
        }
    }
    omp_set_num_threads(before);
}

/* With 100,000 resamples some medians are outside the window that is searched first: about 6, at 4
 * standard deviations from the middle. */
static void tails_far_from_the_middle(void **state) {
    (void)state;
    enum { LENGTH = 400, RESAMPLES = 100000 };
    static double want[BOOTSTRAP_TAILS * RESAMPLES], got[BOOTSTRAP_TAILS * RESAMPLES];
    static sequence s;
    sr_failure why = {0};
    rng r = rng_create(19);
    sequence_make(&s, 0, LENGTH, &r);
    plain_tails(s.finite, s.n, 1, rng_create(5), RESAMPLES, want);
    check_ok(bootstrap_tails(s.finite, s.n, 1, rng_create(5), RESAMPLES, got, &why), &why);
    for (int k = 0; k < BOOTSTRAP_TAILS * RESAMPLES; k++) check_equals(got[k], want[k]);
}

/* The rejected number is in the first resample, the last of one, in the middle, or the last of all.
 * Each later resample starts one number later. */
static void refused_numbers_are_drawn_again(void **state) {
    (void)state;
    enum { LENGTH = 700, BLOCK_OF = 7, BLOCKS = LENGTH / BLOCK_OF };
    static const uint64_t at[] = {
        0, BLOCKS - 1, 511 * BLOCKS + 50, 1024 * BLOCKS - 1, 1024 * BLOCKS, MANY * BLOCKS - 1};
    static double want[BOOTSTRAP_TAILS * MANY];
    static sequence s;
    rng r = rng_create(17);
    sequence_make(&s, 0, LENGTH, &r);
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        char what[32];
        assert_true(rng_at(refused_at(at[i]).key, at[i]) == 0);
        snprintf(what, sizeof what, "number %d is refused", (int)at[i]);
        plain_tails(s.finite, s.n, BLOCK_OF, refused_at(at[i]), MANY, want);
        expect_tails_of(&s, BLOCK_OF, refused_at(at[i]), MANY, want, what);
    }
}

static sr_status tails_and_block(const sequence *s, double *result, sr_failure *why) {
    const int64_t block = bootstrap_block(s->finite, s->n, 0, why);
    if (!block) return why->status;
    return bootstrap_tails(s->finite, s->n, block, rng_create(1), SOME, result, why);
}

static void failures_are_passed_on(void **state) {
    (void)state;
    static sequence s;
    double result[BOOTSTRAP_TAILS * SOME];
    rng r = rng_create(14);
    sequence_make(&s, 1, 600, &r);
    if (!failing_malloc_there()) skip();
    sr_status status = SR_MEMORY;
    long n = 0;
    for (; status == SR_MEMORY; n++) {
        sr_failure why = {0};
        failing_malloc_begin(n);
        status = tails_and_block(&s, result, &why);
        assert_true(failing_malloc_end() <= 0); /* OpenMP may free a team */
        if (status != SR_OK) check_failure(&why, SR_MEMORY, "out of memory");
    }
    assert_int_equal(status, SR_OK);
    assert_true(n > 4);
}

/* The interval of a median uses the finite values; fewer than 20 have no interval. */
static void medians_have_intervals(void **state) {
    (void)state;
    static sequence s;
    static double want[BOOTSTRAP_TAILS * 1000];
    double low, high;
    sr_failure why = {0};
    rng r = rng_create(18);
    sequence_make(&s, 9, 700, &r);
    assert_true(s.n < s.rows);
    const int64_t block = bootstrap_block(s.finite, s.n, 0.25, &why);
    plain_tails(s.finite, s.n, block, rng_create(1), 1000, want);
    sort_reals(want, 1000);
    check_ok(bootstrap_median(s.value, s.rows, 0.25, &low, &high, &why), &why);
    check_equals(low, quantile_of_sorted(want, 1000, 0.025));
    check_equals(high, quantile_of_sorted(want, 1000, 0.975));
    sequence_make(&s, 0, 20, &r);
    check_ok(bootstrap_median(s.value, 20, 0, &low, &high, &why), &why);
    check_below(low, high);
    check_ok(bootstrap_median(s.value, 19, 0, &low, &high, &why), &why);
    assert_true(isnan(low) && isnan(high));
}

/* -- blocks ---------------------------------------------------------------------------------- */

static double plain_covariance(const double *y, int n, double mean, int lag) {
    double sum = 0;
    for (int i = lag; i < n; i++) sum += (y[i] - mean) * (y[i - lag] - mean);
    return sum / n;
}

/* The last lag before `needed` small ones in a row, of r [most + 1]. */
static int plain_end(const double *r, int n, int most) {
    const double limit = 2 * sqrt(log10(n) / n);
    const int needed = (int)fmax(5, ceil(sqrt(log10(n))));
    int last = 0;
    for (int k = 1, row = 0; k <= most; k++) {
        row = fabs(r[k]) < limit * r[0] ? row + 1 : 0;
        if (row == needed) return k - needed;
        if (!row) last = k;
    }
    return last;
}

static int64_t plain_block(const double *value, int n, double median) {
    static double y[LONGEST], r[LONGEST + 1];
    const int most = (int)fmin(ceil(2 * sqrt(n)) + 10, n - 1);
    double mean = 0;
    if (n < 4) return 1;
    for (int i = 0; i < n; i++) mean += y[i] = value[i] > median;
    mean /= n;
    for (int k = 0; k <= most; k++) r[k] = plain_covariance(y, n, mean, k);
    const int end = plain_end(r, n, most);
    const int twice = 2 * (end > 0 ? end : 1), window = twice < most ? twice : most;
    double large = 0, spectrum = r[0];
    for (int k = 1; k <= window; k++) {
        const double t = (double)k / window, w = t <= 0.5 ? 1 : 2 * (1 - t);
        large += 2 * w * k * r[k];
        spectrum += 2 * w * r[k];
    }
    if (!(spectrum > 0)) return 1;
    const double length = ceil(cbrt(2 * large * large / (4.0 / 3 * spectrum * spectrum) * n));
    return (int64_t)fmin(fmax(1, length), ceil(fmin(3 * sqrt(n), n / 3.0)));
}

static void expect_block(sequence *s, int kind) {
    static double sorted[LONGEST];
    sr_failure why = {0};
    memcpy(sorted, s->finite, (size_t)s->n * sizeof *sorted);
    sort_reals(sorted, s->n);
    const double median = quantile_of_sorted(sorted, s->n, 0.5);
    const int64_t want = plain_block(s->finite, s->n, median);
    const int64_t got = bootstrap_block(s->finite, s->n, median, &why);
    if (got != want)
        fail_msg("series %d, %d values: blocks of %d, not %d", kind, s->n, (int)got, (int)want);
}

/* Counted or summed, the covariances give the same block. */
static void blocks_are_those_of_sums(void **state) {
    (void)state;
    const int trials = (int)check_places(300);
    static sequence s;
    rng r = rng_create(15);
    for (int trial = 0; trial < trials; trial++)
        for (int kind = 0; kind < SERIES; kind++) {
            const int most = trial % 50 ? 400 : LONGEST;
            sequence_make(&s, kind, 1 + (int)rng_below(&r, (uint64_t)most), &r);
            if (s.n) expect_block(&s, kind);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tails_are_exact),
        cmocka_unit_test(tails_of_many_resamples),
        cmocka_unit_test(tails_on_any_threads),
        cmocka_unit_test(tails_far_from_the_middle),
        cmocka_unit_test(refused_numbers_are_drawn_again),
        cmocka_unit_test(failures_are_passed_on),
        cmocka_unit_test(medians_have_intervals),
        cmocka_unit_test(blocks_are_those_of_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
