/* gemm_amx_rows.h -- rows times a weight that is packed once (row_ops.h), by AMX tiles
 * (gemm_amx.c).
 *
 * The result of a row depends on that row alone. Use only where gemm_amx_rows_bytes is not 0. */
#ifndef ENGINE_AMX_GEMM_AMX_ROWS_H
#define ENGINE_AMX_GEMM_AMX_ROWS_H

#include <stddef.h>

#include "engine/amx/gemm_amx.h"

enum { AMX_ROWS = 32 }; /* rows that are multiplied together */

/* Bytes of a packed weight [out, in], a multiple of 64. 0: this CPU has no tiles, or they would be
 * half empty. */
size_t gemm_amx_rows_bytes(int64_t out, int64_t in);

/* Packs w to `packed`, aligned to a cache line. False when a number of w is odd: do not use the
 * weight. */
bool gemm_amx_rows_pack(int64_t out, int64_t in, const real *w, char *packed);

/* y [rows, out] = x [rows, in] w^T + b; b [out] or NULL. False when a number of x is odd: the
 * results of its rows are wrong. */
bool gemm_amx_rows(int64_t rows, const real *x, int64_t out, int64_t in, const char *packed,
                   const real *b, real *y);

/* Whether a number of x [count] is odd. */
bool gemm_amx_rows_odd(int64_t count, const real *x);

#endif
