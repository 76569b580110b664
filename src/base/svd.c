/* svd.c -- singular values of a float matrix, in double, without a copy of it.
 *
 * A [rows x cols], m = max, n = min of both; when A is wide its transpose is read (same values).
 *
 *   Gram:  G = sum over blocks B of rows of A: B^T B [n x n]; values = sqrt(eigenvalues of G)
 *   QR:    R = 0 [n x n]; for each block B: R <- triangle of the QR factorisation of [R; B];
 *          values = singular values of R
 *
 * The Gram matrix squares the spectrum: an eigenvalue is wrong by about 1e-15 of the largest. So a
 * value s is wrong by 5e-16 s_1 / s of the largest (Golub and Van Loan, Matrix Computations,
 * 8.6.3). That is a rounding error down to SVD_RESOLUTION and useless under 1e-7. Every step of QR
 * is an orthogonal transformation (5.2, 5.4) and costs four times as much. So: Gram first, and QR
 * over everything when a value is under SVD_RESOLUTION of the largest.
 *
 * Bit-identical for any number of threads: m alone divides the work into at most PARTS parts of
 * whole blocks. One thread sums each part; the sums are added in order. BLAS uses one thread
 * meanwhile. Memory: PARTS half matrices n x n, and one block of doubles per thread.
 */
#include "base/svd.h"

#include <lapacke.h>
#include <math.h>
#include <omp.h>
#include <stdbool.h>
#include <stdlib.h>

enum { BLOCK_ROWS = 512, PANEL = 32, PARTS = 8 };

/* OpenBLAS has these, the reference BLAS has not. */
void openblas_set_num_threads(int count) __attribute__((weak));
int openblas_get_num_threads(void) __attribute__((weak));

static int blas_hold(void) {
    if (!openblas_get_num_threads || !openblas_set_num_threads) return 0;
    int before = openblas_get_num_threads();
    openblas_set_num_threads(1);
    return before;
}

static void blas_release(int before) {
    if (before > 0) openblas_set_num_threads(before);
}

/* A seen as m rows of n: element (i, j) at a[row(i) * row_stride + j * column_stride], where row(i)
 * is index[i], or i without an index. */
typedef struct matrix_view {
    const float *a;
    const int32_t *index;
    int64_t m, n, row_stride, column_stride;
} matrix_view;

static sr_status fail_memory(const matrix_view *v, sr_failure *why) {
    return sr_fail(why, SR_MEMORY, "out of memory for singular values of %lld x %lld",
                   (long long)v->m, (long long)v->n);
}

static sr_status fail_lapack(const matrix_view *v, const char *step, lapack_int info,
                             sr_failure *why) {
    if (info == LAPACK_WORK_MEMORY_ERROR || info == LAPACK_TRANSPOSE_MEMORY_ERROR)
        return fail_memory(v, why);
    return sr_fail(why, SR_LIBRARY, "singular values of a %lld x %lld matrix: %s returned %lld",
                   (long long)v->m, (long long)v->n, step, (long long)info);
}

/* -- Gram matrix ----------------------------------------------------------------------------- */

/* Rows first .. first + count - 1 as [count, n] (rows_first) or, where that reads A in order, as
 * [n, count]. False when a value is not finite. */
static bool copy_rows(const matrix_view *v, int64_t first, int64_t count, bool rows_first,
                      double *block) {
    int64_t outer = rows_first ? count : v->n, inner = rows_first ? v->n : count;
    double zero = 0;
    for (int64_t o = 0; o < outer; o++) {
        int64_t row = rows_first ? first + o : first;
        if (rows_first && v->index) row = v->index[row];
        const float *from = v->a + row * v->row_stride + (rows_first ? 0 : o * v->column_stride);
        for (int64_t i = 0; i < inner; i++) {
            block[o * inner + i] = from[i];
            zero += 0 * block[o * inner + i];
        }
    }
    return zero == 0;
}

/* Adds the rows [first, end) to the packed half matrix (LAPACK's rectangular full packed form).
 * *finite false: there was a value that is not. */
