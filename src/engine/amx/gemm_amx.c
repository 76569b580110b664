/* gemm_amx.c -- float products by the tiles of AMX-BF16, which multiply pairs of bfloat16.
 *
 * A float has 24 bits of significand, a bfloat16 has 8; x is split without loss into three:
 *   x = h + m + l       h = r(x)   m = r(x - h)   l = x - h - m   r: nearest, ties away from zero
 *   a b = l_a h_b + m_a h_b + m_a m_b + h_a m_b + h_a h_b + h_a l_b
 *   dropped: at most 2^-24 of |a b|
 * in this order (Henry, Tang and Heinecke, Leveraging the bfloat16 artificial intelligence datatype
 * for higher-precision computations, ARITH 2019, section 3). A float holds a product of two
 * bfloat16 exactly. The CPU adds 32 products before they join the sum. The sum therefore rounds six
 * times where a loop over floats rounds 32 times; tests/engine/test_gemm.c measures both errors.
 * The exponent has the range of float, denormals are zeros. Rounded operands (AMX_ROUNDED) have one
 * part, r(x) with ties to even, and one product.
 *
 * The depth is cut into k-blocks. The small operand (fewer rows or columns) is packed as a whole
 * for a k-block (amx_pack.h). A thread packs a block of the large one that fits its cache, and
 * multiplies it with every panel of the small one:
 *   c[32 x 32] += a panel x b panel        in four tiles of sums, over the k-block
 * Sums start at zero in every k-block. Threads share the work in two ways:
 *   rows or columns   they share the blocks of every k-block. Each thread packs a small operand
 *                     for itself; all threads together pack one larger than PRIVATE_BYTES
 *   depth             split-K for a small c and a long depth (weight gradients): they share splits
 *                     of k-blocks, whose sums are added in order
 * k-blocks and splits depend on m, n and k alone. Nothing else changes a bit of the result.
 *
 * Infinities, NaNs and numbers that r makes infinite are odd: they have no parts (inf - inf). They
 * are packed as zeros, and their products are added to c at the end. */
#define _DEFAULT_SOURCE /* syscall */
#include "engine/amx/gemm_amx.h"

#include "engine/amx/amx_kernel.h"
#include "engine/amx/amx_pack.h"

#ifdef PRODUCT_AMX
#include <cpuid.h>
#include <math.h>
#include <omp.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    K_BLOCK = 512,            /* of the depth, at most */
    SPLIT_BLOCK = 256,        /* with split-K */
    K_SPLITS = 16,            /* at most */
    SMALL_SUMS = 256 * 256,   /* elements of c, at most, with split-K */
    BLOCK_BYTES = 768 * 1024, /* of a second-level cache of 2 MiB */
    /* largest small operand that each thread packs for itself */
    PRIVATE_BYTES = 256 * 1024,
    PARALLEL_WORK = 1024 * 1024 /* multiply-adds */
};

/* a or b of concatenated products, whose arrays are separate. */
typedef struct operands {
    operand all; /* as if they were one */
    int count;
    bool deep;    /* concatenated along the depth, not the length */
    int64_t each; /* depth or length of one */
    const float *x[PRODUCTS_TOGETHER];
} operands;

typedef struct plan {
    gemm_group_sides sides;
    int count;
    const gemm_group *one; /* [count] */
    int64_t m, n, k;       /* of all products together */
    operands small, large; /* a and b, or b and a */
    int threads;
    int64_t k_size, k_blocks;     /* depth of a k-block, and their number */
    int64_t split_blocks, splits; /* k-blocks of a split, and the number of splits */
    int64_t block, blocks;        /* of `large` */
    int64_t panel, small_size;    /* bytes of a panel, and of `small` in a k-block */
    bool shared;                  /* all threads together pack `small`, into two buffers in turn */
    char *packed_small;           /* `small`: one copy, or one per thread */
    char *packed_block;           /* a block of `large` for each thread */
    /* [up(m), up(n)] for each split; NULL: one split, which is c */
    float *partial;
    float *bias; /* filled up to whole panels, or NULL */
    atomic_bool odd;
} plan;

/* -- products */

static int64_t k_block_depth(const plan *k, int64_t k_block) {
    return up(lesser(k->k_size, k->k - k_block * k->k_size), DEPTH);
}

/* One of the products, with the row and column inside it. */
typedef struct gemm_offset {
    const gemm_group *of;
    int64_t row, column;
} gemm_offset;

static gemm_offset offset_of(const plan *k, int64_t row, int64_t column) {
    const int64_t m = k->one->m, n = k->one->n;
    if (k->sides == SIDES_ROWS) return (gemm_offset){k->one + row / m, row % m, column};
    if (k->sides == SIDES_COLUMNS) return (gemm_offset){k->one + column / n, row, column % n};
    return (gemm_offset){k->one, row, column};
}

