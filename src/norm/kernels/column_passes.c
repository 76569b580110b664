/* column_passes.c -- passes that sum over columns: moments and gradient sums.
 *
 * Moments: inside a chunk of CHUNK rows, one pass over deviations from the chunk's first row c,
 *
 *     S1 = sum (x - c)    S2 = sum (x - c)^2    mean = c + S1/n    m2 = S2 - S1^2/n
 *
 * c is one of the n values, so (c - mean)^2 <= n * variance. The subtraction loses at most about n
 * * 2^-53 of m2, and a constant column gives exactly 0. Chunks are merged after Chan, Golub and
 * LeVeque (1979):
 *
 *     delta = mean_b - mean_a    mean = mean_a + delta n_b/n    m2 = m2_a + m2_b +
 *         delta^2 n_a n_b/n
 *
 * All sums and all differences from a mean are in double. */
#include "norm/kernels/column_passes.h"

#include <string.h>

#include "norm/kernels/row_blocks.h"

column_passes column_passes_valid(const norm_call *c) {
    const norm_rows *r = c->rows;
    return (column_passes){r->valid, c->features, r->index, c->threads,
                           c->tape,  NULL,        c->scale, false};
}

column_passes column_passes_all(const norm_call *c) {
    return (column_passes){c->rows->rows, c->features, NULL,     c->threads,
                           c->tape,       NULL,        c->scale, false};
}

sr_status column_passes_padded(const norm_call *c, column_passes *m) {
    const norm_rows *r = c->rows;
    int32_t *index = tape_alloc(c->tape, (size_t)(r->rows - r->valid + 1) * sizeof *index);
    if (!index) return SR_MEMORY;
    *m = (column_passes){0, c->features, index, c->threads, c->tape, NULL, c->scale, false};
    for (int64_t i = 0; r->mask && i < r->rows; i++)
        if (!r->mask[i]) index[m->rows++] = (int32_t)i;
    return SR_OK;
}

void column_passes_scale_rows(const column_passes *m, layer_scale_fn *step) {
    int64_t chunks = chunk_count(m);
#pragma omp parallel for num_threads(m->threads) schedule(static) if (chunks > 1)
    for (int64_t i = 0; i < chunks; i++) {
        row_chunk p = chunk_at(m, i);
        step(m->scale, m->index, p.first, p.end - p.first);
    }
}

/* Distance of a chunk's arrays [d] of sums. It is not a multiple of a page for any usual d.
 * Otherwise the processor would mistake a load of one array for the store to another. */
static int64_t padded_width(int64_t d) {
    return (d + SIMD_WIDTH - 1) / SIMD_WIDTH * SIMD_WIDTH + PAD;
}

/* Three arrays per chunk, the most that a pass uses. */
int64_t column_passes_scratch_count(int64_t rows, int64_t features) {
    return 3 * ((rows + CHUNK - 1) / CHUNK + 1) * padded_width(features);
}

double *column_passes_scratch(const column_passes *m) {
    int64_t count = column_passes_scratch_count(m->rows, m->features);
    return m->scratch ? m->scratch : tape_alloc(m->tape, (size_t)count * sizeof *m->scratch);
}

/* -- moments ----------------------------------------------------------------------------------- */

/* Adds deviations and their squares for `count` (1 or 2) times 8 columns. x, shift, s1, s2 point at
 * the first column. */
SIMD_DOUBLE_INLINE void add_deviations(const row_block *s, int count, const real *x,
                                       const double *shift, double *s1, double *s2, bool scaled,
                                       tile_factors f) {
    simd_double c[2], a[4] = {0}, b[4] = {0}, u;
    int64_t r = 0;
    for (int j = 0; j < count; j++) simd_double_load_double(&c[j], shift + j * SIMD_WIDTH);
    for (; r + 2 <= s->rows; r += 2) {
        for (int j = 0; j < 2 * count; j++) {
            const real *from = x + s->at[r + j % 2] + j / 2 * SIMD_WIDTH;
            load_scaled(&u, s, r + j % 2, from, scaled, f.factor[j / 2]);
            if (j < 2) simd_double_prefetch(from, PREFETCH_BYTES);
            u -= c[j / 2];
            a[j] += u;
            b[j] += u * u;
        }
    }
    for (int j = 0; r < s->rows && j < count; j++) {
        load_scaled(&u, s, r, x + s->at[r] + j * SIMD_WIDTH, scaled, f.factor[j]);
        u -= c[j];
        a[2 * j] += u;
        b[2 * j] += u * u;
    }
    for (int j = 0; j < count; j++) {
        simd_double_load_double(&u, s1 + j * SIMD_WIDTH);
        u += a[2 * j] + a[2 * j + 1];
        simd_double_store_double(s1 + j * SIMD_WIDTH, &u);
        simd_double_load_double(&u, s2 + j * SIMD_WIDTH);
        u += b[2 * j] + b[2 * j + 1];
        simd_double_store_double(s2 + j * SIMD_WIDTH, &u);
    }
}

