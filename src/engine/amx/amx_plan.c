/* amx_plan.c -- cuts a product for gemm_amx.c, which explains the ways to share it. */
#include "engine/amx/amx_plan.h"

#ifdef PRODUCT_AMX
enum {
    K_BLOCK = 512,            /* depth, at most */
    SPLIT_BLOCK = 256,        /* with split-K */
    K_SPLITS = 16,            /* at most */
    SMALL_SUMS = 256 * 256,   /* elements of c, at most, with split-K */
    BLOCK_BYTES = 768 * 1024, /* part of a second-level cache of 2 MiB */
    ROWS_BYTES = 48 * 1024,   /* rows of c: a first-level cache */
    /* copies of a small operand, besides the first, that threads pack for themselves */
    PRIVATE_BYTES = 256 * 1024,
    PARALLEL_WORK = 1024 * 1024 /* multiply-adds */
};

/* Sets k-blocks and splits, by m, n and k alone. */
static void set_depth(amx_plan *k) {
    const bool splits = k->m * k->n <= SMALL_SUMS && k->k >= 2 * SPLIT_BLOCK;
    const int64_t most = splits ? SPLIT_BLOCK : K_BLOCK, k_blocks = (k->k + most - 1) / most;
    k->k_size = up((k->k + k_blocks - 1) / k_blocks, DEPTH);
    k->k_blocks = (k->k + k->k_size - 1) / k->k_size;
    k->split_blocks = splits ? (k->k_blocks + K_SPLITS - 1) / K_SPLITS : k->k_blocks;
    k->splits = (k->k_blocks + k->split_blocks - 1) / k->split_blocks;
}

/* Into how many parts to cut `small`: fewest panels for the busiest thread to pack and multiply. */
static int64_t best_parts(const amx_plan *k, int64_t threads) {
    int64_t best = 1, least = INT64_MAX;
    for (int64_t parts = 1; parts <= lesser(threads, k->small_panels); parts++) {
        const int64_t large = ceiling(k->large_panels, threads / parts);
        const int64_t work = large * (1 + ceiling(k->small_panels, parts));
        if (work < least) best = parts, least = work;
    }
    return best;
}

static void set_blocks(amx_plan *k) {
    const int64_t sharing = k->by == BY_SPLITS ? 1 : k->threads;
    k->parts = best_parts(k, sharing);
    k->shared = k->parts > 1 || k->small_size * (sharing - 1) > PRIVATE_BYTES;
    const int64_t bytes = k->large.all.is_b ? BLOCK_BYTES : ROWS_BYTES;
    const int64_t fits = greater(bytes / k->panel, 1),
                  each = ceiling(k->large_panels, sharing / k->parts);
    k->block = ceiling(each, ceiling(each, fits)) * SIDE;
    k->blocks = ceiling(k->large.all.length, k->block);
}

/* As many splits as fit the caches of all threads. */
static void set_tiles(amx_plan *k) {
    const int64_t bytes = (k->small_panels + k->large_panels) * k->panel;
    const int64_t fits = greater(BLOCK_BYTES * k->threads / bytes / k->split_blocks, 1);
    k->stage = lesser(fits * k->split_blocks, k->k_blocks);
}

/* By splits where the busiest thread has at most a quarter more of them than the mean. */
static amx_share_by sharing_of(const amx_plan *k) {
    if (k->splits == 1 || k->threads == 1) return BY_BLOCKS;
    const int64_t most = ceiling(k->splits, k->threads) * k->threads;
    return 4 * most <= 5 * k->splits ? BY_SPLITS : BY_TILES;
}

static void set_work(amx_plan *k, int threads) {
    k->threads = k->m * k->n * k->k >= PARALLEL_WORK ? threads : 1;
    k->panel = panel_bytes(&k->large.all, k->k_size);
    k->small_panels = ceiling(k->small.all.length, SIDE);
    k->large_panels = ceiling(k->large.all.length, SIDE);
    k->small_size = k->small_panels * k->panel;
    k->by = sharing_of(k);
    k->direct = k->splits == 1 || (k->by == BY_BLOCKS && k->split_blocks == 1);
    if (k->by == BY_TILES)
        set_tiles(k);
    else
        set_blocks(k);
}

/* a or b of all products. */
static amx_operands operands_of(amx_plan *k, bool is_b, amx_parts parts) {
    const gemm_group *p = k->one;
    const bool many = k->sides == SIDES_DEPTH || k->sides == (is_b ? SIDES_COLUMNS : SIDES_ROWS);
    amx_operands o = {.count = many ? k->count : 1, .deep = k->sides == SIDES_DEPTH};
    o.all = (operand){.stride = is_b ? p->ldb : p->lda,
                      .length = is_b ? k->n : k->m,
                      .depth = k->k,
                      .along = is_b ? p->tb : !p->ta,
                      .is_b = is_b,
                      .parts = parts,
                      .odd = &k->odd};
    o.each = o.deep ? p->k : is_b ? p->n : p->m;
    for (int i = 0; i < o.count; i++) o.x[i] = is_b ? p[i].b : p[i].a;
    return o;
}

void amx_plan_set(amx_plan *k, amx_parts parts, int threads) {
    const gemm_group *p = k->one;
    k->m = p->m * (k->sides == SIDES_ROWS ? k->count : 1);
    k->n = p->n * (k->sides == SIDES_COLUMNS ? k->count : 1);
    k->k = p->k * (k->sides == SIDES_DEPTH ? k->count : 1);
    k->small = operands_of(k, k->n <= k->m, parts);
    k->large = operands_of(k, k->n > k->m, parts);
    set_depth(k);
    set_work(k, threads);
}
#endif
