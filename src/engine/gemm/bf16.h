/* bf16.h -- matrix products of operands rounded to bfloat16, r(x) (bf16_number.h). Sums stay
 * float. */
#ifndef ENGINE_GEMM_BF16_H
#define ENGINE_GEMM_BF16_H

#include <stdbool.h>
#include <stdint.h>

#include "base/real.h"
#include "engine/gemm_group.h"
#include "engine/scratch.h"

/* y = r(x), [count]; y may be x. */
void bf16_round(int threads, int64_t count, const real *x, real *y);

/* c = r(op(a)) r(op(b)) + beta c: shapes, strides and beta as in gemm.h. `scratch` holds the
 * rounded operands: 2 bytes per element for AMX-BF16 and AVX512-BF16, else a real. Results are
 * bit-identical for any number of threads. CPUs with other instructions differ by the rounding of
 * sums. SR_MEMORY: c is unchanged. */
sr_status gemm_bf16(scratch_memory *scratch, int threads, bool ta, bool tb, int64_t m, int64_t n,
                    int64_t k, const real *a, int64_t lda, const real *b, int64_t ldb, real beta,
                    real *c, int64_t ldc, sr_failure *why);
/* The method of gemm_bf16 on CPUs without instructions for bfloat16. */
sr_status gemm_bf16_by_copies(const gemm_group *p, scratch_memory *scratch, int threads,
                              sr_failure *why);

#endif
