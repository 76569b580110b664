/* bpe_learn.c -- learning merges from counted words; see bpe.h.
 *
 * After learn_bpe.py of subword-nmt 0.3.8, Sennrich, Haddow and Birch 2016, whose order of
 * operations decides the merges (bpe_pairs.c). A word is its characters, the last with "</w>". A
 * merge replaces the pair from the left without overlap, "a a a" -> "aa a", in all words. Then only
 * pairs around the merges are counted again. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/bpe/bpe_internal.h"
#include "text/bpe/bpe_pairs.h"
#include "text/unicode.h"

typedef struct spelling {
    int64_t at; /* index of its symbols in letters */
    int64_t count;
    int32_t length;
    bool has_space; /* white space other than blanks */
} spelling;

typedef struct learner {
    map symbol;
    bpe_pairs pairs;
    spelling *word; /* [words] */
    int64_t words;
    int32_t *letter; /* [letter_count] */
    int64_t letter_count, letter_capacity;
    int32_t *before; /* [longest] symbols of one word */
    int32_t longest;
    int32_t *changed; /* [changed_count] words that a merge changes */
    int64_t changed_count, changed_capacity;
} learner;

/* -- words ------------------------------------------------------------------------------------- */

/* True if a text, which is not empty, starts with white space. */
static bool begins_in_space(const char *text, size_t length) {
    uint8_t first[5] = {0};
    uint32_t code;
    memcpy(first, text, length < 4 ? length : 4);
    return utf8_decode(first, &code) && unicode_is_blank(code);
}

static bool ends_in_space(const char *text, size_t length) {
    size_t at = length;
    while (at > 0 && length - at < 4 && ((unsigned char)text[--at] & 0xc0) == 0x80) {
    }
    return begins_in_space(text + at, length - at);
}

static bool spell(learner *l, spelling *w, const char *text, size_t length) {
    w->at = l->letter_count;
    for (size_t i = 0; i < length;) {
        size_t bytes = bpe_character(text + i, length - i);
        w->has_space |= begins_in_space(text + i, bytes);
        bool last = i + bytes == length;
        char symbol[8 + BPE_END_BYTES];
        memcpy(symbol, text + i, bytes);
        memcpy(symbol + bytes, BPE_END, BPE_END_BYTES);
        int32_t id = map_add(&l->symbol, symbol, bytes + (last ? BPE_END_BYTES : 0));
        if (id < 0 || !vector_reserve(&l->letter, &l->letter_capacity, l->letter_count + 1,
                                      sizeof *l->letter))
            return false;
        l->letter[l->letter_count++] = id;
        i += bytes;
    }
    w->length = (int32_t)(l->letter_count - w->at);
    if (w->length > l->longest) l->longest = w->length;
    return true;
}

static bool spell_all(learner *l, const bpe_counts *counts) {
    l->words = bpe_counts_words(counts);
    l->word = calloc((size_t)l->words + 1, sizeof *l->word);
    if (!l->word) return false;
    for (int32_t i = 0; i < l->words; i++) {
        size_t length;
        const char *text = map_text(&counts->word, i, &length);
        l->word[i].count = counts->times[i];
        if (!spell(l, &l->word[i], text, length)) return false;
    }
    l->before = malloc(((size_t)l->longest + 1) * sizeof *l->before);
    l->pairs.symbol = &l->symbol;
    if (!l->before) return false;
    for (int32_t i = 0; i < l->words; i++) {
        const spelling *w = &l->word[i];
        const int32_t *s = l->letter + w->at;
        for (int32_t k = 0; k + 1 < w->length; k++)
            if (!bpe_pairs_change(&l->pairs, s[k], s[k + 1], i, 1, w->count)) return false;
    }
    return bpe_pairs_begin(&l->pairs);
}

/* -- one merge --------------------------------------------------------------------------------- */

typedef struct merge {
    int32_t left, right, both;
} merge;

/* Position of the second text at the end of the first, after white space or at 0, not before
 * `from`; or -1. */
static int64_t end_after_space(const char *text, size_t length, const char *end, size_t end_length,
                               size_t from) {
    if (end_length > length || length - end_length < from) return -1;
    size_t at = length - end_length;
    if (memcmp(text + at, end, end_length) != 0) return -1;
    return at == 0 || ends_in_space(text, at) ? (int64_t)at : -1;
}

/* The original joins the symbols by blanks and replaces "left right" between white space, also
 * white space of the text. So the end of a symbol and the beginning of the next may match the pair.
 * `from`: bytes of the first symbol that the previous replacement used. */
static bool fits(const learner *l, int32_t first, int32_t second, merge m, size_t from) {
    size_t a, b, left, right;
    const char *x = map_text(&l->symbol, first, &a);
    const char *y = map_text(&l->symbol, second, &b);
    const char *p = map_text(&l->symbol, m.left, &left);
    const char *q = map_text(&l->symbol, m.right, &right);
    if (right > b || memcmp(y, q, right) != 0) return false;
    if (right < b && !begins_in_space(y + right, b - right)) return false;
    return end_after_space(x, a, p, left, from) >= 0;
}

