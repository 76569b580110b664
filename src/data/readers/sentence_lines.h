/* sentence_lines.h -- shared by readers of classified sentences: class names, lines made into
 * sentences, lines drawn for a split. */
#ifndef DATA_READERS_SENTENCE_LINES_H
#define DATA_READERS_SENTENCE_LINES_H

#include "data/dataset.h"
#include "text/text.h"

enum { LABELS_MAX = 1000, LABEL_BYTES = 64 };

/* Names of the classes; starts as {0}. */
typedef struct label_set {
    char (*name)[LABEL_BYTES]; /* [count], zero-terminated */
    int count;
    int64_t capacity;
} label_set;

void label_set_free(label_set *l);
/* Adds a new name. SR_FORMAT: longer than LABEL_BYTES - 1 bytes, or more than LABELS_MAX names. */
sr_status label_set_add(label_set *l, const char *name, size_t length, sr_failure *why);
/* Integers by value, when all are, else bytes by value. */
void label_set_sort(label_set *l);
/* -1: not found. */
int label_set_find(const label_set *l, const char *name, size_t length);

/* The words of a line, after the tokenizer of the options, as a sentence. */
sr_status sentence_set_line(sentence_set *s, const data_options *o, data_split split,
                            const char *line, size_t length, int32_t label, int64_t number,
                            sr_failure *why);

/* Numbers 0 .. count - 1 in an order drawn by the seed. NULL when out of memory. */
int64_t *draw_order(uint64_t seed, int64_t count);

/* Separator of columns. */
static inline bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

/* Reads DIR/NAME or DIR/NAME.gz in the options' encoding and notes it in the description. *found
 * false: neither exists, and `optional`. */
sr_status read_text_file(dataset *d, const data_options *o, const char *name, bool optional,
                         file_bytes *f, bool *found, sr_failure *why);

#endif
