/* columns.c -- see columns.h.
 *
 * Moments: inside a piece of PIECE rows, one pass over deviations from the piece's first row c,
 *
 *     S1 = sum (x - c)    S2 = sum (x - c)^2    mean = c + S1/n    m2 = S2 - S1^2/n
 *
 * Because c is one of the n values, (c - mean)^2 <= n * variance: the subtraction loses at most
 * about n * 2^-53 of m2, and a constant column gives exactly 0. Pieces are merged after Chan,
 * Golub and LeVeque (1979):
 *
 *     delta = mean_b - mean_a    mean = mean_a + delta n_b/n    m2 = m2_a + m2_b + delta^2 n_a
 * n_b/n
 *
 * All sums and all differences from a mean are in double.
 *
 * Speed: these passes should cost what their memory traffic costs. A piece is walked in strips of
 * rows, a strip in tiles of 16 columns whose sums or coefficients stay in registers while the rows
 * of the strip go by; two rows at a time hide the latency of an addition. Narrow rows make strips
 * of a whole piece, which fits the first cache; wide rows go by twos and fours (sums) or singly,
 * because memory is fetched ahead only along long runs, and the sums ask for theirs themselves.
 */
#include "columns.h"

#include <math.h>
#include <string.h>

#include "wide.h"

enum { PIECE = 256, NARROW = 32, PAIR = 2, PAD = 24, AHEAD_BYTES = 32768 };

typedef struct piece {
    int64_t first, end; /* rows of the pass */
} piece;

/* Rows that are walked together: where each starts. */
typedef struct strip {
    int64_t rows, at[PIECE];
} strip;

columns columns_valid(const norm_call *c) {
    const norm_rows *r = c->rows;
    return (columns){r->valid, c->features, r->index, c->threads, c->tape, NULL};
}

columns columns_all(const norm_call *c) {
    return (columns){c->rows->rows, c->features, NULL, c->threads, c->tape, NULL};
}

sr_status columns_padded(const norm_call *c, columns *m) {
    const norm_rows *r = c->rows;
    int32_t *index = tape_alloc(c->tape, (size_t)(r->rows - r->valid + 1) * sizeof *index);
    if (!index) return SR_MEMORY;
    *m = (columns){0, c->features, index, c->threads, c->tape, NULL};
    for (int64_t i = 0, next = 0; i < r->rows && r->index; i++) {
        if (next < r->valid && r->index[next] == i)
            next++;
        else
            index[m->rows++] = (int32_t)i;
    }
    return SR_OK;
}

static int64_t piece_count(const columns *m) {
    return (m->rows + PIECE - 1) / PIECE;
}

static piece piece_at(const columns *m, int64_t number) {
    int64_t first = number * PIECE, end = first + PIECE;
    return (piece){first, end < m->rows ? end : m->rows};
}

/* The next rows of the piece, at most `most` where rows are wide; false at its end. */
static bool next_strip(const columns *m, piece *p, int64_t most, strip *s) {
    int64_t left = p->end - p->first;
    if (m->features <= NARROW) most = PIECE;
    s->rows = left < most ? left : most;
    for (int64_t i = 0; i < s->rows; i++)
        s->at[i] = (m->index ? m->index[p->first + i] : p->first + i) * m->features;
    p->first += s->rows;
    return s->rows > 0;
}

/* Distance of the arrays [d] of a piece's sums: not a multiple of a page for any usual d, where
 * the processor would take a load of one array for the store to another. */
static int64_t padded_width(int64_t d) {
    return (d + WIDE - 1) / WIDE * WIDE + PAD;
}

/* Three arrays for each piece, the most that a pass takes. */
int64_t columns_room(int64_t rows, int64_t features) {
    return 3 * ((rows + PIECE - 1) / PIECE + 1) * padded_width(features);
}

static double *scratch(const columns *m) {
    int64_t count = columns_room(m->rows, m->features);
    return m->room ? m->room : tape_alloc(m->tape, (size_t)count * sizeof *m->room);
}

/* Asks for what is read some rows later; any address is allowed. */
WIDE_INLINE void fetch_ahead(const real *x) {
    __builtin_prefetch((const void *)((uintptr_t)x + AHEAD_BYTES));
}

/* -- moments ------------------------------------------------------------------------------------
 */

/* sums of deviations and their squares of `count` (1 or 2) times 8 columns; x, shift, s1, s2 point
 * at the first of them. */
