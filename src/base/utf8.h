/* utf8.h -- characters of UTF-8 (RFC 3629). Each text ends with a zero byte, which ends a truncated
 * character too. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the first character, 1 for every byte below 0x80. Its code point is *code. 0: the bytes
 * are no character, or an overlong form, a surrogate or a code point over 10FFFF. */
size_t utf8_decode(const void *text, uint32_t *code);
/* utf8_decode without the code point. */
int utf8_bytes(const char *text);

/* utf8_bytes, but 0 for characters that control a terminal or reverse text. That is controls (C0,
 * DEL, C1), ends of lines and paragraphs (U+2028, U+2029) and Unicode's Bidi_Control. Text from
 * files is shown without these. */
int utf8_shown(const char *text);

#endif
