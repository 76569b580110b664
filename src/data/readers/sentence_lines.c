/* sentence_lines.c -- class names and lines of classified sentences; see sentence_lines.h. */
#include "data/readers/sentence_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers/vector.h"
#include "base/rng.h"

/* -- classes */

void label_set_free(label_set *l) {
    free(l->name);
    *l = (label_set){0};
}

int label_set_find(const label_set *l, const char *name, size_t length) {
    for (int i = 0; i < l->count; i++)
        if (strlen(l->name[i]) == length && !memcmp(l->name[i], name, length)) return i;
    return -1;
}

sr_status label_set_add(label_set *l, const char *name, size_t length, sr_failure *why) {
    if (length >= LABEL_BYTES)
        return sr_fail(why, SR_FORMAT, "label '%.40s...' has %zu bytes, at most %d", name, length,
                       LABEL_BYTES - 1);
    if (label_set_find(l, name, length) >= 0) return SR_OK;
    if (l->count == LABELS_MAX)
        return sr_fail(why, SR_FORMAT, "'%.*s' is label number %d, at most %d are different",
                       (int)length, name, LABELS_MAX + 1, LABELS_MAX);
    if (!vector_reserve(&l->name, &l->capacity, l->count + 1, sizeof *l->name))
        return sr_fail(why, SR_MEMORY, "out of memory for labels");
    memcpy(l->name[l->count], name, length);
    l->name[l->count++][length] = 0;
    return SR_OK;
}

/* The whole name is an integer. */
static bool is_integer(const char *name, long long *value) {
    char *end;
    errno = 0;
    *value = strtoll(name, &end, 10);
    return end != name && !*end && errno == 0 && *name != ' ';
}

/* Integers by value, 1 and 01 by bytes. */
static int by_value(const void *a, const void *b) {
    long long x, y;
    is_integer(a, &x), is_integer(b, &y);
    return x != y ? (x > y) - (x < y) : strcmp(a, b);
}

static int by_bytes(const void *a, const void *b) {
    return strcmp(a, b);
}

void label_set_sort(label_set *l) {
    long long value;
    bool integers = true;
    for (int i = 0; i < l->count; i++) integers = integers && is_integer(l->name[i], &value);
    if (l->count) qsort(l->name, (size_t)l->count, sizeof *l->name, integers ? by_value : by_bytes);
}

/* -- lines */

sr_status sentence_set_line(sentence_set *s, const data_options *o, data_split split,
                            const char *line, size_t length, int32_t label, int64_t number,
                            sr_failure *why) {
    byte_buffer text = {0};
    sr_status status =
        line_steps_apply(o->tokenizer, o->tokenizer ? 1 : 0, 0, line, length, &text, why);
    const file_bytes f = {.byte = (uint8_t *)text.byte, .size = text.size};
    text_walk w = {&f, 0};
    sentence_word word = {0};
    while (status == SR_OK && text_word(&w, &word.word, &word.length)) {
        word.spelling = word.word, word.spelling_length = word.length;
        status = sentence_set_word(s, split, &word, why);
    }
    buffer_free(&text);
    return status == SR_OK ? sentence_set_end(s, split, label, number, why) : status;
}

int64_t *draw_order(uint64_t seed, int64_t count) {
    rng root = rng_create(seed), random = rng_split(&root, STREAM_SPLITS);
    int64_t *order = malloc((size_t)(count + 1) * sizeof *order);
    for (int64_t i = 0; order && i < count; i++) order[i] = i;
    if (order) rng_shuffle(&random, order, count);
    return order;
}

sr_status read_text_file(dataset *d, const data_options *o, const char *name, bool optional,
                         file_bytes *f, bool *found, sr_failure *why) {
    char path[FILE_PATH];
    text_decoding how;
    int64_t lines;
    const int encoding = text_encoding_find(o->encoding);
    if (encoding < 0)
        return sr_fail(why, SR_USAGE, "encoding '%.40s' is not one of " ENCODING_WORDS,
                       o->encoding);
    sr_status status = file_find(o->dir, name, path, found, why);
    if (status != SR_OK || (!*found && optional)) return status;
    if (!*found) return file_missing(path, why);
    status = text_read_as(path, (text_encoding)encoding, f, &lines, &how, why);
    if (status == SR_OK && lines == 0)
        status = sr_fail(why, SR_FORMAT, "%s:1: holds no line", path);
    if (status == SR_OK)
        dataset_note(d, " %s%s", path, how.recoded ? " (not UTF-8: read as Windows-1252)" : "");
    if (status == SR_OK) dataset_check_ends(d, f);
    if (status == SR_OK) dataset_check_encoding(d, path, &how);
    return status;
}
