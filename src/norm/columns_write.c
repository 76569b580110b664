/* columns_write.c -- the passes of columns.h that write rows, element by element. What they write
 * while the layer scale has a `dx` is a gradient, and goes on through it.
 */
#include <math.h>

#include "columns_strip.h"

/* The gradient that was written in these rows goes on. */
static void go_on(const columns *m, const strip *s) {
    if (m->scale && m->scale->dx) layer_scale_backward(m, s->first, s->rows);
}

WIDE_INLINE void scale_tile(const strip *s, int count, const real *x, const double *center,
                            const double *scale, const double *shift, real *y, bool scaled,
                            tile_factors f) {
    wide c[2], a[2], b[2], u;
    for (int j = 0; j < count; j++) {
        wide_load_double(&c[j], center + j * WIDE);
        wide_load_double(&a[j], scale + j * WIDE);
        wide_load_double(&b[j], shift + j * WIDE);
    }
    for (int64_t r = 0; r < s->rows; r++) {
        for (int j = 0; j < count; j++) {
            load_scaled(&u, s, r, x + s->at[r] + j * WIDE, scaled, f.factor[j]);
            if (!j) wide_fetch_ahead(x + s->at[r]), wide_claim_ahead(y + s->at[r]);
            u = (u - c[j]) * a[j] + b[j];
            wide_store(y + s->at[r] + j * WIDE, &u);
        }
    }
}

WIDE_INLINE int64_t wide_scale(const columns *m, const strip *s, const real *x,
                               const double *center, const double *scale, const double *shift,
                               real *y, bool scaled) {
    int64_t k = 0, end = wide_end(m);
    tile_factors f = {{NULL, NULL}};
    for (; k + 2 * WIDE <= end; k += 2 * WIDE) {
        if (scaled) f = factors_at(m, k);
        scale_tile(s, 2, x + k, center + k, scale + k, shift + k, y + k, scaled, f);
    }
    for (; k + WIDE <= end; k += WIDE) {
        if (scaled) f = factors_at(m, k);
        scale_tile(s, 1, x + k, center + k, scale + k, shift + k, y + k, scaled, f);
    }
    return k;
}

static __attribute__((noinline)) void strip_scale(const columns *m, const strip *s, const real *x,
                                                  const double *center, const double *scale,
                                                  const double *shift, real *y) {
    int64_t done = m->scale ? wide_scale(m, s, x, center, scale, shift, y, true)
                            : wide_scale(m, s, x, center, scale, shift, y, false);
    for (int64_t r = 0; done < m->features && r < s->rows; r++)
        for (int64_t j = done; j < m->features; j++)
            y[s->at[r] + j] = (real)((value_at(m, s, r, j, x) - center[j]) * scale[j] + shift[j]);
}

void columns_scale(const columns *m, const real *x, const double *center, const double *scale,
                   const double *shift, real *y) {
    int64_t pieces = piece_count(m);
#pragma omp parallel for num_threads(m->threads) schedule(static) if (pieces > 1)
    for (int64_t i = 0; i < pieces; i++) {
        piece p = piece_at(m, i);
        strip s;
        while (next_strip(m, &p, PAIR, &s)) {
            strip_scale(m, &s, x, center, scale, shift, y);
            go_on(m, &s);
        }
    }
}

void columns_fill(const columns *m, const double *value, real *y) {
    for (int64_t i = 0; i < m->rows; i++) {
        real *row = y + columns_row(m, i) * m->features;
        for (int64_t k = 0; k < m->features; k++) row[k] = (real)value[k];
    }
    if (m->scale && m->scale->dx) layer_scale_backward(m, 0, m->rows);
}

/* line: of these columns. */
WIDE_INLINE void combine_tile(const strip *s, int count, const real *x, const real *g,
                              const columns_line *line, int64_t k, real *dx, bool scaled,
                              tile_factors f) {
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
            load_scaled(&u, s, r, x + at, scaled, f.factor[j]);
            wide_load(&v, g + at);
            if (!j) wide_fetch_ahead(x + at), wide_fetch_ahead(g + at), wide_claim_ahead(dx + at);
            u = a[j] * v + (b[j] + c[j] * (u - m[j]));
            wide_store(dx + at, &u);
        }
    }
}

