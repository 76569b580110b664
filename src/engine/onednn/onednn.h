/* onednn.h -- products and convolutions by oneDNN; only with -DUSE_DNNL. */
#ifndef ENGINE_ONEDNN_ONEDNN_H
#define ENGINE_ONEDNN_ONEDNN_H

#include "engine/conv_shape.h"
#include "engine/scratch.h"
#include "statrec/base.h"

/* The float product of oneDNN. False when the library rejects it; c is then unchanged. */
bool gemm_dnnl(bool ta, bool tb, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
               int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc);

/* Prepared primitives, by pass and shape; `memory` outlives it. */
typedef struct conv_plans conv_plans;
conv_plans *conv_plans_create(scratch_memory *memory, sr_failure *why);
void conv_plans_free(void *plans);

/* *done false with SR_OK: oneDNN has no fast code for this shape; call conv_im2col. This depends on
 * the shape and the CPU only. */
sr_status conv_dnnl(conv_plans *plans, int threads, conv_pass pass, const conv_shape *s,
                    const conv_arrays *a, bool *done, sr_failure *why);

#endif
