/* small_gemm.h -- matrix products too small for a BLAS: c = a b or c += a b, sums in registers.
 *
 * c [m x n], n a multiple of TILE_LANES; b [k x n] with row stride ldb. a is read as a[i * step_m +
 * p * step_k], so that a transposed a costs nothing. Loops go over tiles of TILE_ROWS x 2 vectors
 * of c. Each element of c is one sum over rising p. The sum is added to c as a whole: a long sum
 * that is cut into products has smaller rounding errors than one running sum. A library is slower
 * at the 32 x 32 x 32 of a small attention head, and equal at 300 x 300 x 128.
 *
 * Vectors are vector_size types of GCC and clang, as wide as the CPU's, as many as fit in
 * registers. TILE_LANES, the unit of padding, is the same on all CPUs. */
#ifndef ENGINE_GEMM_SMALL_GEMM_H
#define ENGINE_GEMM_SMALL_GEMM_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/real.h"

#if defined(__AVX512F__)
enum { TILE_VECTOR_BYTES = 64, TILE_ROWS = 8 };
#elif defined(__AVX__)
enum { TILE_VECTOR_BYTES = 32, TILE_ROWS = 4 };
#else
enum { TILE_VECTOR_BYTES = 16, TILE_ROWS = 4 };
#endif
enum {
    TILE_LANES = 64 / (int)sizeof(real),
    TILE_VECTOR = TILE_VECTOR_BYTES / (int)sizeof(real),
    TILE_WIDE = 2
};

typedef real small_gemm_vector __attribute__((vector_size(TILE_VECTOR_BYTES)));

/* A left operand: element (i, p) at value[i * step_m + p * step_k]. */
typedef struct small_gemm_left {
    const real *value;
    int64_t step_m, step_k;
} small_gemm_left;

/* rows <= TILE_ROWS and wide <= TILE_WIDE are constants of the caller, so that all loops unroll. */
__attribute__((always_inline)) static inline void
micro_kernel(const int rows, const int wide, int64_t k, small_gemm_left a, const real *restrict b,
             int64_t ldb, bool add, real *restrict c, int64_t ldc) {
    small_gemm_vector sum[TILE_ROWS][TILE_WIDE] = {0};
    for (int64_t p = 0; p < k; p++) {
        small_gemm_vector right[TILE_WIDE];
#pragma GCC unroll 2
        for (int w = 0; w < wide; w++)
            memcpy(&right[w], b + p * ldb + w * TILE_VECTOR, sizeof(small_gemm_vector));
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++) {
            const real left = a.value[i * a.step_m + p * a.step_k];
#pragma GCC unroll 2
            for (int w = 0; w < wide; w++) sum[i][w] += left * right[w];
        }
    }
#pragma GCC unroll 8
    for (int i = 0; add && i < rows; i++)
#pragma GCC unroll 2
        for (int w = 0; w < wide; w++) {
            small_gemm_vector before;
            memcpy(&before, c + i * ldc + w * TILE_VECTOR, sizeof before);
            sum[i][w] += before;
        }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int w = 0; w < wide; w++)
            memcpy(c + i * ldc + w * TILE_VECTOR, &sum[i][w], sizeof(small_gemm_vector));
}

__attribute__((always_inline)) static inline void
small_gemm_columns(const int wide, int64_t m, int64_t k, small_gemm_left a, const real *restrict b,
                   int64_t ldb, bool add, real *restrict c, int64_t ldc) {
    int64_t i = 0;
    for (; i + TILE_ROWS <= m; i += TILE_ROWS, a.value += TILE_ROWS * a.step_m)
        micro_kernel(TILE_ROWS, wide, k, a, b, ldb, add, c + i * ldc, ldc);
    c += i * ldc;
    switch (m -
            /* the last rows together, so that their sums hide each other's latency */
            i) {
#define TILE_REST(rows)                                                                            \
    case rows:                                                                                     \
        micro_kernel(rows, wide, k, a, b, ldb, add, c, ldc);                                       \
        break;
        TILE_REST(1)
        TILE_REST(2)
        TILE_REST(3)
#if defined(__AVX512F__)
        TILE_REST(4)
        TILE_REST(5)
        TILE_REST(6)
        TILE_REST(7)
#endif
#undef TILE_REST
    }
}

