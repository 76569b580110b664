/* column_writes.c -- passes of column_passes.h that write rows. While the layer scale has a `dx`,
 * they write a gradient, which they pass through the scale. */
#include <math.h>

#include "norm/kernels/row_blocks.h"

/* Passes the gradient in these rows through the layer scale. */
static void pass_through_scale(const column_passes *m, const row_block *s) {
    if (m->scale && m->scale->dx) layer_scale_backward(m->scale, m->index, s->first, s->rows);
}

SIMD_DOUBLE_INLINE void scale_tile(const row_block *s, int count, const real *x,
                                   const double *center, const double *scale, const double *shift,
                                   real *y, bool scaled, tile_factors f) {
    simd_double c[2], a[2], b[2], u;
    for (int j = 0; j < count; j++) {
        simd_double_load_double(&c[j], center + j * SIMD_WIDTH);
        simd_double_load_double(&a[j], scale + j * SIMD_WIDTH);
        simd_double_load_double(&b[j], shift + j * SIMD_WIDTH);
    }
    for (int64_t r = 0; r < s->rows; r++) {
        for (int j = 0; j < count; j++) {
            load_scaled(&u, s, r, x + s->at[r] + j * SIMD_WIDTH, scaled, f.factor[j]);
            if (!j) simd_double_prefetch(x + s->at[r], PREFETCH_BYTES);
            if (!j) simd_double_prefetch_write(y + s->at[r], PREFETCH_BYTES);
            u = (u - c[j]) * a[j] + b[j];
            simd_double_store(y + s->at[r] + j * SIMD_WIDTH, &u);
        }
    }
}

SIMD_DOUBLE_INLINE int64_t simd_scale(const column_passes *m, const row_block *s, const real *x,
                                      const double *center, const double *scale,
                                      const double *shift, real *y, bool scaled) {
    int64_t k = 0, end = simd_end(m);
    tile_factors f = {{NULL, NULL}};
    for (; k + 2 * SIMD_WIDTH <= end; k += 2 * SIMD_WIDTH) {
        if (scaled) f = factors_at(m, k);
        scale_tile(s, 2, x + k, center + k, scale + k, shift + k, y + k, scaled, f);
    }
    for (; k + SIMD_WIDTH <= end; k += SIMD_WIDTH) {
        if (scaled) f = factors_at(m, k);
        scale_tile(s, 1, x + k, center + k, scale + k, shift + k, y + k, scaled, f);
    }
    return k;
}

static __attribute__((noinline)) void block_scale(const column_passes *m, const row_block *s,
                                                  const real *x, const double *center,
                                                  const double *scale, const double *shift,
                                                  real *y) {
    int64_t done = m->scale ? simd_scale(m, s, x, center, scale, shift, y, true)
                            : simd_scale(m, s, x, center, scale, shift, y, false);
    for (int64_t r = 0; done < m->features && r < s->rows; r++)
        for (int64_t j = done; j < m->features; j++)
            y[s->at[r] + j] = (real)((value_at(m, s, r, j, x) - center[j]) * scale[j] + shift[j]);
}

void column_passes_scale(const column_passes *m, const real *x, const double *center,
                         const double *scale, const double *shift, real *y) {
    int64_t chunks = chunk_count(m);
#pragma omp parallel for num_threads(m->threads) schedule(static) if (chunks > 1)
    for (int64_t i = 0; i < chunks; i++) {
        row_chunk p = chunk_at(m, i);
        row_block s;
        while (next_block(m, &p, block_rows(m, ONE_TILE, PAIR), &s)) {
            block_scale(m, &s, x, center, scale, shift, y);
            pass_through_scale(m, &s);
        }
    }
}

void column_passes_fill(const column_passes *m, const double *value, real *y) {
    for (int64_t i = 0; i < m->rows; i++) {
        real *row = y + column_passes_row(m, i) * m->features;
        for (int64_t k = 0; k < m->features; k++) row[k] = (real)value[k];
    }
    if (m->scale && m->scale->dx) layer_scale_backward(m->scale, m->index, 0, m->rows);
}