SIMD_DOUBLE_INLINE int64_t simd_moments(const column_passes *m, const row_block *s, const real *x,
                                        const double *shift, double *s1, double *s2, bool scaled) {
    int64_t k = 0, end = simd_end(m);
    tile_factors f = {{NULL, NULL}};
    for (; k + 2 * SIMD_WIDTH <= end; k += 2 * SIMD_WIDTH) {
        if (scaled) f = factors_at(m, k);
        add_deviations(s, 2, x + k, shift + k, s1 + k, s2 + k, scaled, f);
    }
    for (; k + SIMD_WIDTH <= end; k += SIMD_WIDTH) {
        if (scaled) f = factors_at(m, k);
        add_deviations(s, 1, x + k, shift + k, s1 + k, s2 + k, scaled, f);
    }
    return k;
}

static __attribute__((noinline)) void block_moments(const column_passes *m, const row_block *s,
                                                    const real *x, const double *shift, double *s1,
                                                    double *s2) {
    int64_t done = m->scale ? simd_moments(m, s, x, shift, s1, s2, true)
                            : simd_moments(m, s, x, shift, s1, s2, false);
    for (int64_t r = 0; done < m->features && r < s->rows; r++) {
        for (int64_t j = done; j < m->features; j++) {
            double u = value_at(m, s, r, j, x) - shift[j];
            s1[j] += u;
            s2[j] += u * u;
        }
    }
}

/* Computes mean and m2 of one chunk; shift [d] is scratch memory. */
static void chunk_moments(const column_passes *m, const real *x, row_chunk p, double *shift,
                          double *mean, double *m2) {
    int64_t d = m->features, n = p.end - p.first;
    row_block s;
    memset(mean, 0, (size_t)d * sizeof *mean);
    memset(m2, 0, (size_t)d * sizeof *m2);
    for (bool first = true; next_block(m, &p, block_rows(m, NARROW, 2 * PAIR), &s); first = false) {
        if (m->makes_scale) layer_scale_make(m->scale, m->index, s.first, s.rows);
        for (int64_t k = 0; first && k < d; k++) shift[k] = value_at(m, &s, 0, k, x);
        block_moments(m, &s, x, shift, mean, m2);
    }
    for (int64_t k = 0; k < d; k++) {
        double middle = mean[k] / (double)n, rest = m2[k] - mean[k] * middle;
        mean[k] = shift[k] + middle;
        m2[k] = rest < 0 ? 0 : rest;
    }
}

void column_passes_merge(int64_t d, double n_a, double *mean, double *m2, double n_b,
                         const double *mean_b, const double *m2_b) {
    double n = n_a + n_b;
    for (int64_t k = 0; k < d; k++) {
        double delta = mean_b[k] - mean[k];
        mean[k] += delta * (n_b / n);
        m2[k] += m2_b[k] + delta * delta * (n_a * n_b / n);
    }
}

sr_status column_passes_moments(const column_passes *m, const real *x, double *mean, double *m2) {
    int64_t d = m->features, chunks = chunk_count(m), w = padded_width(d);
    memset(mean, 0, (size_t)d * sizeof *mean);
    memset(m2, 0, (size_t)d * sizeof *m2);
    if (!chunks) return SR_OK;
    double *part = column_passes_scratch(m);
    if (!part) return SR_MEMORY;
#pragma omp parallel for num_threads(m->threads) schedule(static) if (chunks > 1)
    for (int64_t i = 0; i < chunks; i++) {
        double *p = part + 3 * i * w;
        chunk_moments(m, x, chunk_at(m, i), p, p + w, p + 2 * w);
    }
    for (int64_t i = 0; i < chunks; i++) {
        row_chunk p = chunk_at(m, i);
        const double *b = part + 3 * i * w;
        column_passes_merge(d, (double)p.first, mean, m2, (double)(p.end - p.first), b + w,
                            b + 2 * w);
    }
    return SR_OK;
}

/* -- gradient sums ----------------------------------------------------------------------------- */

