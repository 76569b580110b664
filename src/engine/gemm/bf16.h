/* bf16.h -- matrix products whose operands are rounded to bfloat16, r(x) (bf16_number.h). Sums stay float. */
#ifndef ENGINE_GEMM_BF16_H
#define ENGINE_GEMM_BF16_H

#include <stdbool.h>
#include <stdint.h>

#include "base/real.h"
#include "engine/scratch.h"

/* y = r(x), [count]; y may be x. */
void bf16_round(int threads, int64_t count, const real *x, real *y);

/* c = r(op(a)) r(op(b)) + beta c: shapes, strides and beta as gemm's (gemm.h). The rounded operands stand in
 * `room`, 2 bytes an element where the CPU multiplies them itself (AMX-BF16, AVX512-BF16), else a real. The same
 * bytes for any number of threads; those of CPUs with other instructions differ by the rounding of the sums.
 * SR_MEMORY: c is as before. */
sr_status gemm_bf16(scratch_memory *scratch, int threads, bool ta, bool tb, int64_t m, int64_t n,
                    int64_t k, const real *a, int64_t lda, const real *b, int64_t ldb, real beta,
                    real *c, int64_t ldc, sr_failure *why);

#endif