static bool replace_in_spaced(learner *l, spelling *w, merge m) {
    int32_t length = w->length, kept = 0;
    size_t right;
    map_text(&l->symbol, m.right, &right);
    for (int32_t i = 0; i < length; i++) {
        int32_t id = l->before[i];
        for (size_t from = 0; i + 1 < length && fits(l, l->before[i], l->before[i + 1], m, from);
             from = right)
            if ((id = bpe_add_joined(&l->symbol, id, l->before[++i])) < 0) return false;
        l->letter[w->at + kept++] = id;
    }
    w->length = kept;
    return true;
}

static bool uncount_before(learner *l, int32_t word, int32_t length, merge m) {
    const int32_t *s = l->before;
    int64_t count = l->word[word].count;
    for (int32_t i = 0; i + 1 < length; i++) {
        if (s[i] != m.left || s[i + 1] != m.right) continue;
        if (i && !bpe_pairs_change(&l->pairs, s[i - 1], s[i], word, -1, count)) return false;
        bool again = i + 3 < length && s[i + 2] == m.left && s[i + 3] == m.right;
        if (i + 2 < length && !again &&
            !bpe_pairs_change(&l->pairs, s[i + 1], s[i + 2], word, -1, count))
            return false;
        i++;
    }
    return true;
}

static bool count_after(learner *l, int32_t word, merge m) {
    const spelling *w = &l->word[word];
    const int32_t *s = l->letter + w->at;
    for (int32_t i = 0; i < w->length; i++) {
        if (s[i] != m.both) continue;
        if (i && !bpe_pairs_change(&l->pairs, s[i - 1], s[i], word, 1, w->count)) return false;
        if (i + 1 < w->length && s[i + 1] != m.both &&
            !bpe_pairs_change(&l->pairs, s[i], s[i + 1], word, 1, w->count))
            return false;
    }
    return true;
}

static bool note_words(learner *l, int32_t pair) {
    l->changed_count = 0;
    for (int32_t i = l->pairs.pair[pair].first; i >= 0; i = l->pairs.place[i].next) {
        if (l->pairs.place[i].times < 1) continue;
        if (!vector_reserve(&l->changed, &l->changed_capacity, l->changed_count + 1,
                            sizeof *l->changed))
            return false;
        l->changed[l->changed_count++] = l->pairs.place[i].word;
    }
    return true;
}

static bool merge_in_word(learner *l, int32_t word, merge m) {
    spelling *w = &l->word[word];
    const int32_t length = w->length;
    int32_t *s = l->letter + w->at, kept = 0;
    memcpy(l->before, s, (size_t)length * sizeof *l->before);
    if (w->has_space) {
        if (!replace_in_spaced(l, w, m)) return false;
    } else {
        for (int32_t i = 0; i < length; kept++) {
            const bool here =
                i + 1 < length && l->before[i] == m.left && l->before[i + 1] == m.right;
            s[kept] = here ? m.both : l->before[i];
            i += here ? 2 : 1;
        }
        w->length = kept;
    }
    return uncount_before(l, word, length, m) && count_after(l, word, m);
}

/* -- all merges -------------------------------------------------------------------------------- */

static sr_status learn_merges(learner *l, const bpe_counts *counts, const bpe_learning *how,
                              bpe_codes *codes, sr_failure *why) {
    if (!spell_all(l, counts)) return bpe_out_of_memory(why);
    /* the symbols of the words are their different characters, last ones apart from others */
    int64_t merges = how->merges - (how->total_symbols ? l->symbol.count : 0);
    for (int64_t i = 0; i < merges; i++) {
        int32_t best;
        int64_t count;
        if (!bpe_pairs_best(&l->pairs, i, &best, &count)) return bpe_out_of_memory(why);
        if (best < 0 || count < how->min_frequency) break;
        size_t a, b;
        symbol_pair key = bpe_pair_of(&l->pairs.key, best);
        const char *left = map_text(&l->symbol, key.left, &a);
        const char *right = map_text(&l->symbol, key.right, &b);
        sr_status status = bpe_codes_add(codes, left, a, right, b, why);
        if (status != SR_OK) return status;
        const merge m = {key.left, key.right, bpe_add_joined(&l->symbol, key.left, key.right)};
        if (m.both < 0 || !note_words(l, best)) return bpe_out_of_memory(why);
        bpe_pairs_forget(&l->pairs, best);
        for (int64_t k = 0; k < l->changed_count; k++)
            if (!merge_in_word(l, l->changed[k], m)) return bpe_out_of_memory(why);
        if (!bpe_pairs_settle(&l->pairs, best, i)) return bpe_out_of_memory(why);
    }
    return bpe_codes_finish(codes, why);
}

bpe_codes *bpe_learn(const bpe_counts *counts, const bpe_learning *how, sr_failure *why) {
    learner l = {.longest = 0};
    if (how->min_frequency < 1) {
        sr_fail(why, SR_USAGE, "a least frequency of %lld; at least 1",
                (long long)how->min_frequency);
        return NULL;
    }
    bpe_codes *codes = bpe_codes_create(2, why);
    sr_status status = codes ? learn_merges(&l, counts, how, codes, why) : SR_MEMORY;
    map_free(&l.symbol);
    bpe_pairs_free(&l.pairs);
    free(l.word);
    free(l.letter);
    free(l.before);
    free(l.changed);
    if (status == SR_OK) return codes;
    bpe_codes_free(codes);
    return NULL;
}
