/* bias.c -- the gradient of a bias. */
#include "engine/ops/bias.h"

enum { BIAS_BLOCK = 256 }; /* rows of a block */

void bias_gradient(tape *t, const real *dy, int64_t rows, int64_t out, tensor *b) {
    bool add;
    real *db = tape_grad(t, b, &add);
    if (!db) return;
    int64_t blocks = (rows + BIAS_BLOCK - 1) / BIAS_BLOCK;
    const size_t bytes = (size_t)(blocks * out) * sizeof(double);
    double *sum = tape_borrow(t, bytes);
    if (!sum) return;
#pragma omp parallel for num_threads(t->threads) schedule(static) if (blocks > 1)
    for (int64_t i = 0; i < blocks; i++) {
        int64_t from = i * BIAS_BLOCK, count = rows - from < BIAS_BLOCK ? rows - from : BIAS_BLOCK;
        double *restrict to = sum + i * out;
        for (int64_t j = 0; j < out; j++) to[j] = 0;
        for (int64_t r = from; r < from + count; r++)
            for (int64_t j = 0; j < out; j++) to[j] += (double)dy[r * out + j];
    }
    for (int64_t i = 1; i < blocks; i++)
        for (int64_t j = 0; j < out; j++) sum[j] += sum[i * out + j];
    for (int64_t j = 0; j < out; j++) db[j] = (real)(add ? (double)db[j] + sum[j] : sum[j]);
    tape_return(t, sum, bytes);
}
