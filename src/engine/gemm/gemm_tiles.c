/* gemm_tiles.c -- products by register tiles, shared by any number of threads.
 *
 * A library packs all of b for each chunk of work, so that finer chunks cost more. Here all threads
 * together pack both operands once, for a stage of the depth that fits their caches, and then share
 * the blocks of c:
 *   b   [n / WIDE, depth, WIDE]      panels of WIDE columns, zeros after column n
 *   a   as it is stored; transposed: [m / TILE_ROWS, depth, TILE_ROWS], zeros after row m
 * A block of c is up to MOST_STRIPS x TILE_ROWS rows of one panel. For each k-block of the depth,
 * every tile of TILE_ROWS x WIDE sums stays in registers and is added to c. k-blocks are fixed and
 * added in order, so that nothing else determines the result. */
#include "engine/gemm/gemm_tiles.h"

#include "engine/gemm/small_gemm.h"
#include "engine/work_chunks.h"

enum {
    WIDE = 2 * TILE_VECTOR,
    K_BLOCK = 256,
    PACK_DEPTH = 64,          /* depth of a chunk of packing */
    PACK_STRIPS = 8,          /* whole cache lines of a */
    STAGE_BYTES = 640 * 1024, /* for each thread */
    MOST_STRIPS = 8,
    CHUNKS_PER_THREAD = 4,      /* at least, of smaller blocks */
    LEAST_WORK = 1 << 20,       /* multiply-adds */
    LEAST_SUMS = 64 * 64,       /* elements of c */
    MOST_NUMBERS = 3 << 19,     /* numbers in a, b and c; above, libraries are faster */
    LONGEST = 64,               /* depth per row and column of c, at most */
    PARALLEL_WORK = 1024 * 1024 /* multiply-adds */
};

typedef struct packed {
    const gemm_group *of;
    real *a, *b;                   /* a NULL: not packed */
    int64_t panels, strips, block; /* block: rows of a block */
    int64_t stage;                 /* depth that is packed together */
} packed;

/* Part of the depth. */
typedef struct deep {
    int64_t from, end;
} deep;

bool gemm_tiles_fit(const gemm_group *p) {
    return TILE_VECTOR_BYTES > 16 && p->m * p->n >= LEAST_SUMS &&
           p->m * p->n * p->k >= LEAST_WORK && p->m >= TILE_ROWS && p->n >= WIDE &&
           p->k <= LONGEST * (p->m + p->n) &&
           p->m * p->k + p->k * p->n + p->m * p->n <= MOST_NUMBERS;
}

/* -- packing of a stage */

/* Copies rows of `columns` numbers into rows of `width`, and zeros after them. Callers give
 * constants for whole rows, so that the compiler unrolls them. */
__attribute__((always_inline)) static inline void rows_copy(int64_t rows, int64_t columns,
                                                            int64_t width, const real *restrict x,
                                                            int64_t stride, real *restrict to) {
    for (int64_t r = 0; r < rows; r++, x += stride, to += width) {
        for (int64_t j = 0; j < columns; j++) to[j] = x[j];
        for (int64_t j = columns; j < width; j++) to[j] = 0;
    }
}

static void panel_pack(const packed *k, int64_t panel, deep stage, deep d) {
    const gemm_group *p = k->of;
    const int64_t first = panel * WIDE, columns = lesser(WIDE, p->n - first);
    const int64_t depth = d.end - d.from;
    real *to = k->b + first * k->stage + (d.from - stage.from) * WIDE;
    const real *x = p->b + (p->tb ? first * p->ldb + d.from : d.from * p->ldb + first);
    if (!p->tb && columns == WIDE) {
        rows_copy(depth, WIDE, WIDE, x, p->ldb, to);
        return;
    }
    if (!p->tb) {
        rows_copy(depth, columns, WIDE, x, p->ldb, to);
        return;
    }
    small_transpose(columns, depth, x, p->ldb, to, WIDE);
    const int64_t done = ceiling(columns, TILE_LANES) * TILE_LANES;
    for (int64_t r = 0; r < depth; r++)
        for (int64_t j = done; j < WIDE; j++) to[r * WIDE + j] = 0;
}

/* Packs PACK_STRIPS strips of a transposed a, whose rows stay in the first-level cache. */
static void strips_pack(const packed *k, int64_t strip, deep stage, deep d) {
    const gemm_group *p = k->of;
    const int64_t end = lesser(strip + PACK_STRIPS, k->strips), depth = d.end - d.from;
    for (int64_t i = strip; i < end; i++) {
        const int64_t first = i * TILE_ROWS, rows = lesser(TILE_ROWS, p->m - first);
        const real *x = p->a + d.from * p->lda + first;
        real *to = k->a + first * k->stage + (d.from - stage.from) * TILE_ROWS;
        if (rows == TILE_ROWS)
            rows_copy(depth, TILE_ROWS, TILE_ROWS, x, p->lda, to);
        else
            rows_copy(depth, rows, TILE_ROWS, x, p->lda, to);
    }
}

static void stage_pack(const packed *k, deep stage) {
    const int64_t cuts = ceiling(stage.end - stage.from, PACK_DEPTH);
    const int64_t groups = k->a ? ceiling(k->strips, PACK_STRIPS) : 0;
#pragma omp for schedule(static)
    for (int64_t i = 0; i < cuts * (groups + k->panels); i++) {
        const int64_t from = stage.from + i / (groups + k->panels) * PACK_DEPTH;
        const int64_t group = i % (groups + k->panels);
        const deep d = {from, lesser(from + PACK_DEPTH, stage.end)};
        if (group < groups)
            strips_pack(k, group * PACK_STRIPS, stage, d);
        else
            panel_pack(k, group - groups, stage, d);
    }
}

