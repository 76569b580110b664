/* svd.c -- singular values of a float matrix, in double, without a second copy of it.
 *
 * A [rows x cols], m = max, n = min of both; when A is wide its transpose is read (same values).
 *
 *   R = 0 [n x n]
 *   for each block B of consecutive rows of A:   R <- triangle of the QR factorisation of [R; B]
 *   values = singular values of R
 *
 * Every step is an orthogonal transformation in double, so the values are those of A to about
 * m * 1e-16 of the largest (Golub and Van Loan, Matrix Computations, 5.2 and 5.4): small ones are
 * not squared away as in A^T A. Blocks depend on n only. Memory: n x n and one block of doubles.
 *
 * BLAS may split its work by the number of threads and so round differently; it is held at one
 * thread meanwhile, so that a table has the same bytes on every machine of a kind.
 */
#include "statnet/svd.h"

#include <lapacke.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

enum { BLOCK_ROWS = 512, PANEL = 32 };

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

/* A seen as tall: m rows of n, element (i, j) at a[i * row_stride + j * column_stride]. */
typedef struct tall_view {
    const float *a;
    int64_t m, n, row_stride, column_stride;
} tall_view;

typedef struct workspace {
    double *r;     /* [n, n] column-major, upper triangle */
    double *block; /* [BLOCK_ROWS, n] column-major */
    double *t;     /* [PANEL, n] factors of the block reflectors */
} workspace;

static bool workspace_init(workspace *w, int64_t n) {
    *w = (workspace){0};
    if (n > INT32_MAX / BLOCK_ROWS) return false;
    w->r = calloc((size_t)(n * n), sizeof *w->r);
    w->block = malloc((size_t)(BLOCK_ROWS * n) * sizeof *w->block);
    w->t = malloc((size_t)(PANEL * n) * sizeof *w->t);
    return w->r && w->block && w->t;
}

static void workspace_free(workspace *w) {
    free(w->r);
    free(w->block);
    free(w->t);
}

/* Copies `count` rows from `first` on; false when one holds a value that is not finite. */
static bool copy_block(const tall_view *v, int64_t first, int64_t count, double *block) {
    bool finite = true;
    for (int64_t j = 0; j < v->n; j++)
        for (int64_t i = 0; i < count; i++) {
            float x = v->a[(first + i) * v->row_stride + j * v->column_stride];
            finite &= isfinite(x) != 0;
            block[j * count + i] = x;
        }
    return finite;
}

/* Leaves the triangle in w->r; *finite false (and the rest undefined) when A is not finite. */
static lapack_int reduce_to_triangle(const tall_view *v, workspace *w, bool *finite) {
    lapack_int n = (lapack_int)v->n, panel = n < PANEL ? n : PANEL;
    for (int64_t first = 0; first < v->m; first += BLOCK_ROWS) {
        int64_t count = v->m - first < BLOCK_ROWS ? v->m - first : BLOCK_ROWS;
        *finite = copy_block(v, first, count, w->block);
        if (!*finite) return 0;
        lapack_int info = LAPACKE_dtpqrt(LAPACK_COL_MAJOR, (lapack_int)count, n, 0, panel, w->r, n,
                                         w->block, (lapack_int)count, w->t, panel);
        if (info) return info;
    }
    return 0;
}

static sr_status singular_values(const tall_view *v, workspace *w, double *values,
                                 sr_failure *why) {
    bool finite = true;
    lapack_int n = (lapack_int)v->n, info = reduce_to_triangle(v, w, &finite);
    const char *step = "dtpqrt";
    if (!info && finite) {
        double unused;
        step = "dgesdd";
        info = LAPACKE_dgesdd(LAPACK_COL_MAJOR, 'N', n, n, w->r, n, values, &unused, 1, &unused, 1);
    }
    if (info == LAPACK_WORK_MEMORY_ERROR || info == LAPACK_TRANSPOSE_MEMORY_ERROR)
        return sr_fail(why, SR_MEMORY, "singular values of a %lld x %lld matrix: out of memory",
                       (long long)v->m, (long long)v->n);
    if (info)
        return sr_fail(why, SR_LIBRARY, "singular values of a %lld x %lld matrix: %s returned %lld",
                       (long long)v->m, (long long)v->n, step, (long long)info);
    for (int64_t i = 0; !finite && i < v->n; i++) values[i] = NAN;
    return SR_OK;
}

sr_status svd_singular_values(const float *a, int64_t rows, int64_t cols, double *values,
                              sr_failure *why) {
    bool wide = rows < cols;
    tall_view v = {.a = a,
                   .m = wide ? cols : rows,
                   .n = wide ? rows : cols,
                   .row_stride = wide ? 1 : cols,
                   .column_stride = wide ? cols : 1};
    if (rows < 0 || cols < 0)
        return sr_fail(why, SR_USAGE, "singular values of a %lld x %lld matrix", (long long)rows,
                       (long long)cols);
    if (v.n == 0) return SR_OK;
    workspace w;
    if (!workspace_init(&w, v.n)) {
        workspace_free(&w);
        return sr_fail(why, SR_MEMORY, "singular values of a %lld x %lld matrix: out of memory",
                       (long long)rows, (long long)cols);
    }
    int threads = blas_hold();
    sr_status status = singular_values(&v, &w, values, why);
    blas_release(threads);
    workspace_free(&w);
    return status;
}
