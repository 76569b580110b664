/* float_text.c -- converts between numbers and shortest decimal text. Both directions are exact for
 * the numbers they accept; the C library converts the rest.
 *
 * Writing: v 10^k with k so that nine digits come before the point. Powers up to 10^27 are
 * exact in a long double of 64 bits, so the product is wrong by less than 10^9 2^-63. Unless the
 * fraction is that near to a half, the rounding is certain.
 *
 * Reading: a mantissa below 2^53 and a power of ten up to 10^22 are exact in double. One operation
 * rounds once (Clinger 1990).
 */
#include "base/float_text.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FLOAT_TEXT_SIZE = 24, PLACES = 9, POWERS = 28, READ_POWERS = 23 };

#define TEN(k) 1e##k##L
static const long double ten[POWERS] = {
    TEN(0),  TEN(1),  TEN(2),  TEN(3),  TEN(4),  TEN(5),  TEN(6),  TEN(7),  TEN(8),  TEN(9),
    TEN(10), TEN(11), TEN(12), TEN(13), TEN(14), TEN(15), TEN(16), TEN(17), TEN(18), TEN(19),
    TEN(20), TEN(21), TEN(22), TEN(23), TEN(24), TEN(25), TEN(26), TEN(27)};

/* -- writing --------------------------------------------------------------------------------- */

/* Nine digits and the power of ten of the first. */
typedef struct decimal {
    uint32_t digits;
    int power;
} decimal;

/* False if the digits are not certain. v > 0 */
static bool decimal_of(double v, decimal *d) {
    const long double low = ten[PLACES - 1], high = ten[PLACES];
    int bits;
    frexp(v, &bits);
    int power = (int)floor((bits - 1) * 0.30102999566398120); /* log10 2: right, or one too small */
    long double scaled = 0;
    for (int attempt = 0; attempt < 2; attempt++, power++) {
        const int k = PLACES - 1 - power;
        if (k <= -POWERS || k >= POWERS) return false;
        scaled = k < 0 ? (long double)v / ten[-k] : (long double)v * ten[k];
        if (scaled < high) break;
    }
    if (!(scaled >= low && scaled < high)) return false;
    const uint32_t whole = (uint32_t)scaled;
    const long double rest = scaled - (long double)whole;
    if (fabsl(rest - 0.5L) < 1e-6L) return false;
    *d = (decimal){whole + (rest > 0.5L), power};
    if (d->digits == 1000000000u) *d = (decimal){100000000u, power + 1};
    return true;
}

/* d.ddde-07 */
static char *write_power(char *to, const char *digit, int count, int power) {
    const int size = power < 0 ? -power : power;
    *to++ = digit[0];
    if (count > 1) *to++ = '.';
    for (int i = 1; i < count; i++) *to++ = digit[i];
    *to++ = 'e', *to++ = power < 0 ? '-' : '+';
    *to++ = (char)('0' + size / 10), *to++ = (char)('0' + size % 10);
    return to;
}

/* 0.000ddd, dd.dd or ddd00 */
static char *write_plain(char *to, const char *digit, int count, int power) {
    if (power < 0) *to++ = '0', *to++ = '.';
    for (int i = power + 1; i < 0; i++) *to++ = '0';
    for (int i = 0; i < count || i <= power; i++) {
        if (i == power + 1 && power >= 0) *to++ = '.';
        *to++ = i < count ? digit[i] : '0';
    }
    return to;
}

void float_text_print(FILE *out, double value) {
    char digit[PLACES], text[FLOAT_TEXT_SIZE], *to = text;
    decimal d;
    if (LDBL_MANT_DIG < 64 || !isfinite(value) || value == 0 || !decimal_of(fabs(value), &d)) {
        fprintf(out, "%.9g", value);
        return;
    }
    for (int i = PLACES; i-- > 0; d.digits /= 10) digit[i] = (char)('0' + d.digits % 10);
    int count = PLACES;
    while (count > 1 && digit[count - 1] == '0') count--;
    if (value < 0) *to++ = '-';
    const bool plain = d.power >= -4 && d.power < PLACES;
    to = (plain ? write_plain : write_power)(to, digit, count, d.power);
    fwrite(text, 1, (size_t)(to - text), out);
}

/* -- reading --------------------------------------------------------------------------------- */

typedef struct number {
    uint64_t mantissa;
    int digits, power; /* digits: that were read, zeros in front too */
} number;

static const char *read_digits(const char *at, number *n) {
    for (; *at >= '0' && *at <= '9'; at++, n->digits++)
        if (n->digits < 19) n->mantissa = 10 * n->mantissa + (uint64_t)(*at - '0');
    return at;
}

/* Reads an exponent such as "e-07"; NULL for other text. */
static const char *read_power(const char *at, number *n) {
    number power = {0, 0, 0};
    const bool down = at[1] == '-';
    const char *first = at + 1 + (down || at[1] == '+'), *end = read_digits(first, &power);
    if (end == first || power.digits > 4) return NULL;
    n->power += down ? -(int)power.mantissa : (int)power.mantissa;
    return end;
}

/* NULL where the text is no number, or one for strtod. */
static const char *read_number(const char *at, number *n) {
    static const number none = {0, 0, 0};
    *n = none;
    at = read_digits(at, n);
    const int whole = n->digits;
    if (*at == '.') at = read_digits(at + 1, n), n->power = whole - n->digits;
    if (!n->digits || n->digits > 19) return NULL;
    if (*at == 'e' || *at == 'E') at = read_power(at, n);
    return at && !*at ? at : NULL;
}

double float_text_read(const char *text, char **end) {
    number n;
    const bool minus = *text == '-';
    const char *last = read_number(text + minus, &n);
    const int size = n.power < 0 ? -n.power : n.power;
    if (!last || n.mantissa >> 53 || size >= READ_POWERS) return strtod(text, end);
    const double mantissa = (double)n.mantissa, by = (double)ten[size];
    const double value = n.power < 0 ? mantissa / by : mantissa * by;
    *end = (char *)(uintptr_t)last;
    return minus ? -value : value;
}
