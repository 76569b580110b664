/* Singular values against matrices with known values, and against an independent one-sided Jacobi
 * in double. The matrices are products of orthogonal factors with entries that are exact in
 * float. */
#include "testing/check.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/effective_rank.h"
#include "base/rng.h"
#include "base/svd.h"

void openblas_set_num_threads(int count) __attribute__((weak));
int openblas_get_num_threads(void) __attribute__((weak));

/* Allowed error: 1e-9 of the largest value. */
static void check_values(const char *name, const double *got, const double *want, int64_t count) {
    check_near_double(name, got, want, count, 0, 1e-9 * want[0] + 1e-300);
}

static int descending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* Singular values of a [m, n], m >= n, by rotating pairs of columns until all are orthogonal
 * (Hestenes). Overwrites a. */
static void jacobi_values(double *a, int64_t m, int64_t n, double *values) {
    for (int sweep = 0, rotated = 1; rotated && sweep < 60; sweep++) {
        rotated = 0;
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) {
                double pp = 0, qq = 0, pq = 0;
                for (int64_t i = 0; i < m; i++) {
                    pp += a[i * n + p] * a[i * n + p];
                    qq += a[i * n + q] * a[i * n + q];
                    pq += a[i * n + p] * a[i * n + q];
                }
                if (fabs(pq) <= 1e-15 * sqrt(pp * qq)) continue;
                rotated = 1;
                double tau = (qq - pp) / (2 * pq);
                double t = (tau < 0 ? -1 : 1) / (fabs(tau) + sqrt(1 + tau * tau));
                double c = 1 / sqrt(1 + t * t), s = c * t;
                for (int64_t i = 0; i < m; i++) {
                    double x = a[i * n + p], y = a[i * n + q];
                    a[i * n + p] = c * x - s * y;
                    a[i * n + q] = s * x + c * y;
                }
            }
    }
    for (int64_t j = 0; j < n; j++) {
        double sum = 0;
        for (int64_t i = 0; i < m; i++) sum += a[i * n + j] * a[i * n + j];
        values[j] = sqrt(sum);
    }
    qsort(values, (size_t)n, sizeof *values, descending);
}

static float *transposed(const float *a, int64_t rows, int64_t cols) {
    float *b = malloc((size_t)(rows * cols) * sizeof *b + 1);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) b[j * rows + i] = a[i * cols + j];
    return b;
}

/* Checks a and its transpose. */
static void check_matrix(const char *name, const float *a, int64_t rows, int64_t cols,
                         const double *want) {
    int64_t count = rows < cols ? rows : cols;
    double *got = malloc((size_t)count * sizeof *got);
    float *turned = transposed(a, rows, cols);
    sr_failure why = {0};
    check_ok(svd_singular_values(a, rows, cols, got, &why), &why);
    check_values(name, got, want, count);
    check_ok(svd_singular_values(turned, cols, rows, got, &why), &why);
    check_values(name, got, want, count);
    free(turned);
    free(got);
}

/* Reflects the columns of a [m, n]: a <- (I - v v^T / 2) a, v of four entries +-1. The factor 1/2
 * is exact, so four disjoint layers of such reflectors cost four bits. */
static void reflect_rows(double *a, int64_t m, int64_t n, rng *r) {
    int64_t *order = malloc((size_t)m * sizeof *order);
    for (int64_t i = 0; i < m; i++) order[i] = i;
    rng_shuffle(r, order, m);
    for (int64_t i = 0; i + 4 <= m; i += 4) {
        double v[4];
        for (int k = 0; k < 4; k++) v[k] = rng_below(r, 2) ? 1 : -1;
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int k = 0; k < 4; k++) sum += v[k] * a[order[i + k] * n + j];
            for (int k = 0; k < 4; k++) a[order[i + k] * n + j] -= 0.5 * sum * v[k];
        }
    }
    free(order);
}

static void turn(double *a, int64_t m, int64_t n) {
    double *b = malloc((size_t)(m * n) * sizeof *b);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) b[j * m + i] = a[i * n + j];
    memcpy(a, b, (size_t)(m * n) * sizeof *b);
    free(b);
}

/* U diag(values) V^T, U and V products of Householder reflectors, in exact arithmetic. */
static float *householder_matrix(int64_t m, int64_t n, const double *values, uint64_t seed) {
    double *a = calloc((size_t)(m * n), sizeof *a);
    float *f = malloc((size_t)(m * n) * sizeof *f);
    rng r = rng_create(seed);
    for (int64_t j = 0; j < n; j++) a[j * n + j] = values[j];
    for (int layer = 0; layer < 4; layer++) reflect_rows(a, m, n, &r);
    turn(a, m, n);
    for (int layer = 0; layer < 4; layer++) reflect_rows(a, n, m, &r);
    turn(a, n, m);
    for (int64_t i = 0; i < m * n; i++) {
        f[i] = (float)a[i];
        check_equals((double)f[i], a[i]);
    }
    free(a);
    return f;
}

