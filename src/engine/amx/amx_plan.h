/* amx_plan.h -- how a product of gemm_amx.c is cut and shared by threads. */
#ifndef ENGINE_AMX_AMX_PLAN_H
#define ENGINE_AMX_AMX_PLAN_H

#include "engine/amx/amx_pack.h"

#ifdef PRODUCT_AMX
/* a or b of concatenated products, whose arrays are separate. */
typedef struct amx_operands {
    operand all; /* as if they were one */
    int count;
    bool deep;    /* concatenated along the depth, not the length */
    int64_t each; /* depth or length of one */
    const float *x[PRODUCTS_TOGETHER];
} amx_operands;

typedef enum amx_share_by { BY_BLOCKS, BY_SPLITS, BY_TILES } amx_share_by;

typedef struct amx_plan {
    gemm_group_sides sides;
    int count;
    const gemm_group *one;     /* [count] */
    int64_t m, n, k;           /* sizes of all products together */
    amx_operands small, large; /* a and b, or b and a */
    int threads;
    int64_t k_size, k_blocks;     /* depth of a k-block, and their number */
    int64_t split_blocks, splits; /* k-blocks of a split, and the number of splits */
    amx_share_by by;
    int64_t small_panels, large_panels;
    int64_t panel, small_size; /* bytes of a panel, and of `small` in a k-block */
    int64_t block, blocks;     /* blocks of `large`; not by tiles */
    int64_t parts;             /* parts of `small`; threads share blocks x parts */
    bool shared;               /* all threads together pack `small`, into two buffers in turn */
    int64_t stage;             /* by tiles: k-blocks whose operands are packed together */
    bool direct;               /* sums are added to c at once */
    /* `small`: a copy, or one per thread; by tiles: the k-blocks of a stage */
    char *packed_small;
    char *packed_large; /* a block of `large` per thread; by tiles: as packed_small */
    /* [up(m), up(n)] for each split; NULL: sums are added to c at once */
    float *partial;
    float *bias; /* filled up to whole panels, or NULL */
    atomic_bool odd;
} amx_plan;

/* Sets all but the memory. sides, count and one are set. */
void amx_plan_set(amx_plan *k, amx_parts parts, int threads);

static inline int64_t k_block_depth(const amx_plan *k, int64_t k_block) {
    return up(lesser(k->k_size, k->k - k_block * k->k_size), DEPTH);
}

#endif

#endif
