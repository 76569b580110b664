/* Matrix products against a triple loop in double, for every way of splitting; equal bytes for any
 * number of threads. */
#include "engine/gemm/gemm.h"
#include "engine/gemm/gemm_tiles.h"

#include <math.h>
#include <omp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "reals.h"
#include "testing/check.h"

typedef struct sizes {
    int64_t m, n, k;
} sizes;

/* Not split, split by rows, by columns, by depth; odd sizes, so that the last chunk is partial.
 * AMX: one k-block and several; the small operand packed by all threads and split. AMX by tiles of
 * c: splits of one k-block and of three, and two stages. */
static const sizes cases[] = {
    {1, 1, 1},        {3, 5, 7},        {16, 16, 32},   {33, 31, 29},     {37, 41, 130},
    {1000, 65, 70},   {1023, 128, 127}, {64, 1001, 80}, {127, 4000, 9},   {16, 27, 20000},
    {128, 128, 1030}, {130, 70, 2049},  {33, 40, 9000}, {300, 230, 1100}, {49, 81, 40},
    {96, 700, 320},   {64, 160, 3900},
};

enum { CASES = sizeof cases / sizeof cases[0], PAD = 3 };

/* a, b and c with rows PAD elements longer than needed. */
typedef struct trial {
    sizes s;
    bool ta, tb;
    int64_t lda, ldb, ldc;
    real *a, *b, *c;
} trial;

static trial trial_create(sizes s, bool ta, bool tb) {
    trial t = {.s = s, .ta = ta, .tb = tb};
    t.lda = (ta ? s.m : s.k) + PAD, t.ldb = (tb ? s.k : s.n) + PAD, t.ldc = s.n + PAD;
    t.a = reals_random((ta ? s.k : s.m) * t.lda, 1);
    t.b = reals_random((tb ? s.n : s.k) * t.ldb, 2);
    t.c = reals_random(s.m * t.ldc, 3);
    return t;
}

static void trial_free(trial *t) {
    free(t->a), free(t->b), free(t->c);
}

/* All of c; the padding must be untouched. */
static double *trial_want(const trial *t, double alpha, double beta) {
    double *want = malloc((size_t)(t->s.m * t->ldc) * sizeof *want);
    assert_non_null(want);
    for (int64_t i = 0; i < t->s.m; i++)
        for (int64_t j = 0; j < t->ldc; j++) {
            double sum = 0, c = (double)t->c[i * t->ldc + j];
            if (j < t->s.n) {
                for (int64_t p = 0; p < t->s.k; p++)
                    sum += (double)t->a[t->ta ? p * t->lda + i : i * t->lda + p] *
                           (double)t->b[t->tb ? j * t->ldb + p : p * t->ldb + j];
                sum = alpha * sum + (beta != 0 ? beta * c : 0);
            }
            want[i * t->ldc + j] = j < t->s.n ? sum : c;
        }
    return want;
}

static scratch_memory room;

static void trial_gemm(const trial *t, int threads, double beta, real *c) {
    memmove(c, t->c, (size_t)(t->s.m * t->ldc) * sizeof *c);
    gemm(&room, threads, t->ta, t->tb, t->s.m, t->s.n, t->s.k, t->a, t->lda, t->b, t->ldb,
         (real)beta, c, t->ldc);
}

static void run_trial(sizes s, bool ta, bool tb, double beta) {
    trial t = trial_create(s, ta, tb);
    if (beta == 0) /* c must not be read */
        for (int64_t i = 0; i < s.m; i++)
            for (int64_t j = 0; j < s.n; j++) t.c[i * t.ldc + j] = (real)NAN;
    double *want = trial_want(&t, 1, beta);
    int64_t count = s.m * t.ldc;
    real *one = malloc((size_t)count * sizeof *one), *more = malloc((size_t)count * sizeof *more);
    assert_true(one && more);
    trial_gemm(&t, 1, beta, one);
    /* Partial sums of k products of normal numbers are about sqrt(k) large. */
    double atol = (sizeof(real) == 4 ? 2e-6 : 2e-14) * sqrt((double)s.k);
    reals_check("gemm", one, want, count, sizeof(real) == 4 ? 1e-5 : 1e-13, atol);
    static const int threads[] = {2, 3, 5, 16, 61};
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        trial_gemm(&t, threads[i], beta, more);
        reals_check_bytes("gemm, more threads", more, one, count);
    }
    free(want), free(one), free(more);
    trial_free(&t);
}

