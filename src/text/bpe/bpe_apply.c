/* bpe_apply.c -- splits words into subwords; see bpe.h. After apply_bpe.py of subword-nmt 0.3.8.
 *
 * A word of several characters starts as its characters. The pair of the lowest rank is merged at
 * all its positions from the left, until no adjacent symbols form a pair. */
#include <stdlib.h>
#include <string.h>

#include "text/bpe/bpe_glossary.h"
#include "text/bpe/bpe_internal.h"
#include "text/text.h"

enum { NO_RANK = INT32_MAX, STALE = -2 };

/* A symbol of the word at work. */
typedef struct symbol_node {
    int32_t symbol; /* -1: in no merge */
    int32_t rank;   /* rank of the pair with the next part */
    uint32_t start; /* in the word */
} symbol_node;

struct bpe_vocabulary {
    map piece;
};

struct bpe {
    const bpe_codes *codes;
    const bpe_vocabulary *vocabulary; /* NULL: no filter */
    char *separator;
    size_t separator_length;
    bpe_glossary *glossary; /* NULL: none */
    symbol_node *part;      /* [parts] */
    int64_t parts, capacity;
    byte_buffer key; /* scratch for a text to look up */
};

/* Output of subwords. */
typedef struct writer {
    byte_buffer *out;
    bool inside; /* a subword of the word has been written */
    bool line;   /* a word of the line has been written */
} writer;

static sr_status append(byte_buffer *t, const char *text, size_t length, sr_failure *why) {
    return buffer_put(t, text, length) ? SR_OK : bpe_out_of_memory(why);
}

/* -- vocabulary -------------------------------------------------------------------------------- */

static sr_status read_pieces(bpe_vocabulary *v, const file_bytes *file, int64_t threshold,
                             sr_failure *why) {
    bpe_fields f = {.file = file};
    sr_status status;
    while ((status = bpe_next_fields(&f, "piece count", why)) == SR_OK && f.found) {
        int64_t count;
        if ((status = bpe_read_count(&f, &count, why)) != SR_OK) return status;
        if (count >= threshold && map_add(&v->piece, f.field[0], f.length[0]) < 0)
            return bpe_out_of_memory(why);
    }
    return status;
}

bpe_vocabulary *bpe_vocabulary_parse(const file_bytes *file, int64_t threshold, sr_failure *why) {
    bpe_vocabulary *v = calloc(1, sizeof *v);
    sr_status status = v ? read_pieces(v, file, threshold, why) : bpe_out_of_memory(why);
    if (status == SR_OK) return v;
    bpe_vocabulary_free(v);
    return NULL;
}

bpe_vocabulary *bpe_vocabulary_read(const char *path, int64_t threshold, sr_failure *why) {
    file_bytes file;
    if (file_read(path, &file, why) != SR_OK) return NULL;
    text_strip_mark(&file);
    bpe_vocabulary *v = bpe_vocabulary_parse(&file, threshold, why);
    file_free(&file);
    return v;
}

void bpe_vocabulary_free(bpe_vocabulary *v) {
    if (!v) return;
    map_free(&v->piece);
    free(v);
}

int64_t bpe_vocabulary_pieces(const bpe_vocabulary *v) {
    return v->piece.count;
}

/* -- subwords ---------------------------------------------------------------------------------- */

static sr_status write_piece(const bpe *b, writer *w, const char *text, size_t length,
                             sr_failure *why) {
    sr_status status = SR_OK;
    if (w->inside) status = append(w->out, b->separator, b->separator_length, why);
    if (status == SR_OK && (w->inside || w->line)) status = append(w->out, " ", 1, why);
    w->inside = true;
    return status == SR_OK ? append(w->out, text, length, why) : status;
}

/* The text with `end` appended, in b->key. */
static sr_status make_key(bpe *b, const char *text, size_t length, const char *end,
                          size_t end_length, sr_failure *why) {
    b->key.size = 0;
    sr_status status = append(&b->key, text, length, why);
    return status == SR_OK ? append(&b->key, end, end_length, why) : status;
}