/* -- products */

/* c [rows, WIDE] (+)= strip of a times panel of b; rows <= TILE_ROWS. */
static void tile(int64_t rows, int64_t depth, small_gemm_left a, const real *b, bool add, real *c,
                 int64_t ldc) {
    small_gemm_columns(TILE_WIDE, rows, depth, a, b, WIDE, add, c, ldc);
}

/* A tile at the edge of c, through a copy. */
static void edge_tile(int64_t rows, int64_t columns, int64_t depth, small_gemm_left a,
                      const real *b, bool add, real *c, int64_t ldc) {
    real sum[TILE_ROWS * WIDE];
    tile(rows, depth, a, b, false, sum, WIDE);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            c[i * ldc + j] = (add ? c[i * ldc + j] : 0) + sum[i * WIDE + j];
}

static small_gemm_left strip_at(const packed *k, int64_t row, deep stage, int64_t from) {
    const gemm_group *p = k->of;
    if (!k->a) return (small_gemm_left){p->a + row * p->lda + from, p->lda, 1};
    return (small_gemm_left){k->a + row * k->stage + (from - stage.from) * TILE_ROWS, 1, TILE_ROWS};
}

static void block_begin(const gemm_group *p, int64_t row, int64_t end, int64_t column,
                        int64_t columns) {
    for (int64_t i = row; i < end && p->beta != 0 && p->beta != 1; i++)
        for (int64_t j = column; j < column + columns; j++) p->c[i * p->ldc + j] *= p->beta;
}

static void block_end(const gemm_group *p, int64_t row, int64_t end, int64_t column,
                      int64_t columns) {
    for (int64_t i = row; i < end && p->bias; i++)
        for (int64_t j = column; j < column + columns; j++) p->c[i * p->ldc + j] += p->bias[j];
}

static void block_multiply(const packed *k, int64_t block, int64_t panel, deep stage) {
    const gemm_group *p = k->of;
    const int64_t first = block * k->block, end = lesser(first + k->block, p->m);
    const int64_t column = panel * WIDE, columns = lesser(WIDE, p->n - column);
    if (stage.from == 0) block_begin(p, first, end, column, columns);
    for (int64_t from = stage.from; from < stage.end; from += K_BLOCK) {
        const int64_t depth = lesser(K_BLOCK, stage.end - from);
        const real *b = k->b + column * k->stage + (from - stage.from) * WIDE;
        const bool add = from > 0 || p->beta != 0;
        for (int64_t row = first; row < end; row += TILE_ROWS) {
            const small_gemm_left a = strip_at(k, row, stage, from);
            const int64_t rows = lesser(TILE_ROWS, end - row);
            real *c = p->c + row * p->ldc + column;
            for (int64_t i = 0; i < rows; i++) {
                __builtin_prefetch(c + i * p->ldc, 1);
                __builtin_prefetch(c + i * p->ldc + TILE_VECTOR, 1);
            }
            if (columns == WIDE)
                tile(rows, depth, a, b, add, c, p->ldc);
            else
                edge_tile(rows, columns, depth, a, b, add, c, p->ldc);
        }
    }
    if (stage.end == p->k) block_end(p, first, end, column, columns);
}

/* -- a product */

static void set_sizes(packed *k, int threads) {
    const gemm_group *p = k->of;
    k->panels = ceiling(p->n, WIDE);
    k->strips = ceiling(p->m, TILE_ROWS);
    const int64_t strips = k->strips * k->panels / (CHUNKS_PER_THREAD * threads);
    k->block = TILE_ROWS * (strips < 1 ? 1 : lesser(strips, MOST_STRIPS));
    const int64_t width = k->panels * WIDE + (p->ta ? k->strips * TILE_ROWS : 0);
    const int64_t fits = (int64_t)STAGE_BYTES * threads / (width * (int64_t)sizeof(real)) / K_BLOCK;
    k->stage = lesser((fits < 1 ? 1 : fits) * K_BLOCK, p->k);
}

static void run(const packed *k) {
    const int64_t blocks = ceiling(k->of->m, k->block);
    for (int64_t from = 0; from < k->of->k; from += k->stage) {
        const deep stage = {from, lesser(from + k->stage, k->of->k)};
        stage_pack(k, stage);
#pragma omp for schedule(static)
        for (int64_t i = 0; i < blocks * k->panels; i++)
            block_multiply(k, i / k->panels, i % k->panels, stage);
    }
}

sr_status gemm_tiles(scratch_memory *scratch, const gemm_group *p, int threads, sr_failure *why) {
    packed k = {.of = p};
    if (p->m * p->n * p->k < PARALLEL_WORK) threads = 1;
    set_sizes(&k, threads);
    const int64_t b = k.panels * WIDE * k.stage, a = p->ta ? k.strips * TILE_ROWS * k.stage : 0;
    k.b = scratch_memory_of(scratch, (size_t)(a + b) * sizeof *k.b, why);
    if (!k.b) return SR_MEMORY;
    if (p->ta) k.a = k.b + b;
#pragma omp parallel num_threads(threads) if (threads > 1)
    run(&k);
    return SR_OK;
}
