/* bf16_avx512.c -- gemm_bf16 by vdpbf16ps, which adds the products of bfloat16 pairs to 16 sums:
 *
 *   sum_rj += r(a_r,2p) r(b_2p,j) + r(a_r,2p+1) r(b_2p+1,j)
 *   p = 0 .. pairs - 1, pairs = ceil(k / 2)
 *
 * A tile of ROWS x COLUMNS sums stays in registers over all of k. Zeros fill the last pair of an
 * odd k. Both operands are first packed into pairs of 32 bits:
 *   a as stored    [m, pairs]                   rows unchanged
 *   a transposed   [m / ROWS, pairs, ROWS]      two stored rows interleaved
 *   b              [n / COLUMNS, pairs, COLUMNS]
 * and filled with zeros up to whole tiles. Each sum is in the order of p, on any thread. */
#include "engine/gemm/bf16_avx512.h"

#ifdef BF16_AVX512
#include <immintrin.h>

#include "engine/work_chunks.h"

#define NATIVE __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))

enum {
    LANES = 16,
    ROWS = 8,
    COLUMNS = 2 * LANES,
    ROW_BLOCK = 4 * ROWS, /* rows that a thread multiplies with one panel of b */
    PARALLEL_WORK = 1 << 18
};

static int64_t up(int64_t n, int64_t to) {
    return (n + to - 1) / to * to;
}

/* The packed operands. Pair (r, p) of a is at a + r * row_step + p * pair_step. */
typedef struct packing {
    int64_t pairs, row_step, pair_step;
    uint32_t *a, *b;
} packing;

static int64_t a_size(const gemm_group *p) {
    return up(p->m, LANES) * up((p->k + 1) / 2, LANES);
}

size_t bf16_avx512_scratch_bytes(const gemm_group *p) {
    return (size_t)(a_size(p) + up(p->n, COLUMNS) * ((p->k + 1) / 2)) * sizeof(uint32_t);
}

static __mmask16 first_lanes(int64_t n) {
    return n >= LANES ? 0xffff : n <= 0 ? 0 : (__mmask16)((1u << n) - 1);
}

/* -- packing */

/* Pairs of 32 numbers of a row, the first `n` valid. */
static NATIVE __m512i row_pairs(const float *x, int64_t n) {
    const __m512 low = _mm512_maskz_loadu_ps(first_lanes(n), x);
    const __m512 high = _mm512_maskz_loadu_ps(first_lanes(n - LANES), x + LANES);
    return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}

/* Packs row r of a; zeros after the last row. */
static NATIVE void pack_row(const gemm_group *p, const packing *k, int64_t r) {
    const float *x = p->a + r * p->lda;
    uint32_t *to = k->a + r * k->row_step;
    for (int64_t i = 0; i < k->row_step; i += LANES)
        _mm512_storeu_si512(to + i,
                            r < p->m ? row_pairs(x + 2 * i, p->k - 2 * i) : _mm512_setzero_si512());
}

/* Pairs of `n` columns of two rows of a stored matrix; lower NULL: zeros. */
static NATIVE __m512i column_pairs(const float *upper, const float *lower, int64_t n) {
    const __mmask16 there = first_lanes(n);
    const __m512 x = _mm512_maskz_loadu_ps(there, upper);
    const __m512 y = lower ? _mm512_maskz_loadu_ps(there, lower) : _mm512_setzero_ps();
    const __m512i even = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(x));
    const __m512i odd = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(y));
    return _mm512_or_si512(even, _mm512_slli_epi32(odd, 16));
}

/* Packs sixteen columns of a transposed a: two panels. */
static NATIVE void pack_transposed(const gemm_group *p, const packing *k, int64_t column) {
    uint32_t *to = k->a + column * k->pairs;
    for (int64_t i = 0; i < k->pairs; i++) {
        const float *x = p->a + 2 * i * p->lda + column;
        const __m512i pair = column_pairs(x, 2 * i + 1 < p->k ? x + p->lda : NULL, p->m - column);
        _mm256_storeu_si256((__m256i *)(to + i * ROWS), _mm512_castsi512_si256(pair));
        _mm256_storeu_si256((__m256i *)(to + (k->pairs + i) * ROWS),
                            _mm512_extracti64x4_epi64(pair, 1));
    }
}

