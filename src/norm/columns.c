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
 * Speed: these passes should cost what their memory traffic costs. Columns go in tiles of a width
 * known to the compiler and rows in groups of GROUP, so that one load and store of the double sums
 * in cache serves GROUP rows; whole rows are read in order.
 */
#include "columns.h"

#include <math.h>
#include <string.h>

enum { PIECE = 256, GROUP = 4, TILE = 16 };

typedef struct piece {
    int64_t first, end; /* rows of the pass */
} piece;

columns columns_valid(const norm_call *c) {
    const norm_rows *r = c->rows;
    return (columns){r->valid, c->features, r->index, c->threads, c->tape};
}

columns columns_all(const norm_call *c) {
    return (columns){c->rows->rows, c->features, NULL, c->threads, c->tape};
}

static int64_t piece_count(const columns *m) {
    return (m->rows + PIECE - 1) / PIECE;
}

static piece piece_at(const columns *m, int64_t number) {
    int64_t first = number * PIECE, end = first + PIECE;
    return (piece){first, end < m->rows ? end : m->rows};
}

static inline const real *row_at(const columns *m, const real *x, int64_t i) {
    return x + (m->index ? m->index[i] : i) * m->features;
}

/* -- moments ------------------------------------------------------------------------------------
 */

/* Adds `count` rows to the sums of `width` columns; constants where it is called make the loops
 * straight vector code. */
static inline __attribute__((always_inline)) void add_deviations(const real *const *row, int count,
                                                                 int64_t from, int64_t width,
                                                                 const double *shift, double *s1,
                                                                 double *s2) {
    for (int64_t k = from; k < from + width; k++) {
        double c = shift[k], a = s1[k], b = s2[k];
        for (int r = 0; r < count; r++) {
            double u = (double)row[r][k] - c;
            a += u;
            b += u * u;
        }
        s1[k] = a;
        s2[k] = b;
    }
}

static inline __attribute__((always_inline)) void add_rows(const real *const *row, int count,
                                                           int64_t d, const double *shift,
                                                           double *s1, double *s2) {
    int64_t k = 0;
    for (; k + TILE <= d; k += TILE) add_deviations(row, count, k, TILE, shift, s1, s2);
    if (k < d) add_deviations(row, count, k, d - k, shift, s1, s2);
}

