/* moments.c -- mean, biased variance and mean square per feature over the valid rows of a tensor,
 * and the two sums of the backward pass.
 *
 *   mean[c] = sum_i x[i,c] / n      variance[c] = sum_i (x[i,c] - mean[c])^2 / n
 *   mean_square[c] = sum_i x[i,c]^2 / n
 *   sum_g[c] = sum_i g[i,c]         sum_gx[c] = sum_i g[i,c] (x[i,c] - center[c]) scale[c]
 *   sum_gg[c] = sum_i g[i,c]^2
 *
 * x, g: element (o, c, i) of [outer, channels, inner]; a row is one (o, i), valid [outer * inner]
 * or NULL. Rows are taken in blocks: two passes inside a block (mean, then squared deviations from
 * it), blocks merged by the pairwise update of Chan, Golub and LeVeque (1979):
 *
 *   delta = mean_b - mean;  mean += delta n_b / n;  M2 += M2_b + delta^2 n_a n_b / n,  n = n_a +
 * n_b
 *
 * Everything is added in double. x^2 is summed directly: only variance needs the mean removed.
 */
#include "statrec/moments.h"

#include <math.h>
#include <string.h>

/* A block of rows of a tile of channels stays in the first-level cache between the two passes. */
enum { TILE = 64, BLOCK = 64, RUN = 1024 };

typedef struct tile {
    double mean[TILE], m2[TILE], square[TILE];
    int64_t rows;
} tile;

/* Merges a block of n values with sum of squared deviations m2 around mean into feature k. */
static void merge(tile *t, int64_t k, int64_t n, double mean, double m2) {
    double before = (double)t->rows, all = before + (double)n;
    double delta = mean - t->mean[k];
    t->mean[k] += delta * ((double)n / all);
    t->m2[k] += m2 + delta * delta * (before * ((double)n / all));
}

/* -- features innermost (inner = 1) ---------------------------------------------------------- */

/* One block: row[0 .. n-1] are rows of `width` neighbouring features. */
static void add_block(tile *t, const float *const *row, int64_t n, int64_t width) {
    double mean[TILE] = {0}, m2[TILE] = {0};
    for (int64_t r = 0; r < n; r++)
        for (int64_t k = 0; k < width; k++) {
            double v = row[r][k];
            mean[k] += v;
            t->square[k] += v * v;
        }
    for (int64_t k = 0; k < width; k++) mean[k] /= (double)n;
    for (int64_t r = 0; r < n; r++)
        for (int64_t k = 0; k < width; k++) {
            double v = row[r][k] - mean[k];
            m2[k] += v * v;
        }
    for (int64_t k = 0; k < width; k++) merge(t, k, n, mean[k], m2[k]);
    t->rows += n;
}

static void moments_of_columns(tile *t, const float *x, int64_t rows, int64_t channels,
                               int64_t first, int64_t width, const uint8_t *valid) {
    const float *row[BLOCK];
    int64_t n = 0;
    for (int64_t r = 0; r < rows; r++) {
        if (valid && !valid[r]) continue;
        row[n++] = x + r * channels + first;
        if (n == BLOCK) add_block(t, row, n, width), n = 0;
    }
    if (n > 0) add_block(t, row, n, width);
}

/* -- features outermost or in the middle (inner > 1) ------------------------------------------- */

/* One run of at most RUN values of one feature. Returns how many of them are valid. */
static int64_t add_run(tile *t, const float *x, const uint8_t *valid, int64_t length) {
    double sum = 0, m2 = 0, square = 0;
    int64_t n = 0;
    for (int64_t i = 0; i < length; i++) {
        if (valid && !valid[i]) continue;
        sum += x[i], square += (double)x[i] * x[i], n++;
    }
    if (n == 0) return 0;
    double mean = sum / (double)n;
    for (int64_t i = 0; i < length; i++) {
        if (valid && !valid[i]) continue;
        m2 += (x[i] - mean) * (x[i] - mean);
    }
    merge(t, 0, n, mean, m2);
    t->square[0] += square;
    t->rows += n;
    return n;
}

