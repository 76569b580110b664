/* row_blocks.h -- how the passes of column_passes.c and column_writes.c go over rows.
 *
 * Speed: a pass should cost what its memory traffic costs. A chunk is processed in blocks of rows,
 * a block in tiles of 16 columns. Sums or coefficients of a tile stay in registers for all rows of
 * the block. Two rows at a time hide the latency of an addition. With narrow rows a block is a
 * whole chunk. Wide rows go in blocks of two, four or eight, because the tiles of a block must find
 * its rows in the first-level cache. Hardware prefetches only along long runs; the passes prefetch
 * the rest. */
#ifndef NORM_KERNELS_ROW_BLOCKS_H
#define NORM_KERNELS_ROW_BLOCKS_H

#include "norm/kernels/column_passes.h"
#include "norm/kernels/simd_double.h"

/* NARROW, ONE_TILE: the widest rows with blocks of a chunk, in passes that sum and in passes that
 * write. PREFETCH_OF_THREE: prefetch distance of a pass over three arrays, which must all fit the
 * first-level cache. */
enum {
    CHUNK = 256,
    NARROW = 32,
    ONE_TILE = 2 * SIMD_WIDTH,
    PAIR = 2,
    PAD = 24,
    PREFETCH_OF_THREE = 4096
};

typedef struct row_chunk {
    int64_t first, end; /* rows of the pass */
} row_chunk;

/* Rows that are processed together, and the offset of each. */
typedef struct row_block {
    int64_t first, rows, at[CHUNK];
    int64_t unit[CHUNK]; /* index of the row's first value in layer_scale.inverse */
} row_block;

static inline int64_t chunk_count(const column_passes *m) {
    return (m->rows + CHUNK - 1) / CHUNK;
}

static inline row_chunk chunk_at(const column_passes *m, int64_t number) {
    int64_t first = number * CHUNK, end = first + CHUNK;
    return (row_chunk){first, end < m->rows ? end : m->rows};
}

/* Rows of a block: a whole chunk for rows up to `narrow` features, else `few`. */
static inline int64_t block_rows(const column_passes *m, int64_t narrow, int64_t few) {
    return m->features <= narrow ? CHUNK : few;
}

/* Sets the next rows of the chunk, at most `most`; false at its end. */
static inline bool next_block(const column_passes *m, row_chunk *p, int64_t most, row_block *s) {
    int64_t left = p->end - p->first;
    s->first = p->first;
    s->rows = left < most ? left : most;
    for (int64_t i = 0; i < s->rows; i++)
        s->at[i] = column_passes_row(m, p->first + i) * m->features;
    for (int64_t i = 0; m->scale && i < s->rows; i++)
        s->unit[i] = column_passes_row(m, p->first + i) * m->scale->groups;
    p->first += s->rows;
    return s->rows > 0;
}

/* -- values after a layer scale ---------------------------------------------------------------- */

/* 1/s of two times eight columns: factor[j][unit of the row]; NULL without a layer scale. */
typedef struct tile_factors {
    const double *factor[2];
} tile_factors;

SIMD_DOUBLE_INLINE tile_factors factors_at(const column_passes *m, int64_t k) {
    tile_factors f;
    for (int j = 0; j < 2; j++)
        f.factor[j] = m->scale->inverse + (k + j * SIMD_WIDTH) / m->scale->width;
    return f;
}

/* Columns before this one are processed by eights. */
static inline int64_t simd_end(const column_passes *m) {
    bool divided = m->scale && m->scale->width % SIMD_WIDTH;
    return divided ? 0 : m->features / SIMD_WIDTH * SIMD_WIDTH;
}

/* u = eight values of row r; scaled is a compile-time constant. */
SIMD_DOUBLE_INLINE void load_scaled(simd_double *u, const row_block *s, int64_t r, const real *x,
                                    bool scaled, const double *factor) {
    simd_double_load(u, x);
    if (scaled) *u *= factor[s->unit[r]];
}

static inline double value_at(const column_passes *m, const row_block *s, int64_t r, int64_t k,
                              const real *x) {
    double value = (double)x[s->at[r] + k];
    return m->scale ? value * m->scale->inverse[s->unit[r] + k / m->scale->width] : value;
}

/* [column_passes_scratch_count] doubles of the caller or of the tape; NULL when out of memory. */
double *column_passes_scratch(const column_passes *m);

#endif
