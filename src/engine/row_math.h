/* row_math.h -- what softmax, attention and cross entropy do to one row of n numbers.
 *
 * The maximum skips NaN; a NaN comes back in every sum, as exp(NaN - m) is NaN. Sums are taken in
 * vector lanes: the order is fixed by n and the CPU type. Exponentials are float, their sum is
 * double: log(sum) keeps what a term far below the largest adds to it.
 *
 * With AVX-512 written by hand, sixteen exponentials at once: GCC 12 takes eight, leaves the last few
 * of a row to scalar code, which is most of the rows of attention, and waits for every maximum. The
 * lanes of a sum are what it makes of the plain loops there: number 8 i + j in lane j, what is behind
 * the last whole eight in lane 0, and then the lanes in their order.
 */
#ifndef ENGINE_ROW_MATH_H
#define ENGINE_ROW_MATH_H

#include "exp_fast.h"

#if defined(__AVX512F__) && !defined(REAL_DOUBLE)
#include <immintrin.h>

enum { ROW_VECTOR = 16, ROW_LANES = 8 };

static inline __mmask16 row_mask(int64_t n) {
    return n >= ROW_VECTOR ? (__mmask16)0xffff : (__mmask16)((1u << n) - 1);
}

/* x[0 .. n-1], n <= 16, and -inf behind them. */
static inline __m512 row_part(const real *x, int64_t n) {
    return _mm512_mask_loadu_ps(_mm512_set1_ps(-INFINITY), row_mask(n), x);
}

static inline real row_max(int64_t n, const real *restrict x) {
    enum { CHAINS = 4, STRIDE = CHAINS * ROW_VECTOR };
    __m512 m[CHAINS];
    for (int c = 0; c < CHAINS; c++) m[c] = _mm512_set1_ps(-INFINITY);
    int64_t i = 0;
    for (; i + STRIDE <= n; i += STRIDE)
#pragma GCC unroll 4
        for (int c = 0; c < CHAINS; c++) /* of a NaN and m: m */
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

/* The sum of the lanes and of the last n < 16 numbers. */
static inline double row_end(__m512d lanes, int64_t n, __m512 last) {
    real x[ROW_VECTOR];
    int64_t i = 0;
    if (n >= ROW_LANES) lanes = _mm512_add_pd(lanes, row_low(last)), i = ROW_LANES;
    _mm512_storeu_ps(x, last);
    double first = _mm512_cvtsd_f64(lanes);
    for (; i < n; i++) first += (double)x[i];
    return row_total(_mm512_mask_mov_pd(lanes, 1, _mm512_set1_pd(first)));
}

/* exp(x - m) and their sum; to y unless that is NULL. */
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

/* sum of exp(x - m) */
static inline double row_exp_sum(int64_t n, const real *restrict x, real m) {
    return row_exponentials(n, x, m, NULL);
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

/* sum of exp(x - m) */
static inline double row_exp_sum(int64_t n, const real *restrict x, real m) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) sum += (double)exp_fast(x[i] - m);
    return sum;
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

#endif

static inline double row_dot(int64_t n, const real *restrict x, const real *restrict y) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) sum += (double)x[i] * (double)y[i];
    return sum;
}

static inline void row_scale(int64_t n, real c, real *x) {
    for (int64_t i = 0; i < n; i++) x[i] *= c;
}

#endif