static void moments_of_planes(tile *t, const float *x, int64_t outer, int64_t channels,
                              int64_t inner, int64_t channel, const uint8_t *valid) {
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i += RUN) {
            int64_t length = inner - i < RUN ? inner - i : RUN;
            add_run(t, x + (o * channels + channel) * inner + i,
                    valid ? valid + o * inner + i : NULL, length);
        }
}

static void finish_tile(const tile *t, int64_t first, int64_t width, double *mean, double *variance,
                        double *mean_square) {
    for (int64_t k = 0; k < width; k++) {
        double n = (double)t->rows;
        mean[first + k] = t->rows ? t->mean[k] : NAN;
        variance[first + k] = t->rows ? t->m2[k] / n : NAN;
        mean_square[first + k] = t->rows ? t->square[k] / n : NAN;
    }
}

static int64_t count_valid(const uint8_t *valid, int64_t rows) {
    if (!valid) return rows;
    int64_t n = 0;
    for (int64_t r = 0; r < rows; r++) n += valid[r] != 0;
    return n;
}

int64_t sr_moments(const float *x, int64_t outer, int64_t channels, int64_t inner,
                   const uint8_t *valid, double *mean, double *variance, double *mean_square) {
    int64_t step = inner == 1 ? TILE : 1;
    for (int64_t c = 0; c < channels; c += step) {
        int64_t width = channels - c < step ? channels - c : step;
        tile t;
        memset(&t, 0, sizeof t);
        if (inner == 1) {
            moments_of_columns(&t, x, outer, channels, c, width, valid);
        } else {
            moments_of_planes(&t, x, outer, channels, inner, c, valid);
        }
        finish_tile(&t, c, width, mean, variance, mean_square);
    }
    return count_valid(valid, outer * inner);
}

/* -- backward -------------------------------------------------------------------------------- */

static void sums_of_columns(const float *g, const float *x, int64_t rows, int64_t channels,
                            const uint8_t *valid, const double *center, double *sum_g,
                            double *sum_gx, double *sum_gg) {
    for (int64_t r = 0; r < rows; r++) {
        if (valid && !valid[r]) continue;
        const float *gr = g + r * channels, *xr = x + r * channels;
        for (int64_t c = 0; c < channels; c++) {
            const double v = gr[c];
            sum_g[c] += v;
            sum_gx[c] += v * (xr[c] - center[c]);
            sum_gg[c] += v * v;
        }
    }
}

static void sums_of_planes(const float *g, const float *x, int64_t outer, int64_t channels,
                           int64_t inner, const uint8_t *valid, const double *center, double *sum_g,
                           double *sum_gx, double *sum_gg) {
    for (int64_t o = 0; o < outer; o++)
        for (int64_t c = 0; c < channels; c++) {
            const float *gp = g + (o * channels + c) * inner, *xp = x + (o * channels + c) * inner;
            const uint8_t *vp = valid ? valid + o * inner : NULL;
            double a = 0, b = 0, e = 0;
            for (int64_t i = 0; i < inner; i++) {
                if (vp && !vp[i]) continue;
                const double v = gp[i];
                a += v, b += v * (xp[i] - center[c]), e += v * v;
            }
            sum_g[c] += a, sum_gx[c] += b, sum_gg[c] += e;
        }
}

void sr_gradient_sums(const float *g, const float *x, int64_t outer, int64_t channels,
                      int64_t inner, const uint8_t *valid, const double *center,
                      const double *scale, double *sum_g, double *sum_gx, double *sum_gg) {
    for (int64_t c = 0; c < channels; c++) sum_g[c] = sum_gx[c] = sum_gg[c] = 0;
    if (inner == 1) {
        sums_of_columns(g, x, outer, channels, valid, center, sum_g, sum_gx, sum_gg);
    } else {
        sums_of_planes(g, x, outer, channels, inner, valid, center, sum_g, sum_gx, sum_gg);
    }
    for (int64_t c = 0; c < channels; c++) sum_gx[c] *= scale[c];
}