static inline void small_gemm_product(int64_t m, int64_t n, int64_t k, small_gemm_left a,
                                      const real *restrict b, int64_t ldb, bool add,
                                      real *restrict c, int64_t ldc) {
    int64_t j = 0;
    for (; j + 2 * TILE_VECTOR <= n; j += 2 * TILE_VECTOR)
        small_gemm_columns(2, m, k, a, b + j, ldb, add, c + j, ldc);
    if (j < n) small_gemm_columns(1, m, k, a, b + j, ldb, add, c + j, ldc);
}

/* Four numbers. Transposing 4 x 4 blocks in registers is ten times as fast as single numbers when
 * the row stride is a power of two, because cache lines collide. */
typedef real small_gemm_quad __attribute__((vector_size(4 * sizeof(real))));

static inline void small_transpose_quad(const real *restrict x, int64_t ldx, real *restrict y,
                                        int64_t ldy) {
    small_gemm_quad a, b, c, d;
    memcpy(&a, x, sizeof a);
    memcpy(&b, x + ldx, sizeof b);
    memcpy(&c, x + 2 * ldx, sizeof c);
    memcpy(&d, x + 3 * ldx, sizeof d);
    small_gemm_quad ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    small_gemm_quad cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    small_gemm_quad ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    small_gemm_quad cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    const small_gemm_quad transposed[4] = {__builtin_shufflevector(ab, cd, 0, 1, 4, 5),
                                           __builtin_shufflevector(ab, cd, 2, 3, 6, 7),
                                           __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5),
                                           __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7)};
    for (int i = 0; i < 4; i++) memcpy(y + i * ldy, &transposed[i], sizeof transposed[i]);
}

/* x [m x n] -> y [n x TILE_LANES], zeros after column m <= TILE_LANES. */
static inline void small_transpose_block(int64_t m, int64_t n, const real *restrict x, int64_t ldx,
                                         real *restrict y, int64_t ldy) {
    int64_t whole_m = m / 4 * 4, whole_n = n / 4 * 4;
    for (int64_t j = 0; j < whole_n; j += 4)
        for (int64_t i = 0; i < whole_m; i += 4)
            small_transpose_quad(x + i * ldx + j, ldx, y + j * ldy + i, ldy);
    for (int64_t j = whole_n; j < n; j++)
        for (int64_t i = 0; i < whole_m; i++) y[j * ldy + i] = x[i * ldx + j];
    for (int64_t i = whole_m; i < TILE_LANES; i++)
        for (int64_t j = 0; j < n; j++) y[j * ldy + i] = i < m ? x[i * ldx + j] : 0;
}

/* x [m x n] -> y = x^T [n x ldy], zeros after column m; ldy is m rounded up to TILE_LANES. */
static inline void small_transpose(int64_t m, int64_t n, const real *restrict x, int64_t ldx,
                                   real *restrict y, int64_t ldy) {
    for (int64_t i = 0; i < m; i += TILE_LANES)
        for (int64_t j = 0; j < n; j += TILE_LANES) {
            const real *from = x + i * ldx + j;
            real *to = y + j * ldy + i;
            int64_t rows = m - i < TILE_LANES ? m - i : TILE_LANES;
            int64_t columns = n - j < TILE_LANES ? n - j : TILE_LANES;
            if (rows == TILE_LANES && columns == TILE_LANES)
                small_transpose_block(TILE_LANES, TILE_LANES, from, ldx, to, ldy);
            else
                small_transpose_block(rows, columns, from, ldx, to, ldy);
        }
}

#endif