static void householder_products(void **state) {
    (void)state;
    static const struct {
        int64_t m, n;
    } shape[] = {{4, 4}, {40, 8}, {64, 64}, {511, 33}, {512, 40}, {513, 40}, {1300, 37}, {2048, 5}};
    for (size_t s = 0; s < sizeof shape / sizeof shape[0]; s++) {
        double values[64];
        for (int64_t j = 0; j < shape[s].n; j++)
            values[j] = (double)(16384 >> (j * 14 / shape[s].n)) - (j % 2);
        qsort(values, (size_t)shape[s].n, sizeof values[0], descending);
        float *a = householder_matrix(shape[s].m, shape[s].n, values, s);
        check_matrix("householder", a, shape[s].m, shape[s].n, values);
        free(a);
    }
}

static void rank_deficient(void **state) {
    (void)state;
    double values[32] = {5000, 5000, 100, 1};
    float *a = householder_matrix(700, 32, values, 3);
    check_matrix("rank 4 of 32", a, 700, 32, values);
    free(a);
}

/* +1 or -1: entry (i, j) of the Hadamard matrix of any power of two. */
static int hadamard(int64_t i, int64_t j) {
    return __builtin_parityll((unsigned long long)(i & j)) ? -1 : 1;
}

/* Hadamard factors and integers: exact in float although the values span `largest`. A Gram matrix
 * in float would lose the small ones. */
static void check_spectrum(double largest, double relative) {
    enum { M = 1024, N = 64 };
    double scale[N], values[N];
    for (int j = 0; j < N; j++) scale[j] = j == 0 ? largest : N - j;
    for (int j = 0; j < N; j++) values[j] = scale[j] * sqrt((double)M * N);
    float *a = malloc(sizeof *a * M * N);
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            double sum = 0;
            for (int k = 0; k < N; k++) sum += hadamard(i, k) * scale[k] * hadamard(j, k);
            a[i * N + j] = (float)sum;
            check_equals((double)a[i * N + j], sum);
        }
    double got[N];
    sr_failure why = {0};
    check_ok(svd_singular_values(a, M, N, got, &why), &why);
    check_near_double("relative", got, values, N, relative, 0);
    check_matrix("wide spectrum", a, M, N, values);
    free(a);
}

/* Down to 1e-6 the Gram matrix must suffice; below, the orthogonal way: see the head of svd.c. */
static void wide_spectrum(void **state) {
    (void)state;
    check_spectrum(1e6, 1e-4);
    check_spectrum(4e6, 1e-8);
    check_spectrum(1e7, 1e-8);
}

/* diag(4, 3, 2) in chosen rows of a larger matrix; NaN elsewhere must not be read. */
static void gram_of_chosen_rows(void **state) {
    (void)state;
    float a[] = {NAN, NAN, NAN, 0, 3, 0, 4, 0, 0, NAN, 0, 0, 0, 0, 2};
    const int32_t index[] = {1, 2, 4};
    double got[3], want[] = {4, 3, 2}, first[] = {4, 3, 0};
    sr_failure why = {0};
    check_ok(svd_gram_singular_values(a, index, 3, 3, got, &why), &why);
    check_near_double("chosen rows", got, want, 3, 1e-14, 0);
    check_ok(svd_gram_singular_values(a + 3, NULL, 2, 3, got, &why), &why);
    check_near_double("fewer rows than columns", got, first, 3, 1e-14, 0);
    check_equals(got[2], 0);
    check_ok(svd_gram_singular_values(a, NULL, 2, 3, got, &why), &why);
    for (int j = 0; j < 3; j++) assert_true(isnan(got[j]));
    check_ok(svd_gram_singular_values(a, NULL, 0, 3, got, &why), &why);
    for (int j = 0; j < 3; j++) assert_true(isnan(got[j]));
    assert_int_equal(svd_gram_singular_values(a, NULL, 3, 0, got, &why), SR_USAGE);
}

static void random_matrices_agree_with_jacobi(void **state) {
    (void)state;
    static const struct {
        int64_t rows, cols;
    } shape[] = {{1, 1},   {1, 9},    {9, 1},    {2, 3},  {30, 30},
                 {31, 33}, {100, 20}, {600, 24}, {32, 31}};
    for (size_t s = 0; s < sizeof shape / sizeof shape[0]; s++) {
        int64_t rows = shape[s].rows, cols = shape[s].cols, tall = rows > cols ? rows : cols;
        int64_t n = rows + cols - tall;
        float *a = malloc((size_t)(rows * cols) * sizeof *a);
        double *wide = malloc((size_t)(rows * cols) * sizeof *wide), want[64];
        rng r = rng_create(s);
        for (int64_t i = 0; i < rows * cols; i++) a[i] = (float)rng_normal(&r);
        for (int64_t i = 0; i < tall; i++)
            for (int64_t j = 0; j < n; j++)
                wide[i * n + j] = rows >= cols ? a[i * cols + j] : a[j * cols + i];
        jacobi_values(wide, tall, n, want);
        check_matrix("random", a, rows, cols, want);
        free(wide);
        free(a);
    }
}