/* Destination of the sums at (row, column) of a k-block. */
static tile_sums sums_of(const plan *k, int64_t row, int64_t column, int64_t k_block) {
    const int64_t stride = up(k->n, SIDE), split_size = up(k->m, SIDE) * stride;
    const gemm_offset at = offset_of(k, row, column);
    const gemm_group *p = at.of;
    tile_sums to = {.rows = lesser(p->m - at.row, SIDE), .columns = lesser(p->n - at.column, SIDE)};
    to.stride = k->partial ? stride : p->ldc;
    to.c = k->partial ? k->partial + k_block / k->split_blocks * split_size + row * stride + column
                      : p->c + at.row * p->ldc + at.column;
    to.add = k->partial ? k_block % k->split_blocks > 0 : k_block > 0 || p->beta != 0;
    return to;
}

static void sums_make(const plan *k, int64_t row, int64_t column, int64_t k_block, const char *a,
                      const char *b) {
    const tile_sums to = sums_of(k, row, column, k_block);
    const float *bias = k_block == 0 && k->bias ? k->bias + column : NULL;
    panels_multiply(k->large.all.parts, a, b, k_block_depth(k, k_block), bias, &to);
}

static int64_t greater(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* panels_pack of all matrices. Each has whole panels, or whole DEPTHs. */
static void operands_pack(const operands *o, int64_t first, int64_t end, int64_t from,
                          int64_t depth, int64_t panel, char *to) {
    const int64_t slice = o->all.parts * PART;
    operand x = o->all;
    *(o->deep ? &x.depth : &x.length) = o->each;
    for (int i = 0; i < o->count; i++) {
        const int64_t at = i * o->each, low = greater(o->deep ? from : first, at);
        const int64_t high = lesser(o->deep ? from + depth : end, at + o->each);
        x.x = o->x[i];
        if (low < high && o->deep)
            panels_pack(&x, first, end, low - at, high - low, panel,
                        to + (low - from) / DEPTH * slice);
        else if (low < high)
            panels_pack(&x, low - at, high - at, from, depth, panel,
                        to + (low - first) / SIDE * panel);
    }
}

/* Multiplies a block of `large` by all of `small`. */
static void block_multiply(const plan *k, int64_t block, int64_t k_block, const char *packed,
                           char *packed_block) {
    const int64_t from = block * k->block, end = lesser(from + k->block, k->large.all.length);
    operands_pack(&k->large, from, end, k_block * k->k_size, k_block_depth(k, k_block), k->panel,
                  packed_block);
    for (int64_t w = 0; w < k->small.all.length; w += SIDE)
        for (int64_t at = from; at < end; at += SIDE) {
            const char *small = packed + w / SIDE * k->panel;
            const char *large = packed_block + (at - from) / SIDE * k->panel;
            if (k->small.all.is_b)
                sums_make(k, at, w, k_block, large, small);
            else
                sums_make(k, w, at, k_block, small, large);
        }
}

/* A thread's part of 0 .. count-1. Neighbours stay together, so that its cache still holds them
 * from the op before. */
typedef struct range {
    int64_t first, end;
} range;

static range thread_range(int64_t count, int thread, int threads) {
    return (range){count * thread / threads, count * (thread + 1) / threads};
}

/* Packs `small` for a k-block. A thread that is ahead writes the buffer that no thread reads any
 * more. */
static const char *small_pack(const plan *k, int64_t k_block, int thread, int threads) {
    const int64_t copy = k->shared ? k_block % 2 : thread;
    const int64_t length = k->small.all.length, all = up(length, SIDE) / SIDE;
    const range panels = k->shared ? thread_range(all, thread, threads) : (range){0, all};
    char *to = k->packed_small + copy * k->small_size;
    operands_pack(&k->small, panels.first * SIDE, lesser(panels.end * SIDE, length),
                  k_block * k->k_size, k_block_depth(k, k_block), k->panel,
                  to + panels.first * k->panel);
    if (k->shared && threads > 1) {
#pragma omp barrier
    }
    return to;
}

static void thread_run(const plan *k, int thread, int threads) {
    const bool by_depth = k->splits > 1;
    const range splits = by_depth ? thread_range(k->splits, thread, threads) : (range){0, 1};
    const range blocks =
        by_depth ? (range){0, k->blocks} : thread_range(k->blocks, thread, threads);
    const int64_t end = lesser(splits.end * k->split_blocks, k->k_blocks);
    char *packed_block = k->packed_block + thread * (k->block / SIDE * k->panel);
    tiles_open();
    for (int64_t k_block = splits.first * k->split_blocks; k_block < end; k_block++) {
        const char *packed = small_pack(k, k_block, thread, threads);
        for (int64_t block = blocks.first; block < blocks.end; block++)
            block_multiply(k, block, k_block, packed, packed_block);
    }
    tiles_close();
}

/* c = beta c + bias + splits in order, for the columns of one product. */
static void row_merge(const plan *k, int64_t row, int64_t column) {
    const int64_t stride = up(k->n, SIDE), split_size = up(k->m, SIDE) * stride;
    const gemm_offset at = offset_of(k, row, column);
    const float *x = k->partial + row * stride + column;
    float *restrict c = at.of->c + at.row * at.of->ldc;
    const int64_t n = at.of->n;
    for (int64_t j = 0; j < n; j++) c[j] = at.of->beta != 0 ? c[j] + x[j] : x[j];
    for (int64_t i = 1; i < k->splits; i++)
        for (int64_t j = 0; j < n; j++) c[j] += x[i * split_size + j];
}

/* Runs one of `threads` threads, which may be fewer than were requested. */
static void thread_part(const plan *k, int thread, int threads) {
    thread_run(k, thread, threads);
    if (!k->partial) return;
    if (threads > 1) {
#pragma omp barrier
    }
    const range rows = thread_range(k->m, thread, threads);
    for (int64_t row = rows.first; row < rows.end; row++)
        for (int64_t column = 0; column < k->n; column += k->one->n) row_merge(k, row, column);
}

/* -- odd numbers: those without parts */

static float number(const float *x, bool transposed, int64_t stride, int64_t i, int64_t j) {
    return transposed ? x[j * stride + i] : x[i * stride + j];
}

/* c[i, :] += a[i, d] b[d, :] where a[i, d] is odd. After a NaN nothing changes any more. */
static void row_add_odd(const gemm_group *p, int64_t i) {
    for (int64_t d = 0; d < p->k; d++) {
        const float a = number(p->a, p->ta, p->lda, i, d);
        if (!amx_is_odd(a)) continue;
        for (int64_t j = 0; j < p->n; j++)
            p->c[i * p->ldc + j] += a * number(p->b, p->tb, p->ldb, d, j);
        if (isnan(a)) return;
    }
}

/* c[:, j] += a[:, d] b[d, j] where b[d, j] is odd. Where a is odd too, the product is infinite or
 * NaN, whether added once or twice. */
static void column_add_odd(const gemm_group *p, int64_t j) {
    for (int64_t d = 0; d < p->k; d++) {
        const float b = number(p->b, p->tb, p->ldb, d, j);
        if (!amx_is_odd(b)) continue;
        for (int64_t i = 0; i < p->m; i++)
            p->c[i * p->ldc + j] += number(p->a, p->ta, p->lda, i, d) * b;
        if (isnan(b)) return;
    }
}

static void product_add_odd(const gemm_group *p, int threads) {
#pragma omp parallel for num_threads(threads)
    for (int64_t i = 0; i < p->m; i++) row_add_odd(p, i);
#pragma omp parallel for num_threads(threads)
    for (int64_t j = 0; j < p->n; j++) column_add_odd(p, j);
}

/* -- planning and running a product */

/* Sets k-blocks and splits, by m, n and k alone. */
static void set_depth(plan *k) {
    const bool splits = k->m * k->n <= SMALL_SUMS && k->k >= 2 * SPLIT_BLOCK;
    const int64_t most = splits ? SPLIT_BLOCK : K_BLOCK, k_blocks = (k->k + most - 1) / most;
    k->k_size = up((k->k + k_blocks - 1) / k_blocks, DEPTH);
    k->k_blocks = (k->k + k->k_size - 1) / k->k_size;
    k->split_blocks = splits ? (k->k_blocks + K_SPLITS - 1) / K_SPLITS : k->k_blocks;
    k->splits = (k->k_blocks + k->split_blocks - 1) / k->split_blocks;
}

static void set_blocks(plan *k, int threads) {
    const int64_t length = k->large.all.length;
    k->threads = k->m * k->n * k->k >= PARALLEL_WORK ? threads : 1;
    k->panel = panel_bytes(&k->large.all, k->k_size);
    k->small_size = up(k->small.all.length, SIDE) / SIDE * k->panel;
    k->shared = k->splits == 1 && k->small_size > PRIVATE_BYTES;
    const int64_t fits = BLOCK_BYTES / k->panel * SIDE;
    const int64_t each = k->splits > 1 ? length : (length + k->threads - 1) / k->threads;
    const int64_t blocks = (each + fits - 1) / fits;
    k->block = up((each + blocks - 1) / blocks, SIDE);
    k->blocks = (length + k->block - 1) / k->block;
}

/* a or b of all products. */
static operands operands_of(plan *k, bool is_b, amx_parts parts) {
    const gemm_group *p = k->one;
    const bool many = k->sides == SIDES_DEPTH || k->sides == (is_b ? SIDES_COLUMNS : SIDES_ROWS);
    operands o = {.count = many ? k->count : 1, .deep = k->sides == SIDES_DEPTH};
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

static void set_sizes(plan *k, amx_parts parts, int threads) {
    const gemm_group *p = k->one;
    k->m = p->m * (k->sides == SIDES_ROWS ? k->count : 1);
    k->n = p->n * (k->sides == SIDES_COLUMNS ? k->count : 1);
    k->k = p->k * (k->sides == SIDES_DEPTH ? k->count : 1);
    k->small = operands_of(k, k->n <= k->m, parts);
    k->large = operands_of(k, k->n > k->m, parts);
    set_depth(k);
    set_blocks(k, threads);
}

/* Concatenates the biases; columns after a product's last are zeros. */
static void set_bias(plan *k, float *to, int64_t count) {
    memset(to, 0, (size_t)count * sizeof *to);
    k->bias = to;
    for (int64_t column = 0; column < k->n; column += k->one->n) {
        const gemm_group *p = offset_of(k, 0, column).of;
        if (p->bias) memcpy(to + column, p->bias, (size_t)p->n * sizeof *to);
    }
}

static bool set_scratch(plan *k, scratch_memory *scratch, sr_failure *why) {
    const int64_t packed = k->small_size * (k->shared ? lesser(k->k_blocks, 2) : k->threads);
    const int64_t packed_block = k->threads * (k->block / SIDE * k->panel);
    const int64_t partial = k->splits > 1 ? k->splits * up(k->m, SIDE) * up(k->n, SIDE) : 0;
    const int64_t bias = k->one->bias ? up(k->n, SIDE) : 0;
    const int64_t floats = (partial + bias) * (int64_t)sizeof(float);
    k->packed_small = scratch_memory_of(scratch, (size_t)(packed + packed_block + floats), why);
    if (!k->packed_small) return false;
    k->packed_block = k->packed_small + packed;
    float *next = (float *)(k->packed_block + packed_block);
    if (partial) k->partial = next;
    if (bias) set_bias(k, next + partial, bias);
    return true;
}

static void scale(const gemm_group *p) {
    if (p->beta == 0 || p->beta == 1) return;
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) p->c[i * p->ldc + j] *= p->beta;
}

static bool system_permits(void) {
    enum { REQUEST_STATE = 0x1023, TILE_DATA = 18 }; /* arch_prctl(2): ARCH_REQ_XCOMP_PERM */
    unsigned a, b, c, d;
    const unsigned wanted = 1u << 22 | 1u << 24; /* AMX-BF16, AMX-TILE */
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & wanted) != wanted) return false;
    if (!__builtin_cpu_supports("avx512bf16") || !__builtin_cpu_supports("avx512vl")) return false;
    return syscall(SYS_arch_prctl, REQUEST_STATE, TILE_DATA) == 0;
}