WIDE_INLINE int64_t wide_combine(const columns *m, const strip *s, const real *x, const real *g,
                                 const columns_line *line, real *dx, bool scaled) {
    int64_t k = 0, end = wide_end(m);
    tile_factors f = {{NULL, NULL}};
    for (; k + 2 * WIDE <= end; k += 2 * WIDE) {
        if (scaled) f = factors_at(m, k);
        combine_tile(s, 2, x, g, line, k, dx, scaled, f);
    }
    for (; k + WIDE <= end; k += WIDE) {
        if (scaled) f = factors_at(m, k);
        combine_tile(s, 1, x, g, line, k, dx, scaled, f);
    }
    return k;
}

static __attribute__((noinline)) void strip_combine(const columns *m, const strip *s, const real *x,
                                                    const real *g, const columns_line *line,
                                                    real *dx) {
    int64_t done = m->scale ? wide_combine(m, s, x, g, line, dx, true)
                            : wide_combine(m, s, x, g, line, dx, false);
    for (int64_t r = 0; done < m->features && r < s->rows; r++) {
        for (int64_t j = done; j < m->features; j++) {
            int64_t at = s->at[r] + j;
            double u = value_at(m, s, r, j, x) - line->center[j];
            dx[at] = (real)(line->a[j] * (double)g[at] + (line->b[j] + line->c[j] * u));
        }
    }
}

/* The square of the norm of weight * (x - center) in row r, in eight parts. */
WIDE_INLINE void row_square(const columns *m, const strip *s, int64_t r, const real *x,
                            const double *center, const double *weight, bool scaled, wide *lane) {
    wide sum = {0}, u, c, w;
    int64_t k = 0, end = wide_end(m);
    for (; k < end; k += WIDE) {
        wide_load(&u, x + s->at[r] + k);
        if (scaled) u *= m->scale->inverse[s->unit[r] + k / m->scale->width];
        wide_load_double(&c, center + k);
        wide_load_double(&w, weight + k);
        u = w * (u - c);
        sum += u * u;
    }
    for (; k < m->features; k++) {
        double t = weight[k] * (value_at(m, s, r, k, x) - center[k]);
        sum[0] += t * t;
    }
    *lane = sum;
}

/* Eight rows from r on, of which so many are there. */
WIDE_INLINE void row_norms(const columns *m, const strip *s, int64_t r, int64_t rows, const real *x,
                           const double *center, const double *weight, bool scaled, wide *sum) {
    wide lane[WIDE], square, root;
    for (int i = 0; i < WIDE; i++)
        if (i < rows)
            row_square(m, s, r + i, x, center, weight, scaled, &lane[i]);
        else
            lane[i] = (wide){0};
    wide_totals(&square, lane);
    for (int i = 0; i < WIDE; i++) root[i] = sqrt(square[i]);
    *sum += root;
}

WIDE_INLINE double sum_row_norms(const columns *m, const strip *s, const real *x,
                                 const double *center, const double *weight, bool scaled) {
    wide sum = {0};
    int64_t r = 0;
    for (; r + WIDE <= s->rows; r += WIDE)
        row_norms(m, s, r, WIDE, x, center, weight, scaled, &sum);
    if (r < s->rows) row_norms(m, s, r, s->rows - r, x, center, weight, scaled, &sum);
    return wide_total(&sum);
}

/* Sum over the rows of the norm of weight * (x - center). */
static double strip_row_norms(const columns *m, const strip *s, const real *x, const double *center,
                              const double *weight) {
    return m->scale ? sum_row_norms(m, s, x, center, weight, true)
                    : sum_row_norms(m, s, x, center, weight, false);
}

