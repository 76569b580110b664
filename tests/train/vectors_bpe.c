/* vectors_bpe.c -- bpe.h5: codes learned from a text; subwords of another text with and without a
 * vocabulary; dictionaries of the first text's subwords without and with padding. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_vectors.h"
#include "text/bpe/bpe.h"
#include "text/text.h"
#include "text/vocab.h"

/* Output of a function, and its failure; free(byte). */
typedef struct written {
    char *byte;
    size_t size;
    sr_failure why;
} written;

static file_bytes as_file(const char *path, const char *byte, size_t size) {
    file_bytes f = {.byte = (uint8_t *)(uintptr_t)byte, .size = size};
    snprintf(f.path, sizeof f.path, "%s", path);
    return f;
}

/* A text of the case, checked to be one. */
static file_bytes read_text(model_case *c, const char *path) {
    int64_t size = 0, lines;
    sr_failure why = {0};
    const char *byte = case_bytes(c, path, &size);
    file_bytes f = as_file(path, byte ? byte : "", byte ? (size_t)size : 0);
    if (text_check(&f, &lines, &why) != SR_OK) case_fail(c, "%s", why.text);
    return f;
}

/* Bytes of the line at this offset, including its newline; 0 at the end. */
static size_t line_bytes(const file_bytes *f, size_t at) {
    const char *begin = (const char *)f->byte + at,
               *end = at < f->size ? memchr(begin, '\n', f->size - at) : NULL;
    return end ? (size_t)(end - begin) + 1 : f->size - at;
}

/* Compares with the result and lets go of it. */
static void compare(model_case *c, const char *name, written *w) {
    if (w->why.status != SR_OK)
        case_fail(c, "%s: %s", name, w->why.text);
    else if (case_fine(c))
        case_compare_text(c, name, w->byte ? w->byte : "", (int64_t)w->size);
    free(w->byte);
    *w = (written){0};
}

/* -- learning and applying */

static void write_codes(const bpe_counts *counts, const bpe_learning *how, written *w) {
    bpe_codes *codes = bpe_learn(counts, how, &w->why);
    FILE *out = codes ? open_memstream(&w->byte, &w->size) : NULL;
    if (codes && !out) sr_fail(&w->why, SR_MEMORY, "out of memory");
    if (out) bpe_codes_write(codes, out, &w->why);
    if (out && fclose(out) != 0) sr_fail(&w->why, SR_MEMORY, "out of memory");
    bpe_codes_free(codes);
}

static written learn(const file_bytes *train, const bpe_learning *how) {
    written w = {0};
    bpe_counts *counts = bpe_counts_create();
    if (!counts) sr_fail(&w.why, SR_MEMORY, "out of memory");
    for (size_t at = 0, n; w.why.status == SR_OK && (n = line_bytes(train, at)) > 0; at += n)
        bpe_counts_add_line(counts, (const char *)train->byte + at, n, &w.why);
    if (w.why.status == SR_OK) write_codes(counts, how, &w);
    bpe_counts_free(counts);
    return w;
}

/* vocabulary NULL: none. */
static written apply(const bpe_codes *codes, const file_bytes *text,
                     const bpe_vocabulary *vocabulary) {
    written w = {0};
    byte_buffer out = {0};
    const bpe_settings settings = {.separator = "@@", .vocabulary = vocabulary};
    bpe *b = bpe_create(codes, &settings, &w.why);
    for (size_t at = 0, n; w.why.status == SR_OK && (n = line_bytes(text, at)) > 0; at += n)
        bpe_apply(b, (const char *)text->byte + at, n, &out, &w.why);
    bpe_free(b);
    w.byte = out.byte, w.size = out.size;
    return w;
}

static void apply_with(model_case *c, const bpe_codes *codes, const file_bytes *text,
                       const file_bytes *pieces) {
    written w = {0};
    const int64_t threshold = case_whole(c, "vocab_threshold", 0, INT32_MAX);
    bpe_vocabulary *v = bpe_vocabulary_parse(pieces, threshold, &w.why);
    if (v) w = apply(codes, text, v);
    compare(c, "segmented_vocab", &w);
    bpe_vocabulary_free(v);
}

/* -- dictionaries */

static void fill_dictionary(vocab *v, const file_bytes *text, int multiple, written *w) {
    text_walk walk = {text, 0};
    const char *word;
    size_t length;
    bool fine = true;
    while (fine && walk.at < text->size)
        while (fine && text_word(&walk, &word, &length)) fine = vocab_count(v, word, length, 1);
    FILE *out =
        fine && vocab_finish_padded(v, 0, multiple) ? open_memstream(&w->byte, &w->size) : NULL;
    fine = out && vocab_write(v, out);
    if (out && fclose(out) != 0) fine = false;
    if (!fine) sr_fail(&w->why, SR_MEMORY, "out of memory");
}

static void compare_dictionary(model_case *c, const char *name, const written *pieces,
                               int multiple) {
    written w = {0};
    const file_bytes text = as_file(name, pieces->byte, pieces->size);
    vocab *v = vocab_create();
    if (v)
        fill_dictionary(v, &text, multiple, &w);
    else
        sr_fail(&w.why, SR_MEMORY, "out of memory");
    compare(c, name, &w);
    vocab_free(v);
}

/* -- a case */

/* With the codes read back from the written file. */
static void compare_texts(model_case *c, const bpe_codes *codes, const file_bytes *train) {
    const file_bytes test = read_text(c, "in/test"), vocabulary = read_text(c, "in/vocab");
    if (!case_fine(c)) return;
    written cut = apply(codes, &test, NULL), pieces = apply(codes, train, NULL);
    compare(c, "segmented", &cut);
    apply_with(c, codes, &test, &vocabulary);
    if (pieces.why.status != SR_OK) case_fail(c, "%s", pieces.why.text);
    compare_dictionary(c, "dict_pad1", &pieces, 1);
    compare_dictionary(c, "dict_pad8", &pieces, 8);
    free(pieces.byte);
}

void check_bpe(model_case *c) {
    sr_failure why = {0};
    const bpe_learning how = {.merges = case_whole(c, "merges", 0, INT32_MAX),
                              .min_frequency = case_whole(c, "min_frequency", 1, INT32_MAX)};
    const file_bytes train = read_text(c, "in/train");
    if (!case_fine(c)) return;
    written codes_text = learn(&train, &how);
    const file_bytes codes_file = as_file("codes", codes_text.byte, codes_text.size);
    bpe_codes *codes =
        codes_text.why.status == SR_OK ? bpe_codes_parse(&codes_file, -1, &why) : NULL;
    compare(c, "codes", &codes_text);
    if (codes) compare_texts(c, codes, &train);
    if (!codes && why.status != SR_OK) case_fail(c, "%s", why.text);
    bpe_codes_free(codes);
}
