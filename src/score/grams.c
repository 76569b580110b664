/* grams.c -- see grams.h.
 *
 * An n-gram is known by the number of its first n-1 words and that of its last, so one hash table of
 * pairs serves every order, and a sentence takes time in proportion to its words.
 */
#include "score/grams.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "text/unicode.h"

enum { GRAMS_MOST = 1 << 30 };

void grams_begin(grams *g) {
    g->text.size = 0;
    g->words = 0;
    g->texts = 0;
}

static bool enlarge(void *array, size_t count, size_t size) {
    void *old, *larger;
    memcpy(&old, array, sizeof old);
    larger = realloc(old, count * size);
    if (larger) memcpy(array, &larger, sizeof larger);
    return larger != NULL;
}

static bool make_room(grams *g) {
    const int64_t capacity = g->capacity ? 2 * g->capacity : 256;
    int32_t **numbers[] = {&g->word, &g->shorter, &g->gram, &g->in_hyp, &g->in_ref, &g->in_best};
    if (g->words < g->capacity) return true;
    if (capacity > GRAMS_MOST) return false;
    bool done = enlarge(&g->start, (size_t)capacity, sizeof *g->start) &&
                enlarge(&g->length, (size_t)capacity, sizeof *g->length);
    for (size_t i = 0; done && i < sizeof numbers / sizeof numbers[0]; i++)
        done = enlarge(numbers[i], (size_t)capacity, sizeof **numbers[i]);
    if (done) g->capacity = capacity;
    return done;
}

static bool is_ascii_blank(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Bytes of the blank at p, or 0; *step: bytes of what stands there. */
static size_t blank_at(const char *p, bool ascii, size_t *step) {
    uint32_t code;
    *step = 1;
    if (ascii) return is_ascii_blank(*p);
    *step = unicode_decode(p, &code);
    if (*step == 0) *step = 1;
    return unicode_is_blank(code) ? *step : 0;
}

static bool add_word(grams *g, size_t start, size_t end) {
    if (end == start) return true;
    if (!make_room(g)) return false;
    g->start[g->words] = start;
    g->length[g->words++] = end - start;
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

static bool prepare_slots(grams *g) {
    size_t slots = 64;
    while (slots < 2 * (size_t)g->words) slots *= 2;
    g->slots = slots;
    if (slots <= g->slot_capacity) return true;
    if (!enlarge(&g->slot, slots, sizeof *g->slot)) return false;
    g->slot_capacity = slots;
    return true;
}

static void clear_slots(grams *g) {
    memset(g->slot, -1, g->slots * sizeof *g->slot);
}

/* The order of the table is never seen from outside. */
static uint64_t hash_of(const void *bytes, size_t size) {
    const uint64_t h = hash_bytes(bytes, size);
    return h ^ h >> 29;
}

static int32_t number_of_word(grams *g, int64_t i) {
    const char *bytes = g->text.byte + g->start[i];
    uint64_t s = hash_of(bytes, g->length[i]) & (g->slots - 1);
    for (int32_t j; (j = g->slot[s]) >= 0; s = (s + 1) & (g->slots - 1))
        if (g->length[j] == g->length[i] &&
            memcmp(g->text.byte + g->start[j], bytes, g->length[i]) == 0)
            return j;
    return g->slot[s] = (int32_t)i;
}

/* The n-gram of n = more + 1 words that begins at i. */
static int32_t number_of_gram(grams *g, int64_t i, int more) {
    const int32_t pair[] = {g->shorter[i], g->word[i + more]};
    uint64_t s = hash_of(pair, sizeof pair) & (g->slots - 1);
    for (int32_t j; (j = g->slot[s]) >= 0; s = (s + 1) & (g->slots - 1))
        if (g->shorter[j] == pair[0] && g->word[j + more] == pair[1]) return j;
    return g->slot[s] = (int32_t)i;
}

/* Numbers of all n-grams of this order; those of the order before are in `shorter`. */
static void number_grams(grams *g, int more) {
    int32_t *kept = g->shorter;
    g->shorter = g->gram;
    g->gram = kept;
    clear_slots(g);
    for (int t = 0, i = 0; t < g->texts; i = (int)g->end[t++])
        for (; i + more < g->end[t]; i++)
            g->gram[i] = more ? number_of_gram(g, i, more) : (g->word[i] = number_of_word(g, i));
    memset(g->in_hyp, 0, (size_t)g->words * sizeof *g->in_hyp);
    memset(g->in_ref, 0, (size_t)g->words * sizeof *g->in_ref);
    memset(g->in_best, 0, (size_t)g->words * sizeof *g->in_best);
}

/* Of several references the one that has an n-gram most often counts for it. */
static void count_reference(grams *g, int64_t from, int64_t to) {
    for (int64_t i = from; i < to; i++) {
        const int32_t k = g->gram[i];
        if (++g->in_ref[k] > g->in_best[k]) g->in_best[k] = g->in_ref[k];
    }
    for (int64_t i = from; i < to; i++) g->in_ref[g->gram[i]] = 0;
}

static void count_order(grams *g, int more, bleu_counts *c) {
    const int64_t grams_of_hyp = g->end[0] > more ? g->end[0] - more : 0;
    for (int t = 1; t < g->texts; t++) count_reference(g, g->end[t - 1], g->end[t] - more);
    for (int64_t i = 0; i < grams_of_hyp; i++) {
        const int32_t k = g->gram[i];
        if (g->in_hyp[k]++ < g->in_best[k]) c->correct[more]++; /* clipped */
    }
    c->total[more] = grams_of_hyp;
}

/* The length closest to the hypothesis; of two that are equally close the shorter. */
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
    if (g->words == 0) return true;
    if (!prepare_slots(g)) return false;
    for (int more = 0; more < BLEU_ORDER; more++) {
        number_grams(g, more);
        count_order(g, more, counts);
    }
    return true;
}

void grams_free(grams *g) {
    buffer_free(&g->text);
    free(g->start);
    free(g->length);
    free(g->word);
    free(g->shorter);
    free(g->gram);
    free(g->in_hyp);
    free(g->in_ref);
    free(g->in_best);
    free(g->slot);
}
