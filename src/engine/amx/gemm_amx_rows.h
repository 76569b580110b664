/* gemm_amx_rows.h -- rows times a weight that is packed once (row_ops.h), by the tiles of AMX-BF16 (gemm_amx.c). What
 * becomes of a row depends on that row alone. Only where gemm_amx_rows_bytes says so. */
#ifndef ENGINE_AMX_GEMM_AMX_ROWS_H
#define ENGINE_AMX_GEMM_AMX_ROWS_H

#include <stddef.h>

#include "engine/amx/gemm_amx.h"

enum { AMX_ROWS = 32 }; /* that are multiplied together */

/* Of a packed weight [out, in], a multiple of 64; 0 where this CPU has no tiles or they would be half empty. */
size_t gemm_amx_rows_bytes(int64_t out, int64_t in);

/* `packed` begins a cache line. False when a number of w has no parts: the weight is of no use. */
bool gemm_amx_rows_pack(int64_t out, int64_t in, const real *w, char *packed);

/* y [rows, out] = x [rows, in] w^T + b; b [out] or NULL. False when a number of x has no parts: its rows are wrong. */
bool gemm_amx_rows(int64_t rows, const real *x, int64_t out, int64_t in, const char *packed,
                   const real *b, real *y);

/* Whether a number of x [count] has no parts. */
bool gemm_amx_rows_odd(int64_t count, const real *x);

#endif
