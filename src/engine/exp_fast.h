/* exp_fast.h -- e^x as straight-line arithmetic, so that the compiler vectorizes loops around it.
 * libm's expf is a call, and its vector form needs -ffast-math.
 *
 *   n = round(x / ln 2), r = x - n ln 2 (ln 2 in two parts, |r| <= 0.347), e^x = 2^n e^r,
 *   e^r by a polynomial of degree 6 with e^0 = 1 exactly.
 *
 * The error is below 2 ulp over the whole range (tests/engine/test_exp_fast.c). Results below the
 * smallest normal number become subnormal, or zero where the thread flushes denormals. Above 88.72
 * the result is infinity; NaN stays NaN. 2^n is applied in two halves, as n reaches 128 and -149.
 * The double build calls exp(). */
#ifndef ENGINE_EXP_FAST_H
#define ENGINE_EXP_FAST_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__) && !defined(REAL_DOUBLE)
#include <immintrin.h>
#endif

#include "base/real.h"

#ifdef REAL_DOUBLE
static inline double exp_fast(double x) {
    return exp(x);
}
#else

static inline float exp_fast_madd(float a, float b, float c) {
#ifdef __FP_FAST_FMAF
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

/* 2^n for -126 <= n <= 127. */
static inline float exp_fast_power(int32_t n) {
    uint32_t bits = ((uint32_t)n + 127) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* Returns e within [-104, 89], and 0 or infinity outside. It selects by bits, because a branch
 * keeps GCC from vectorizing. */
static inline float exp_fast_limit(float x, float e) {
    uint32_t below = -(uint32_t)(x < -104.0f), above = -(uint32_t)(x > 89.0f), bits;
    memcpy(&bits, &e, sizeof bits);
    bits = (bits & ~(below | above)) | (above & 0x7f800000u);
    memcpy(&e, &bits, sizeof e);
    return e;
}

static inline float exp_fast(float x) {
    const float shift = 0x1.8p23f; /* adding it leaves the rounded integer in the low bits */
    float shifted = exp_fast_madd(x, 0x1.715476p0f, shift);
    float whole = shifted - shift;
    uint32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    int32_t n = (int32_t)(bits - 0x4b400000u), half = n >> 1;
    /* The upper part of ln 2 has 9 bits, so whole * upper is exact without fma too. */
    float r = exp_fast_madd(whole, -0x1.63p-1f, x);
    r = exp_fast_madd(whole, 0x1.bd0106p-13f, r);
    float e = 0x1.6a4d14p-10f;
    e = exp_fast_madd(e, r, 0x1.12398ap-7f);
    e = exp_fast_madd(e, r, 0x1.5558bp-5f);
    e = exp_fast_madd(e, r, 0x1.555492p-3f);
    e = exp_fast_madd(e, r, 0x1.fffffcp-2f);
    e = exp_fast_madd(e, r, 1.0f);
    e = exp_fast_madd(e, r, 1.0f);
    return exp_fast_limit(x, e * exp_fast_power(half) * exp_fast_power(n - half));
}

#if defined(__AVX512F__)
/* exp_fast of sixteen numbers, bit for bit. x is clamped to where e^x is 0 or infinity already. 2^n
 * is applied in one rounding, because the first of the two halves rounds nothing. */
static inline __m512 exp_fast_vector(__m512 x) {
    const __m512 shift = _mm512_set1_ps(0x1.8p23f), one = _mm512_set1_ps(1.0f);
    x = _mm512_min_ps(_mm512_set1_ps(90.0f), _mm512_max_ps(_mm512_set1_ps(-105.0f), x));
    const __m512 whole =
        _mm512_sub_ps(_mm512_fmadd_ps(x, _mm512_set1_ps(0x1.715476p0f), shift), shift);
    __m512 r = _mm512_fmadd_ps(whole, _mm512_set1_ps(-0x1.63p-1f), x);
    r = _mm512_fmadd_ps(whole, _mm512_set1_ps(0x1.bd0106p-13f), r);
    __m512 e = _mm512_set1_ps(0x1.6a4d14p-10f);
    e = _mm512_fmadd_ps(e, r, _mm512_set1_ps(0x1.12398ap-7f));
    e = _mm512_fmadd_ps(e, r, _mm512_set1_ps(0x1.5558bp-5f));
    e = _mm512_fmadd_ps(e, r, _mm512_set1_ps(0x1.555492p-3f));
    e = _mm512_fmadd_ps(e, r, _mm512_set1_ps(0x1.fffffcp-2f));
    e = _mm512_fmadd_ps(e, r, one);
    e = _mm512_fmadd_ps(e, r, one);
    return _mm512_scalef_ps(e, whole);
}
#endif

#endif
#endif
