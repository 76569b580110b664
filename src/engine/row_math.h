/* row_math.h -- softmax, attention and cross entropy on one row of n numbers.
 *
 * The maximum skips NaN; every sum propagates it, as exp(NaN - m) is NaN. Sums use SIMD lanes: n
 * and the CPU type fix their order. Exponentials are float. Their sum is double, so that log(sum)
 * keeps terms far below the largest.
 *
 * AVX-512 code is written by hand and computes sixteen exponentials at once. GCC 12 takes eight,
 * leaves the end of a row to scalar code (most of a row of attention), and waits for every maximum.
 * Sums add in the order that GCC uses in the plain loops below. Number 8 i + j goes to lane j,
 * numbers after the last whole eight go to lane 0, then the lanes are added in order. */
#ifndef ENGINE_ROW_MATH_H
#define ENGINE_ROW_MATH_H

#include <stdbool.h>

#include "engine/exp_fast.h"

#if defined(__AVX512DQ__) && !defined(REAL_DOUBLE)
#include <immintrin.h>

enum { ROW_VECTOR = 16, ROW_LANES = 8 };

static inline __mmask16 row_mask(int64_t n) {
    const int64_t few = n < ROW_VECTOR ? n : ROW_VECTOR;
    return (__mmask16)(0xffffu >> (ROW_VECTOR - few));
}

/* Loads x[0 .. n-1], n <= 16, and -inf after them. */
static inline __m512 row_part(const real *x, int64_t n) {
    return _mm512_mask_loadu_ps(_mm512_set1_ps(-INFINITY), row_mask(n), x);
}

/* Replaces NaN by -inf. */
static inline __m512 row_numbers(__m512 x) {
    return _mm512_max_ps(x, _mm512_set1_ps(-INFINITY));
}

static inline real row_max(int64_t n, const real *restrict x) {
    enum { CHAINS = 4, STRIDE = CHAINS * ROW_VECTOR };
    if (n <= ROW_VECTOR) return _mm512_reduce_max_ps(row_numbers(row_part(x, n)));
    __m512 m[CHAINS];
    for (int c = 0; c < CHAINS; c++) m[c] = _mm512_set1_ps(-INFINITY);
    int64_t i = 0;
    for (; i + STRIDE <= n; i += STRIDE)
#pragma GCC unroll 4
        for (int c = 0; c < CHAINS; c++) /* the maximum of NaN and m is m */
            m[c] = _mm512_max_ps(_mm512_loadu_ps(x + i + c * ROW_VECTOR), m[c]);
    for (; i < n; i += ROW_VECTOR) m[0] = _mm512_max_ps(row_part(x + i, n - i), m[0]);
    return _mm512_reduce_max_ps(
        _mm512_max_ps(_mm512_max_ps(m[0], m[1]), _mm512_max_ps(m[2], m[3])));
}

static inline __m512d row_low(__m512 x) {
    return _mm512_cvtps_pd(_mm512_castps512_ps256(x));
}

static inline __m512d row_high(__m512 x) {
    return _mm512_cvtps_pd(_mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(x), 1)));
}

static inline double row_total(__m512d lanes) {
    double lane[ROW_LANES], sum = 0;
    _mm512_storeu_pd(lane, lanes);
    for (int j = 0; j < ROW_LANES; j++) sum += lane[j];
    return sum;
}

/* Sum of the lanes and of the last n < 16 numbers. */
static inline double row_end(__m512d lanes, int64_t n, __m512 last) {
    real x[ROW_VECTOR];
    int64_t i = 0;
    if (n >= ROW_LANES) lanes = _mm512_add_pd(lanes, row_low(last)), i = ROW_LANES;
    _mm512_storeu_ps(x, last);
    double first = _mm512_cvtsd_f64(lanes);
    for (; i < n; i++) first += (double)x[i];
    return row_total(_mm512_mask_mov_pd(lanes, 1, _mm512_set1_pd(first)));
}

/* x = c x */
static inline void row_scale(int64_t n, real c, real *x) {
    const __m512 factor = _mm512_set1_ps(c);
    for (int64_t i = 0; i < n; i += ROW_VECTOR) {
        const __mmask16 mask = row_mask(n - i);
        _mm512_mask_storeu_ps(x + i, mask,
                              _mm512_mul_ps(factor, _mm512_maskz_loadu_ps(mask, x + i)));
    }
}

