/* gemm_amx.h -- float products by the tiles of AMX-BF16 (gemm_amx.c). An installed engine has them
 * only in the library for CPUs with AVX-512. */
#ifndef ENGINE_AMX_GEMM_AMX_H
#define ENGINE_AMX_GEMM_AMX_H

#include <stdbool.h>

#include "engine/gemm_group.h"
#include "engine/scratch.h"

#if defined(__AVX512F__) && defined(__linux__) && !defined(REAL_DOUBLE)
#define PRODUCT_AMX
#endif

/* Number of bfloat16 parts of a float. */
typedef enum amx_parts { AMX_ROUNDED = 1, AMX_WHOLE = 3 } amx_parts;

/* Whether this CPU has AMX-BF16 and the system lets this process use it. */
bool amx_native(void);

/* Whether AMX is native and all sides of the product fill tiles. */
bool amx_takes(const gemm_group *p);

/* Whether the products can run as one: concatenated sides have whole panels. */
bool amx_takes_together(gemm_group_sides sides, const gemm_group *one);

/* AMX_WHOLE: products of floats. AMX_ROUNDED: of operands rounded to bfloat16, without a bias.
 * Bit-identical for any number of threads. Requires amx_takes, and for several products
 * amx_takes_together. SR_MEMORY: c is unchanged. */
sr_status amx_products(scratch_memory *scratch, gemm_group_sides sides, int count,
                       const gemm_group *one, amx_parts parts, int threads, sr_failure *why);

#endif
