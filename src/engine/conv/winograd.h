/* winograd.h -- Winograd F(4 x 4, 3 x 3): the transforms of one tile.
 *
 * Winograd, Arithmetic Complexity of Computations, SIAM 1980; Lavin and Gray, Fast Algorithms for
 * Convolutional Neural Networks, CVPR 2016. A filter of 3 taps g over 6 numbers d gives 4:
 *   y = A^T ((G g) * (B^T d))           6 products instead of 12; in two dimensions 36, not 144:
 *   Y = A^T ((G g G^T) * (B^T d B)) A
 * The transposed formula gives the gradient of the taps from the gradient of Y:
 *   dg = G^T ((A dY A^T) * (B^T d B)) G
 * g, d and Y are polynomials, multiplied by their values at five points and at infinity. The points
 * are 0, +-5/8, +-3/2: the usual 0, +-1, +-2 double the rounding error. Both squares and all powers
 * used are exact in float; p = 5/8, q = 3/2:
 *   B^T rows  p^2 q^2, 0, -(p^2+q^2), 0, 1, 0;  0, -+p q^2, -q^2, +-p, 1, 0;  the same with p, q
 *             exchanged;  0, p^2 q^2, 0, -(p^2+q^2), 0, 1
 *   A^T row i p^i (-p)^i q^i (-q)^i at the points; first column 1 0 0 0, last 0 0 0 1
 *   G rows    1/(p^2 q^2), 0, 0;  1, +-p, p^2 over 2 p^2 (p^2-q^2);  the same with p, q exchanged;
 *             0, 0, 1
 * Every number below is a SIMD vector of channels. */
#ifndef ENGINE_CONV_WINOGRAD_H
#define ENGINE_CONV_WINOGRAD_H

#include "engine/gemm/small_gemm.h"

enum { WINO_OUT = 4, WINO_IN = 6, WINO_TAPS = 3, WINO_POINTS = WINO_IN * WINO_IN };

#define WINO_INLINE __attribute__((always_inline)) static inline
#define WINO_P      ((real)0.625)
#define WINO_Q      ((real)1.5)
#define WINO_PP     (WINO_P * WINO_P)
#define WINO_QQ     (WINO_Q * WINO_Q)

typedef small_gemm_vector wino;
/* One dimension of a transform. */
typedef void wino_line(const wino *from, wino *to);

/* B^T d: 6 -> 6 */
WINO_INLINE void wino_input(const wino *d, wino *v) {
    const real sum = WINO_PP + WINO_QQ, product = WINO_PP * WINO_QQ;
    const wino even_p = d[4] - WINO_QQ * d[2], odd_p = WINO_P * (d[3] - WINO_QQ * d[1]);
    const wino even_q = d[4] - WINO_PP * d[2], odd_q = WINO_Q * (d[3] - WINO_PP * d[1]);
    v[0] = d[4] - sum * d[2] + product * d[0];
    v[1] = even_p + odd_p, v[2] = even_p - odd_p;
    v[3] = even_q + odd_q, v[4] = even_q - odd_q;
    v[5] = d[5] - sum * d[3] + product * d[1];
}

/* A^T m: 6 -> 4 */
WINO_INLINE void wino_output(const wino *m, wino *y) {
    const wino even_p = m[1] + m[2], odd_p = m[1] - m[2];
    const wino even_q = m[3] + m[4], odd_q = m[3] - m[4];
    y[0] = m[0] + even_p + even_q;
    y[1] = WINO_P * odd_p + WINO_Q * odd_q;
    y[2] = WINO_PP * even_p + WINO_QQ * even_q;
    y[3] = m[5] + WINO_PP * WINO_P * odd_p + WINO_QQ * WINO_Q * odd_q;
}

/* A y: 4 -> 6 */
WINO_INLINE void wino_output_gradient(const wino *y, wino *w) {
    const wino even_p = y[0] + WINO_PP * y[2], odd_p = WINO_P * (y[1] + WINO_PP * y[3]);
    const wino even_q = y[0] + WINO_QQ * y[2], odd_q = WINO_Q * (y[1] + WINO_QQ * y[3]);
    w[0] = y[0];
    w[1] = even_p + odd_p, w[2] = even_p - odd_p;
    w[3] = even_q + odd_q, w[4] = even_q - odd_q;
    w[5] = y[3];
}