/* Packs a panel of b, stored [k, n]. */
static NATIVE void pack_panel(const gemm_group *p, const packing *k, int64_t column) {
    uint32_t *to = k->b + column * k->pairs;
    for (int64_t i = 0; i < k->pairs; i++)
        for (int64_t j = 0; j < COLUMNS; j += LANES) {
            const float *x = p->b + 2 * i * p->ldb + column + j;
            const float *lower = 2 * i + 1 < p->k ? x + p->ldb : NULL;
            _mm512_storeu_si512(to + i * COLUMNS + j, column_pairs(x, lower, p->n - column - j));
        }
}

/* Packs a panel of b, stored [n, k]: its columns are stored rows. */
static NATIVE void pack_panel_transposed(const gemm_group *p, const packing *k, int64_t column) {
    uint32_t *to = k->b + column * k->pairs, pair[LANES];
    for (int64_t j = 0; j < COLUMNS; j++)
        for (int64_t i = 0; i < k->pairs; i += LANES) {
            const int64_t left = column + j < p->n ? p->k - 2 * i : 0;
            const float *x = p->b + (column + j) * p->ldb + 2 * i;
            _mm512_storeu_si512(pair, left ? row_pairs(x, left) : _mm512_setzero_si512());
            for (int64_t l = 0; l < LANES && i + l < k->pairs; l++)
                to[(i + l) * COLUMNS + j] = pair[l];
        }
}

/* -- products */

/* Adds the sums of the tile at (row, column) to c; c may end inside the tile. */
static NATIVE void store_tile(const gemm_group *p, __m512 sum[ROWS][2], int64_t row,
                              int64_t column) {
    for (int64_t r = 0; r < ROWS && row + r < p->m; r++)
        for (int64_t j = 0; j < 2; j++) {
            const __mmask16 there = first_lanes(p->n - column - j * LANES);
            float *c = p->c + (row + r) * p->ldc + column + j * LANES;
            __m512 y = sum[r][j];
            if (p->beta != 0)
                y = _mm512_fmadd_ps(_mm512_set1_ps(p->beta), _mm512_maskz_loadu_ps(there, c), y);
            _mm512_mask_storeu_ps(c, there, y);
        }
}

static NATIVE void tile(const gemm_group *p, const packing *k, int64_t row, int64_t column) {
    const uint32_t *a = k->a + (p->ta ? row * k->pairs : row * k->row_step);
    const uint32_t *b = k->b + column * k->pairs;
    __m512 sum[ROWS][2];
    for (int r = 0; r < ROWS; r++) sum[r][0] = sum[r][1] = _mm512_setzero_ps();
    for (int64_t i = 0; i < k->pairs; i++, a += k->pair_step, b += COLUMNS) {
        const __m512bh left = (__m512bh)_mm512_loadu_si512(b);
        const __m512bh right = (__m512bh)_mm512_loadu_si512(b + LANES);
#pragma GCC unroll 8
        for (int r = 0; r < ROWS; r++) {
            const __m512bh x = (__m512bh)_mm512_set1_epi32((int)a[r * k->row_step]);
            sum[r][0] = _mm512_dpbf16_ps(sum[r][0], x, left);
            sum[r][1] = _mm512_dpbf16_ps(sum[r][1], x, right);
        }
    }
    store_tile(p, sum, row, column);
}

void bf16_avx512(const gemm_group *p, int threads, void *scratch) {
    packing k = {.pairs = (p->k + 1) / 2, .a = scratch, .b = (uint32_t *)scratch + a_size(p)};
    k.row_step = p->ta ? 1 : up(k.pairs, LANES);
    k.pair_step = p->ta ? ROWS : 1;
    const int64_t panels = up(p->n, COLUMNS) / COLUMNS, blocks = up(p->m, ROW_BLOCK) / ROW_BLOCK;
#pragma omp parallel num_threads(threads) if (p->m * p->n * p->k > PARALLEL_WORK)
    {
#pragma omp for schedule(static) nowait
        for (int64_t i = 0; i < panels; i++)
            (p->tb ? pack_panel_transposed : pack_panel)(p, &k, i * COLUMNS);
        if (p->ta) {
#pragma omp for schedule(static)
            for (int64_t c = 0; c < p->m; c += LANES) pack_transposed(p, &k, c);
        } else {
#pragma omp for schedule(static)
            for (int64_t r = 0; r < up(p->m, ROWS); r++) pack_row(p, &k, r);
        }
#pragma omp for schedule(static)
        for (int64_t i = 0; i < blocks * panels; i++)
            for (int64_t r = i / panels * ROW_BLOCK; r < lesser((i / panels + 1) * ROW_BLOCK, p->m);
                 r += ROWS)
                tile(p, &k, r, i % panels * COLUMNS);
    }
}
#endif
