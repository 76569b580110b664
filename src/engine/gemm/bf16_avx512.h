/* bf16_avx512.h -- gemm_bf16 by AVX512-BF16 instructions (bf16_avx512.c), float only. An installed
 * engine has it only in the library for CPUs with AVX-512. */
#ifndef ENGINE_GEMM_BF16_AVX512_H
#define ENGINE_GEMM_BF16_AVX512_H

#include <stddef.h>

#include "engine/gemm_group.h"

#if defined(__AVX512F__) && !defined(REAL_DOUBLE)
#define BF16_AVX512

/* Bytes of `scratch` for bf16_avx512, aligned to a cache line. */
size_t bf16_avx512_scratch_bytes(const gemm_group *p);
void bf16_avx512(const gemm_group *p, int threads, void *scratch);
#endif

#endif