/* Adds sums of g and of g (x - center); arguments as in add_deviations. */
SIMD_DOUBLE_INLINE void add_products(const row_block *s, int count, const real *x, const real *g,
                                     const double *center, double *sg, double *sgx, bool scaled,
                                     tile_factors f) {
    simd_double c[2], a[4] = {0}, b[4] = {0}, u, v;
    int64_t r = 0;
    for (int j = 0; j < count; j++) simd_double_load_double(&c[j], center + j * SIMD_WIDTH);
    for (; r + 2 <= s->rows; r += 2) {
        for (int j = 0; j < 2 * count; j++) {
            int64_t at = s->at[r + j % 2] + j / 2 * SIMD_WIDTH;
            load_scaled(&u, s, r + j % 2, x + at, scaled, f.factor[j / 2]);
            simd_double_load(&v, g + at);
            if (j < 2)
                simd_double_prefetch(x + at, PREFETCH_BYTES),
                    simd_double_prefetch(g + at, PREFETCH_BYTES);
            a[j] += v;
            b[j] += v * (u - c[j / 2]);
        }
    }
    for (int j = 0; r < s->rows && j < count; j++) {
        load_scaled(&u, s, r, x + s->at[r] + j * SIMD_WIDTH, scaled, f.factor[j]);
        simd_double_load(&v, g + s->at[r] + j * SIMD_WIDTH);
        a[2 * j] += v;
        b[2 * j] += v * (u - c[j]);
    }
    for (int j = 0; j < count; j++) {
        simd_double_load_double(&u, sg + j * SIMD_WIDTH);
        u += a[2 * j] + a[2 * j + 1];
        simd_double_store_double(sg + j * SIMD_WIDTH, &u);
        simd_double_load_double(&u, sgx + j * SIMD_WIDTH);
        u += b[2 * j] + b[2 * j + 1];
        simd_double_store_double(sgx + j * SIMD_WIDTH, &u);
    }
}

SIMD_DOUBLE_INLINE int64_t simd_products(const column_passes *m, const row_block *s, const real *x,
                                         const real *g, const double *center, double *sg,
                                         double *sgx, bool scaled) {
    int64_t k = 0, end = simd_end(m);
    tile_factors f = {{NULL, NULL}};
    for (; k + 2 * SIMD_WIDTH <= end; k += 2 * SIMD_WIDTH) {
        if (scaled) f = factors_at(m, k);
        add_products(s, 2, x + k, g + k, center + k, sg + k, sgx + k, scaled, f);
    }
    for (; k + SIMD_WIDTH <= end; k += SIMD_WIDTH) {
        if (scaled) f = factors_at(m, k);
        add_products(s, 1, x + k, g + k, center + k, sg + k, sgx + k, scaled, f);
    }
    return k;
}

static __attribute__((noinline)) void block_products(const column_passes *m, const row_block *s,
                                                     const real *x, const real *g,
                                                     const double *center, double *sg,
                                                     double *sgx) {
    int64_t done = m->scale ? simd_products(m, s, x, g, center, sg, sgx, true)
                            : simd_products(m, s, x, g, center, sg, sgx, false);
    for (int64_t r = 0; done < m->features && r < s->rows; r++) {
        for (int64_t j = done; j < m->features; j++) {
            double v = (double)g[s->at[r] + j];
            sg[j] += v;
            sgx[j] += v * (value_at(m, s, r, j, x) - center[j]);
        }
    }
}

sr_status column_passes_gradient_sums(const column_passes *m, const real *x, const real *g,
                                      const double *center, const double *scale, double *sum_g,
                                      double *sum_gx) {
    int64_t d = m->features, chunks = chunk_count(m), w = padded_width(d);
    double *part = column_passes_scratch(m);
    if (!part) return SR_MEMORY;
#pragma omp parallel for num_threads(m->threads) schedule(static) if (chunks > 1)
    for (int64_t i = 0; i < chunks; i++) {
        double *p = part + 2 * i * w;
        row_chunk rows = chunk_at(m, i);
        row_block s;
        memset(p, 0, (size_t)d * sizeof *p);
        memset(p + w, 0, (size_t)d * sizeof *p);
        while (next_block(m, &rows, block_rows(m, NARROW, PAIR), &s))
            block_products(m, &s, x, g, center, p, p + w);
    }
    memset(sum_g, 0, (size_t)d * sizeof *sum_g);
    memset(sum_gx, 0, (size_t)d * sizeof *sum_gx);
    for (int64_t i = 0; i < chunks; i++) {
        const double *p = part + 2 * i * w;
        for (int64_t k = 0; k < d; k++) {
            sum_g[k] += p[k];
            sum_gx[k] += p[w + k];
        }
    }
    for (int64_t k = 0; k < d; k++) sum_gx[k] *= scale[k];
    return SR_OK;
}
