/* gemm_group.h -- what gemm and gemm_bf16 multiply: c = op(a) op(b) + beta c, as gemm.h has it; of gemm_biased
 * too, with bias [n] in every row. */
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

/* By the libraries, without room of its own (gemm.c). */
void gemm_group_by_libraries(const gemm_group *p, int threads);

/* Products of the same sizes, strides and turns that share an operand or a result, and what is side by side in the one
 * product that they are together. */
typedef enum gemm_group_sides {
    SIDES_COLUMNS, /* a is one matrix; b, c and the bias have columns of each */
    SIDES_ROWS,    /* b is one matrix; a and c have rows of each */
    SIDES_DEPTH    /* c is one matrix, the sum of all, with the beta of the first */
} gemm_group_sides;

enum { PRODUCTS_TOGETHER = 3 };

/* count: at most PRODUCTS_TOGETHER. As one product where that is faster, otherwise one after the other. */
void gemm_grouped(scratch_memory *scratch, gemm_group_sides sides, int count, const gemm_group *one,
                  int threads);

#endif
