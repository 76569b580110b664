/* simd_load.h -- loads one element of a tensor, or a register of them, as doubles. The vector types
 * of GCC and Clang work on any CPU. Vectors are passed by pointer, so that no calling convention
 * depends on the CPU. */
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

/* A sum over neighbouring values has LANES partial sums, in PARTS vectors of WIDTH doubles: the
 * result has the same bits for any WIDTH. GCC 12 keeps vectors wider than a register in memory. */
#ifdef SIMD_LOAD_AVX512
enum { LANES = 8, WIDTH = 8 };
#else
enum { LANES = 8, WIDTH = 4 };
#endif
enum { PARTS = LANES / WIDTH };

typedef double simd __attribute__((vector_size(WIDTH * sizeof(double))));

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

/* -- WIDTH elements ---------------------------------------------------------------------------- */

INLINE void load_double(simd *to, const double *x) {
    memcpy(to, x, sizeof *to);
}

#if defined(SIMD_LOAD_AVX512) /* GCC 12 splits the conversions of the third case into halves */
INLINE void load_float(simd *to, const float *x) {
    *to = (simd)_mm512_cvtps_pd(_mm256_loadu_ps(x));
}

INLINE void load_bfloat16(simd *to, const uint16_t *x) {
    const __m256i from = _mm256_setr_epi16(0, 0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7);
    const __m256i half = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)x));
    *to = (simd)_mm512_cvtps_pd(
        _mm256_castsi256_ps(_mm256_maskz_permutexvar_epi16(0xaaaa, from, half)));
}

INLINE void load_half(simd *to, const uint16_t *x) {
    *to = (simd)_mm512_cvtps_pd(_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)x)));
}
#else
INLINE void load_float(simd *to, const float *x) {
#if defined(__AVX__)
    *to = (simd)_mm256_cvtps_pd(_mm_loadu_ps(x));
#else
    *to = (simd){x[0], x[1], x[2], x[3]};
#endif
}

INLINE void load_bfloat16(simd *to, const uint16_t *x) {
#if defined(__AVX__)
    const __m128i half = _mm_loadl_epi64((const __m128i *)x);
    *to = (simd)_mm256_cvtps_pd(_mm_castsi128_ps(_mm_unpacklo_epi16(_mm_setzero_si128(), half)));
#else
    for (int i = 0; i < WIDTH; i++) (*to)[i] = value_bfloat16(x + i);
#endif
}

INLINE void load_half(simd *to, const uint16_t *x) {
#if defined(__F16C__)
    *to = (simd)_mm256_cvtps_pd(_mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)x)));
#else
    for (int i = 0; i < WIDTH; i++) (*to)[i] = value_half(x + i);
#endif
}
#endif

/* The sum of a's LANES, pairwise. */
INLINE double lanes_sum(const simd a[PARTS]) {
    double of[LANES];
    memcpy(of, a, sizeof of);
    return ((of[0] + of[4]) + (of[2] + of[6])) + ((of[1] + of[5]) + (of[3] + of[7]));
}

#endif
