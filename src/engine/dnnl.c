/* dnnl.c -- the only user of oneDNN (2.6 or later); nothing without -DUSE_DNNL. */
#ifdef USE_DNNL
#include <dnnl.h>

#include "statnet/gemm.h"

bool gemm_dnnl(bool ta, bool tb, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
               int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc) {
    return dnnl_sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, alpha, a, lda, b, ldb, beta, c,
                      ldc) == dnnl_success;
}
#endif
