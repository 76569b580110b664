/* bf16_avx512.h -- gemm_bf16 by the instructions of AVX512-BF16 (bf16_avx512.c), float only. Of an installed engine
 * it is in the library for CPUs with AVX-512 alone. */
#ifndef ENGINE_GEMM_BF16_AVX512_H
#define ENGINE_GEMM_BF16_AVX512_H

#include <stddef.h>

#include "engine/gemm_group.h"

#if defined(__AVX512F__) && !defined(REAL_DOUBLE)
#define BF16_AVX512

/* Bytes that bf16_avx512 wants at `room`, which begins a cache line. */
size_t bf16_avx512_scratch_bytes(const gemm_group *p);
void bf16_avx512(const gemm_group *p, int threads, void *scratch);
#endif

#endif
