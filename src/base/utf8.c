/* utf8.c -- decodes UTF-8: ASCII here, the rest by libunistring. */
#include "base/utf8.h"

#include <stdbool.h>
#include <unistr.h>

size_t utf8_decode(const void *text, uint32_t *code) {
    const uint8_t *at = text;
    *code = *at;
    if (*at < 0x80) return 1;
    const int bytes = u8_strmbtouc(code, at);
    return bytes > 0 ? (size_t)bytes : 0;
}

int utf8_bytes(const char *text) {
    uint32_t code;
    return (int)utf8_decode(text, &code);
}

int utf8_shown(const char *text) {
    uint32_t code;
    const int bytes = (int)utf8_decode(text, &code);
    const bool control = code < ' ' || (code >= 0x7f && code < 0xa0);
    const bool turns = code == 0x61c || code == 0x200e || code == 0x200f ||
                       (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
    return control || turns || code == 0x2028 || code == 0x2029 ? 0 : bytes;
}
