/* encoding.c -- converts texts of one byte per character to UTF-8.
 *
 * Latin-1 is read as Windows-1252, as browsers do (WHATWG Encoding Standard). Bytes 80 to 9f are
 * printable there; the five unused ones stay the C1 controls of ISO 8859-1. All other bytes are the
 * code points of their number in both.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/text.h"

enum { HIGH = 0x80, LATIN = 0xa0 };

/* Code points of bytes 80 to 9f. */
static const uint16_t windows[LATIN - HIGH] = {
    0x20ac, 0x81,   0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160,
    0x2039, 0x0152, 0x8d,   0x017d, 0x8f,   0x90,   0x2018, 0x2019, 0x201c, 0x201d, 0x2022,
    0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0x9d,   0x017e, 0x0178};

int text_encoding_find(const char *word) {
    return *word ? text_find_word(ENCODING_WORDS, word) : ENCODING_AUTO;
}

/* Writes at most three bytes; returns their number. */
static size_t put_character(uint8_t byte, uint8_t *to) {
    const unsigned code = byte >= HIGH && byte < LATIN ? windows[byte - HIGH] : byte;
    if (code < 0x80) {
        to[0] = (uint8_t)code;
        return 1;
    }
    if (code < 0x800) {
        to[0] = (uint8_t)(0xc0 | code >> 6), to[1] = (uint8_t)(0x80 | (code & 0x3f));
        return 2;
    }
    to[0] = (uint8_t)(0xe0 | code >> 12);
    to[1] = (uint8_t)(0x80 | (code >> 6 & 0x3f));
    to[2] = (uint8_t)(0x80 | (code & 0x3f));
    return 3;
}

static void count_letters(const file_bytes *f, text_decoding *how) {
    for (size_t at = 0; at < f->size;) {
        uint32_t code;
        const size_t length = utf8_decode(f->byte + at, &code);
        how->letters += length > 1, how->bad += length == 0;
        at += length ? length : 1;
    }
}

/* Replaces the bytes by their characters. False when out of memory. */
static bool recode(file_bytes *f) {
    uint8_t *byte = malloc(3 * f->size + 1);
    size_t size = 0;
    if (!byte) return false;
    for (size_t i = 0; i < f->size; i++) size += put_character(f->byte[i], byte + size);
    byte[size] = 0;
    free(f->byte);
    f->byte = byte, f->size = size;
    return true;
}

/* Reads the file again if it is not UTF-8. */
sr_status text_read_as(const char *path, text_encoding encoding, file_bytes *f, int64_t *lines,
                       text_decoding *how, sr_failure *why) {
    sr_failure utf8 = {0};
    sr_status status = SR_FORMAT;
    *how = (text_decoding){0};
    if (encoding != ENCODING_LATIN1) status = text_read(path, f, lines, &utf8);
    if (status == SR_OK) count_letters(f, how);
    if (status == SR_OK) return SR_OK;
    if (encoding == ENCODING_UTF8 || status != SR_FORMAT) {
        sr_fail(why, status, "%s", utf8.text);
        sr_hint(why, "%s", utf8.hint);
        return status;
    }
    status = file_read(path, f, why);
    if (status == SR_OK) text_strip_mark(f);
    if (status == SR_OK && encoding == ENCODING_AUTO) {
        count_letters(f, how);
        snprintf(how->fault, sizeof how->fault, "%s", utf8.text);
    }
    for (size_t i = 0; status == SR_OK && i < f->size && !how->recoded; i++)
        how->recoded = f->byte[i] >= HIGH;
    if (how->recoded && !recode(f))
        status = sr_fail(why, SR_MEMORY, "%s: out of memory for its UTF-8 text", f->path);
    if (status == SR_OK) status = text_check(f, lines, why); /* no text has a NUL byte */
    if (status != SR_OK) file_free(f);
    return status;
}