#define WINO_SCALE_0 (1 / (WINO_PP * WINO_QQ))
#define WINO_SCALE_P (1 / (2 * WINO_PP * (WINO_PP - WINO_QQ)))
#define WINO_SCALE_Q (1 / (2 * WINO_QQ * (WINO_QQ - WINO_PP)))

/* G g: 3 -> 6 */
WINO_INLINE void wino_taps(const wino *g, wino *u) {
    const wino even_p = WINO_SCALE_P * (g[0] + WINO_PP * g[2]),
               odd_p = WINO_SCALE_P * WINO_P * g[1];
    const wino even_q = WINO_SCALE_Q * (g[0] + WINO_QQ * g[2]),
               odd_q = WINO_SCALE_Q * WINO_Q * g[1];
    u[0] = WINO_SCALE_0 * g[0];
    u[1] = even_p + odd_p, u[2] = even_p - odd_p;
    u[3] = even_q + odd_q, u[4] = even_q - odd_q;
    u[5] = g[2];
}

/* G^T u: 6 -> 3 */
WINO_INLINE void wino_taps_gradient(const wino *u, wino *g) {
    const wino even_p = WINO_SCALE_P * (u[1] + u[2]), odd_p = WINO_SCALE_P * (u[1] - u[2]);
    const wino even_q = WINO_SCALE_Q * (u[3] + u[4]), odd_q = WINO_SCALE_Q * (u[3] - u[4]);
    g[0] = WINO_SCALE_0 * u[0] + even_p + even_q;
    g[1] = WINO_P * odd_p + WINO_Q * odd_q;
    g[2] = u[5] + WINO_PP * even_p + WINO_QQ * even_q;
}

/* -- two dimensions ---------------------------------------------------------------------------- */

/* A grid of vectors of TILE_VECTOR channels: number (i, j) is at first[i * row + j * step]. */
typedef struct wino_grid {
    real *first;
    int64_t row, step;
} wino_grid;

/* Number of tiles that cover `size` rows or columns. */
static inline int64_t wino_tiles(int64_t size) {
    return (size + WINO_OUT - 1) / WINO_OUT;
}

/* 36 points, `step` apart. */
WINO_INLINE wino_grid wino_points(real *first, int64_t step) {
    return (wino_grid){first, WINO_IN * step, step};
}

WINO_INLINE wino_grid wino_moved(wino_grid x, int64_t channels) {
    return (wino_grid){x.first + channels, x.row, x.step};
}

/* y [to, to]: applies the line transform to the rows and then to the columns of x [from, from]. */
WINO_INLINE void wino_square(wino_line *line, const int from, const int to, wino_grid x,
                             wino_grid y) {
    wino half[WINO_IN][WINO_IN];
#pragma GCC unroll 6
    for (int i = 0; i < from; i++) {
        wino in[WINO_IN];
#pragma GCC unroll 6
        for (int j = 0; j < from; j++)
            memcpy(&in[j], x.first + i * x.row + j * x.step, sizeof in[j]);
        line(in, half[i]);
    }
#pragma GCC unroll 6
    for (int j = 0; j < to; j++) {
        wino in[WINO_IN], out[WINO_IN];
#pragma GCC unroll 6
        for (int i = 0; i < from; i++) in[i] = half[i][j];
        line(in, out);
#pragma GCC unroll 6
        for (int i = 0; i < to; i++)
            memcpy(y.first + i * y.row + j * y.step, &out[i], sizeof out[i]);
    }
}

/* wino_square for all channels, a multiple of TILE_VECTOR. */
WINO_INLINE void wino_channels(wino_line *line, const int from, const int to, int64_t channels,
                               wino_grid x, wino_grid y) {
    for (int64_t c = 0; c < channels; c += TILE_VECTOR)
        wino_square(line, from, to, wino_moved(x, c), wino_moved(y, c));
}

#endif