static void check_values_and_threads(void **state) {
    (void)state;
    for (int i = 0; i < CASES; i++)
        for (int t = 0; t < 4; t++)
            for (int beta = 0; beta < 3; beta++) run_trial(cases[i], t & 1, t & 2, beta * 0.5);
}

/* The bias is added in the chunks, whichever side is split. */
static void biased(void **state) {
    (void)state;
    for (int i = 0; i < CASES; i++) {
        trial t = trial_create(cases[i], i & 1, true);
        const int64_t count = t.s.m * t.ldc;
        real *bias = malloc((size_t)t.ldc * sizeof *bias), *c = malloc((size_t)count * sizeof *c);
        double *want = trial_want(&t, 1, 0);
        assert_true(bias && c);
        for (int64_t j = 0; j < t.ldc; j++) bias[j] = (real)(j % 7) - 3;
        for (int64_t j = 0; j < count; j++) want[j] += j % t.ldc < t.s.n ? bias[j % t.ldc] : 0;
        for (int threads = 1; threads <= 13; threads += 4) {
            memcpy(c, t.c, (size_t)count * sizeof *c);
            gemm_biased(&room, threads, t.ta, t.tb, t.s.m, t.s.n, t.s.k, t.a, t.lda, t.b, t.ldb,
                        bias, c, t.ldc);
            reals_check("gemm_biased", c, want, count, 1e-5, 2e-6 * sqrt((double)t.s.k));
        }
        free(bias), free(c), free(want);
        trial_free(&t);
    }
}

/* gemm_tiles, which AMX rarely leaves work, on whole and partial tiles, one stage and several. */
static void by_tiles(void **state) {
    (void)state;
    static const sizes shapes[] = {{128, 128, 1030}, {1000, 65, 70}, {64, 1001, 80},
                                   {83, 75, 333},    {300, 230, 40}, {65, 70, 8100}};
    static const int threads[] = {1, 2, 3, 16, 61};
    int fitting = 0;
    for (int i = 0; i < 24; i++) {
        trial t = trial_create(shapes[i / 4], i & 1, i & 2);
        const int64_t count = t.s.m * t.ldc;
        const double beta = i % 3 * 0.5;
        real *c = malloc((size_t)count * sizeof *c), *one = malloc((size_t)count * sizeof *one);
        real *bias = reals_random(t.s.n, 4);
        double *want = trial_want(&t, 1, beta);
        assert_true(c && one);
        for (int64_t j = 0; j < count; j++) want[j] += j % t.ldc < t.s.n ? bias[j % t.ldc] : 0;
        for (int n = 0; n < 5; n++) {
            real *to = n ? c : one;
            const gemm_group p = {t.ta, t.tb,  t.s.m,      t.s.n, t.s.k, t.a, t.lda,
                                  t.b,  t.ldb, (real)beta, to,    t.ldc, bias};
            memcpy(to, t.c, (size_t)count * sizeof *to);
            if (!gemm_tiles_fit(&p)) continue;
            sr_failure why;
            assert_int_equal(gemm_tiles(&room, &p, threads[n], &why), SR_OK);
            fitting++;
            if (n) reals_check_bytes("gemm_tiles, more threads", c, one, count);
        }
        const double atol = (sizeof(real) == 4 ? 2e-6 : 2e-14) * sqrt((double)t.s.k);
        if (fitting > 5 * i)
            reals_check("gemm_tiles", one, want, count, sizeof(real) == 4 ? 1e-5 : 1e-13, atol);
        free(c), free(one), free(bias), free(want);
        trial_free(&t);
    }
    if (!fitting) skip(); /* this build has short vectors */
    assert_int_equal(fitting, 24 * 5);
}

/* Root mean square error of c against sums in double. */
static double error_of(const trial *t, const real *c, const double *want) {
    double sum = 0;
    for (int64_t i = 0; i < t->s.m; i++)
        for (int64_t j = 0; j < t->s.n; j++) {
            const double e = (double)c[i * t->ldc + j] - want[i * t->ldc + j];
            sum += e * e;
        }
    return sqrt(sum / (double)(t->s.m * t->s.n));
}

