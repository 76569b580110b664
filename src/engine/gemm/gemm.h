/* gemm.h -- matrix products by AMX, oneDNN or BLAS; gemm.c is the only user of cblas. */
#ifndef ENGINE_GEMM_GEMM_H
#define ENGINE_GEMM_GEMM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/real.h"
#include "engine/scratch.h"
#include "statrec/base.h"

/* c = op(a) op(b) + beta c, row-major. op(a) is [m x k], stored [k x m] when ta. op(b) is [k x n],
 * stored [n x k] when tb. c is [m x n]. lda, ldb and ldc are row strides. c is not read when beta
 * is 0. Results are bit-identical for any number of threads. `scratch` may hold packed operands. */
void gemm(scratch_memory *scratch, int threads, bool ta, bool tb, int64_t m, int64_t n, int64_t k,
          const real *a, int64_t lda, const real *b, int64_t ldb, real beta, real *c, int64_t ldc);

/* c = op(a) op(b) + bias [n] in every row; bias NULL: none. */
void gemm_biased(scratch_memory *scratch, int threads, bool ta, bool tb, int64_t m, int64_t n,
                 int64_t k, const real *a, int64_t lda, const real *b, int64_t ldb,
                 const real *bias, real *c, int64_t ldc);

/* c = alpha op(a) op(b) + beta c as one single-threaded product, for use inside a parallel
 * region. */
void gemm_chunk(bool ta, bool tb, int64_t m, int64_t n, int64_t k, real alpha, const real *a,
                int64_t lda, const real *b, int64_t ldb, real beta, real *c, int64_t ldc);

/* Call once at program start, before the first omp_set_num_threads. The BLAS becomes
 * single-threaded, every OpenMP thread flushes denormals, and only this thread gets signals. A
 * signal handler needs a separate stack (sigaltstack; see gemm.c). */
void gemm_setup(int threads);

/* gemm_setup for a program. SR_MEMORY or SR_IO, with a hint, where limits of the system leave no
 * memory or no threads for products. */
sr_status gemm_begin(int threads, sr_failure *why);

/* Names the kernels of wide float products: "AMX-BF16", "oneDNN" or "OpenBLAS". */
const char *gemm_kernels(void);

/* Names the BLAS kernels of this CPU ("Haswell"), for the run file and bench. */
const char *gemm_library(void);

#endif
