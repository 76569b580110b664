/* unicode.h -- classes and small letters of code points.
 *
 * Classes and case follow the Unicode version of the installed libunistring. Newer code points
 * belong to no class.
 */
#ifndef TEXT_UNICODE_H
#define TEXT_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* White space of Python's str.split and str.rstrip. */
bool unicode_is_blank(uint32_t code);
bool unicode_is_number(uint32_t code);      /* general category N */
bool unicode_is_punctuation(uint32_t code); /* general category P */
bool unicode_is_symbol(uint32_t code);      /* general category S */

/* The text in small letters, independent of language. The mapping is full, and a sigma at the end
 * of a word gets its final form. Valid UTF-8 only. malloc'd, *lowered bytes and a zero byte; NULL
 * when out of memory. */
uint8_t *unicode_lower(const uint8_t *text, size_t length, size_t *lowered);

#endif
