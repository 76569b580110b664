/* amx_pack.h -- operands of gemm_amx.c, packed into squares that tiles are loaded from.
 *
 * A square is DEPTH x LANES numbers of an operand, in each part one tile of 1 KiB; number 16 + i of the depth stands
 * beside number i as its pair:
 *   of a   rows of c down,    pairs of the depth across
 *   of b   pairs of the depth down,    columns of c across
 * A panel is SIDE rows (columns) of a step of the depth: for each DEPTH of it the parts, for each part two squares.
 */
#ifndef ENGINE_AMX_AMX_PACK_H
#define ENGINE_AMX_AMX_PACK_H

#include "engine/amx/gemm_amx.h"
#include "engine/work_chunks.h"

#ifdef PRODUCT_AMX
#include <stdatomic.h>

#define NATIVE __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16,amx-tile,amx-bf16")))

enum {
    LANES = 16,
    DEPTH = 2 * LANES,
    SIDE = 2 * LANES,  /* rows or columns of a panel */
    TILE = LANES * 64, /* bytes */
    PART = 2 * TILE    /* both squares of a panel */
};

static inline int64_t up(int64_t n, int64_t to) {
    return (n + to - 1) / to * to;
}

/* a or b: `length` rows or columns of c, stored with the depth running along its rows (`along`) or down them. */
typedef struct operand {
    const float *x;
    int64_t stride, length, depth;
    bool along, is_b;
    amx_parts parts;
    atomic_bool *odd; /* set where a number has no parts */
} operand;

/* What r makes infinite, or is not finite. Such numbers are packed as zeros. */
bool amx_is_odd(float x);

/* Of one panel for a step that is a multiple of DEPTH. */
int64_t panel_bytes(const operand *o, int64_t step);

/* Rows (columns) first .. end-1 of the depth from .. from+depth-1, and zeros where they are beyond the operand; panels
 * stand `panel` bytes apart. */
void panels_pack(const operand *o, int64_t first, int64_t end, int64_t from, int64_t depth,
                 int64_t panel, char *to);
#endif

#endif
