/* bench_svd.c -- singular values of an embedding matrix: svd_singular_values() against LAPACK's
 * sgesdd (no vectors) on the whole float matrix. Both are limited to THREADS threads.
 *
 *   bench_svd [THREADS] [ROUNDS] [ROWS] [COLS]     default 2 3 37000 1024
 *
 * The matrix is U diag(s) V^T rounded to float; U and V are products of Householder reflectors. s
 * falls geometrically from 1 to 1e-3 (a trained embedding) or to 1e-6 (the hardest that the Gram
 * matrix resolves). A round times each once. `error` is the largest distance from s, relative to
 * s_1; for both it includes the effect of rounding the entries to float.
 */
#include <lapacke.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/program/progress.h"
#include "base/rng.h"
#include "base/svd.h"

void openblas_set_num_threads(int count) __attribute__((weak));

enum { REFLECTORS = 6, MOST_ROUNDS = 100 };

/* a <- (I - 2 v v^T) a for a random unit v [m]. */
static void reflect_rows(double *a, int64_t m, int64_t n, double *v, double *sum, rng *r) {
    double norm = 0;
    for (int64_t i = 0; i < m; i++) v[i] = rng_normal(r), norm += v[i] * v[i];
    memset(sum, 0, (size_t)n * sizeof *sum);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) sum[j] += v[i] * a[i * n + j];
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) a[i * n + j] -= 2 / norm * v[i] * sum[j];
}

/* a <- a (I - 2 v v^T). */
static void reflect_columns(double *a, int64_t m, int64_t n, double *v, rng *r) {
    double norm = 0;
    for (int64_t j = 0; j < n; j++) v[j] = rng_normal(r), norm += v[j] * v[j];
    for (int64_t i = 0; i < m; i++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++) sum += v[j] * a[i * n + j];
        for (int64_t j = 0; j < n; j++) a[i * n + j] -= 2 / norm * sum * v[j];
    }
}

static float *make_matrix(int64_t m, int64_t n, double least, double *want) {
    double *a = calloc((size_t)(m * n), sizeof *a), *v = malloc((size_t)m * sizeof *v);
    double *sum = malloc((size_t)n * sizeof *sum);
    float *f = malloc((size_t)(m * n) * sizeof *f);
    rng r = rng_create(1);
    if (!a || !v || !sum || !f) exit(1);
    for (int64_t j = 0; j < n; j++) {
        want[j] = n > 1 ? pow(least, (double)j / (double)(n - 1)) : 1;
        a[j * n + j] = want[j];
    }
    for (int i = 0; i < REFLECTORS; i++) {
        reflect_rows(a, m, n, v, sum, &r);
        reflect_columns(a, m, n, v, &r);
    }
    for (int64_t i = 0; i < m * n; i++) f[i] = (float)a[i];
    free(a), free(v), free(sum);
    return f;
}

static double seconds_of_ours(const float *a, int64_t m, int64_t n, double *got) {
    sr_failure why = {0};
    double start = progress_clock();
    if (svd_singular_values(a, m, n, got, &why) != SR_OK) {
        fprintf(stderr, "bench_svd: %s\n", why.text);
        exit(1);
    }
    return progress_clock() - start;
}

/* The transpose in column-major order is a, so that LAPACKE copies nothing; a is overwritten, hence
 * `scratch`, whose filling is not timed. */
static double seconds_of_sgesdd(const float *a, float *scratch, int64_t m, int64_t n, double *got) {
    float *value = malloc((size_t)n * sizeof *value), unused;
    memcpy(scratch, a, (size_t)(m * n) * sizeof *a);
    double start = progress_clock();
    if (!value || LAPACKE_sgesdd(LAPACK_COL_MAJOR, 'N', (lapack_int)n, (lapack_int)m, scratch,
                                 (lapack_int)n, value, &unused, 1, &unused, 1))
        exit(1);
    double passed = progress_clock() - start;
    for (int64_t j = 0; j < n; j++) got[j] = (double)value[j];
    free(value);
    return passed;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double worst(const double *got, const double *want, int64_t n) {
    double most = 0;
    for (int64_t j = 0; j < n; j++) most = fmax(most, fabs(got[j] - want[j]));
    return most / want[0];
}

static void measure(int rounds, int64_t m, int64_t n, double least) {
    static double ours[MOST_ROUNDS], peer[MOST_ROUNDS];
    double *want = malloc((size_t)n * sizeof *want), *got = malloc((size_t)n * sizeof *got);
    double *other = malloc((size_t)n * sizeof *other);
    float *scratch = malloc((size_t)(m * n) * sizeof *scratch);
    if (!want || !got || !other || !scratch) exit(1);
    float *a = make_matrix(m, n, least, want);
    for (int r = 0; r < rounds; r++) {
        ours[r] = seconds_of_ours(a, m, n, got);
        peer[r] = seconds_of_sgesdd(a, scratch, m, n, other);
    }
    qsort(ours, (size_t)rounds, sizeof *ours, by_value);
    qsort(peer, (size_t)rounds, sizeof *peer, by_value);
    printf("%g\t%.3f\t%.3f\t%.2f\t%.1e\t%.1e\n", least, ours[rounds / 2], peer[rounds / 2],
           ours[rounds / 2] / peer[rounds / 2], worst(got, want, n), worst(other, want, n));
    free(want), free(got), free(other), free(scratch), free(a);
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 2, rounds = argc > 2 ? atoi(argv[2]) : 3;
    int64_t m = argc > 3 ? atoll(argv[3]) : 37000, n = argc > 4 ? atoll(argv[4]) : 1024;
    if (threads < 1 || rounds < 1 || rounds > MOST_ROUNDS || m < n || n < 1) {
        fprintf(stderr, "usage: bench_svd [THREADS] [ROUNDS] [ROWS] [COLS], ROWS >= COLS\n");
        return 2;
    }
    if (openblas_set_num_threads) openblas_set_num_threads(threads);
    printf("# singular values of %lld x %lld, seconds, median of %d; sgesdd with %d threads\n",
           (long long)m, (long long)n, rounds, threads);
    printf("smallest\tstatrec_s\tsgesdd_s\tratio\tstatrec_error\tsgesdd_error\n");
    measure(rounds, m, n, 1e-3);
    measure(rounds, m, n, 1e-6);
    return 0;
}