/* Adds the lanes of each v[j], in the order of row_total; result j is the sum of v[j]. */
static inline __m512d row_totals(const __m512d v[ROW_LANES]) {
    __m512d pair[8], four[8], sum = _mm512_setzero_pd();
    for (int i = 0; i < 4; i++) { /* even lanes of two rows; odd ones */
        pair[i] = _mm512_unpacklo_pd(v[2 * i], v[2 * i + 1]);
        pair[i + 4] = _mm512_unpackhi_pd(v[2 * i], v[2 * i + 1]);
    }
    for (int i = 0; i < 8; i += 2) { /* lanes of four rows: 0 and 4, 2 and 6; 1 and 5, 3 and 7 */
        four[i] = __builtin_shufflevector(pair[i], pair[i + 1], 0, 1, 8, 9, 4, 5, 12, 13);
        four[i + 1] = __builtin_shufflevector(pair[i], pair[i + 1], 2, 3, 10, 11, 6, 7, 14, 15);
    }
    static const int pair_of[4] = {0, 4, 1, 5}; /* lanes 0 and 4, 1 and 5, 2 and 6, 3 and 7 */
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const __m512d a = four[pair_of[i]], b = four[pair_of[i] + 2];
        sum += __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const __m512d a = four[pair_of[i]], b = four[pair_of[i] + 2];
        sum += __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
    }
    return sum;
}

/* Sum of the first n <= 16 numbers. */
static inline double row_sum_few(int64_t n, __m512 x) {
    const __m512d low = row_low(x);
    return n == ROW_VECTOR ? row_total(_mm512_add_pd(low, row_high(x)))
                           : row_end(_mm512_setzero_pd(), n, x);
}

/* Softmax of the first n <= 16 numbers, zeros after them. Equal to row_max, row_exp and row_scale,
 * but without memory in between, where loads would wait for partial stores. */
static inline __m512 row_softmax_few(int64_t n, __m512 x) {
    const __mmask16 mask = row_mask(n);
    x = _mm512_mask_mov_ps(_mm512_set1_ps(-INFINITY), mask, x);
    const __m512 m = _mm512_set1_ps(_mm512_reduce_max_ps(row_numbers(x)));
    const __m512 e = exp_fast_vector(_mm512_sub_ps(x, m));
    return _mm512_maskz_mul_ps(mask, e, _mm512_set1_ps((float)(1 / row_sum_few(n, e))));
}

/* Returns the sum of exp(x - m); writes the terms to y unless it is NULL. */
static inline double row_exponentials(int64_t n, const real *x, real m, real *y) {
    const __m512 largest = _mm512_set1_ps(m);
    __m512d sum = _mm512_setzero_pd();
    int64_t i = 0;
    for (; i + ROW_VECTOR <= n; i += ROW_VECTOR) {
        const __m512 e = exp_fast_vector(_mm512_sub_ps(_mm512_loadu_ps(x + i), largest));
        if (y) _mm512_storeu_ps(y + i, e);
        sum = _mm512_add_pd(sum, row_low(e));
        sum = _mm512_add_pd(sum, row_high(e));
    }
    if (i == n) return row_total(sum);
    const __m512 e = exp_fast_vector(_mm512_sub_ps(row_part(x + i, n - i), largest));
    if (y) _mm512_mask_storeu_ps(y + i, row_mask(n - i), e);
    return row_end(sum, n - i, e);
}

/* Returns the sum of exp(x - m). */
static inline double row_exp_sum(int64_t n, const real *restrict x, real m) {
    return row_exponentials(n, x, m, NULL);
}

/* y = exp(x - m) scale - shift, or y += with `add`; y may be x. */
static inline void row_softmax_gradient(int64_t n, const real *x, real m, real scale, real shift,
                                        bool add, real *y) {
    const __m512 largest = _mm512_set1_ps(m), c = _mm512_set1_ps(scale);
    const __m512 less = _mm512_set1_ps(shift);
    for (int64_t i = 0; i < n; i += ROW_VECTOR) {
        const __mmask16 mask = row_mask(n - i);
        const __m512 e =
            exp_fast_vector(_mm512_sub_ps(_mm512_maskz_loadu_ps(mask, x + i), largest));
        __m512 dx = _mm512_fmsub_ps(e, c, less);
        if (add) dx = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, y + i), dx);
        _mm512_mask_storeu_ps(y + i, mask, dx);
    }
}

