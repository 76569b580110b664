/* text.c -- reads a text and splits its lines into words. Only '\n' ends a line. Words are
 * separated as by Python's str.split, and so by fairseq's tokenizer. */
#include "text/text.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "text/unicode.h"

sr_status text_check(const file_bytes *f, int64_t *lines, sr_failure *why) {
    size_t line_start = 0;
    *lines = 0;
    for (size_t at = 0; at < f->size;) {
        uint32_t code;
        size_t length = utf8_decode(f->byte + at, &code);
        if (length == 0 || code == 0) {
            char place[FILE_PATH + 32] = "";
            if (*f->path)
                snprintf(place, sizeof place, "%s:%lld: ", f->path, (long long)*lines + 1);
            sr_fail(why, SR_FORMAT, "%sbyte %zu of the line is 0x%02x, %s", place, at - line_start,
                    f->byte[at], code == 0 && length ? "not text" : "not UTF-8");
            file_kind_hint_encoding(f->byte, f->size, why);
            return SR_FORMAT;
        }
        at += length;
        if (code == '\n') *lines += 1, line_start = at;
    }
    *lines += line_start < f->size;
    return SR_OK;
}

void text_strip_mark(file_bytes *f) {
    enum { MARK = 3 };
    if (f->size < MARK || memcmp(f->byte, "\xef\xbb\xbf", MARK) != 0) return;
    f->size -= MARK;
    memmove(f->byte, f->byte + MARK, f->size + 1);
}

void line_ends_add(line_ends *e, const char *text, size_t length) {
    const char *const end = text + length;
    for (const char *cr = text; length && (cr = memchr(cr, '\r', (size_t)(end - cr))); cr++) {
        const bool ends = cr + 1 < end && cr[1] == '\n';
        e->crlf += ends, e->lone += !ends;
    }
}

void line_ends_warning(const line_ends *e, const char *path, char *text, size_t size) {
    text[0] = 0;
    if (e->lone)
        snprintf(text, size,
                 "%s: %lld carriage return%s without a newline end%s no line; `tr '\\r' '\\n'` "
                 "makes lines of them",
                 path, (long long)e->lone, e->lone == 1 ? "" : "s", e->lone == 1 ? "s" : "");
}

sr_status text_tidy(file_bytes *f, int64_t *lines, sr_failure *why) {
    const sr_status status = text_check(f, lines, why);
    if (status != SR_OK) return status;
    text_strip_mark(f);
    if (f->size == 0) *lines = 0; /* only the mark: no line */
    return SR_OK;
}

sr_status text_read(const char *path, file_bytes *f, int64_t *lines, sr_failure *why) {
    sr_status status = file_read(path, f, why);
    if (status == SR_OK) status = text_tidy(f, lines, why);
    if (status != SR_OK) file_free(f);
    return status;
}

int text_find_word(const char *words, const char *word) {
    const size_t size = strlen(word);
    for (int n = 0;; n++) {
        const size_t length = strcspn(words, "|");
        if (length == size && memcmp(words, word, size) == 0) return n;
        if (!words[length]) return -1;
        words += length + 1;
    }
}

bool text_word(text_walk *w, const char **word, size_t *length) {
    const file_bytes *f = w->file;
    size_t start = w->at;
    for (uint32_t code; w->at < f->size;) {
        size_t step = utf8_decode(f->byte + w->at, &code);
        bool blank = unicode_is_blank(code), found = blank && w->at > start;
        if (found) break;
        w->at += step ? step : 1;
        if (code == '\n') return false;
        if (blank) start = w->at;
    }
    *word = (const char *)f->byte + start;
    *length = w->at - start;
    return *length > 0;
}
