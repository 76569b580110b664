/* bf16.c -- products of operands rounded to bfloat16, by the CPU's instructions or by rounded
 * copies.
 *
 * CPUs with AMX-BF16 or AVX512-BF16 multiply bfloat16 (gemm_amx.c, bf16_avx512.c). Otherwise gemm
 * multiplies rounded copies. A product of two bfloat16 has 16 bits of mantissa, which a float holds
 * exactly, so only the sums round. */
#include "engine/gemm/bf16.h"

#include "base/bf16_number.h"
#include "engine/amx/gemm_amx.h"
#include "engine/gemm/bf16_avx512.h"
#include "engine/gemm/gemm.h"

enum { PARALLEL_COUNT = 1 << 15 };

static inline real rounded(real x) {
    return (real)bf16_nearest((float)x);
}

void bf16_round(int threads, int64_t count, const real *x, real *y) {
#pragma omp parallel for simd num_threads(threads) schedule(static) if (count > PARALLEL_COUNT)
    for (int64_t i = 0; i < count; i++) y[i] = rounded(x[i]);
}

#ifdef BF16_AVX512
static bool avx512_native(void) {
    return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512bw");
}
#endif

/* Rounds rows of `width` elements, `stride` apart, into contiguous rows at `to`. */
static void round_rows(int threads, int64_t rows, int64_t width, const real *x, int64_t stride,
                       real *to) {
#pragma omp parallel for num_threads(threads) schedule(static) if (rows * width > PARALLEL_COUNT)
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < width; j++) to[r * width + j] = rounded(x[r * stride + j]);
}

sr_status gemm_bf16_by_copies(const gemm_group *p, scratch_memory *scratch, int threads,
                              sr_failure *why) {
    real *left = scratch_memory_of(scratch, (size_t)((p->m + p->n) * p->k) * sizeof *left, why);
    if (!left) return SR_MEMORY;
    real *right = left + p->m * p->k;
    const int64_t a_rows = p->ta ? p->k : p->m, a_width = p->ta ? p->m : p->k;
    const int64_t b_rows = p->tb ? p->n : p->k, b_width = p->tb ? p->k : p->n;
    round_rows(threads, a_rows, a_width, p->a, p->lda, left);
    round_rows(threads, b_rows, b_width, p->b, p->ldb, right);
    const gemm_group of_copies = {p->ta, p->tb,   p->m,    p->n, p->k,   left, a_width,
                                  right, b_width, p->beta, p->c, p->ldc, NULL};
    gemm_group_by_libraries(&of_copies, threads);
    return SR_OK;
}

sr_status gemm_bf16(scratch_memory *scratch, int threads, bool ta, bool tb, int64_t m, int64_t n,
                    int64_t k, const real *a, int64_t lda, const real *b, int64_t ldb, real beta,
                    real *c, int64_t ldc, sr_failure *why) {
    const gemm_group p = {ta, tb, m, n, k, a, lda, b, ldb, beta, c, ldc, NULL};
    if (amx_takes(&p)) return amx_products(scratch, SIDES_ROWS, 1, &p, AMX_ROUNDED, threads, why);
#ifdef BF16_AVX512
    if (avx512_native()) {
        void *packed = scratch_memory_of(scratch, bf16_avx512_scratch_bytes(&p), why);
        if (packed) bf16_avx512(&p, threads, packed);
        return packed ? SR_OK : SR_MEMORY;
    }
#endif
    return gemm_bf16_by_copies(&p, scratch, threads, why);
}
