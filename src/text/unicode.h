/* unicode.h -- code points of UTF-8 text: which class they belong to, and their small letters.
 *
 * Classes and case are those of the Unicode version of the installed libunistring; a code point that
 * is newer than it belongs to no class.
 */
#ifndef TEXT_UNICODE_H
#define TEXT_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the UTF-8 sequence that text begins with, its code point in *code; 0 when it is not valid (overlong forms,
 * surrogates and code points over 10FFFF included). The text must be followed by a zero byte, so that
 * a sequence cut off at the end is seen without looking further. */
size_t unicode_decode(const void *text, uint32_t *code);

/* What Python's str.split and str.rstrip take for white space. */
bool unicode_is_blank(uint32_t code);
bool unicode_is_number(uint32_t code);      /* general category N */
bool unicode_is_punctuation(uint32_t code); /* general category P */
bool unicode_is_symbol(uint32_t code);      /* general category S */

/* The text in small letters, of no language in particular: full mapping (one letter may become two),
 * and a sigma at the end of a word gets its final form. Valid UTF-8 only. malloc'd, *lowered bytes and
 * a zero byte; NULL when out of memory. */
uint8_t *unicode_lower(const uint8_t *text, size_t length, size_t *lowered);

#endif
