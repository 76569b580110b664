/* gemm.h -- matrix products; gemm.c is the only user of cblas. */
#ifndef STATNET_GEMM_H
#define STATNET_GEMM_H

#include <stdbool.h>
#include <stdint.h>

#include "statnet/real.h"

/* c = op(a) op(b) + beta c, row-major. op(a) is [m x k] (a stored [k x m] when ta), op(b) [k x n]
 * (stored [n x k] when tb), c [m x n]; lda, ldb, ldc row strides. Cut into pieces that depend on
 * the sizes only: the same bytes for any number of threads. */
void gemm(int threads, bool ta, bool tb, int64_t m, int64_t n, int64_t k, const real *a,
          int64_t lda, const real *b, int64_t ldb, real beta, real *c, int64_t ldc);

/* One single-threaded product, for use inside a parallel region. */
void gemm_piece(bool ta, bool tb, int64_t m, int64_t n, int64_t k, real alpha, const real *a,
                int64_t lda, const real *b, int64_t ldb, real beta, real *c, int64_t ldc);

/* Call once at program start, before the first omp_set_num_threads: the BLAS becomes
 * single-threaded, denormals are flushed on this and every OpenMP thread. */
void gemm_setup(int threads);

/* Nanoseconds spent in gemm and in convolutions since the start, for bench and --profile. */
typedef struct engine_times {
    double gemm, conv;
} engine_times;
engine_times engine_times_get(void);

#endif
