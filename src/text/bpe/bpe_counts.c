/* bpe_counts.c -- counts words of texts and dictionaries; see bpe.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/bpe/bpe_internal.h"

/* Sums of counts stay exact in a double. */
static const int64_t most_letters = (int64_t)1 << 53;

sr_status bpe_check_write(FILE *out, sr_failure *why) {
    if (!ferror(out)) return SR_OK;
    return sr_fail(why, SR_IO, "write failed%s%s", errno ? ": " : "", errno ? strerror(errno) : "");
}

/* -- lines ------------------------------------------------------------------------------------- */

static bool is_edge(char c) {
    return c == ' ' || c == '\r' || c == '\n';
}

bpe_words bpe_words_of(const char *line, size_t length) {
    bpe_words w = {.line = line, .end = length};
    while (w.start < length && is_edge(line[w.start])) w.start++;
    while (w.end > w.start && is_edge(line[w.end - 1])) w.end--;
    w.at = w.start;
    return w;
}

bool bpe_next_word(bpe_words *w, const char **word, size_t *length) {
    while (w->at < w->end && w->line[w->at] == ' ') w->at++;
    if (w->at == w->end) return false;
    *word = w->line + w->at;
    const char *blank = memchr(*word, ' ', w->end - w->at);
    *length = blank ? (size_t)(blank - *word) : w->end - w->at;
    w->at += *length;
    return true;
}

size_t bpe_character(const char *text, size_t left) {
    size_t bytes = (size_t)utf8_bytes(text);
    return bytes && bytes <= left ? bytes : 1;
}

static sr_status fail_line(const bpe_fields *f, const char *text, sr_failure *why) {
    return sr_fail(why, SR_FORMAT, "%s:%lld: %s", f->file->path, (long long)f->line, text);
}

sr_status bpe_next_fields(bpe_fields *f, const char *what, sr_failure *why) {
    const char *line = (const char *)f->file->byte + f->at;
    size_t left = f->file->size - f->at;
    f->found = left > 0;
    if (!f->found) return SR_OK;
    const char *newline = memchr(line, '\n', left);
    size_t length = newline ? (size_t)(newline - line) + 1 : left;
    f->at += length;
    f->line++;
    for (size_t i = 0; i < length;) {
        const int bytes = utf8_bytes(line + i);
        if (!bytes) return fail_line(f, "not UTF-8", why);
        i += (size_t)bytes;
    }
    bpe_words w = bpe_words_of(line, length);
    const char *rest;
    size_t rest_length;
    bool two = bpe_next_word(&w, &f->field[0], &f->length[0]) &&
               bpe_next_word(&w, &f->field[1], &f->length[1]) &&
               !bpe_next_word(&w, &rest, &rest_length) &&
               f->field[0] + f->length[0] + 1 == f->field[1];
    if (two) return SR_OK;
    return sr_fail(why, SR_FORMAT, "%s:%lld: '%.*s' is not '%s'", f->file->path, (long long)f->line,
                   (int)(w.end - w.start < 200 ? w.end - w.start : 200), line + w.start, what);
}

sr_status bpe_read_count(const bpe_fields *f, int64_t *count, sr_failure *why) {
    *count = 0;
    for (size_t i = 0; i < f->length[1]; i++) {
        char c = f->field[1][i];
        if (c >= '0' && c <= '9') *count = *count * 10 + (c - '0');
        if (c >= '0' && c <= '9' && *count <= most_letters) continue;
        return sr_fail(why, SR_FORMAT, "%s:%lld: '%.*s' is not a count of 0 to %lld", f->file->path,
                       (long long)f->line, (int)(f->length[1] < 80 ? f->length[1] : 80),
                       f->field[1], (long long)most_letters);
    }
    return SR_OK;
}

/* -- counts ------------------------------------------------------------------------------------ */

bpe_counts *bpe_counts_create(void) {
    return calloc(1, sizeof(bpe_counts));
}

void bpe_counts_free(bpe_counts *c) {
    if (!c) return;
    map_free(&c->word);
    free(c->times);
    free(c);
}

int64_t bpe_counts_words(const bpe_counts *c) {
    return c->word.count;
}

sr_status bpe_counts_add(bpe_counts *c, const char *word, size_t length, int64_t times,
                         sr_failure *why) {
    if (length > BPE_WORD_BYTES)
        return sr_fail(why, SR_FORMAT, "a word of %zu bytes; at most %d", length, BPE_WORD_BYTES);
    if (times > (most_letters - c->letters) / (int64_t)(length + 1))
        return sr_fail(why, SR_FORMAT, "the counts are too large: more than %lld letters",
                       (long long)most_letters);
    if (!vector_reserve(&c->times, &c->capacity, c->word.count + 1, sizeof *c->times))
        return bpe_out_of_memory(why);
    int64_t before = c->word.count;
    int32_t id = map_add(&c->word, word, length);
    if (id < 0) return bpe_out_of_memory(why);
    if (c->word.count > before) c->times[id] = 0;
    c->times[id] += times;
    c->letters += times * (int64_t)(length + 1);
    return SR_OK;
}

sr_status bpe_counts_add_line(bpe_counts *c, const char *line, size_t length, sr_failure *why) {
    bpe_words w = bpe_words_of(line, length);
    const char *word;
    sr_status status = SR_OK;
    while (status == SR_OK && bpe_next_word(&w, &word, &length))
        status = bpe_counts_add(c, word, length, 1, why);
    return status;
}

sr_status bpe_counts_add_dictionary(bpe_counts *c, const file_bytes *file, sr_failure *why) {
    bpe_fields f = {.file = file};
    sr_status status;
    while ((status = bpe_next_fields(&f, "word count", why)) == SR_OK && f.found) {
        int64_t count;
        sr_failure reason = {0};
        if ((status = bpe_read_count(&f, &count, why)) != SR_OK) return status;
        status = bpe_counts_add(c, f.field[0], f.length[0], count, &reason);
        if (status == SR_FORMAT) return fail_line(&f, reason.text, why);
        if (status != SR_OK) return sr_fail(why, status, "%s", reason.text);
    }
    return status;
}

/* -- the most frequent first ------------------------------------------------------------------- */

typedef struct ranked {
    int64_t times;
    int32_t id;
} ranked;

static int by_times(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->times != y->times) return x->times < y->times ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

sr_status bpe_counts_write(const bpe_counts *c, FILE *out, sr_failure *why) {
    ranked *order = calloc((size_t)c->word.count + 1, sizeof *order);
    if (!order) return bpe_out_of_memory(why);
    for (int32_t i = 0; i < c->word.count; i++) order[i] = (ranked){c->times[i], i};
    qsort(order, (size_t)c->word.count, sizeof *order, by_times);
    errno = 0;
    for (int64_t i = 0; i < c->word.count && !ferror(out); i++) {
        size_t length;
        const char *word = map_text(&c->word, order[i].id, &length);
        fwrite(word, 1, length, out);
        fprintf(out, " %lld\n", (long long)order[i].times);
    }
    free(order);
    return bpe_check_write(out, why);
}