WIDE_INLINE void add_deviations(const strip *s, int count, const real *x, const double *shift,
                                double *s1, double *s2) {
    wide c[2], a[4] = {0}, b[4] = {0}, u;
    int64_t r = 0;
    for (int j = 0; j < count; j++) wide_load_double(&c[j], shift + j * WIDE);
    for (; r + 2 <= s->rows; r += 2) {
        for (int j = 0; j < 2 * count; j++) {
            const real *from = x + s->at[r + j % 2] + j / 2 * WIDE;
            wide_load(&u, from);
            if (j < 2) fetch_ahead(from);
            u -= c[j / 2];
            a[j] += u;
            b[j] += u * u;
        }
    }
    for (int j = 0; r < s->rows && j < count; j++) {
        wide_load(&u, x + s->at[r] + j * WIDE);
        u -= c[j];
        a[2 * j] += u;
        b[2 * j] += u * u;
    }
    for (int j = 0; j < count; j++) {
        wide_load_double(&u, s1 + j * WIDE);
        u += a[2 * j] + a[2 * j + 1];
        wide_store_double(s1 + j * WIDE, &u);
        wide_load_double(&u, s2 + j * WIDE);
        u += b[2 * j] + b[2 * j + 1];
        wide_store_double(s2 + j * WIDE, &u);
    }
}

static __attribute__((noinline)) void strip_moments(const strip *s, int64_t d, const real *x,
                                                    const double *shift, double *s1, double *s2) {
    int64_t k = 0;
    for (; k + 2 * WIDE <= d; k += 2 * WIDE) add_deviations(s, 2, x + k, shift + k, s1 + k, s2 + k);
    for (; k + WIDE <= d; k += WIDE) add_deviations(s, 1, x + k, shift + k, s1 + k, s2 + k);
    for (int64_t r = 0; k < d && r < s->rows; r++) {
        for (int64_t j = k; j < d; j++) {
            double u = (double)x[s->at[r] + j] - shift[j];
            s1[j] += u;
            s2[j] += u * u;
        }
    }
}

/* mean and m2 of one piece; shift [d] is scratch. */
static void piece_moments(const columns *m, const real *x, piece p, double *shift, double *mean,
                          double *m2) {
    int64_t d = m->features, n = p.end - p.first;
    strip s;
    memset(mean, 0, (size_t)d * sizeof *mean);
    memset(m2, 0, (size_t)d * sizeof *m2);
    for (bool first = true; next_strip(m, &p, 2 * PAIR, &s); first = false) {
        for (int64_t k = 0; first && k < d; k++) shift[k] = (double)x[s.at[0] + k];
        strip_moments(&s, d, x, shift, mean, m2);
    }
    for (int64_t k = 0; k < d; k++) {
        double middle = mean[k] / (double)n, rest = m2[k] - mean[k] * middle;
        mean[k] = shift[k] + middle;
        m2[k] = rest < 0 ? 0 : rest;
    }
}

/* Joins the piece (n_b rows, mean_b, m2_b) to the n_a rows in mean and m2. */
static void merge_moments(int64_t d, double n_a, double *mean, double *m2, double n_b,
                          const double *mean_b, const double *m2_b) {
    double n = n_a + n_b;
    for (int64_t k = 0; k < d; k++) {
        double delta = mean_b[k] - mean[k];
        mean[k] += delta * (n_b / n);
        m2[k] += m2_b[k] + delta * delta * (n_a * n_b / n);
    }
}

sr_status columns_moments(const columns *m, const real *x, double *mean, double *m2) {
    int64_t d = m->features, pieces = piece_count(m), w = padded_width(d);
    memset(mean, 0, (size_t)d * sizeof *mean);
    memset(m2, 0, (size_t)d * sizeof *m2);
    if (!pieces) return SR_OK;
    double *part = scratch(m);
    if (!part) return SR_MEMORY;
#pragma omp parallel for num_threads(m->threads) schedule(static) if (pieces > 1)
    for (int64_t i = 0; i < pieces; i++) {
        double *p = part + 3 * i * w;
        piece_moments(m, x, piece_at(m, i), p, p + w, p + 2 * w);
    }
    for (int64_t i = 0; i < pieces; i++) {
        piece p = piece_at(m, i);
        const double *b = part + 3 * i * w;
        merge_moments(d, (double)p.first, mean, m2, (double)(p.end - p.first), b + w, b + 2 * w);
    }
    return SR_OK;
}

/* -- gradient sums ------------------------------------------------------------------------------
 */

