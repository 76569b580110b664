/* gemm_tiles.h -- products by register tiles (small_gemm.h), shared by any number of threads. */
#ifndef ENGINE_GEMM_GEMM_TILES_H
#define ENGINE_GEMM_GEMM_TILES_H

#include "engine/gemm_group.h"

/* Whether c has tiles for many threads and vectors of this build are wide enough. Depends on m, n
 * and k alone. */
bool gemm_tiles_fit(const gemm_group *p);

/* Bit-identical for any number of threads. SR_MEMORY: c is unchanged. */
sr_status gemm_tiles(scratch_memory *scratch, const gemm_group *p, int threads, sr_failure *why);

#endif