/* Float sums, one term after the other. */
static void plain_product(const trial *t, real *c) {
    for (int64_t i = 0; i < t->s.m; i++)
        for (int64_t j = 0; j < t->s.n; j++) {
            real sum = 0;
            for (int64_t p = 0; p < t->s.k; p++)
                sum += t->a[t->ta ? p * t->lda + i : i * t->lda + p] *
                       t->b[t->tb ? j * t->ldb + p : p * t->ldb + j];
            c[i * t->ldc + j] = sum;
        }
}

/* gemm is at least as exact as float sums of one term after the other, by any method. */
static void as_exact_as_plain(void **state) {
    (void)state;
    if (sizeof(real) != 4) skip(); /* errors are measured against doubles */
    static const sizes of[] = {{64, 64, 64}, {96, 80, 300}, {70, 64, 3000}};
    for (int i = 0; i < 12; i++) {
        trial t = trial_create(of[i / 4], i & 1, i & 2);
        double *want = trial_want(&t, 1, 0);
        trial_gemm(&t, 2, 0, t.c);
        const double ours = error_of(&t, t.c, want);
        plain_product(&t, t.c);
        const double plain = error_of(&t, t.c, want);
        if (!(ours <= plain * 1.05))
            fail_msg("%lld deep: error %g, of a plain sum %g", (long long)t.s.k, ours, plain);
        free(want);
        trial_free(&t);
    }
}

/* -- values that are not finite, or nearly */

static void put_all(trial *t, real x) {
    for (int64_t i = 0; i < t->s.k; i++) t->a[t->ta ? i * t->lda + 5 : 5 * t->lda + i] = x;
}

static void put_a(trial *t, int64_t row, int64_t depth, real x) {
    t->a[t->ta ? depth * t->lda + row : row * t->lda + depth] = x;
}

static void put_b(trial *t, int64_t depth, int64_t column, real x) {
    t->b[t->tb ? column * t->ldb + depth : depth * t->ldb + column] = x;
}

static void put_infinity(trial *t) {
    put_a(t, 39, 69, (real)INFINITY);
}

static void put_infinities_that_cancel(trial *t) {
    put_a(t, 3, 1, (real)INFINITY), put_a(t, 3, 2, (real)-INFINITY);
    put_b(t, 1, 6, 1), put_b(t, 2, 6, 1);
}

static void put_infinity_upon_zero(trial *t) {
    put_b(t, 20, 49, (real)INFINITY), put_a(t, 7, 20, 0);
}

static void put_both(trial *t) {
    put_a(t, 8, 33, (real)INFINITY), put_b(t, 33, 17, (real)-INFINITY);
}

static void put_nan(trial *t) {
    put_a(t, 0, 0, (real)NAN), put_b(t, 40, 48, (real)NAN);
}

static void put_row_of_nan(trial *t) {
    put_all(t, (real)NAN);
}

static void put_nothing_but_nan(trial *t) {
    for (int64_t i = 0; i < (t->tb ? t->s.n : t->s.k) * t->ldb; i++) t->b[i] = (real)NAN;
}

/* The largest values round to infinity in fewer bits. */
static void put_largest(trial *t) {
    put_a(t, 12, 31, 3.4e38F), put_b(t, 50, 2, 3.4e38F);
    for (int64_t j = 0; j < t->s.n; j++) put_b(t, 31, j, (real)1e-10);
    for (int64_t i = 0; i < t->s.m; i++) put_a(t, i, 50, (real)1e-10);
}

static void check_like(const trial *t, const real *got, const double *want) {
    for (int64_t i = 0; i < t->s.m * t->ldc; i++) {
        const real w = (real)want[i];
        const bool same = isnan(w) ? isnan(got[i]) : isinf(w) ? got[i] == w : isfinite(got[i]);
        if (!same) fail_msg("at %lld: %g, not %g", (long long)i, (double)got[i], want[i]);
        if (isfinite(w))
            check_within_inclusive((double)got[i], want[i], 1e-4 + 1e-5 * fabs(want[i]));
    }
}

