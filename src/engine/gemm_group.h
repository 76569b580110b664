/* gemm_group.h -- operands of a GEMM: c = op(a) op(b) + beta c, as in gemm.h, plus a bias [n] in
 * every row for gemm_biased. */
#ifndef ENGINE_GEMM_GROUP_H
#define ENGINE_GEMM_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/real.h"
#include "engine/scratch.h"

typedef struct gemm_group {
    bool ta, tb;
    int64_t m, n, k;
    const real *a;
    int64_t lda;
    const real *b;
    int64_t ldb;
    real beta;
    real *c;
    int64_t ldc;
    const real *bias; /* or NULL */
} gemm_group;

/* Computes the product by BLAS or oneDNN, without scratch memory (gemm.c). */
void gemm_group_by_libraries(const gemm_group *p, int threads);

/* Products of equal sizes, strides and transpositions that share an operand or the result. They can
 * run as one product; the names say which sides are concatenated. */
typedef enum gemm_group_sides {
    SIDES_COLUMNS, /* a is one matrix; b, c and the bias are concatenated by columns */
    SIDES_ROWS,    /* b is one matrix; a and c are concatenated by rows */
    SIDES_DEPTH    /* c is one matrix, the sum of all products, with the beta of the first */
} gemm_group_sides;

enum { PRODUCTS_TOGETHER = 3 };

/* Runs count <= PRODUCTS_TOGETHER products, as one product where that is faster, else one by
 * one. */
void gemm_grouped(scratch_memory *scratch, gemm_group_sides sides, int count, const gemm_group *one,
                  int threads);

#endif