/* Sums of one piece, turned into mean (in place of s1) and m2. */
static void piece_moments(const columns *m, const real *x, piece p, double *shift, double *s1,
                          double *s2) {
    int64_t d = m->features, n = p.end - p.first, i = p.first;
    const real *start = row_at(m, x, p.first), *row[GROUP];
    for (int64_t k = 0; k < d; k++) {
        shift[k] = (double)start[k];
        s1[k] = s2[k] = 0;
    }
    for (; i + GROUP <= p.end; i += GROUP) {
        for (int r = 0; r < GROUP; r++) row[r] = row_at(m, x, i + r);
        add_rows(row, GROUP, d, shift, s1, s2);
    }
    for (; i < p.end; i++) {
        row[0] = row_at(m, x, i);
        add_rows(row, 1, d, shift, s1, s2);
    }
    for (int64_t k = 0; k < d; k++) {
        double mean = s1[k] / (double)n, m2 = s2[k] - s1[k] * mean;
        s1[k] = shift[k] + mean;
        s2[k] = m2 < 0 ? 0 : m2;
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
    int64_t d = m->features, pieces = piece_count(m);
    memset(mean, 0, (size_t)d * sizeof *mean);
    memset(m2, 0, (size_t)d * sizeof *m2);
    if (!pieces) return SR_OK;
    double *part = tape_alloc(m->tape, (size_t)(3 * pieces * d) * sizeof *part);
    if (!part) return SR_MEMORY;
#pragma omp parallel for num_threads(m->threads) schedule(static) if (pieces > 1)
    for (int64_t i = 0; i < pieces; i++) {
        double *p = part + 3 * i * d;
        piece_moments(m, x, piece_at(m, i), p, p + d, p + 2 * d);
    }
    for (int64_t i = 0; i < pieces; i++) {
        piece p = piece_at(m, i);
        const double *b = part + 3 * i * d;
        merge_moments(d, (double)p.first, mean, m2, (double)(p.end - p.first), b + d, b + 2 * d);
    }
    return SR_OK;
}

/* -- gradient sums ------------------------------------------------------------------------------
 */

static inline __attribute__((always_inline)) void
add_products(const real *const *row, const real *const *grad, int count, int64_t from,
             int64_t width, const double *center, double *sg, double *sgx) {
    for (int64_t k = from; k < from + width; k++) {
        double c = center[k], a = sg[k], b = sgx[k];
        for (int r = 0; r < count; r++) {
            double g = (double)grad[r][k];
            a += g;
            b += g * ((double)row[r][k] - c);
        }
        sg[k] = a;
        sgx[k] = b;
    }
}

static inline __attribute__((always_inline)) void add_gradients(const real *const *row,
                                                                const real *const *grad, int count,
                                                                int64_t d, const double *center,
                                                                double *sg, double *sgx) {
    int64_t k = 0;
    for (; k + TILE <= d; k += TILE) add_products(row, grad, count, k, TILE, center, sg, sgx);
    if (k < d) add_products(row, grad, count, k, d - k, center, sg, sgx);
}

static void piece_gradients(const columns *m, const real *x, const real *g, piece p,
                            const double *center, double *sg, double *sgx) {
    const real *row[GROUP], *grad[GROUP];
    int64_t d = m->features, i = p.first;
    memset(sg, 0, (size_t)d * sizeof *sg);
    memset(sgx, 0, (size_t)d * sizeof *sgx);
    for (; i + GROUP <= p.end; i += GROUP) {
        for (int r = 0; r < GROUP; r++) {
            row[r] = row_at(m, x, i + r);
            grad[r] = row_at(m, g, i + r);
        }
        add_gradients(row, grad, GROUP, d, center, sg, sgx);
    }
    for (; i < p.end; i++) {
        row[0] = row_at(m, x, i);
        grad[0] = row_at(m, g, i);
        add_gradients(row, grad, 1, d, center, sg, sgx);
    }
}

sr_status columns_gradient_sums(const columns *m, const real *x, const real *g,
                                const double *center, const double *scale, double *sum_g,
                                double *sum_gx) {
    int64_t d = m->features, pieces = piece_count(m);
    double *part = tape_alloc(m->tape, (size_t)(2 * pieces * d + 1) * sizeof *part);
    if (!part) return SR_MEMORY;
#pragma omp parallel for num_threads(m->threads) schedule(static) if (pieces > 1)
    for (int64_t i = 0; i < pieces; i++) {
        double *p = part + 2 * i * d;
        piece_gradients(m, x, g, piece_at(m, i), center, p, p + d);
    }
    memset(sum_g, 0, (size_t)d * sizeof *sum_g);
    memset(sum_gx, 0, (size_t)d * sizeof *sum_gx);
    for (int64_t i = 0; i < pieces; i++) {
        const double *p = part + 2 * i * d;
        for (int64_t k = 0; k < d; k++) {
            sum_g[k] += p[k];
            sum_gx[k] += p[d + k];
        }
    }
    for (int64_t k = 0; k < d; k++) sum_gx[k] *= scale[k];
    return SR_OK;
}

/* -- element by element --------------------------------------------------------------------------
 */

static inline __attribute__((always_inline)) void scale_columns(const real *x, int64_t width,
                                                                const double *center,
                                                                const double *scale,
                                                                const double *shift, real *y) {
    for (int64_t k = 0; k < width; k++)
        y[k] = (real)(((double)x[k] - center[k]) * scale[k] + shift[k]);
}

static void piece_scale(const columns *m, const real *x, piece p, const double *center,
                        const double *scale, const double *shift, real *y) {
    int64_t d = m->features;
    for (int64_t i = p.first; i < p.end; i++) {
        const real *from = row_at(m, x, i);
        real *to = y + (from - x);
        int64_t k = 0;
        for (; k + TILE <= d; k += TILE)
            scale_columns(from + k, TILE, center + k, scale + k, shift + k, to + k);
        scale_columns(from + k, d - k, center + k, scale + k, shift + k, to + k);
    }
}

void columns_scale(const columns *m, const real *x, const double *center, const double *scale,
                   const double *shift, real *y) {
    int64_t pieces = piece_count(m);
#pragma omp parallel for num_threads(m->threads) schedule(static) if (pieces > 1)
    for (int64_t i = 0; i < pieces; i++) piece_scale(m, x, piece_at(m, i), center, scale, shift, y);
}

static inline __attribute__((always_inline)) void combine_columns(const real *x, const real *g,
                                                                  int64_t width,
                                                                  const columns_line *line,
                                                                  int64_t from, real *dx) {
    const double *center = line->center + from, *a = line->a + from, *b = line->b + from,
                 *c = line->c + from;
    for (int64_t k = 0; k < width; k++)
        dx[k] = (real)(a[k] * (double)g[k] + (b[k] + c[k] * ((double)x[k] - center[k])));
}

static void piece_combine(const columns *m, const real *x, const real *g, piece p,
                          const columns_line *line, real *dx) {
    int64_t d = m->features;
    for (int64_t i = p.first; i < p.end; i++) {
        const real *from = row_at(m, x, i);
        int64_t at = from - x, k = 0;
        for (; k + TILE <= d; k += TILE)
            combine_columns(from + k, g + at + k, TILE, line, k, dx + at + k);
        combine_columns(from + k, g + at + k, d - k, line, k, dx + at + k);
    }
}

/* Sum over the rows of a piece of the norm of weight * (x - center). */
static double piece_row_norms(const columns *m, const real *x, piece p, const double *center,
                              const double *weight) {
    double sum = 0;
    for (int64_t i = p.first; i < p.end; i++) {
        const real *row = row_at(m, x, i);
        double square = 0;
        for (int64_t k = 0; k < m->features; k++) {
            double u = weight[k] * ((double)row[k] - center[k]);
            square += u * u;
        }
        sum += sqrt(square);
    }
    return sum;
}

sr_status columns_combine(const columns *m, const real *x, const real *g, const columns_line *line,
                          real *dx, const double *weight, double *row_norm) {
    int64_t pieces = piece_count(m);
    double *part = row_norm ? tape_alloc(m->tape, (size_t)(pieces + 1) * sizeof *part) : NULL;
    if (row_norm && !part) return SR_MEMORY;
#pragma omp parallel for num_threads(m->threads) schedule(static) if (pieces > 1)
    for (int64_t i = 0; i < pieces; i++) {
        piece p = piece_at(m, i);
        piece_combine(m, x, g, p, line, dx);
        if (part) part[i] = piece_row_norms(m, x, p, line->center, weight);
    }
    if (!row_norm) return SR_OK;
    *row_norm = 0;
    for (int64_t i = 0; i < pieces; i++) *row_norm += part[i];
    return SR_OK;
}