/* SIMD sums of a chunk's rows: their norms, dx^2, (a g)^2. */
typedef struct norm_sums {
    simd_double row_norm, dx2[2], direct2[2];
} norm_sums;

typedef enum { NORMS_NONE, NORMS_SQUARES, NORMS_ROWS } norms_wanted;

typedef struct block_norms {
    norm_sums *sums;
    const double *weight;
    simd_double *row; /* [CHUNK] squares of weight (x - center), in eight partial sums each */
} block_norms;

SIMD_DOUBLE_INLINE void prefetch_three(const real *x, const real *g, real *dx) {
    simd_double_prefetch(x, PREFETCH_OF_THREE);
    simd_double_prefetch(g, PREFETCH_OF_THREE);
    simd_double_prefetch_write(dx, PREFETCH_OF_THREE);
}

/* sum += the roots of eight rows' totals. */
SIMD_DOUBLE_INLINE void add_row_norms(const simd_double *row, simd_double *sum) {
    simd_double square, root = {0};
    simd_double_totals(&square, row);
    for (int i = 0; i < SIMD_WIDTH; i++) root[i] = sqrt(square[i]);
    *sum += root;
}

/* line: coefficients of these columns. last: no column follows. The norms of eight rows are then
 * computed while the next rows are processed: roots are slow, and nothing else waits for them. */
SIMD_DOUBLE_INLINE void combine_tile(const row_block *s, int count, const real *x, const real *g,
                                     const column_passes_line *line, int64_t k, real *dx,
                                     bool scaled, tile_factors f, norms_wanted wanted,
                                     const block_norms *norms, bool last) {
    simd_double m[2], a[2], b[2], c[2], w[2], u, v, row, dx2[2] = {{0}}, g2[2] = {{0}};
    for (int j = 0; j < count; j++) {
        simd_double_load_double(&m[j], line->center + k + j * SIMD_WIDTH);
        simd_double_load_double(&a[j], line->a + k + j * SIMD_WIDTH);
        simd_double_load_double(&b[j], line->b + k + j * SIMD_WIDTH);
        simd_double_load_double(&c[j], line->c + k + j * SIMD_WIDTH);
        if (wanted == NORMS_ROWS)
            simd_double_load_double(&w[j], norms->weight + k + j * SIMD_WIDTH);
        if (wanted) dx2[j] = norms->sums->dx2[j];
    }
    for (int64_t r = 0; r < s->rows; r++) {
        if (wanted == NORMS_ROWS) row = k ? norms->row[r] : (simd_double){0};
        for (int j = 0; j < count; j++) {
            int64_t at = s->at[r] + k + j * SIMD_WIDTH;
            load_scaled(&u, s, r, x + at, scaled, f.factor[j]);
            simd_double_load(&v, g + at);
            if (!j) prefetch_three(x + at, g + at, dx + at);
            u -= m[j];
            if (wanted == NORMS_ROWS) row += w[j] * u * (w[j] * u);
            u = a[j] * v + (b[j] + c[j] * u);
            simd_double_store(dx + at, &u);
            if (wanted) dx2[j] += u * u, g2[j] += v * v;
        }
        if (wanted == NORMS_ROWS) norms->row[r] = row;
        if (wanted == NORMS_ROWS && last && r % SIMD_WIDTH == SIMD_WIDTH - 1)
            add_row_norms(norms->row + r + 1 - SIMD_WIDTH, &norms->sums->row_norm);
    }
    for (int j = 0; wanted && j < count; j++) {
        norms->sums->dx2[j] = dx2[j];
        norms->sums->direct2[j] += a[j] * a[j] * g2[j];
    }
}

