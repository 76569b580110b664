/* bpe_internal.h -- declarations shared by the files of byte-pair encoding. */
#ifndef TEXT_BPE_BPE_INTERNAL_H
#define TEXT_BPE_BPE_INTERNAL_H

#include "base/containers/map.h"
#include "base/containers/vector.h"
#include "text/bpe/bpe.h"

/* The end of a word: part of its last symbol, or a separate symbol in version 0.1. */
#define BPE_END "</w>"
enum { BPE_END_BYTES = 4 };

/* -- words of a line, as bpe.h defines them -- */

typedef struct bpe_words {
    const char *line;
    size_t start, at, end; /* [start, end): without blanks, CR and LF at the ends */
} bpe_words;

bpe_words bpe_words_of(const char *line, size_t length);
bool bpe_next_word(bpe_words *w, const char **word, size_t *length);

/* Bytes of the first character of a text of at least one byte; 1 outside UTF-8. */
size_t bpe_character(const char *text, size_t left);

/* -- lines of two fields, `word count` or `left right`, ended by '\n' only -- */

typedef struct bpe_fields {
    const file_bytes *file;
    size_t at;
    int64_t line; /* number of the last line, from 1 */
    const char *field[2];
    size_t length[2];
    bool found; /* false after the last line */
} bpe_fields;

/* SR_FORMAT for a line without two fields between single blanks; the message names them by
 * `what`. */
sr_status bpe_next_fields(bpe_fields *f, const char *what, sr_failure *why);
/* The second field as a count. */
sr_status bpe_read_count(const bpe_fields *f, int64_t *count, sr_failure *why);

/* -- words and codes -- */

/* Two adjacent symbols, as a key of a map and back. */
typedef struct symbol_pair {
    int32_t left, right;
} symbol_pair;

static inline uint64_t bpe_key(int32_t left, int32_t right) {
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

static inline symbol_pair bpe_pair_of(const map *m, int32_t number) {
    const uint64_t key = map_number(m, number);
    return (symbol_pair){(int32_t)(key >> 32), (int32_t)(key & UINT32_MAX)};
}

struct bpe_counts {
    map word;
    int64_t *times; /* [capacity], of word.count words */
    int64_t capacity;
    int64_t letters; /* bytes of all words, with their counts */
};

struct bpe_codes {
    int version; /* 1: 0.1; 2: 0.2 */
    map symbol;
    map pair;        /* pairs of symbols; its numbers are ranks: the first of equal merges counts */
    int32_t *merged; /* [merged_capacity] symbol of a pair */
    int32_t *order;  /* [merges] pair of every line of the file */
    int32_t *origin; /* [symbol.count] pair that a symbol was merged from, or -1 */
    int64_t merges, merged_capacity, order_capacity;
};

bpe_codes *bpe_codes_create(int version, sr_failure *why);
sr_status bpe_codes_add(bpe_codes *codes, const char *left, size_t left_length, const char *right,
                        size_t right_length, sr_failure *why);
/* Adds the text of one symbol followed by another; -1 when out of memory. */
int32_t bpe_add_joined(map *symbol, int32_t left, int32_t right);
/* After the last merge. */
sr_status bpe_codes_finish(bpe_codes *codes, sr_failure *why);

static inline sr_status bpe_out_of_memory(sr_failure *why) {
    return sr_fail(why, SR_MEMORY, "out of memory");
}
/* SR_IO when a write to `out` failed. */
sr_status bpe_check_write(FILE *out, sr_failure *why);

#endif