/* y = exp(x - m), y may be x; returns the sum of y. */
static inline double row_exp(int64_t n, const real *x, real m, real *y) {
    return row_exponentials(n, x, m, y);
}

#else

static inline real row_max(int64_t n, const real *restrict x) {
    real m = -INFINITY;
#pragma omp simd reduction(max : m)
    for (int64_t i = 0; i < n; i++) m = x[i] > m ? x[i] : m;
    return m;
}

/* Returns the sum of exp(x - m). */
static inline double row_exp_sum(int64_t n, const real *restrict x, real m) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) sum += (double)exp_fast(x[i] - m);
    return sum;
}

/* y = exp(x - m) scale - shift, or y += with `add`; y may be x. */
static inline void row_softmax_gradient(int64_t n, const real *x, real m, real scale, real shift,
                                        bool add, real *y) {
    if (add) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) y[i] += exp_fast(x[i] - m) * scale - shift;
    } else {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) y[i] = exp_fast(x[i] - m) * scale - shift;
    }
}

/* y = exp(x - m), y may be x; returns the sum of y. */
static inline double row_exp(int64_t n, const real *x, real m, real *y) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) {
        y[i] = exp_fast(x[i] - m);
        sum += (double)y[i];
    }
    return sum;
}

static inline void row_scale(int64_t n, real c, real *x) {
    for (int64_t i = 0; i < n; i++) x[i] *= c;
}

#endif

static inline double row_dot(int64_t n, const real *restrict x, const real *restrict y) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) sum += (double)x[i] * (double)y[i];
    return sum;
}

#if defined(__AVX512DQ__) && !defined(REAL_DOUBLE)
/* row_dot of x with the first eight rows, n a multiple of ROW_LANES. With fewer rows the rest is
 * arbitrary. */
static inline __m256 row_eight_dots(int64_t rows, int64_t n, const real *x, const real *const *y,
                                    int64_t at) {
    __m512d lanes[ROW_LANES];
    const real *row[ROW_LANES];
    for (int j = 0; j < ROW_LANES; j++) row[j] = y[j < rows ? j : 0] + at;
    for (int j = 0; j < ROW_LANES; j++) lanes[j] = _mm512_setzero_pd();
    for (int64_t k = 0; k < n; k += ROW_LANES) {
        const __m512d left = _mm512_cvtps_pd(_mm256_loadu_ps(x + k));
#pragma GCC unroll 8
        for (int j = 0; j < ROW_LANES; j++)
            lanes[j] =
                _mm512_fmadd_pd(left, _mm512_cvtps_pd(_mm256_loadu_ps(row[j] + k)), lanes[j]);
    }
    return _mm512_cvtpd_ps(row_totals(lanes));
}
#endif

/* x = softmax of x [n]. x has space for whole vectors; numbers after the first n are
 * overwritten. */
static inline void row_softmax(int64_t n, real *x) {
#if defined(__AVX512DQ__) && !defined(REAL_DOUBLE)
    if (n <= ROW_VECTOR) {
        _mm512_storeu_ps(x, row_softmax_few(n, _mm512_loadu_ps(x)));
        return;
    }
#endif
    const double sum = row_exp(n, x, row_max(n, x), x);
    row_scale(n, (real)(1 / sum), x);
}

/* z = softmax of the row_dot of x with the n numbers at y_j + at, j < rows. z has space for whole
 * vectors. */
static inline void row_attention_weights(int64_t rows, int64_t n, const real *x,
                                         const real *const *y, int64_t at, real *z) {
#if defined(__AVX512DQ__) && !defined(REAL_DOUBLE)
    if (rows <= ROW_VECTOR && n % ROW_LANES == 0) {
        __m512 dots = _mm512_castps256_ps512(row_eight_dots(rows, n, x, y, at));
        if (rows > ROW_LANES)
            dots = _mm512_insertf32x8(dots,
                                      row_eight_dots(rows - ROW_LANES, n, x, y + ROW_LANES, at), 1);
        _mm512_storeu_ps(z, row_softmax_few(rows, dots));
        return;
    }
#endif
    for (int64_t j = 0; j < rows; j++) z[j] = (real)row_dot(n, x, y[j] + at);
    row_softmax(rows, z);
}

#endif
