/* simd_double.h -- SIMD vectors of eight doubles, from and to rows of `real`.
 *
 * GCC and Clang vector types: any CPU, as wide as it has. Functions pass vectors by pointer, so
 * that the calling convention does not depend on the CPU. */
#ifndef NORM_KERNELS_SIMD_DOUBLE_H
#define NORM_KERNELS_SIMD_DOUBLE_H

#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__) && !defined(REAL_DOUBLE)
#include <immintrin.h>
#endif

#include "base/real.h"

enum { SIMD_WIDTH = 8, PREFETCH_BYTES = 8192 };

typedef double simd_double __attribute__((vector_size(SIMD_WIDTH * sizeof(double))));
typedef real simd_double_real __attribute__((vector_size(SIMD_WIDTH * sizeof(real))));

#define SIMD_DOUBLE_INLINE static inline __attribute__((always_inline))

/* to = x[0..7] */
SIMD_DOUBLE_INLINE void simd_double_load(simd_double *to, const real *x) {
#if defined(__AVX512F__) && !defined(REAL_DOUBLE)
    /* Same as the conversion below, which GCC 12 splits into two halves. */
    *to = (simd_double)_mm512_cvtps_pd(_mm256_loadu_ps(x));
#else
    simd_double_real v;
    memcpy(&v, x, sizeof v);
    *to = __builtin_convertvector(v, simd_double);
#endif
}

SIMD_DOUBLE_INLINE void simd_double_load_double(simd_double *to, const double *x) {
    memcpy(to, x, sizeof *to);
}

/* x[0..7] = from, rounded */
SIMD_DOUBLE_INLINE void simd_double_store(real *x, const simd_double *from) {
    simd_double_real v = __builtin_convertvector(*from, simd_double_real);
    memcpy(x, &v, sizeof v);
}

SIMD_DOUBLE_INLINE void simd_double_store_double(double *x, const simd_double *from) {
    memcpy(x, from, sizeof *from);
}

/* Sum of the eight lanes, pairwise. */
SIMD_DOUBLE_INLINE double simd_double_total(const simd_double *v) {
    const simd_double a = *v;
    return ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]));
}

/* Prefetches numbers that are read `bytes` later, PREFETCH_BYTES in passes over one or two arrays.
 * Any address is allowed. */
SIMD_DOUBLE_INLINE void simd_double_prefetch(const real *x, int bytes) {
    __builtin_prefetch((const void *)((uintptr_t)x + (uintptr_t)bytes));
}

/* Prefetches for writing. */
SIMD_DOUBLE_INLINE void simd_double_prefetch_write(real *y, int bytes) {
    __builtin_prefetch((void *)((uintptr_t)y + (uintptr_t)bytes), 1);
}

/* total[j] = sum of the lanes of v[j]: neighbours, then neighbouring pairs, then halves. */
SIMD_DOUBLE_INLINE void simd_double_totals(simd_double *total, const simd_double *v) {
    simd_double a[4], b[2];
    for (int i = 0; i < 4; i++) {
        simd_double low =
            __builtin_shufflevector(v[2 * i], v[2 * i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
        simd_double high =
            __builtin_shufflevector(v[2 * i], v[2 * i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
        a[i] = low + high;
    }
    for (int i = 0; i < 2; i++) {
        simd_double low = __builtin_shufflevector(a[2 * i], a[2 * i + 1], 0, 1, 8, 9, 4, 5, 12, 13);
        simd_double high =
            __builtin_shufflevector(a[2 * i], a[2 * i + 1], 2, 3, 10, 11, 6, 7, 14, 15);
        b[i] = low + high;
    }
    simd_double low = __builtin_shufflevector(b[0], b[1], 0, 1, 2, 3, 8, 9, 10, 11);
    simd_double high = __builtin_shufflevector(b[0], b[1], 4, 5, 6, 7, 12, 13, 14, 15);
    *total = low + high;
}

/* sum x y over w values. */
static inline double simd_double_dot(const real *x, const real *y, int64_t w) {
    simd_double lane[4] = {0}, a, b;
    int64_t k = 0;
    for (; k + 4 * SIMD_WIDTH <= w; k += 4 * SIMD_WIDTH) {
        for (int j = 0; j < 4; j++) {
            simd_double_load(&a, x + k + j * SIMD_WIDTH);
            simd_double_load(&b, y + k + j * SIMD_WIDTH);
            lane[j] += a * b;
        }
    }
    for (; k + SIMD_WIDTH <= w; k += SIMD_WIDTH) {
        simd_double_load(&a, x + k);
        simd_double_load(&b, y + k);
        lane[0] += a * b;
    }
    lane[0] = (lane[0] + lane[1]) + (lane[2] + lane[3]);
    double sum = simd_double_total(lane);
    for (; k < w; k++) sum += (double)x[k] * (double)y[k];
    return sum;
}

/* total[j] = sum x_j y_j over w values, for eight rows of w values each. */
SIMD_DOUBLE_INLINE void simd_double_dots(double *total, const real *x, const real *y, int64_t w) {
    simd_double lane[SIMD_WIDTH] = {0}, sum, a, b;
    int64_t k = 0;
    for (; k + SIMD_WIDTH <= w; k += SIMD_WIDTH) {
        for (int j = 0; j < SIMD_WIDTH; j++) {
            simd_double_load(&a, x + j * w + k);
            simd_double_load(&b, y + j * w + k);
            lane[j] += a * b;
        }
    }
    simd_double_totals(&sum, lane);
    simd_double_store_double(total, &sum);
    for (; k < w; k++)
        for (int j = 0; j < SIMD_WIDTH; j++)
            total[j] += (double)x[j * w + k] * (double)y[j * w + k];
}

#endif