static void not_finite(void **state) {
    (void)state;
    void (*const put[])(trial *) = {
        put_infinity,
        put_infinities_that_cancel,
        put_infinity_upon_zero,
        put_both,
        put_nan,
        put_row_of_nan,
        put_nothing_but_nan,
        put_largest,
    };
    for (int i = 0; i < 32; i++)
        for (int beta = 0; beta < 2; beta++) {
            trial t = trial_create((sizes){40, 50, 70}, i & 1, i & 2);
            put[i / 4](&t);
            double *want = trial_want(&t, 1, beta);
            trial_gemm(&t, 2, beta, t.c);
            check_like(&t, t.c, want);
            free(want);
            trial_free(&t);
        }
}

static void chunk_with_alpha(void **state) {
    (void)state;
    for (int i = 0; i < 6; i++) {
        trial t = trial_create(cases[i], false, true);
        double *want = trial_want(&t, 0.25, 1);
        gemm_chunk(false, true, t.s.m, t.s.n, t.s.k, (real)0.25, t.a, t.lda, t.b, t.ldb, 1, t.c,
                   t.ldc);
        reals_check("gemm_chunk", t.c, want, t.s.m * t.ldc, 1e-5, 1e-5);
        free(want);
        trial_free(&t);
    }
}

/* A chunk has the same bytes alone and in regions of one and three threads. The caller's number of
 * threads stays unchanged. */
static void chunk_anywhere(void **state) {
    (void)state;
    omp_set_num_threads(8); /* enough for dnnl_sgemm to cut the depth */
    trial t = trial_create((sizes){64, 64, 6000}, false, false);
    int64_t count = t.s.m * t.ldc;
    real *got[5];
    for (int i = 0; i < 5; i++) {
        got[i] = malloc((size_t)count * sizeof(real));
        assert_non_null(got[i]);
        memcpy(got[i], t.c, (size_t)count * sizeof(real));
    }
#define CHUNK(c) gemm_chunk(0, 0, t.s.m, t.s.n, t.s.k, 1, t.a, t.lda, t.b, t.ldb, 0, c, t.ldc)
    CHUNK(got[0]);
    assert_int_equal(omp_get_max_threads(), 8);
#pragma omp parallel num_threads(1)
    CHUNK(got[1]);
#pragma omp parallel for num_threads(3)
    for (int i = 2; i < 5; i++) CHUNK(got[i]);
    for (int i = 1; i < 5; i++) reals_check_bytes("chunk", got[i], got[0], count);
    for (int i = 0; i < 5; i++) free(got[i]);
    trial_free(&t);
}

static void denormals_are_flushed(void **state) {
    (void)state;
#if defined(__SSE2__)
    volatile real tiny = sizeof(real) == 4 ? (real)1e-30 : (real)1e-300;
    volatile real small = (real)1e-10;
    int flushed = 0;
#pragma omp parallel num_threads(3) reduction(+ : flushed)
    flushed += tiny * small == 0;
    assert_int_equal(flushed, 3);
#else
    skip();
#endif
}

static void signals_go_to_the_main_thread(void **state) {
    (void)state;
    int blocked[3] = {-1, -1, -1};
#pragma omp parallel num_threads(3)
    {
        sigset_t mask;
        pthread_sigmask(SIG_BLOCK, NULL, &mask);
        blocked[omp_get_thread_num()] =
            sigismember(&mask, SIGTERM) + 2 * sigismember(&mask, SIGSEGV);
    }
    assert_int_equal(blocked[0], 0);
    assert_int_equal(blocked[1], 1);
    assert_int_equal(blocked[2], 1);
}

int main(void) {
    gemm_setup(3);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signals_go_to_the_main_thread), /* before others change the team */
        cmocka_unit_test(check_values_and_threads),
        cmocka_unit_test(biased),
        cmocka_unit_test(by_tiles),
        cmocka_unit_test(as_exact_as_plain),
        cmocka_unit_test(not_finite),
        cmocka_unit_test(chunk_with_alpha),
        cmocka_unit_test(chunk_anywhere),
        cmocka_unit_test(denormals_are_flushed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
