/* unicode.c -- categories and case of code points, by libunistring. */
#include "text/unicode.h"

#include <stdlib.h>
#include <unicase.h>
#include <unictype.h>

#include "base/containers/byte_buffer.h"
#include "base/utf8.h"

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

/* -- small letters
 * -------------------------------------------------------------------------------- */

/* True if the first code point from p that is not ignorable is cased. */
static bool cased_follows(const uint8_t *p, const uint8_t *end) {
    uint32_t code;
    /* unreached: bytes that are not UTF-8, which callers have checked */
    for (size_t step; p < end && (step = utf8_decode(p, &code)) > 0; p += step)
        if (!uc_is_property_case_ignorable(code)) return uc_is_property_cased(code);
    return false;
}

/* Lowers a run without a sigma, where the neighbours of a letter do not matter. */
static bool lower_run(byte_buffer *out, const uint8_t *text, size_t length) {
    size_t size;
    if (!length) return buffer_put(out, text, 0);
    uint8_t *small = u8_tolower(text, length, NULL, NULL, NULL, &size);
    const bool done = small && buffer_put(out, small, size);
    free(small);
    return done;
}

/* Sigma is final after a cased letter and not before one (Unicode, SpecialCasing, Final_Sigma).
 * u8_tolower has this rule, too, but libunistring 1.0 differs next to apostrophes and next to cased
 * code points that are ignorable. */
uint8_t *unicode_lower(const uint8_t *text, size_t length, size_t *lowered) {
    static const uint32_t sigma = 0x3a3;
    const uint8_t *const end = text + length, *run = text;
    byte_buffer out = {0};
    bool cased_before = false, done = true;
    uint32_t code;
    for (size_t at = 0, step; done && at < length; at += step) {
        step = utf8_decode(text + at, &code);
        if (!step) break; /* unreached: bytes that are not UTF-8 */
        if (code == sigma) {
            const bool final = cased_before && !cased_follows(text + at + step, end);
            done = lower_run(&out, run, (size_t)(text + at - run)) &&
                   buffer_put(&out, (final ? "\xcf\x82" : "\xcf\x83"), 2);
            run = text + at + step;
        }
        if (!uc_is_property_case_ignorable(code)) cased_before = uc_is_property_cased(code);
    }
    done = done && lower_run(&out, run, (size_t)(end - run));
    *lowered = out.size;
    if (!done) buffer_free(&out);
    return (uint8_t *)out.byte;
}