static lapack_int add_rows(const matrix_view *v, int64_t first, int64_t end, double *block,
                           double *half, bool *finite) {
    bool rows_first = v->column_stride == 1;
    lapack_int n = (lapack_int)v->n;
    for (; first < end; first += BLOCK_ROWS) {
        int64_t count = end - first < BLOCK_ROWS ? end - first : BLOCK_ROWS;
        *finite = copy_rows(v, first, count, rows_first, block);
        if (!*finite) return 0;
        lapack_int k = (lapack_int)count;
        lapack_int info = LAPACKE_dsfrk_work(LAPACK_COL_MAJOR, 'N', 'L', rows_first ? 'N' : 'T', n,
                                             k, 1, block, rows_first ? n : k, 1, half);
        if (info) return info;
    }
    return 0;
}

/* The Gram matrix of some rows. */
typedef struct gram_sum {
    double *half; /* [n (n + 1) / 2] */
    lapack_int info;
    bool finite, allocated;
} gram_sum;

static void sum_rows(const matrix_view *v, int64_t first, int64_t end, gram_sum *s) {
    double *block = malloc((size_t)(BLOCK_ROWS * v->n) * sizeof *block);
    s->half = calloc((size_t)(v->n * (v->n + 1) / 2), sizeof *s->half);
    s->allocated = block && s->half;
    s->finite = true;
    if (s->allocated) s->info = add_rows(v, first, end, block, s->half, &s->finite);
    free(block);
}

/* values [n], descending: roots of the eigenvalues; one that rounding made negative is 0. */
static sr_status take_roots(const matrix_view *v, const double *half, double *full, double *values,
                            sr_failure *why) {
    lapack_int n = (lapack_int)v->n;
    lapack_int info = LAPACKE_dtfttr(LAPACK_COL_MAJOR, 'N', 'L', n, half, full, n);
    if (info) return fail_lapack(v, "dtfttr", info, why);
    info = LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'N', 'L', n, full, n, values);
    if (info) return fail_lapack(v, "dsyevd", info, why);
    for (int64_t i = 0; i < (v->n + 1) / 2; i++) {
        double low = values[i], high = values[v->n - 1 - i];
        values[i] = sqrt(fmax(high, 0));
        values[v->n - 1 - i] = sqrt(fmax(low, 0));
    }
    return SR_OK;
}

static sr_status gram_values(const matrix_view *v, double *values, sr_failure *why) {
    if (v->n > INT32_MAX / BLOCK_ROWS) return fail_memory(v, why);
    int64_t blocks = (v->m + BLOCK_ROWS - 1) / BLOCK_ROWS, parts = blocks < PARTS ? blocks : PARTS;
    gram_sum sum[PARTS] = {0};
    double *full = malloc((size_t)(v->n * v->n) * sizeof *full);
#pragma omp parallel for num_threads(omp_get_max_threads()) schedule(static)
    for (int64_t p = 0; p < parts; p++) {
        int64_t first = blocks * p / parts * BLOCK_ROWS;
        int64_t end = blocks * (p + 1) / parts * BLOCK_ROWS;
        sum_rows(v, first, end < v->m ? end : v->m, &sum[p]);
    }
    bool finite = true;
    sr_status status = full ? SR_OK : fail_memory(v, why);
    for (int64_t p = 0; p < parts && status == SR_OK; p++) { /* in order, into the first */
        if (!sum[p].allocated)
            status = fail_memory(v, why);
        else if (sum[p].info)
            status = fail_lapack(v, "dsfrk", sum[p].info, why);
        finite &= sum[p].finite;
        for (int64_t i = 0; p > 0 && status == SR_OK && i < v->n * (v->n + 1) / 2; i++)
            sum[0].half[i] += sum[p].half[i];
    }
    if (status == SR_OK && finite) status = take_roots(v, sum[0].half, full, values, why);
    for (int64_t i = 0; !finite && i < v->n; i++) values[i] = NAN;
    for (int64_t p = 0; p < parts; p++) free(sum[p].half);
    free(full);
    return status;
}

