/* crc32.c -- see crc32.h. Eight bytes at a time by tables ("slicing by 8": Kounavis and Berry, A
 * Systematic Approach to Building High Performance, Software-based, CRC Generators, 2005); where the
 * CPU multiplies polynomials over GF(2), 64 or 256 bytes at a time by that (Gopal et al., Fast CRC
 * Computation for Generic Polynomials Using PCLMULQDQ Instruction, Intel 2009): that many bytes are left
 * which have the remainder of all.
 */
#include "journal/crc32.h"

#include <stdbool.h>

enum { POLYNOMIAL_BITS = 32, BLOCK = 16, BLOCKS = 4, STRIDE = BLOCK * BLOCKS, WIDE = 4 * STRIDE };
static const uint32_t polynomial = 0xedb88320u; /* reflected: the highest bit is x^0 */

/* c x^n mod the polynomial. */
static uint32_t times_x(uint32_t c, int n) {
    while (n-- > 0) c = c & 1 ? c >> 1 ^ polynomial : c >> 1;
    return c;
}

/* Two factors for one who multiplies the halves of a block to put it `bytes` further on: x^(8 bytes + 32)
 * for the first eight bytes, x^(8 bytes - 32) for the last. A product of reflected factors of 64 bits has 127,
 * hence the shift by one. */
static void put_factors(uint64_t factor[2], int bytes) {
    factor[0] = (uint64_t)times_x(0x80000000u, 8 * bytes + POLYNOMIAL_BITS) << 1;
    factor[1] = (uint64_t)times_x(0x80000000u, 8 * bytes - POLYNOMIAL_BITS) << 1;
}

void crc_table_init(crc_table *t) {
    for (uint32_t i = 0; i < 256; i++) t->of[0][i] = times_x(i, 8);
    for (int k = 1; k < 8; k++)
        for (int i = 0; i < 256; i++)
            t->of[k][i] = t->of[k - 1][i] >> 8 ^ t->of[0][t->of[k - 1][i] & 255];
    put_factors(t->farthest, WIDE);
    put_factors(t->far, STRIDE);
    put_factors(t->near, BLOCK);
}

/* The remainder c of what came before, followed by these bytes. */
static uint32_t add_by_tables(const crc_table *t, uint32_t c, const unsigned char *at,
                              size_t size) {
    for (; size >= 8; size -= 8, at += 8) {
        c ^= (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
        c = t->of[7][c & 255] ^ t->of[6][c >> 8 & 255] ^ t->of[5][c >> 16 & 255] ^
            t->of[4][c >> 24] ^ t->of[3][at[4]] ^ t->of[2][at[5]] ^ t->of[1][at[6]] ^
            t->of[0][at[7]];
    }
    for (; size; size--) c = c >> 8 ^ t->of[0][(c ^ *at++) & 255];
    return c;
}

#ifdef __x86_64__
#include <immintrin.h>

#define MULTIPLIES __attribute__((target("pclmul,sse2")))

static bool multiplies(void) {
    return __builtin_cpu_supports("pclmul");
}

MULTIPLIES static __m128i load(const void *at) {
    return _mm_loadu_si128(at);
}

/* The remainder of a block that lies as far in front of `next` as the factors say, and of next. */
MULTIPLIES static __m128i fold(__m128i block, __m128i factors, __m128i next) {
    const __m128i first = _mm_clmulepi64_si128(block, factors, 0x00);
    const __m128i last = _mm_clmulepi64_si128(block, factors, 0x11);
    return _mm_xor_si128(_mm_xor_si128(first, last), next);
}

/* size: a multiple of STRIDE, not 0. Each block is put a stride further on, at the end by one block. */
MULTIPLIES static uint32_t add_strides(const crc_table *t, uint32_t c, const unsigned char *at,
                                       size_t size) {
    const __m128i far = load(t->far), near = load(t->near);
    __m128i block[BLOCKS];
    unsigned char left[BLOCK];
    for (int i = 0; i < BLOCKS; i++) block[i] = load(at + BLOCK * i);
    block[0] = _mm_xor_si128(block[0], _mm_cvtsi32_si128((int)c));
    for (size -= STRIDE, at += STRIDE; size; size -= STRIDE, at += STRIDE)
        for (int i = 0; i < BLOCKS; i++) block[i] = fold(block[i], far, load(at + BLOCK * i));
    for (int i = 1; i < BLOCKS; i++) block[i] = fold(block[i - 1], near, block[i]);
    _mm_storeu_si128((void *)left, block[BLOCKS - 1]);
    return add_by_tables(t, 0, left, BLOCK);
}

/* Of what is installed, the libraries for CPUs with AVX-512 alone have more. */
#ifdef __AVX512F__
#define MULTIPLIES_WIDE __attribute__((target("vpclmulqdq,avx512f")))

static bool multiplies_wide(void) {
    return __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx512f");
}

MULTIPLIES_WIDE static __m512i fold_wide(__m512i stride, __m512i factors, __m512i next) {
    const __m512i first = _mm512_clmulepi64_epi128(stride, factors, 0x00);
    const __m512i last = _mm512_clmulepi64_epi128(stride, factors, 0x11);
    return _mm512_xor_si512(_mm512_xor_si512(first, last), next);
}

/* The same of a multiple of WIDE. */
MULTIPLIES_WIDE static uint32_t add_wide(const crc_table *t, uint32_t c, const unsigned char *at,
                                         size_t size) {
    const __m512i farthest = _mm512_broadcast_i32x4(load(t->farthest));
    __m512i stride[WIDE / STRIDE];
    unsigned char left[WIDE];
    for (int i = 0; i < WIDE / STRIDE; i++) stride[i] = _mm512_loadu_si512(at + STRIDE * i);
    stride[0] = _mm512_xor_si512(stride[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)c)));
    for (size -= WIDE, at += WIDE; size; size -= WIDE, at += WIDE)
        for (int i = 0; i < WIDE / STRIDE; i++)
            stride[i] = fold_wide(stride[i], farthest, _mm512_loadu_si512(at + STRIDE * i));
    for (int i = 0; i < WIDE / STRIDE; i++) _mm512_storeu_si512(left + STRIDE * i, stride[i]);
    return add_strides(t, 0, left, WIDE);
}

#else
static bool multiplies_wide(void) {
    return false;
}

static uint32_t add_wide(const crc_table *t, uint32_t c, const unsigned char *at, size_t size) {
    return add_strides(t, c, at, size);
}
#endif

/* Of as many bytes as are a multiple of a stride; *size gives up those. */
static uint32_t add_by_products(const crc_table *t, uint32_t c, const unsigned char *at,
                                size_t *size) {
    const size_t wide = multiplies_wide() ? *size - *size % WIDE : 0;
    if (wide) c = add_wide(t, c, at, wide);
    const size_t strides = multiplies() ? *size - wide - *size % STRIDE : 0;
    if (strides) c = add_strides(t, c, at + wide, strides);
    *size -= wide + strides;
    return c;
}
#else
static uint32_t add_by_products(const crc_table *t, uint32_t c, const unsigned char *at,
                                size_t *size) {
    (void)t, (void)at, (void)size;
    return c;
}
#endif

uint32_t crc_add(const crc_table *t, uint32_t sum, const void *bytes, size_t size) {
    size_t left = size;
    const uint32_t c = add_by_products(t, ~sum, bytes, &left);
    return ~add_by_tables(t, c, (const unsigned char *)bytes + (size - left), left);
}

uint32_t crc_add_plainly(const crc_table *t, uint32_t sum, const void *bytes, size_t size) {
    return ~add_by_tables(t, ~sum, bytes, size);
}
