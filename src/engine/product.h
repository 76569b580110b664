/* product.h -- what gemm and gemm_bf16 multiply: c = op(a) op(b) + beta c, as gemm.h has it; of gemm_biased
 * too, with bias [n] in every row. */
#ifndef ENGINE_PRODUCT_H
#define ENGINE_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

#include "statnet/real.h"

typedef struct product {
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
} product;

/* By the libraries, without room of its own (gemm.c). */
void product_by_libraries(const product *p, int threads);

#endif
