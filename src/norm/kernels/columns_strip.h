/* columns_strip.h -- how the passes of columns.c and columns_write.c walk over rows.
 *
 * Speed: these passes should cost what their memory traffic costs. A piece is walked in strips of
 * rows, a strip in tiles of 16 columns whose sums or coefficients stay in registers while the rows
 * of the strip go by; two rows at a time hide the latency of an addition. Narrow rows make strips
 * of a whole piece; wide rows go by twos, fours and eights, because the tiles of a strip have to find its
 * rows in the first cache, and the processor fetches memory ahead only along long runs; the passes ask for
 * theirs themselves.
 */
#ifndef NORM_KERNELS_COLUMNS_STRIP_H
#define NORM_KERNELS_COLUMNS_STRIP_H

#include "norm/kernels/columns.h"
#include "norm/kernels/wide.h"

/* NARROW, ONE_TILE: the widest rows that make strips of a piece in passes that sum, and in those that write.
 * AHEAD_OF_THREE: how far ahead a pass over three arrays asks, all of which must fit the first cache. */
enum { PIECE = 256, NARROW = 32, ONE_TILE = 2 * WIDE, PAIR = 2, PAD = 24, AHEAD_OF_THREE = 4096 };

typedef struct piece {
    int64_t first, end; /* rows of the pass */
} piece;

/* Rows that are walked together: where each starts. */
typedef struct strip {
    int64_t first, rows, at[PIECE];
    int64_t unit[PIECE]; /* the row's first number in layer_scale.inverse */
} strip;

static inline int64_t piece_count(const columns *m) {
    return (m->rows + PIECE - 1) / PIECE;
}

static inline piece piece_at(const columns *m, int64_t number) {
    int64_t first = number * PIECE, end = first + PIECE;
    return (piece){first, end < m->rows ? end : m->rows};
}

/* The rows of a strip: of rows no wider than `narrow` a whole piece, else `few`. */
static inline int64_t strip_rows(const columns *m, int64_t narrow, int64_t few) {
    return m->features <= narrow ? PIECE : few;
}

/* The next rows of the piece, at most `most`; false at its end. */
static inline bool next_strip(const columns *m, piece *p, int64_t most, strip *s) {
    int64_t left = p->end - p->first;
    s->first = p->first;
    s->rows = left < most ? left : most;
    for (int64_t i = 0; i < s->rows; i++) s->at[i] = columns_row(m, p->first + i) * m->features;
    for (int64_t i = 0; m->scale && i < s->rows; i++)
        s->unit[i] = columns_row(m, p->first + i) * m->scale->groups;
    p->first += s->rows;
    return s->rows > 0;
}

/* -- values behind a layer scale --------------------------------------------------------------- */

/* 1/s of two times eight columns: factor[j][unit of the row]; NULL without a layer scale. */
typedef struct tile_factors {
    const double *factor[2];
} tile_factors;

WIDE_INLINE tile_factors factors_at(const columns *m, int64_t k) {
    tile_factors f;
    for (int j = 0; j < 2; j++) f.factor[j] = m->scale->inverse + (k + j * WIDE) / m->scale->width;
    return f;
}

/* The columns before this one go by eights. */
static inline int64_t wide_end(const columns *m) {
    bool divided = m->scale && m->scale->width % WIDE;
    return divided ? 0 : m->features / WIDE * WIDE;
}

/* u = eight values of row r; scaled is a constant. */
WIDE_INLINE void load_scaled(wide *u, const strip *s, int64_t r, const real *x, bool scaled,
                             const double *factor) {
    wide_load(u, x);
    if (scaled) *u *= factor[s->unit[r]];
}

static inline double value_at(const columns *m, const strip *s, int64_t r, int64_t k,
                              const real *x) {
    double value = (double)x[s->at[r] + k];
    return m->scale ? value * m->scale->inverse[s->unit[r] + k / m->scale->width] : value;
}

/* [columns_capacity] doubles: the caller's, or of the tape; NULL when there is no memory. */
double *columns_scratch(const columns *m);

#endif
