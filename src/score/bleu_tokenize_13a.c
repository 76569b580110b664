/* bleu_tokenize_13a.c -- the tokenizer of mteval-v13a.pl (NIST), sacreBLEU's default (Post, A Call
 * for Clarity in Reporting BLEU Scores, WMT 2018).
 *
 * The rules apply in this order to the whole line with a blank before and after it. Each matches
 * from left to right without overlap:
 *   1  removes "<skipped>"; replaces &quot; &amp; &lt; &gt; in this order, so that &amp;lt; becomes
 *      '<'
 *   2  each of the ASCII symbols but ' , - . becomes a word
 *   3  '.' and ',' become words after other characters than digits
 *   4  and before other characters than digits
 *   5  '-' becomes a word after a digit
 * Digits are 0 to 9. A match covers both characters, so the next match starts after them. The rules
 * work on bytes, since no byte of a longer UTF-8 sequence is an ASCII character.
 */
#include <string.h>

#include "score/bleu_tokenize.h"

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_point(char c) {
    return c == '.' || c == ',';
}

static void swap(byte_buffer *a, byte_buffer *b) {
    byte_buffer kept = *a;
    *a = *b;
    *b = kept;
}

/* Replaces every `old` by `new` in *from. */
static void replace(byte_buffer *from, byte_buffer *spare, const char *old, const char *new) {
    const size_t length = strlen(old);
    spare->size = 0;
    for (size_t at = 0; at < from->size;) {
        bool here = from->size - at >= length && memcmp(from->byte + at, old, length) == 0;
        if (here)
            buffer_put(spare, new, strlen(new));
        else
            buffer_put(spare, from->byte + at, 1);
        at += here ? length : 1;
    }
    swap(from, spare);
}

static void put_alone(byte_buffer *to, const char *c) {
    buffer_put(to, " ", 1);
    buffer_put(to, c, 1);
    buffer_put(to, " ", 1);
}

static void part_symbols(const byte_buffer *from, byte_buffer *to) {
    to->size = 0;
    buffer_put(to, "   ", 3); /* the blank before the line is a symbol too */
    for (size_t i = 0; i < from->size; i++) {
        const char c = from->byte[i];
        /* the ranges of the script: { to ~, [ to `, blank to &, ( to +, : to @, and the slash */
        if ((c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
            (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/')
            put_alone(to, from->byte + i);
        else
            buffer_put(to, from->byte + i, 1);
    }
    buffer_put(to, "   ", 3);
}

/* Cuts off '-' after digits, or points after other characters. */
static void part_after(const byte_buffer *from, byte_buffer *to, bool digits) {
    to->size = 0;
    for (size_t i = 0; i < from->size; i++) {
        buffer_put(to, from->byte + i, 1);
        if (i + 1 == from->size || is_digit(from->byte[i]) != digits) continue;
        const char next = from->byte[i + 1];
        if (digits ? next == '-' : is_point(next)) put_alone(to, from->byte + ++i);
    }
}

static void part_points_before(const byte_buffer *from, byte_buffer *to) {
    to->size = 0;
    for (size_t i = 0; i < from->size; i++) {
        if (i + 1 < from->size && is_point(from->byte[i]) && !is_digit(from->byte[i + 1]))
            put_alone(to, from->byte + i++);
        buffer_put(to, from->byte + i, 1);
    }
}

void bleu_tokenize_13a(byte_buffer *from, byte_buffer *to) {
    if (from->size && memchr(from->byte, '<', from->size)) replace(from, to, "<skipped>", "");
    if (from->size && memchr(from->byte, '&', from->size)) {
        replace(from, to, "&quot;", "\"");
        replace(from, to, "&amp;", "&");
        replace(from, to, "&lt;", "<");
        replace(from, to, "&gt;", ">");
    }
    part_symbols(from, to);
    part_after(to, from, false);
    part_points_before(from, to);
    part_after(to, from, true);
    swap(from, to);
    to->failed = to->failed || from->failed;
}
