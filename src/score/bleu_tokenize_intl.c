/* bleu_tokenize_intl.c -- the tokenizer of mteval-v14.pl --international-tokenization (NIST) as
 * sacreBLEU implements it (Post, WMT 2018). Nothing is unescaped. A point after a number at the end
 * of the line stays.
 *
 * The rules apply in this order to the code points of the whole line, by Unicode's general
 * category. Each matches from left to right without overlap:
 *   1  punctuation (P) becomes a word after other characters than numbers (N)
 *   2  and before other characters than numbers
 *   3  symbols (S) become words
 */
#include "base/utf8.h"
#include "score/bleu_tokenize.h"
#include "text/unicode.h"

typedef struct letter {
    const char *byte;
    size_t size;
    uint32_t code;
} letter;

/* The letter at *at of valid UTF-8; false at the end. */
static bool next_letter(const byte_buffer *t, size_t at, letter *l) {
    if (at >= t->size) return false;
    l->byte = t->byte + at;
    l->size = utf8_decode(l->byte, &l->code);
    return l->size > 0;
}

static void put_letter(byte_buffer *to, const letter *l) {
    buffer_put(to, l->byte, l->size);
}

static void put_alone(byte_buffer *to, const letter *l) {
    buffer_put(to, " ", 1);
    put_letter(to, l);
    buffer_put(to, " ", 1);
}

static void part_punctuation_behind(const byte_buffer *from, byte_buffer *to) {
    letter l, next;
    to->size = 0;
    for (size_t at = 0; next_letter(from, at, &l);) {
        put_letter(to, &l);
        at += l.size;
        if (!unicode_is_number(l.code) && next_letter(from, at, &next) &&
            unicode_is_punctuation(next.code)) {
            put_alone(to, &next);
            at += next.size;
        }
    }
}

static void part_punctuation_before(const byte_buffer *from, byte_buffer *to) {
    letter l, next;
    to->size = 0;
    for (size_t at = 0; next_letter(from, at, &l);) {
        at += l.size;
        if (unicode_is_punctuation(l.code) && next_letter(from, at, &next) &&
            !unicode_is_number(next.code)) {
            put_alone(to, &l);
            l = next;
            at += next.size;
        }
        put_letter(to, &l);
    }
}

static void part_symbols(const byte_buffer *from, byte_buffer *to) {
    letter l;
    to->size = 0;
    for (size_t at = 0; next_letter(from, at, &l); at += l.size) {
        if (unicode_is_symbol(l.code))
            put_alone(to, &l);
        else
            put_letter(to, &l);
    }
}

void bleu_tokenize_intl(byte_buffer *from, byte_buffer *to) {
    part_punctuation_behind(from, to);
    part_punctuation_before(to, from);
    part_symbols(from, to);
    to->failed = to->failed || from->failed;
}