/* Writes a subword if it is allowed, else the pair that it was merged from. Like the original, it
 * writes an empty subword for a last part that is only the end of the word (version 0.1). */
static sr_status write_known(bpe *b, writer *w, const char *text, size_t length, bool final,
                             sr_failure *why) {
    sr_status status =
        make_key(b, text, length, b->separator, final ? 0 : b->separator_length, why);
    const bool known =
        status == SR_OK && map_find(&b->vocabulary->piece, b->key.byte, b->key.size) >= 0;
    if (status == SR_OK)
        status = make_key(b, text, length, BPE_END, final ? BPE_END_BYTES : 0, why);
    if (status != SR_OK) return status;
    int32_t symbol = map_find(&b->codes->symbol, b->key.byte, b->key.size);
    int32_t pair = symbol < 0 ? -1 : b->codes->origin[symbol];
    if (known || pair < 0 || length == 0) return write_piece(b, w, text, length, why);
    size_t left, right;
    symbol_pair key = bpe_pair_of(&b->codes->pair, pair);
    const char *first = map_text(&b->codes->symbol, key.left, &left);
    const char *second = map_text(&b->codes->symbol, key.right, &right);
    if (final) right = right > BPE_END_BYTES ? right - BPE_END_BYTES : 0;
    status = write_known(b, w, first, left, false, why);
    return status == SR_OK ? write_known(b, w, second, right, final, why) : status;
}

/* -- one word ---------------------------------------------------------------------------------- */

static sr_status add_part(bpe *b, const char *text, size_t length, size_t start, sr_failure *why) {
    if (!vector_reserve(&b->part, &b->capacity, b->parts + 1, sizeof *b->part))
        return bpe_out_of_memory(why);
    int32_t symbol = map_find(&b->codes->symbol, text, length);
    b->part[b->parts++] = (symbol_node){symbol, STALE, (uint32_t)start};
    return SR_OK;
}

static sr_status spell(bpe *b, const char *word, size_t length, sr_failure *why) {
    const bool own_end = b->codes->version == 1;
    sr_status status = SR_OK;
    b->parts = 0;
    for (size_t i = 0, bytes; status == SR_OK && i < length; i += bytes) {
        bytes = bpe_character(word + i, length - i);
        if (own_end || i + bytes < length) {
            status = add_part(b, word + i, bytes, i, why);
            continue;
        }
        status = make_key(b, word + i, bytes, BPE_END, BPE_END_BYTES, why);
        if (status == SR_OK) status = add_part(b, b->key.byte, b->key.size, i, why);
    }
    if (status == SR_OK && own_end) status = add_part(b, BPE_END, BPE_END_BYTES, length, why);
    return status;
}

/* Looks up changed pairs; returns the lowest rank. */
static int32_t lowest_rank(bpe *b) {
    int32_t lowest = NO_RANK;
    for (int64_t i = 0; i + 1 < b->parts; i++) {
        symbol_node *p = &b->part[i];
        if (p->rank == STALE) {
            int32_t left = p[0].symbol, right = p[1].symbol;
            int32_t rank =
                left < 0 || right < 0 ? -1 : map_find_number(&b->codes->pair, bpe_key(left, right));
            p->rank = rank < 0 ? NO_RANK : rank;
        }
        if (p->rank < lowest) lowest = p->rank;
    }
    return lowest;
}

static void merge(bpe *b, int32_t rank) {
    int64_t kept = 0;
    for (int64_t i = 0; i < b->parts; i++, kept++) {
        symbol_node *to = &b->part[kept];
        *to = b->part[i];
        if (i + 1 == b->parts || to->rank != rank) continue;
        to->symbol = b->codes->merged[rank];
        to->rank = STALE;
        if (kept) to[-1].rank = STALE;
        i++;
    }
    b->parts = kept;
}