/* -- QR -------------------------------------------------------------------------------------- */

typedef struct workspace {
    double *r;     /* [n, n] column-major, upper triangle */
    double *block; /* [BLOCK_ROWS, n] column-major */
    double *t;     /* [PANEL, n] factors of the block reflectors */
} workspace;

/* Leaves the triangle in w->r. */
static lapack_int reduce_to_triangle(const matrix_view *v, workspace *w) {
    lapack_int n = (lapack_int)v->n, panel = n < PANEL ? n : PANEL;
    for (int64_t first = 0; first < v->m; first += BLOCK_ROWS) {
        int64_t count = v->m - first < BLOCK_ROWS ? v->m - first : BLOCK_ROWS;
        for (int64_t j = 0; j < v->n; j++)
            for (int64_t i = 0; i < count; i++)
                w->block[j * count + i] = v->a[(first + i) * v->row_stride + j * v->column_stride];
        lapack_int info = LAPACKE_dtpqrt(LAPACK_COL_MAJOR, (lapack_int)count, n, 0, panel, w->r, n,
                                         w->block, (lapack_int)count, w->t, panel);
        if (info) return info;
    }
    return 0;
}

static sr_status qr_values(const matrix_view *v, double *values, sr_failure *why) {
    const size_t columns = (size_t)v->n;
    workspace w = {.r = calloc(columns * columns, sizeof *w.r),
                   .block = malloc(BLOCK_ROWS * columns * sizeof *w.block),
                   .t = malloc(PANEL * columns * sizeof *w.t)};
    sr_status status = SR_OK;
    lapack_int n = (lapack_int)v->n, info;
    double unused;
    if (!w.r || !w.block || !w.t) {
        status = fail_memory(v, why);
    } else if ((info = reduce_to_triangle(v, &w))) {
        status = fail_lapack(v, "dtpqrt", info, why);
    } else {
        info = LAPACKE_dgesdd(LAPACK_COL_MAJOR, 'N', n, n, w.r, n, values, &unused, 1, &unused, 1);
        if (info) status = fail_lapack(v, "dgesdd", info, why);
    }
    free(w.r);
    free(w.block);
    free(w.t);
    return status;
}

/* -- public ---------------------------------------------------------------------------------- */

sr_status svd_singular_values(const float *a, int64_t rows, int64_t cols, double *values,
                              sr_failure *why) {
    bool wide = rows < cols;
    matrix_view v = {.a = a,
                     .m = wide ? cols : rows,
                     .n = wide ? rows : cols,
                     .row_stride = wide ? 1 : cols,
                     .column_stride = wide ? cols : 1};
    if (rows < 0 || cols < 0)
        return sr_fail(why, SR_USAGE, "singular values of a %lld x %lld matrix", (long long)rows,
                       (long long)cols);
    if (v.n == 0) return SR_OK;
    int threads = blas_hold();
    sr_status status = gram_values(&v, values, why);
    if (status == SR_OK && values[v.n - 1] < SVD_RESOLUTION * values[0])
        status = qr_values(&v, values, why);
    blas_release(threads);
    return status;
}

sr_status svd_gram_singular_values(const float *a, const int32_t *index, int64_t rows, int64_t cols,
                                   double *values, sr_failure *why) {
    matrix_view v = {
        .a = a, .index = index, .m = rows, .n = cols, .row_stride = cols, .column_stride = 1};
    if (rows < 0 || cols < 1)
        return sr_fail(why, SR_USAGE, "singular values of a %lld x %lld matrix", (long long)rows,
                       (long long)cols);
    if (rows == 0) {
        for (int64_t i = 0; i < cols; i++) values[i] = NAN;
        return SR_OK;
    }
    int threads = blas_hold();
    sr_status status = gram_values(&v, values, why);
    blas_release(threads);
    for (int64_t i = rows; status == SR_OK && i < cols && !isnan(values[0]); i++) values[i] = 0;
    return status;
}
