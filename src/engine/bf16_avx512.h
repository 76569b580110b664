/* bf16_avx512.h -- gemm_bf16 by the instructions of AVX512-BF16 (bf16_avx512.c), float only. */
#ifndef ENGINE_BF16_AVX512_H
#define ENGINE_BF16_AVX512_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__AVX512F__) &&                                                                        \
    !defined(REAL_DOUBLE) /* libraries for lesser CPUs hold nothing above them */
#define BF16_AVX512

typedef struct bf16_product {
    bool ta, tb;
    int64_t m, n, k;
    const float *a;
    int64_t lda;
    const float *b;
    int64_t ldb;
    float beta;
    float *c;
    int64_t ldc;
} bf16_product;

/* Bytes that bf16_avx512 wants at `room`, which begins a cache line. */
size_t bf16_avx512_room(const bf16_product *p);
void bf16_avx512(const bf16_product *p, int threads, void *room);
#endif

#endif
