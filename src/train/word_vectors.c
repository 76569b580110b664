/* word_vectors.c -- pretrained word vectors in GloVe's text form: a word and its numbers per line,
 * separated by spaces or tabs. Other blanks belong to the word. A first line of two whole numbers,
 * as word2vec writes it, is skipped. So are words with spaces, which GloVe's 840 G file has and no
 * dictionary.
 *
 * Words of the dictionary get their vector; others keep their initial one. The last vector of a
 * word counts.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/text.h"
#include "text/text_lines.h"
#include "train/trainer.h"

enum { LINE_TEXT = 160 };

/* Reads the numbers between `at` and `end`, at most `room` into value; -1: other text. */
static int64_t read_numbers(const char *at, const char *end, real *value, int64_t room) {
    for (int64_t n = 0;; n++) {
        char *behind;
        while (at < end && text_separates(*at)) at++;
        if (at == end) return n;
        if (!strchr("+-.0123456789", *at)) return -1; /* strtod passes over blanks */
        const double x = strtod(at, &behind);
        if (behind > end || (behind < end && !text_separates(*behind)) || !isfinite(x)) return -1;
        if (n < room) value[n] = (real)x;
        at = behind;
    }
}

/* `width` numbers follow words from `at`. */
static bool has_spaces(const char *at, const char *end, int64_t width) {
    while (at < end) {
        while (at < end && text_separates(*at)) at++;
        while (at < end && !text_separates(*at)) at++;
        const int64_t numbers = at < end ? read_numbers(at, end, NULL, 0) : 0;
        if (numbers >= 0) return numbers == width;
    }
    return false;
}

static bool is_head(const char *line, const char *end) {
    int fields = 0;
    for (const char *at = line; at < end; fields++) {
        const size_t digits = strspn(at, "0123456789");
        if (!digits || (at + digits != end && !text_separates(at[digits]))) return false;
        at += digits + (at + digits < end);
    }
    return fields == 2;
}

/* The dictionary's words that were there. */
typedef struct reading {
    const vocab *words;
    tensor *table; /* NULL: words are only looked up */
    int64_t width; /* numbers of a line, 0: as in the first one */
    real *value;   /* [width] of a line; NULL without a table */
    uint8_t *seen; /* by word */
    int64_t found;
} reading;

static sr_status take_line(reading *r, const text_lines *t, const char *line, const char *end,
                           sr_failure *why) {
    const char *blank = line;
    while (blank < end && !text_separates(*blank)) blank++;
    int64_t numbers = blank < end && blank > line
                          ? read_numbers(blank, end, r->value, r->value ? r->width : 0)
                          : -1;
    if (numbers > 0 && r->width == 0) r->width = numbers;
    if (numbers < 0 && has_spaces(blank, end, r->width)) return SR_OK;
    if (numbers != r->width) {
        char text[LINE_TEXT] = "not a word and its numbers";
        if (numbers >= 0)
            snprintf(text, sizeof text,
                     r->table ? "%lld numbers, the model's word vectors have %lld (--word-dim)"
                              : "%lld numbers, the lines before it have %lld",
                     (long long)numbers, (long long)r->width);
        return text_lines_fail(t, SR_FORMAT, text, why);
    }
    const int32_t id = vocab_id(r->words, line, (size_t)(blank - line));
    if (id < TOKEN_FIRST_WORD) return SR_OK; /* not there, or spelled like a special */
    if (r->table)
        memcpy(r->table->value + id * r->width, r->value, (size_t)r->width * sizeof(real));
    r->found += !r->seen[id];
    r->seen[id] = 1;
    return SR_OK;
}

static sr_status take_lines(reading *r, text_lines *t, sr_failure *why) {
    for (bool first = true;; first = false) {
        const char *line;
        size_t length;
        sr_status status = text_lines_next(t, &line, &length, why);
        if (status != SR_OK || !line) return status;
        const char *end = line + line_content(line, length);
        if (first && is_head(line, end)) continue;
        status = take_line(r, t, line, end, why);
        if (status != SR_OK) return status;
    }
}

/* The most frequent words without a vector; ids follow the counts. */
static void find_missing(const reading *r, vector_matches *m) {
    m->words = vocab_words(r->words);
    m->found = r->found;
    for (int64_t id = TOKEN_FIRST_WORD; id < vocab_size(r->words); id++)
        if (!r->seen[id] && m->missing < VECTOR_EXAMPLES) m->example[m->missing++] = id;
}

bool vector_matches_few(const vector_matches *m) {
    return 5 * m->found < m->words;
}

void vector_matches_warning(const vector_matches *m, const vocab *v, const char *path, char *text,
                            size_t size) {
    int used = snprintf(text, size, "word vectors: %s has %lld of %lld words (%.1f %%), not", path,
                        (long long)m->found, (long long)m->words,
                        100 * (double)m->found / (double)m->words);
    for (int i = 0; i < m->missing && used >= 0 && (size_t)used < size; i++)
        used += snprintf(text + used, size - (size_t)used, "%s '%.40s'", i ? "," : "",
                         vocab_word(v, m->example[i]));
    if (used >= 0 && (size_t)used < size)
        snprintf(text + used, size - (size_t)used,
                 "; do both have the same case (--lowercase) and language?");
}

sr_status word_vectors_read(const char *path, const vocab *v, tensor *table, vector_matches *m,
                            sr_failure *why) {
    *m = (vector_matches){0};
    text_lines *t = text_lines_open(path, why);
    if (!t) return why->status;
    reading r = {.words = v, .table = table, .width = table ? table->dim[1] : 0};
    r.value = table ? malloc((size_t)r.width * sizeof(real)) : NULL;
    r.seen = calloc((size_t)vocab_size(v) + 1, 1);
    const sr_status status = (r.value || !table) && r.seen
                                 ? take_lines(&r, t, why)
                                 : sr_fail(why, SR_MEMORY, "%s: out of memory", path);
    if (status == SR_OK) find_missing(&r, m);
    text_lines_warning(t, m->line_ends, sizeof m->line_ends);
    free(r.value), free(r.seen);
    text_lines_close(t);
    return status;
}