/* Sums of g and g (x - center), as add_deviations. */
WIDE_INLINE void add_products(const strip *s, int count, const real *x, const real *g,
                              const double *center, double *sg, double *sgx) {
    wide c[2], a[4] = {0}, b[4] = {0}, u, v;
    int64_t r = 0;
    for (int j = 0; j < count; j++) wide_load_double(&c[j], center + j * WIDE);
    for (; r + 2 <= s->rows; r += 2) {
        for (int j = 0; j < 2 * count; j++) {
            int64_t at = s->at[r + j % 2] + j / 2 * WIDE;
            wide_load(&u, x + at);
            wide_load(&v, g + at);
            if (j < 2) fetch_ahead(x + at), fetch_ahead(g + at);
            a[j] += v;
            b[j] += v * (u - c[j / 2]);
        }
    }
    for (int j = 0; r < s->rows && j < count; j++) {
        wide_load(&u, x + s->at[r] + j * WIDE);
        wide_load(&v, g + s->at[r] + j * WIDE);
        a[2 * j] += v;
        b[2 * j] += v * (u - c[j]);
    }
    for (int j = 0; j < count; j++) {
        wide_load_double(&u, sg + j * WIDE);
        u += a[2 * j] + a[2 * j + 1];
        wide_store_double(sg + j * WIDE, &u);
        wide_load_double(&u, sgx + j * WIDE);
        u += b[2 * j] + b[2 * j + 1];
        wide_store_double(sgx + j * WIDE, &u);
    }
}

static __attribute__((noinline)) void strip_products(const strip *s, int64_t d, const real *x,
                                                     const real *g, const double *center,
                                                     double *sg, double *sgx) {
    int64_t k = 0;
    for (; k + 2 * WIDE <= d; k += 2 * WIDE)
        add_products(s, 2, x + k, g + k, center + k, sg + k, sgx + k);
    for (; k + WIDE <= d; k += WIDE) add_products(s, 1, x + k, g + k, center + k, sg + k, sgx + k);
    for (int64_t r = 0; k < d && r < s->rows; r++) {
        for (int64_t j = k; j < d; j++) {
            double v = (double)g[s->at[r] + j];
            sg[j] += v;
            sgx[j] += v * ((double)x[s->at[r] + j] - center[j]);
        }
    }
}

static void piece_products(const columns *m, const real *x, const real *g, piece p,
                           const double *center, double *sg, double *sgx) {
    strip s;
    memset(sg, 0, (size_t)m->features * sizeof *sg);
    memset(sgx, 0, (size_t)m->features * sizeof *sgx);
    while (next_strip(m, &p, PAIR, &s)) strip_products(&s, m->features, x, g, center, sg, sgx);
}

sr_status columns_gradient_sums(const columns *m, const real *x, const real *g,
                                const double *center, const double *scale, double *sum_g,
                                double *sum_gx) {
    int64_t d = m->features, pieces = piece_count(m), w = padded_width(d);
    double *part = scratch(m);
    if (!part) return SR_MEMORY;
#pragma omp parallel for num_threads(m->threads) schedule(static) if (pieces > 1)
    for (int64_t i = 0; i < pieces; i++) {
        double *p = part + 2 * i * w;
        piece_products(m, x, g, piece_at(m, i), center, p, p + w);
    }
    memset(sum_g, 0, (size_t)d * sizeof *sum_g);
    memset(sum_gx, 0, (size_t)d * sizeof *sum_gx);
    for (int64_t i = 0; i < pieces; i++) {
        const double *p = part + 2 * i * w;
        for (int64_t k = 0; k < d; k++) {
            sum_g[k] += p[k];
            sum_gx[k] += p[w + k];
        }
    }
    for (int64_t k = 0; k < d; k++) sum_gx[k] *= scale[k];
    return SR_OK;
}

/* -- element by element --------------------------------------------------------------------------
 */

WIDE_INLINE void scale_tile(const strip *s, int count, const real *x, const double *center,
                            const double *scale, const double *shift, real *y) {
    wide c[2], a[2], b[2], u;
    for (int j = 0; j < count; j++) {
        wide_load_double(&c[j], center + j * WIDE);
        wide_load_double(&a[j], scale + j * WIDE);
        wide_load_double(&b[j], shift + j * WIDE);
    }
    for (int64_t r = 0; r < s->rows; r++) {
        for (int j = 0; j < count; j++) {
            wide_load(&u, x + s->at[r] + j * WIDE);
            u = (u - c[j]) * a[j] + b[j];
            wide_store(y + s->at[r] + j * WIDE, &u);
        }
    }
}

