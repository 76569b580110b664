/* simd_load.h -- loads one or eight elements of a tensor as doubles. The vector types of GCC and
 * Clang work on any CPU. Vectors are passed by pointer, so that no calling convention depends on
 * the CPU. */
#ifndef MOMENTS_SIMD_LOAD_H
#define MOMENTS_SIMD_LOAD_H

#include <stdint.h>
#include <string.h>

#if defined(__AVX512BW__) && defined(__AVX512VL__)
#define SIMD_LOAD_AVX512
#endif
#if defined(__AVX__)
#include <immintrin.h>
#endif

enum { LANES = 8 };

typedef double lanes __attribute__((vector_size(LANES * sizeof(double))));
typedef float float_lanes __attribute__((vector_size(LANES * sizeof(float))));
typedef uint16_t half_lanes __attribute__((vector_size(LANES * sizeof(uint16_t))));
typedef uint32_t word_lanes __attribute__((vector_size(LANES * sizeof(uint32_t))));

#define INLINE static inline __attribute__((always_inline))

INLINE float from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* -- one element ------------------------------------------------------------------------------- */

INLINE double value_float(const float *x) {
    return *x;
}

INLINE double value_double(const double *x) {
    return *x;
}

/* The upper half of a binary32. */
INLINE double value_bfloat16(const uint16_t *x) {
    return from_bits((uint32_t)*x << 16);
}

/* binary16: a multiplication changes the exponent's bias from 15 to 127, also for subnormal
 * numbers. An exponent of all ones (NaN, infinity) stays so. */
INLINE double value_half(const uint16_t *x) {
    const uint32_t magnitude = (uint32_t)(*x & 0x7fffu) << 13, sign = (uint32_t)(*x & 0x8000u)
                                                                      << 16;
    const float value = from_bits(magnitude) * 0x1p112f;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (magnitude >= 0x0f800000u) bits |= 0x7f800000u;
    return from_bits(bits | sign);
}

/* -- eight elements ---------------------------------------------------------------------------- */

INLINE void load_double(lanes *to, const double *x) {
    memcpy(to, x, sizeof *to);
}

#if defined(SIMD_LOAD_AVX512) /* as the conversions below, which GCC 12 splits into halves */
INLINE void load_float(lanes *to, const float *x) {
    *to = (lanes)_mm512_cvtps_pd(_mm256_loadu_ps(x));
}

INLINE void load_bfloat16(lanes *to, const uint16_t *x) {
    const __m256i from = _mm256_setr_epi16(0, 0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7);
    const __m256i half = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)x));
    *to = (lanes)_mm512_cvtps_pd(
        _mm256_castsi256_ps(_mm256_maskz_permutexvar_epi16(0xaaaa, from, half)));
}

INLINE void load_half(lanes *to, const uint16_t *x) {
    *to = (lanes)_mm512_cvtps_pd(_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)x)));
}
#else
INLINE void load_float(lanes *to, const float *x) {
    float_lanes v;
    memcpy(&v, x, sizeof v);
    *to = __builtin_convertvector(v, lanes);
}

INLINE void load_bfloat16(lanes *to, const uint16_t *x) {
    half_lanes v;
    memcpy(&v, x, sizeof v);
    const word_lanes words = __builtin_convertvector(v, word_lanes) << 16;
    load_float(to, (const float *)&words);
}

INLINE void load_half(lanes *to, const uint16_t *x) {
    for (int i = 0; i < LANES; i++) (*to)[i] = value_half(x + i);
}
#endif

/* -- four of them ------------------------------------------------------------------------------ */

/* A register of AVX. GCC 12 keeps wider vectors in memory there. */
typedef double quad __attribute__((vector_size(4 * sizeof(double))));

INLINE void quad_float(quad *to, const float *x) {
#if defined(__AVX__) /* as the conversion below, which GCC 12 splits into halves */
    *to = (quad)_mm256_cvtps_pd(_mm_loadu_ps(x));
#else
    float v __attribute__((vector_size(4 * sizeof(float))));
    memcpy(&v, x, sizeof v);
    *to = __builtin_convertvector(v, quad);
#endif
}

INLINE void quad_double(quad *to, const double *x) {
    memcpy(to, x, sizeof *to);
}

INLINE void quad_bfloat16(quad *to, const uint16_t *x) {
    *to = (quad){value_bfloat16(x), value_bfloat16(x + 1), value_bfloat16(x + 2),
                 value_bfloat16(x + 3)};
}

INLINE void quad_half(quad *to, const uint16_t *x) {
    *to = (quad){value_half(x), value_half(x + 1), value_half(x + 2), value_half(x + 3)};
}

/* The sum of the eight, pairwise. */
INLINE double lanes_sum(const lanes *v) {
    const lanes a = *v;
    return ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]));
}

#endif
