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
 * for a k-block (amx_pack.h). A thread packs a block of the large one that fits its cache. It
 * multiplies the block with panels of the small one, row by row of c:
 *   c[32 x 32] += a panel x b panel        in four tiles of sums, over the k-block
 * Sums start at zero in every k-block. Threads share the work in three ways:
 *   blocks   of every k-block, each cut into `parts` of the small operand where there are more
 *            threads than blocks. Each thread packs a small operand for itself; all threads
 *            together pack one of more than PRIVATE_BYTES in all copies
 *   splits   split-K for a small c and a long depth (weight gradients): a thread packs and
 *            multiplies its own splits of k-blocks, whose sums are added in order
 *   tiles    of c in every split, where splits are too few for the threads: all threads together
 *            pack both operands for a stage of splits. A thread reads less of what others have
 *            packed than with tiles of c alone
 * k-blocks and splits depend on m, n and k alone. Nothing else changes a bit of the result: one
 * thread adds the sums of a split of one k-block to c at once.
 *
 * Infinities, NaNs and numbers that r makes infinite are odd: they have no parts (inf - inf). They
 * are packed as zeros, and their products are added to c at the end. */
#define _DEFAULT_SOURCE /* syscall */
#include "engine/amx/gemm_amx.h"

#include "engine/amx/amx_kernel.h"
#include "engine/amx/amx_plan.h"

#ifdef PRODUCT_AMX
#include <cpuid.h>
#include <math.h>
#include <omp.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* -- products */

/* One of the products, with the row and column inside it. */
typedef struct gemm_offset {
    const gemm_group *of;
    int64_t row, column;
} gemm_offset;

static gemm_offset offset_of(const amx_plan *k, int64_t row, int64_t column) {
    const int64_t m = k->one->m, n = k->one->n;
    if (k->sides == SIDES_ROWS) return (gemm_offset){k->one + row / m, row % m, column};
    if (k->sides == SIDES_COLUMNS) return (gemm_offset){k->one + column / n, row, column % n};
    return (gemm_offset){k->one, row, column};
}

