/* row_math.h -- what softmax, attention and cross entropy do to one row of n numbers.
 *
 * The maximum skips NaN; a NaN comes back in every sum, as exp(NaN - m) is NaN. `omp simd` allows
 * the sums to be taken in vector lanes: the order is fixed by n and the CPU type. Exponentials are
 * float, their sum is double: log(sum) keeps what a term far below the largest adds to it.
 */
#ifndef ENGINE_ROW_MATH_H
#define ENGINE_ROW_MATH_H

#include "exp_fast.h"

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
