/* gemm_amx.h -- products of floats by the tiles of AMX-BF16 (gemm_amx.c). Of an installed engine they are in
 * the library for CPUs with AVX-512 alone. */
#ifndef ENGINE_AMX_GEMM_AMX_H
#define ENGINE_AMX_GEMM_AMX_H

#include <stdbool.h>

#include "engine/gemm_group.h"
#include "engine/scratch.h"

#if defined(__AVX512F__) && defined(__linux__) && !defined(REAL_DOUBLE)
#define PRODUCT_AMX
#endif

/* Bfloat16 numbers that stand for a float. */
typedef enum amx_parts { AMX_ROUNDED = 1, AMX_WHOLE = 3 } amx_parts;

/* Whether this CPU has AMX-BF16 and the system lets this process use it. */
bool amx_native(void);

/* Where it is native: whether no side of the product is so short that tiles would be half empty. */
bool amx_takes(const gemm_group *p);

/* AMX_WHOLE: the product as of floats. AMX_ROUNDED: of operands rounded to bfloat16, without a bias. The same bytes
 * for any number of threads. Of what amx_takes. SR_MEMORY: c is as before. */
sr_status amx_product(scratch_memory *scratch, const gemm_group *p, amx_parts parts, int threads,
                      sr_failure *why);

/* Whether they can be one product: what is side by side has whole panels of each. */
bool amx_takes_together(gemm_group_sides sides, const gemm_group *one);
sr_status amx_products(scratch_memory *scratch, gemm_group_sides sides, int count,
                       const gemm_group *one, int threads, sr_failure *why);

#endif
