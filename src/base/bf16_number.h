/* bf16_number.h -- one number as bfloat16: 1 sign, 8 exponent and 7 stored mantissa bits, a float's
 * upper half. */
#ifndef BASE_BF16_NUMBER_H
#define BASE_BF16_NUMBER_H

#include <stdint.h>
#include <string.h>

/* The nearest bfloat16, ties to the even one: within 2^-8 of |x|, relative. From 3.396e38 on
 * infinite; NaN stays NaN. Half of the last place that stays is added, less one where that place is
 * even; the carry does the rest. */
static inline float bf16_nearest(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits += 0x7fffu + (bits >> 16 & 1u);
    bits &= 0xffff0000u;
    float y;
    memcpy(&y, &bits, sizeof y);
    return x == x ? y : x;
}

#endif
