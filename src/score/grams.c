/* grams.c -- counts n-grams that a hypothesis shares with its references; see grams.h.
 *
 * The key of an n-gram is a pair of numbers: of its first n-1 words and of its last word. So one
 * map of pairs serves every order, in linear time.
 */
#include "score/grams.h"

#include <stdlib.h>
#include <string.h>

#include "base/containers/vector.h"
#include "base/utf8.h"
#include "text/unicode.h"

enum { WORDS_MOST = 1 << 30 };

void grams_begin(grams *g) {
    g->text.size = 0;
    g->words = 0;
    g->texts = 0;
}

/* Bytes of the blank at p, or 0; *step: bytes of the character. */
static size_t blank_at(const char *p, bool ascii, size_t *step) {
    uint32_t code;
    *step = 1;
    if (ascii) return *p == ' ' || (*p >= '\t' && *p <= '\r');
    *step = utf8_decode(p, &code);
    if (*step == 0) *step = 1;
    return unicode_is_blank(code) ? *step : 0;
}

static bool add_word(grams *g, size_t start, size_t end) {
    if (end == start) return true;
    if (g->words == WORDS_MOST ||
        !vector_reserve(&g->word, &g->capacity, g->words + 1, sizeof *g->word))
        return false;
    g->word[g->words++] = (gram_word){.start = start, .length = end - start};
    return true;
}

bool grams_add(grams *g, const byte_buffer *line, bool ascii) {
    const size_t base = g->text.size;
    size_t step, from = base;
    buffer_put(&g->text, line->byte, line->size);
    if (g->text.failed || line->failed) return false;
    for (size_t at = base; at < g->text.size; at += step) {
        if (!blank_at(g->text.byte + at, ascii, &step)) continue;
        if (!add_word(g, from, at)) return false;
        from = at + step;
    }
    if (!add_word(g, from, g->text.size)) return false;
    g->end[g->texts++] = g->words;
    return true;
}

/* Numbers the n-grams of n = more + 1 words; `gram` has the numbers of the order before. */
static bool number_grams(grams *g, int more) {
    map *m = more ? &g->pairs : &g->spellings;
    map_clear(m);
    for (int64_t t = 0, i = 0; t < g->texts; i = g->end[t++]) {
        for (; i + more < g->end[t]; i++) {
            gram_word *w = &g->word[i];
            const uint64_t first = (uint64_t)w->gram << 32;
            const int64_t number = more ? map_add_number(m, first | (uint32_t)w[more].spelling)
                                        : map_add(m, g->text.byte + w->start, w->length);
            if (number < 0) return false;
            w->gram = (int32_t)number;
            if (!more) w->spelling = w->gram;
        }
    }
    if (!vector_reserve(&g->count, &g->count_capacity, m->count, sizeof *g->count)) return false;
    if (m->count) memset(g->count, 0, (size_t)m->count * sizeof *g->count);
    return true;
}

/* The length closest to the hypothesis; ties: the shorter. */
static int64_t closest_length(const grams *g) {
    int64_t closest = g->end[1] - g->end[0];
    for (int t = 2; t < g->texts; t++) {
        const int64_t length = g->end[t] - g->end[t - 1];
        const int64_t far = llabs(length - g->end[0]), near = llabs(closest - g->end[0]);
        if (far < near || (far == near && length < closest)) closest = length;
    }
    return closest;
}

bool grams_count(grams *g, bleu_counts *counts) {
    *counts = (bleu_counts){.hyp_len = g->end[0], .ref_len = closest_length(g)};
    for (int more = 0; g->words && more < BLEU_ORDER; more++) {
        if (!number_grams(g, more)) return false;
        const int64_t grams_of_hyp = g->end[0] > more ? g->end[0] - more : 0;
        for (int t = 1; t < g->texts; t++) { /* in_best: of the reference with most */
            const int64_t from = g->end[t - 1], to = g->end[t] - more;
            for (int64_t i = from; i < to; i++) {
                gram_count *c = &g->count[g->word[i].gram];
                if (++c->in_ref > c->in_best) c->in_best = c->in_ref;
            }
            for (int64_t i = from; i < to; i++) g->count[g->word[i].gram].in_ref = 0;
        }
        for (int64_t i = 0; i < grams_of_hyp; i++) {
            gram_count *c = &g->count[g->word[i].gram];
            if (c->in_hyp++ < c->in_best) counts->correct[more]++; /* clipped */
        }
        counts->total[more] = grams_of_hyp;
    }
    return true;
}

void grams_free(grams *g) {
    buffer_free(&g->text);
    free(g->word);
    free(g->count);
    map_free(&g->spellings);
    map_free(&g->pairs);
}