SIMD_DOUBLE_INLINE int64_t simd_combine(const column_passes *m, const row_block *s, const real *x,
                                        const real *g, const column_passes_line *line, real *dx,
                                        bool scaled, norms_wanted wanted,
                                        const block_norms *norms) {
    int64_t k = 0, end = simd_end(m);
    tile_factors f = {{NULL, NULL}};
    for (; k + 2 * SIMD_WIDTH <= end; k += 2 * SIMD_WIDTH) {
        if (scaled) f = factors_at(m, k);
        combine_tile(s, 2, x, g, line, k, dx, scaled, f, wanted, norms,
                     k + 2 * SIMD_WIDTH == m->features);
    }
    for (; k + SIMD_WIDTH <= end; k += SIMD_WIDTH) {
        if (scaled) f = factors_at(m, k);
        combine_tile(s, 1, x, g, line, k, dx, scaled, f, wanted, norms,
                     k + SIMD_WIDTH == m->features);
    }
    return k;
}

/* Processes columns from `done` on; norms may be NULL. */
static void combine_rest(const column_passes *m, const row_block *s, const real *x, const real *g,
                         const column_passes_line *line, real *dx, int64_t done,
                         const block_norms *norms) {
    for (int64_t r = 0; done < m->features && r < s->rows; r++) {
        if (norms && norms->weight && !done) norms->row[r] = (simd_double){0};
        for (int64_t j = done; j < m->features; j++) {
            int64_t at = s->at[r] + j;
            const double u = value_at(m, s, r, j, x) - line->center[j], v = (double)g[at];
            const double t = line->a[j] * v + (line->b[j] + line->c[j] * u);
            dx[at] = (real)t;
            if (!norms) continue;
            norms->sums->dx2[0][0] += t * t;
            norms->sums->direct2[0][0] += line->a[j] * line->a[j] * (v * v);
            if (norms->weight) norms->row[r][0] += norms->weight[j] * u * (norms->weight[j] * u);
        }
    }
}

static __attribute__((noinline)) void block_combine(const column_passes *m, const row_block *s,
                                                    const real *x, const real *g,
                                                    const column_passes_line *line, real *dx) {
    const int64_t done = m->scale ? simd_combine(m, s, x, g, line, dx, true, NORMS_NONE, NULL)
                                  : simd_combine(m, s, x, g, line, dx, false, NORMS_NONE, NULL);
    combine_rest(m, s, x, g, line, dx, done, NULL);
}

/* Adds the norms of rows from .. rows-1. `row` has space up to the next multiple of eight. */
static void add_last_norms(simd_double *row, int64_t from, int64_t rows, simd_double *sum) {
    for (int64_t r = rows; r % SIMD_WIDTH; r++) row[r] = (simd_double){0};
    for (int64_t r = from; r < rows; r += SIMD_WIDTH) add_row_norms(row + r, sum);
}

/* block_combine with norms. */
static __attribute__((noinline)) void block_combine_norms(const column_passes *m,
                                                          const row_block *s, const real *x,
                                                          const real *g,
                                                          const column_passes_line *line, real *dx,
                                                          const double *weight, norm_sums *sums) {
    simd_double row[CHUNK];
    const block_norms norms = {sums, weight, row};
    const int64_t done =
        m->scale && weight ? simd_combine(m, s, x, g, line, dx, true, NORMS_ROWS, &norms)
        : m->scale         ? simd_combine(m, s, x, g, line, dx, true, NORMS_SQUARES, &norms)
        : weight           ? simd_combine(m, s, x, g, line, dx, false, NORMS_ROWS, &norms)
                           : simd_combine(m, s, x, g, line, dx, false, NORMS_SQUARES, &norms);
    combine_rest(m, s, x, g, line, dx, done, &norms);
    const int64_t summed = done == m->features ? s->rows / SIMD_WIDTH * SIMD_WIDTH : 0;
    if (weight) add_last_norms(row, summed, s->rows, &sums->row_norm);
}

