/* wide.h -- eight doubles at once, from and to rows of `real`. GCC and Clang vector types: any CPU,
 * as wide as it has. Vectors go by pointer, so that no calling convention depends on the CPU. */
#ifndef NORM_WIDE_H
#define NORM_WIDE_H

#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "statnet/real.h"

enum { WIDE = 8 };

typedef double wide __attribute__((vector_size(WIDE * sizeof(double))));
typedef real wide_real __attribute__((vector_size(WIDE * sizeof(real))));

#define WIDE_INLINE static inline __attribute__((always_inline))

/* to = x[0..7] */
WIDE_INLINE void wide_load(wide *to, const real *x) {
#if defined(__AVX512F__) && !defined(REAL_DOUBLE)
    /* What the conversion below means; GCC 12 makes two halves of it. */
    *to = (wide)_mm512_cvtps_pd(_mm256_loadu_ps(x));
#else
    wide_real v;
    memcpy(&v, x, sizeof v);
    *to = __builtin_convertvector(v, wide);
#endif
}

WIDE_INLINE void wide_load_double(wide *to, const double *x) {
    memcpy(to, x, sizeof *to);
}

/* x[0..7] = from, rounded */
WIDE_INLINE void wide_store(real *x, const wide *from) {
    wide_real v = __builtin_convertvector(*from, wide_real);
    memcpy(x, &v, sizeof v);
}

WIDE_INLINE void wide_store_double(double *x, const wide *from) {
    memcpy(x, from, sizeof *from);
}

/* The sum of the eight, pairwise. */
WIDE_INLINE double wide_total(const wide *v) {
    const wide a = *v;
    return ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]));
}

#endif
