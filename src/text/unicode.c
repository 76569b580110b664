/* unicode.c -- see unicode.h. The only file that asks libunistring. */
#include "statnet/unicode.h"

#include <stdlib.h>
#include <string.h>
#include <unicase.h>
#include <unictype.h>

size_t unicode_decode(const uint8_t *p, uint32_t *code) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    *code = p[0];
    if (p[0] < 0x80) return 1;
    size_t length = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4) return 0;
    *code = p[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((p[i] & 0xc0) != 0x80) return 0;
        *code = *code << 6 | (p[i] & 0x3fu);
    }
    bool surrogate = *code >= 0xd800 && *code <= 0xdfff;
    return *code < least[length] || *code > 0x10ffff || surrogate ? 0 : length;
}

bool unicode_is_blank(uint32_t code) {
    if (code < 0x80) return code == ' ' || (code >= 9 && code <= 13) || (code >= 28 && code <= 31);
    switch (code) {
    case 0x85:
    case 0xa0:
    case 0x1680:
    case 0x2028:
    case 0x2029:
    case 0x202f:
    case 0x205f:
    case 0x3000:
        return true;
    default:
        return code >= 0x2000 && code <= 0x200a;
    }
}

bool unicode_is_number(uint32_t code) {
    return uc_is_general_category(code, UC_CATEGORY_N);
}

bool unicode_is_punctuation(uint32_t code) {
    return uc_is_general_category(code, UC_CATEGORY_P);
}

bool unicode_is_symbol(uint32_t code) {
    return uc_is_general_category(code, UC_CATEGORY_S);
}

uint8_t *unicode_lower(const uint8_t *text, size_t length, size_t *lowered) {
    uint8_t *small = u8_tolower(text, length, NULL, NULL, NULL, lowered);
    if (!small) return NULL;
    uint8_t *closed = realloc(small, *lowered + 1);
    if (!closed) {
        free(small);
        return NULL;
    }
    closed[*lowered] = 0;
    return closed;
}
