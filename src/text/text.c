/* text.c -- see text.h. Only '\n' ends a line; the blanks between words are those at which Python's
 * str.split cuts, and with it fairseq's tokenizer. */
#include "statnet/text.h"

#include <string.h>

/* Bytes of the UTF-8 sequence at p, its code point in *code; 0 when it is not valid. The text is
 * followed by a zero byte, so that a sequence cut off at the end is seen without looking further.
 */
static size_t decode(const uint8_t *p, uint32_t *code) {
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

static bool is_blank(uint32_t code) {
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

sr_status text_check(const file_bytes *f, int64_t *lines, sr_failure *why) {
    size_t line_start = 0;
    *lines = 0;
    for (size_t at = 0; at < f->size;) {
        uint32_t code;
        size_t length = decode(f->byte + at, &code);
        if (length == 0 || code == 0) {
            sr_fail(why, SR_FORMAT, "%s:%lld: byte %zu of the line is 0x%02x, %s", f->path,
                    (long long)*lines + 1, at - line_start, f->byte[at],
                    code == 0 && length ? "not text" : "not UTF-8");
            sr_hint(why, "the text must be UTF-8; iconv can convert it");
            return SR_FORMAT;
        }
        at += length;
        if (code == '\n') *lines += 1, line_start = at;
    }
    *lines += line_start < f->size;
    return SR_OK;
}

bool text_word(text_walk *w, const char **word, size_t *length) {
    const file_bytes *f = w->file;
    size_t start = w->at;
    for (uint32_t code; w->at < f->size;) {
        size_t step = decode(f->byte + w->at, &code);
        bool blank = is_blank(code), found = blank && w->at > start;
        if (found) break;
        w->at += step ? step : 1;
        if (code == '\n') return false;
        if (blank) start = w->at;
    }
    *word = (const char *)f->byte + start;
    *length = w->at - start;
    return *length > 0;
}