bool amx_native(void) {
    enum { UNKNOWN, NO, YES };
    static atomic_int found;
    if (found == UNKNOWN) found = system_permits() ? YES : NO;
    return found == YES;
}

bool amx_takes(const gemm_group *p) {
    return lesser(lesser(p->m, p->n), p->k) >= SIDE && amx_native();
}

bool amx_takes_together(gemm_group_sides sides, const gemm_group *one) {
    const int64_t side = sides == SIDES_ROWS ? one->m : sides == SIDES_COLUMNS ? one->n : one->k;
    return amx_takes(one) && side % SIDE == 0;
}

sr_status amx_products(scratch_memory *scratch, gemm_group_sides sides, int count,
                       const gemm_group *one, amx_parts parts, int threads, sr_failure *why) {
    plan k = {.sides = sides, .count = count, .one = one};
    set_sizes(&k, parts, threads);
    if (!set_scratch(&k, scratch, why)) return SR_MEMORY;
    for (int i = 0; i < (sides == SIDES_DEPTH ? 1 : count); i++) scale(&one[i]);
    if (k.threads == 1) {
        thread_part(&k, 0, 1);
    } else {
#pragma omp parallel num_threads(k.threads)
        thread_part(&k, omp_get_thread_num(), omp_get_num_threads());
    }
    for (int i = 0; i < count && k.odd; i++) product_add_odd(&one[i], threads);
    return SR_OK;
}
#else
bool amx_native(void) {
    return false;
}

bool amx_takes(const gemm_group *p) {
    (void)p;
    return false;
}

bool amx_takes_together(gemm_group_sides sides, const gemm_group *one) {
    (void)sides, (void)one;
    return false;
}

sr_status amx_products(scratch_memory *scratch, gemm_group_sides sides, int count,
                       const gemm_group *one, amx_parts parts, int threads, sr_failure *why) {
    (void)scratch, (void)sides, (void)count, (void)one, (void)parts, (void)threads;
    return sr_fail(why, SR_USAGE, "this engine has no products by AMX");
}
#endif