/* Destination of the sums at (row, column) of a k-block. */
static tile_sums sums_of(const amx_plan *k, int64_t row, int64_t column, int64_t k_block) {
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

static void sums_make(const amx_plan *k, int64_t row, int64_t column, int64_t k_block,
                      const char *a, const char *b) {
    const tile_sums to = sums_of(k, row, column, k_block);
    const float *bias = k_block == 0 && k->bias ? k->bias + column : NULL;
    panels_multiply(k->large.all.parts, a, b, k_block_depth(k, k_block), bias, &to);
}

/* panels_pack of all matrices. Each has whole panels, or whole DEPTHs. */
static void operands_pack(const amx_operands *o, int64_t first, int64_t end, int64_t from,
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

/* Multiplies panel `large` of the large operand by panel `small` of the small one. */
static void panel_pair_multiply(const amx_plan *k, int64_t large, int64_t small, int64_t k_block,
                                const char *packed_large, const char *packed_small) {
    if (k->small.all.is_b)
        sums_make(k, large * SIDE, small * SIDE, k_block, packed_large, packed_small);
    else
        sums_make(k, small * SIDE, large * SIDE, k_block, packed_small, packed_large);
}

/* A thread's part of 0 .. count-1. Neighbours stay together, so that its cache still holds them
 * from the op before. */
typedef struct range {
    int64_t first, end;
} range;

static range thread_range(int64_t count, int thread, int threads) {
    return (range){count * thread / threads, count * (thread + 1) / threads};
}

/* The part of `all` that is in first .. first+count-1, counted from first. */
static range range_within(range all, int64_t first, int64_t count) {
    return (range){greater(all.first - first, 0), lesser(all.end - first, count)};
}

/* Slices of panels, DEPTH deep, of an operand in a k-block. */
static int64_t slice_count(const amx_plan *k, const amx_operands *o, int64_t k_block) {
    return up(o->all.length, SIDE) / SIDE * (k_block_depth(k, k_block) / DEPTH);
}

/* Packs some slices of an operand for a k-block, in the order of memory. along: all slices of a
 * panel along rows; else a slice of all panels. */
static void slices_pack(const amx_plan *k, const amx_operands *o, int64_t k_block, range own,
                        char *to) {
    const bool along = o->all.along;
    const int64_t slices = k_block_depth(k, k_block) / DEPTH;
    const int64_t run = along ? slices : slice_count(k, o, k_block) / slices;
    for (int64_t i = own.first, count; i < own.end; i += count) {
        const int64_t major = i / run, minor = i % run, left = own.end - i;
        const int64_t runs = minor || left < run ? 1 : left / run;
        const int64_t inner = minor || left < run ? lesser(run - minor, left) : run;
        const int64_t panel = along ? major : minor, slice = along ? minor : major;
        operands_pack(o, panel * SIDE,
                      lesser((panel + (along ? runs : inner)) * SIDE, o->all.length),
                      k_block * k->k_size + slice * DEPTH, (along ? inner : runs) * DEPTH, k->panel,
                      to + panel * k->panel + slice * o->all.parts * PART);
        count = runs * inner;
    }
}

/* -- by blocks */

/* Multiplies a block of `large` by parts of `small`, row by row of c, so that c is written in the
 * order of memory. */
static void block_multiply(const amx_plan *k, int64_t block, range parts, int64_t k_block,
                           const char *packed, char *packed_block) {
    const int64_t from = block * k->block, end = lesser(from + k->block, k->large.all.length);
    const range small = {parts.first * k->small_panels / k->parts,
                         parts.end * k->small_panels / k->parts};
    operands_pack(&k->large, from, end, k_block * k->k_size, k_block_depth(k, k_block), k->panel,
                  packed_block);
    const range large = {from / SIDE, ceiling(end, SIDE)};
    const bool is_b = k->small.all.is_b;
    const range rows = is_b ? large : small, columns = is_b ? small : large;
    for (int64_t row = rows.first; row < rows.end; row++)
        for (int64_t column = columns.first; column < columns.end; column++) {
            const int64_t at = is_b ? row : column, w = is_b ? column : row;
            panel_pair_multiply(k, at, w, k_block, packed_block + (at - large.first) * k->panel,
                                packed + w * k->panel);
        }
}

/* Packs `small` for a k-block. A thread that is ahead writes the buffer that no thread reads any
 * more. */
static const char *small_pack(const amx_plan *k, int64_t k_block, int thread, int threads) {
    const int64_t copy = k->shared ? k_block % 2 : thread;
    char *to = k->packed_small + copy * k->small_size;
    const int64_t count = slice_count(k, &k->small, k_block);
    slices_pack(k, &k->small, k_block,
                k->shared ? thread_range(count, thread, threads) : (range){0, count}, to);
    if (k->shared && threads > 1) {
#pragma omp barrier
    }
    return to;
}

static void blocks_run(const amx_plan *k, int thread, int threads) {
    const bool by_splits = k->by == BY_SPLITS;
    const range splits =
        by_splits ? thread_range(k->splits, thread, threads) : (range){0, k->splits};
    const range own =
        thread_range(k->blocks * k->parts, by_splits ? 0 : thread, by_splits ? 1 : threads);
    const int64_t end = lesser(splits.end * k->split_blocks, k->k_blocks);
    char *packed_block = k->packed_large + thread * (k->block / SIDE * k->panel);
    for (int64_t k_block = splits.first * k->split_blocks; k_block < end; k_block++) {
        const char *packed = small_pack(k, k_block, thread, threads);
        for (int64_t block = own.first / k->parts; block * k->parts < own.end; block++)
            block_multiply(k, block, range_within(own, block * k->parts, k->parts), k_block, packed,
                           packed_block);
    }
}

/* -- by tiles */

/* Packs the thread's slices of an operand for the k-blocks first .. end-1. */
static void stage_pack(const amx_plan *k, const amx_operands *o, int64_t first, int64_t end,
                       int thread, int threads, char *to) {
    const int64_t panels = up(o->all.length, SIDE) / SIDE, each = slice_count(k, o, first);
    const range own =
        thread_range((end - first - 1) * each + slice_count(k, o, end - 1), thread, threads);
    for (int64_t k_block = first; k_block < end; k_block++) {
        const int64_t at = k_block - first;
        slices_pack(k, o, k_block, range_within(own, at * each, slice_count(k, o, k_block)),
                    to + at * panels * k->panel);
    }
}

static void stage_multiply(const amx_plan *k, int64_t first, int64_t end, int thread, int threads) {
    const int64_t tiles = k->large_panels * k->small_panels;
    const range all = thread_range(ceiling(end - first, k->split_blocks) * tiles, thread, threads);
    for (int64_t k_block = first; k_block < end; k_block++) {
        const int64_t at = k_block - first;
        const range own = range_within(all, at / k->split_blocks * tiles, tiles);
        for (int64_t i = own.first; i < own.end; i++) {
            const int64_t large = i / k->small_panels, small = i % k->small_panels;
            panel_pair_multiply(k, large, small, k_block,
                                k->packed_large + (at * k->large_panels + large) * k->panel,
                                k->packed_small + (at * k->small_panels + small) * k->panel);
        }
    }
}

static void tiles_run(const amx_plan *k, int thread, int threads) {
    for (int64_t first = 0, end; first < k->k_blocks; first = end) {
        end = lesser(first + k->stage, k->k_blocks);
        if (first && threads > 1) {
#pragma omp barrier
        }
        stage_pack(k, &k->small, first, end, thread, threads, k->packed_small);
        stage_pack(k, &k->large, first, end, thread, threads, k->packed_large);
        if (threads > 1) {
#pragma omp barrier
        }
        stage_multiply(k, first, end, thread, threads);
    }
}

/* c = beta c + bias + splits in order, for the columns of one product. */
static void row_merge(const amx_plan *k, int64_t row, int64_t column) {
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
static void thread_part(const amx_plan *k, int thread, int threads) {
    tiles_open();
    if (k->by == BY_TILES)
        tiles_run(k, thread, threads);
    else
        blocks_run(k, thread, threads);
    tiles_close();
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

/* c[:, j] += a[:, d] b[d, j] where b[d, j] is odd. If a is odd too, the product is infinite or NaN,
 * whether added once or twice. */
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

/* Concatenates the biases; columns after a product's last are zeros. */
static void set_bias(amx_plan *k, float *to, int64_t count) {
    memset(to, 0, (size_t)count * sizeof *to);
    k->bias = to;
    for (int64_t column = 0; column < k->n; column += k->one->n) {
        const gemm_group *p = offset_of(k, 0, column).of;
        if (p->bias) memcpy(to + column, p->bias, (size_t)p->n * sizeof *to);
    }
}

static bool set_scratch(amx_plan *k, scratch_memory *scratch, sr_failure *why) {
    const bool by_tiles = k->by == BY_TILES;
    const int64_t copies = by_tiles ? k->stage : k->shared ? lesser(k->k_blocks, 2) : k->threads;
    const int64_t packed = copies * k->small_size;
    const int64_t packed_large =
        k->panel * (by_tiles ? k->stage * k->large_panels : k->threads * (k->block / SIDE));
    const int64_t partial = k->direct ? 0 : k->splits * up(k->m, SIDE) * up(k->n, SIDE);
    const int64_t bias = k->one->bias ? up(k->n, SIDE) : 0;
    const int64_t floats = (partial + bias) * (int64_t)sizeof(float);
    k->packed_small = scratch_memory_of(scratch, (size_t)(packed + packed_large + floats), why);
    if (!k->packed_small) return false;
    k->packed_large = k->packed_small + packed;
    float *next = (float *)(k->packed_large + packed_large);
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
    amx_plan k = {.sides = sides, .count = count, .one = one};
    amx_plan_set(&k, parts, threads);
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