/* lane[i][j] += (weight g)^2 in rows of the same parity i; weight NULL: ones. */
SIMD_DOUBLE_INLINE void add_squares(const row_block *s, int count, const real *g,
                                    const double *weight, simd_double lane[2][2]) {
    simd_double w[2] = {{1, 1, 1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 1, 1}}, own[2][2], u;
    memcpy(own, lane, sizeof own);
    for (int j = 0; weight && j < count; j++)
        simd_double_load_double(&w[j], weight + j * SIMD_WIDTH);
    int64_t r = 0;
    for (; r + 2 <= s->rows; r += 2)
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < count; j++) {
                simd_double_load(&u, g + s->at[r + i] + j * SIMD_WIDTH);
                u *= w[j];
                own[i][j] += u * u;
            }
    for (int j = 0; r < s->rows && j < count; j++) {
        simd_double_load(&u, g + s->at[r] + j * SIMD_WIDTH);
        u *= w[j];
        own[0][j] += u * u;
    }
    memcpy(lane, own, sizeof own);
}

/* Sum over the rows of (weight g)^2; weight NULL: ones. */
static double block_squares(const column_passes *m, const row_block *s, const real *g,
                            const double *weight) {
    simd_double lane[2][2] = {{{0}}};
    int64_t k = 0;
    for (; k + 2 * SIMD_WIDTH <= m->features; k += 2 * SIMD_WIDTH)
        add_squares(s, 2, g + k, weight ? weight + k : NULL, lane);
    for (; k + SIMD_WIDTH <= m->features; k += SIMD_WIDTH)
        add_squares(s, 1, g + k, weight ? weight + k : NULL, lane);
    const simd_double all = (lane[0][0] + lane[0][1]) + (lane[1][0] + lane[1][1]);
    double sum = simd_double_total(&all);
    for (int64_t r = 0; k < m->features && r < s->rows; r++)
        for (int64_t j = k; j < m->features; j++) {
            const double t = (weight ? weight[j] : 1) * (double)g[s->at[r] + j];
            sum += t * t;
        }
    return sum;
}

sr_status column_passes_combine(const column_passes *m, const real *x, const real *g,
                                const column_passes_line *line, real *dx, dx_norms *norms) {
    int64_t chunks = chunk_count(m);
    double *part = norms ? column_passes_scratch(m) : NULL; /* three numbers per chunk */
    if (norms && !part) return SR_MEMORY;
#pragma omp parallel for num_threads(m->threads) schedule(static) if (chunks > 1)
    for (int64_t i = 0; i < chunks; i++) {
        row_chunk p = chunk_at(m, i);
        row_block s;
        norm_sums sums = {0};
        while (next_block(m, &p, block_rows(m, ONE_TILE, SIMD_WIDTH), &s)) {
            if (part)
                block_combine_norms(m, &s, x, g, line, dx, norms->weight, &sums);
            else
                block_combine(m, &s, x, g, line, dx);
            pass_through_scale(m, &s);
        }
        if (!part) continue;
        part[3 * i] = simd_double_total(&sums.row_norm);
        part[3 * i + 1] = simd_double_total(&sums.dx2[0]) + simd_double_total(&sums.dx2[1]);
        part[3 * i + 2] = simd_double_total(&sums.direct2[0]) + simd_double_total(&sums.direct2[1]);
    }
    if (norms) {
        norms->row_norm = norms->dx2 = norms->direct2 = 0;
        for (int64_t i = 0; i < chunks; i++, part += 3) {
            norms->row_norm += part[0];
            norms->dx2 += part[1];
            norms->direct2 += part[2];
        }
    }
    return SR_OK;
}

sr_status column_passes_squares(const column_passes *m, const real *g, const double *weight,
                                double *sum) {
    int64_t chunks = chunk_count(m);
    double *part = column_passes_scratch(m);
    *sum = 0;
    if (!part) return SR_MEMORY;
#pragma omp parallel for num_threads(m->threads) schedule(static) if (chunks > 1)
    for (int64_t i = 0; i < chunks; i++) {
        row_chunk p = chunk_at(m, i);
        row_block s;
        part[i] = 0;
        while (next_block(m, &p, block_rows(m, NARROW, PAIR), &s))
            part[i] += block_squares(m, &s, g, weight);
    }
    for (int64_t i = 0; i < chunks; i++) *sum += part[i];
    return SR_OK;
}