static sr_status write_parts(bpe *b, writer *w, const char *word, size_t length, sr_failure *why) {
    sr_status status = SR_OK;
    if (b->part[b->parts - 1].start == length) b->parts--; /* the end of the word, unmerged */
    for (int64_t i = 0; status == SR_OK && i < b->parts; i++) {
        bool final = i + 1 == b->parts;
        size_t start = b->part[i].start, end = final ? length : b->part[i + 1].start;
        status = b->vocabulary ? write_known(b, w, word + start, end - start, final, why)
                               : write_piece(b, w, word + start, end - start, why);
    }
    return status;
}

static sr_status cut_segment(bpe *b, writer *w, const char *word, size_t length, sr_failure *why) {
    if (bpe_character(word, length) == length) return write_piece(b, w, word, length, why);
    sr_status status = spell(b, word, length, why);
    if (status != SR_OK) return status;
    for (int32_t rank; (rank = lowest_rank(b)) != NO_RANK;) merge(b, rank);
    return write_parts(b, w, word, length, why);
}

static sr_status cut_word(bpe *b, writer *w, const char *word, size_t length, sr_failure *why) {
    if (length > BPE_WORD_BYTES)
        return sr_fail(why, SR_FORMAT, "a word of %zu bytes; at most %d", length, BPE_WORD_BYTES);
    if (!b->glossary) return cut_segment(b, w, word, length, why);
    const bpe_segment *segment;
    int64_t count;
    sr_status status = bpe_glossary_cut(b->glossary, word, length, &segment, &count, why);
    for (int64_t i = 0; status == SR_OK && i < count; i++) {
        const bpe_segment *s = &segment[i];
        status = s->kept ? write_piece(b, w, s->text, s->length, why)
                         : cut_segment(b, w, s->text, s->length, why);
    }
    return status;
}

/* -- lines ------------------------------------------------------------------------------------- */

sr_status bpe_apply(bpe *b, const char *line, size_t length, byte_buffer *out, sr_failure *why) {
    bpe_words words = bpe_words_of(line, length);
    writer w = {.out = out};
    const char *word;
    size_t bytes;
    sr_status status = append(out, line, words.start, why);
    while (status == SR_OK && bpe_next_word(&words, &word, &bytes)) {
        status = cut_word(b, &w, word, bytes, why);
        w.inside = false;
        w.line = true;
    }
    return status == SR_OK ? append(out, line + words.end, length - words.end, why) : status;
}

static bool set_up(bpe *b, const bpe_settings *settings, sr_failure *why) {
    b->separator = strdup(settings->separator);
    if (!b->separator) return bpe_out_of_memory(why), false;
    b->separator_length = strlen(b->separator);
    if (settings->vocabulary && bpe_vocabulary_pieces(settings->vocabulary) > 0)
        b->vocabulary = settings->vocabulary;
    if (settings->glossaries == 0) return true;
    b->glossary = bpe_glossary_create(settings->glossary, settings->glossaries, why);
    return b->glossary;
}

bpe *bpe_create(const bpe_codes *codes, const bpe_settings *settings, sr_failure *why) {
    bpe *b = calloc(1, sizeof *b);
    if (!b) return bpe_out_of_memory(why), NULL;
    b->codes = codes;
    if (set_up(b, settings, why)) return b;
    bpe_free(b);
    return NULL;
}

void bpe_free(bpe *b) {
    if (!b) return;
    free(b->separator);
    bpe_glossary_free(b->glossary);
    free(b->part);
    buffer_free(&b->key);
    free(b);
}

size_t bpe_undo(char *line, size_t length, const char *separator) {
    size_t kept = 0, bytes = strlen(separator);
    if (bytes == 0) return length;
    for (size_t i = 0; i < length;) {
        bool here = length - i >= bytes && memcmp(line + i, separator, bytes) == 0;
        char next = i + bytes < length ? line[i + bytes] : '\n';
        if (here && (next == ' ' || next == '\r' || next == '\n'))
            i += bytes + (next == ' ');
        else
            line[kept++] = line[i++];
    }
    if (kept < length) line[kept] = 0;
    return kept;
}
