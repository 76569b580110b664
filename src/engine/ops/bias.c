/* bias.c -- the gradient of a bias. */
#include "engine/ops/bias.h"

#include "engine/work_chunks.h"

enum {
    BIAS_BLOCK = 256,        /* rows of a block */
    BIAS_COLUMNS = 32,       /* that are summed together, in registers */
    PARALLEL_COUNT = 1 << 14 /* numbers of dy */
};

/* sum [columns] of dy's rows from .. end-1. */
static void column_sums(const real *dy, int64_t out, int64_t from, int64_t end, int64_t columns,
                        double *sum) {
    double to[BIAS_COLUMNS] = {0};
    if (columns == BIAS_COLUMNS)
        for (int64_t r = from; r < end; r++)
            for (int j = 0; j < BIAS_COLUMNS; j++) to[j] += (double)dy[r * out + j];
    else
        for (int64_t r = from; r < end; r++)
            for (int64_t j = 0; j < columns; j++) to[j] += (double)dy[r * out + j];
    for (int64_t j = 0; j < columns; j++) sum[j] = to[j];
}

/* Blocks of rows are merged in their order. */
void bias_gradient(tape *t, const real *dy, int64_t rows, int64_t out, tensor *b) {
    bool add;
    real *db = tape_grad(t, b, &add);
    if (!db) return;
    const int64_t blocks = (rows + BIAS_BLOCK - 1) / BIAS_BLOCK;
    const int64_t strips = (out + BIAS_COLUMNS - 1) / BIAS_COLUMNS;
    const size_t bytes = (size_t)(blocks * out) * sizeof(double);
    double *sum = tape_borrow(t, bytes);
    if (!sum) return;
#pragma omp parallel num_threads(t->threads) if (rows * out > PARALLEL_COUNT)
    {
#pragma omp for schedule(static)
        for (int64_t i = 0; i < blocks * strips; i++) {
            const int64_t block = i / strips, first = i % strips * BIAS_COLUMNS;
            column_sums(dy + first, out, block * BIAS_BLOCK, lesser((block + 1) * BIAS_BLOCK, rows),
                        lesser(BIAS_COLUMNS, out - first), sum + block * out + first);
        }
#pragma omp for schedule(static) nowait
        for (int64_t j = 0; j < out; j++) {
            double all = sum[j];
            for (int64_t i = 1; i < blocks; i++) all += sum[i * out + j];
            db[j] = (real)(add ? (double)db[j] + all : all);
        }
    }
    tape_return(t, sum, bytes);
}