/* lane[i][j] += (weight g)^2 in rows of the same parity i; weight NULL: ones. */
WIDE_INLINE void add_squares(const strip *s, int count, const real *g, const double *weight,
                             wide lane[2][2]) {
    wide w[2] = {{1, 1, 1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 1, 1}}, own[2][2], u;
    memcpy(own, lane, sizeof own);
    for (int j = 0; weight && j < count; j++) wide_load_double(&w[j], weight + j * WIDE);
    int64_t r = 0;
    for (; r + 2 <= s->rows; r += 2)
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < count; j++) {
                wide_load(&u, g + s->at[r + i] + j * WIDE);
                u *= w[j];
                own[i][j] += u * u;
            }
    for (int j = 0; r < s->rows && j < count; j++) {
        wide_load(&u, g + s->at[r] + j * WIDE);
        u *= w[j];
        own[0][j] += u * u;
    }
    memcpy(lane, own, sizeof own);
}

/* Sum over the rows of (weight g)^2; weight NULL: ones. */
static double strip_squares(const columns *m, const strip *s, const real *g, const double *weight) {
    wide lane[2][2] = {{{0}}};
    int64_t k = 0;
    for (; k + 2 * WIDE <= m->features; k += 2 * WIDE)
        add_squares(s, 2, g + k, weight ? weight + k : NULL, lane);
    for (; k + WIDE <= m->features; k += WIDE)
        add_squares(s, 1, g + k, weight ? weight + k : NULL, lane);
    const wide all = (lane[0][0] + lane[0][1]) + (lane[1][0] + lane[1][1]);
    double sum = wide_total(&all);
    for (int64_t r = 0; k < m->features && r < s->rows; r++)
        for (int64_t j = k; j < m->features; j++) {
            const double t = (weight ? weight[j] : 1) * (double)g[s->at[r] + j];
            sum += t * t;
        }
    return sum;
}

/* A piece's part of a look: row_norm, dx2, direct2. */
enum { LOOK_SUMS = 3 };

static void strip_look(const columns *m, const strip *s, const real *x, const real *g,
                       const columns_line *line, const real *dx, const double *weight,
                       double *part) {
    if (weight) part[0] += strip_row_norms(m, s, x, line->center, weight);
    part[1] += strip_squares(m, s, dx, NULL);
    part[2] += strip_squares(m, s, g, line->a);
}

static void add_parts(const double *part, int64_t pieces, columns_look *look) {
    look->row_norm = look->dx2 = look->direct2 = 0;
    for (int64_t i = 0; i < pieces; i++) {
        look->row_norm += part[i * LOOK_SUMS];
        look->dx2 += part[i * LOOK_SUMS + 1];
        look->direct2 += part[i * LOOK_SUMS + 2];
    }
}

sr_status columns_combine(const columns *m, const real *x, const real *g, const columns_line *line,
                          real *dx, columns_look *look) {
    int64_t pieces = piece_count(m);
    double *part = look ? columns_scratch(m) : NULL;
    if (look && !part) return SR_MEMORY;
    for (int64_t i = 0; part && i < pieces * LOOK_SUMS; i++) part[i] = 0;
#pragma omp parallel for num_threads(m->threads) schedule(static) if (pieces > 1)
    for (int64_t i = 0; i < pieces; i++) {
        piece p = piece_at(m, i);
        strip s;
        while (next_strip(m, &p, PAIR, &s)) {
            strip_combine(m, &s, x, g, line, dx);
            if (part) strip_look(m, &s, x, g, line, dx, look->weight, part + i * LOOK_SUMS);
            go_on(m, &s);
        }
    }
    if (look) add_parts(part, pieces, look);
    return SR_OK;
}

sr_status columns_squares(const columns *m, const real *g, const double *weight, double *sum) {
    int64_t pieces = piece_count(m);
    double *part = columns_scratch(m);
    *sum = 0;
    if (!part) return SR_MEMORY;
#pragma omp parallel for num_threads(m->threads) schedule(static) if (pieces > 1)
    for (int64_t i = 0; i < pieces; i++) {
        piece p = piece_at(m, i);
        strip s;
        part[i] = 0;
        while (next_strip(m, &p, PAIR, &s)) part[i] += strip_squares(m, &s, g, weight);
    }
    for (int64_t i = 0; i < pieces; i++) *sum += part[i];
    return SR_OK;
}
