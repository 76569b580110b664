/* amx_pack.h -- packs operands of gemm_amx.c into tiles.
 *
 * A tile contains DEPTH x LANES numbers of an operand, 1 KiB in each part. Number 16 + i of the
 * depth is the pair of number i:
 *   of a   rows of c down,    pairs of the depth across
 *   of b   pairs of the depth down,    columns of c across
 * A panel is SIDE rows (columns) of a k-block: for each DEPTH of it the parts, for each part two
 * tiles. */
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
    PART = 2 * TILE    /* two tiles of a panel */
};

static inline int64_t up(int64_t n, int64_t to) {
    return (n + to - 1) / to * to;
}

/* a or b: `length` rows or columns of c. The depth runs along the stored rows (`along`) or down
 * them. */
typedef struct operand {
    const float *x;
    int64_t stride, length, depth;
    bool along, is_b;
    amx_parts parts;
    atomic_bool *odd; /* set when a number is odd */
} operand;

/* A number is odd when it is not finite, or when r makes it infinite. Odd numbers are packed as
 * zeros. */
bool amx_is_odd(float x);

/* Bytes of one panel for a k-block, a multiple of DEPTH. */
int64_t panel_bytes(const operand *o, int64_t step);

/* Packs rows (columns) first .. end-1, depth from .. from+depth-1, with zeros outside the operand.
 * Panels are `panel` bytes apart. */
void panels_pack(const operand *o, int64_t first, int64_t end, int64_t from, int64_t depth,
                 int64_t panel, char *to);
#endif

#endif