static void extreme_magnitudes(void **state) {
    (void)state;
    float a[] = {1e38f, 0, 0, 1e-38f, 0, 0};
    double want[] = {(double)1e38f, (double)1e-38f}, got[2];
    sr_failure why = {0};
    check_ok(svd_singular_values(a, 3, 2, got, &why), &why);
    check_near_double("largest", got, want, 1, 1e-14, 0);
    check_at_least(got[1], 0);
    check_below(got[1], 1e29);
    float small[] = {3e-38f, 0, 4e-38f, 0};
    check_ok(svd_singular_values(small, 2, 2, got, &why), &why);
    check_within(got[0] / 5e-38, 1, 1e-6);
}

static void zero_and_empty(void **state) {
    (void)state;
    float a[12] = {0};
    double got[3] = {9, 9, 9}, zero[3] = {0};
    sr_failure why = {0};
    check_ok(svd_singular_values(a, 4, 3, got, &why), &why);
    check_near_double("zero matrix", got, zero, 3, 0, 0);
    got[0] = 9;
    check_ok(svd_singular_values(a, 0, 3, got, &why), &why);
    check_ok(svd_singular_values(a, 3, 0, got, &why), &why);
    check_equals(got[0], 9);
    assert_int_equal(svd_singular_values(a, -1, 3, got, &why), SR_USAGE);
    check_failure(&why, SR_USAGE, "-1 x 3");
}

/* NaN is data: a matrix that is not finite has singular values NaN, wherever the element is. */
static void not_finite(void **state) {
    (void)state;
    enum { M = 1100, N = 7 };
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    static const int64_t place[] = {0, 6, 512 * N, M * N - 1};
    float *a = calloc(M * N, sizeof *a);
    sr_failure why = {0};
    for (int b = 0; b < 3; b++)
        for (int p = 0; p < 4; p++) {
            double got[N] = {0};
            a[place[p]] = bad[b];
            check_ok(svd_singular_values(a, M, N, got, &why), &why);
            for (int j = 0; j < N; j++) assert_true(isnan(got[j]));
            a[place[p]] = 1;
        }
    free(a);
}

static void input_is_not_changed(void **state) {
    (void)state;
    float a[60], before[60];
    double got[6];
    for (int i = 0; i < 60; i++) a[i] = (float)(i * i % 17);
    memcpy(before, a, sizeof a);
    sr_failure why = {0};
    check_ok(svd_singular_values(a, 10, 6, got, &why), &why);
    check_ok(svd_singular_values(a, 6, 10, got, &why), &why);
    assert_memory_equal(a, before, sizeof a);
}

static void too_large_is_refused(void **state) {
    (void)state;
    float a = 1;
    double got = 0;
    sr_failure why = {0};
    int64_t side = (int64_t)1 << 40;
    assert_int_equal(svd_singular_values(&a, side, side, &got, &why), SR_MEMORY);
    check_failure(&why, SR_MEMORY, "out of memory");
}

static void same_bytes_for_any_number_of_threads(void **state) {
    (void)state;
    if (!openblas_set_num_threads || !openblas_get_num_threads) {
        print_message("skipped: this BLAS has no openblas_set_num_threads\n");
        skip();
    }
    enum { M = 3000, N = 200 };
    static double one[N], two[N];
    float *a = malloc(sizeof *a * M * N);
    rng r = rng_create(77);
    for (int64_t i = 0; i < M * N; i++) a[i] = (float)rng_normal(&r);
    sr_failure why = {0};
    openblas_set_num_threads(1);
    omp_set_num_threads(1);
    check_ok(svd_singular_values(a, M, N, one, &why), &why);
    openblas_set_num_threads(2);
    omp_set_num_threads(3);
    check_ok(svd_singular_values(a, M, N, two, &why), &why);
    assert_int_equal(openblas_get_num_threads(), 2);
    assert_memory_equal(one, two, sizeof one);
    free(a);
}

static void effective_ranks(void **state) {
    (void)state;
    const double flat[] = {1e300, 1e300, 1e300, 0}, zero[] = {0, 0}, bad[] = {2, NAN};
    const double two[] = {3, 1}, want = exp(-0.75 * log(0.75) - 0.25 * log(0.25));
    const double got[] = {effective_rank(flat, 4), effective_rank(two, 2), effective_rank(zero, 2),
                          effective_rank(bad, 2)};
    check_near_double("effective rank", got, (double[]){3, want, NAN, NAN}, 4, 1e-15, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(householder_products),
        cmocka_unit_test(rank_deficient),
        cmocka_unit_test(wide_spectrum),
        cmocka_unit_test(gram_of_chosen_rows),
        cmocka_unit_test(random_matrices_agree_with_jacobi),
        cmocka_unit_test(extreme_magnitudes),
        cmocka_unit_test(zero_and_empty),
        cmocka_unit_test(not_finite),
        cmocka_unit_test(effective_ranks),
        cmocka_unit_test(input_is_not_changed),
        cmocka_unit_test(too_large_is_refused),
        cmocka_unit_test(same_bytes_for_any_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
