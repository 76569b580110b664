/* unicode.c -- see unicode.h. The only file that asks libunistring. */
#include "text/unicode.h"

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

bool unicode_is_digit(uint32_t code) {
    return uc_is_general_category(code, UC_CATEGORY_Nd);
}

bool unicode_is_word(uint32_t code) {
    return code == '_' || unicode_is_number(code) || uc_is_general_category(code, UC_CATEGORY_L);
}

/* -- small letters -------------------------------------------------------------------------------- */

/* True when the first code point from p on that has a say is a letter with a case. */
static bool cased_follows(const uint8_t *p, const uint8_t *end) {
    uint32_t code;
    for (size_t step; p < end && (step = unicode_decode(p, &code)) > 0; p += step)
        if (!uc_is_property_case_ignorable(code)) return uc_is_property_cased(code);
    return false;
}

typedef struct lowering {
    uint8_t *byte;
    size_t size, capacity;
} lowering;

static bool put(lowering *out, const uint8_t *bytes, size_t count) {
    if (out->size + count >= out->capacity) {
        const size_t capacity = 2 * (out->size + count) + 16;
        uint8_t *larger = realloc(out->byte, capacity);
        if (!larger) return false;
        out->byte = larger;
        out->capacity = capacity;
    }
    if (count) memcpy(out->byte + out->size, bytes, count);
    out->size += count;
    out->byte[out->size] = 0;
    return true;
}

/* A run without a sigma: there the neighbours of a letter do not matter. */
static bool lower_run(lowering *out, const uint8_t *text, size_t length) {
    size_t size;
    if (!length) return put(out, text, 0);
    uint8_t *small = u8_tolower(text, length, NULL, NULL, NULL, &size);
    const bool done = small && put(out, small, size);
    free(small);
    return done;
}

/* Sigma is final behind a letter with a case and before none (Unicode, SpecialCasing, Final_Sigma).
 * u8_tolower has the rule too, but in libunistring 1.0 it is another one beside apostrophes and beside
 * code points that have a case and are ignorable as well. */
uint8_t *unicode_lower(const uint8_t *text, size_t length, size_t *lowered) {
    static const uint32_t sigma = 0x3a3;
    const uint8_t *const end = text + length, *run = text;
    lowering out = {0};
    bool cased_before = false, done = true;
    uint32_t code;
    for (size_t at = 0, step; done && at < length; at += step) {
        step = unicode_decode(text + at, &code);
        if (!step) break;
        if (code == sigma) {
            const bool final = cased_before && !cased_follows(text + at + step, end);
            done = lower_run(&out, run, (size_t)(text + at - run)) &&
                   put(&out, (const uint8_t *)(final ? "\xcf\x82" : "\xcf\x83"), 2);
            run = text + at + step;
        }
        if (!uc_is_property_case_ignorable(code)) cased_before = uc_is_property_cased(code);
    }
    done = done && lower_run(&out, run, (size_t)(end - run));
    *lowered = out.size;
    if (!done) free(out.byte);
    return done ? out.byte : NULL;
}