static __attribute__((noinline)) void strip_scale(const strip *s, int64_t d, const real *x,
                                                  const double *center, const double *scale,
                                                  const double *shift, real *y) {
    int64_t k = 0;
    for (; k + 2 * WIDE <= d; k += 2 * WIDE)
        scale_tile(s, 2, x + k, center + k, scale + k, shift + k, y + k);
    for (; k + WIDE <= d; k += WIDE)
        scale_tile(s, 1, x + k, center + k, scale + k, shift + k, y + k);
    for (int64_t r = 0; k < d && r < s->rows; r++)
        for (int64_t j = k; j < d; j++)
            y[s->at[r] + j] = (real)(((double)x[s->at[r] + j] - center[j]) * scale[j] + shift[j]);
}

void columns_scale(const columns *m, const real *x, const double *center, const double *scale,
                   const double *shift, real *y) {
    int64_t pieces = piece_count(m);
#pragma omp parallel for num_threads(m->threads) schedule(static) if (pieces > 1)
    for (int64_t i = 0; i < pieces; i++) {
        piece p = piece_at(m, i);
        strip s;
        while (next_strip(m, &p, 1, &s)) strip_scale(&s, m->features, x, center, scale, shift, y);
    }
}

void columns_fill(const columns *m, const double *value, real *y) {
    for (int64_t i = 0; i < m->rows; i++) {
        real *row = y + (m->index ? m->index[i] : i) * m->features;
        for (int64_t k = 0; k < m->features; k++) row[k] = (real)value[k];
    }
}

/* line: of these columns. */
WIDE_INLINE void combine_tile(const strip *s, int count, const real *x, const real *g,
                              const columns_line *line, int64_t k, real *dx) {
    wide m[2], a[2], b[2], c[2], u, v;
    for (int j = 0; j < count; j++) {
        wide_load_double(&m[j], line->center + k + j * WIDE);
        wide_load_double(&a[j], line->a + k + j * WIDE);
        wide_load_double(&b[j], line->b + k + j * WIDE);
        wide_load_double(&c[j], line->c + k + j * WIDE);
    }
    for (int64_t r = 0; r < s->rows; r++) {
        for (int j = 0; j < count; j++) {
            int64_t at = s->at[r] + k + j * WIDE;
            wide_load(&u, x + at);
            wide_load(&v, g + at);
            u = a[j] * v + (b[j] + c[j] * (u - m[j]));
            wide_store(dx + at, &u);
        }
    }
}

static __attribute__((noinline)) void strip_combine(const strip *s, int64_t d, const real *x,
                                                    const real *g, const columns_line *line,
                                                    real *dx) {
    int64_t k = 0;
    for (; k + 2 * WIDE <= d; k += 2 * WIDE) combine_tile(s, 2, x, g, line, k, dx);
    for (; k + WIDE <= d; k += WIDE) combine_tile(s, 1, x, g, line, k, dx);
    for (int64_t r = 0; k < d && r < s->rows; r++) {
        for (int64_t j = k; j < d; j++) {
            int64_t at = s->at[r] + j;
            double u = (double)x[at] - line->center[j];
            dx[at] = (real)(line->a[j] * (double)g[at] + (line->b[j] + line->c[j] * u));
        }
    }
}

/* Sum over the rows of the norm of weight * (x - center). */
static double strip_row_norms(const strip *s, int64_t d, const real *x, const double *center,
                              const double *weight) {
    double sum = 0;
    for (int64_t r = 0; r < s->rows; r++) {
        const real *row = x + s->at[r];
        wide lane = {0}, u, c, w;
        int64_t k = 0;
        for (; k + WIDE <= d; k += WIDE) {
            wide_load(&u, row + k);
            wide_load_double(&c, center + k);
            wide_load_double(&w, weight + k);
            u = w * (u - c);
            lane += u * u;
        }
        double square = wide_total(&lane);
        for (; k < d; k++) {
            double t = weight[k] * ((double)row[k] - center[k]);
            square += t * t;
        }
        sum += sqrt(square);
    }
    return sum;
}

sr_status columns_combine(const columns *m, const real *x, const real *g, const columns_line *line,
                          real *dx, const double *weight, double *row_norm) {
    int64_t pieces = piece_count(m);
    double *part = row_norm ? scratch(m) : NULL;
    if (row_norm && !part) return SR_MEMORY;
#pragma omp parallel for num_threads(m->threads) schedule(static) if (pieces > 1)
    for (int64_t i = 0; i < pieces; i++) {
        piece p = piece_at(m, i);
        strip s;
        if (part) part[i] = 0;
        while (next_strip(m, &p, 1, &s)) {
            strip_combine(&s, m->features, x, g, line, dx);
            if (part) part[i] += strip_row_norms(&s, m->features, x, line->center, weight);
        }
    }
    if (!row_norm) return SR_OK;
    *row_norm = 0;
    for (int64_t i = 0; i < pieces; i++) *row_norm += part[i];
    return SR_OK;
}
