/* bpe.h -- byte-pair encoding of words: learning merges, their file, splitting text into subwords
 * (docs/models.md 10.3). Compatible with subword-nmt 0.3.8, Sennrich, Haddow and Birch 2016;
 * docs/data.md lists the differences.
 *
 *     bpe_counts *counts = bpe_counts_create();
 *     bpe_counts_add_line(counts, "ein hund", 8, &why);          every line of every text
 *     bpe_codes *codes = bpe_learn(counts, &(bpe_learning){.merges = 10000, .min_frequency = 2},
 *     &why);
 *     bpe_codes_write(codes, out, &why);                         or bpe_codes_read of such a file
 *     bpe *b = bpe_create(codes, &(bpe_settings){.separator = "@@"}, &why);
 *     bpe_apply(b, "hundehaus\n", 10, &result, &why);            result.byte: "hunde@@ haus\n"
 *
 * Text is UTF-8, checked by the caller (text_lines.h does). Words lie between blanks, U+0020 alone.
 * Blanks, CR and LF at the ends of a line belong to no word.
 */
#ifndef TEXT_BPE_BPE_H
#define TEXT_BPE_BPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/containers/byte_buffer.h"
#include "text/file_bytes.h"

enum { BPE_WORD_BYTES = 1 << 20 }; /* longest word that is learned or split */

/* -- words and their counts -------------------------------------------------------------------- */

typedef struct bpe_counts bpe_counts;

bpe_counts *bpe_counts_create(void); /* NULL when out of memory */
void bpe_counts_free(bpe_counts *c);
/* Counts a word `times` more (at least 0). SR_FORMAT when it is too long, or the sum too large. */
sr_status bpe_counts_add(bpe_counts *c, const char *word, size_t length, int64_t times,
                         sr_failure *why);
/* Counts the words of a line. */
sr_status bpe_counts_add_line(bpe_counts *c, const char *line, size_t length, sr_failure *why);
/* Counts a dictionary of lines `word count`. Errors carry path:line. */
sr_status bpe_counts_add_dictionary(bpe_counts *c, const file_bytes *file, sr_failure *why);
int64_t bpe_counts_words(const bpe_counts *c); /* different ones */
/* Writes `word count`, the most frequent first, ties in order of first appearance. */
sr_status bpe_counts_write(const bpe_counts *c, FILE *out, sr_failure *why);

/* -- merges ------------------------------------------------------------------------------------ */

typedef struct bpe_codes bpe_codes;

typedef struct bpe_learning {
    int64_t merges;
    int64_t min_frequency; /* stop when every pair is less frequent; at least 1 */
    bool total_symbols;    /* `merges` includes the different characters */
} bpe_learning;

/* Merges the most frequent pair of adjacent symbols into one symbol, repeatedly. Ties: the greater
 * left, then right symbol by code points. "</w>" marks the end of a word. NULL on failure. */
bpe_codes *bpe_learn(const bpe_counts *counts, const bpe_learning *how, sr_failure *why);
/* Reads the first `merges` (-1: all) merges of a file of version 0.2 or, without a version line,
 * 0.1. Errors carry path:line. NULL on failure. */
bpe_codes *bpe_codes_read(const char *path, int64_t merges, sr_failure *why);
bpe_codes *bpe_codes_parse(const file_bytes *file, int64_t merges, sr_failure *why);
void bpe_codes_free(bpe_codes *codes);
/* Writes the file that bpe_codes_read reads. */
sr_status bpe_codes_write(const bpe_codes *codes, FILE *out, sr_failure *why);

/* -- allowed subwords -------------------------------------------------------------------------- */

typedef struct bpe_vocabulary bpe_vocabulary;

/* Subwords of lines `subword count` with a count of at least `threshold`. Errors carry path:line.
 * NULL on failure. */
bpe_vocabulary *bpe_vocabulary_read(const char *path, int64_t threshold, sr_failure *why);
bpe_vocabulary *bpe_vocabulary_parse(const file_bytes *file, int64_t threshold, sr_failure *why);
void bpe_vocabulary_free(bpe_vocabulary *v);
int64_t bpe_vocabulary_pieces(const bpe_vocabulary *v);

/* -- splitting words --------------------------------------------------------------------------- */

typedef struct bpe bpe;

typedef struct bpe_settings {
    const char *separator; /* after every subword of a word but the last: "@@" */
    /* NULL or empty: every subword is allowed. Other subwords (as written, with separator) are
     * split again into the pair that they were merged from. */
    const bpe_vocabulary *vocabulary;
    const char *const *glossary; /* [glossaries] regular expressions (pattern.h): kept unsplit */
    int glossaries;
} bpe_settings;

/* Codes and vocabulary must outlive it. SR_USAGE for an unsupported glossary. NULL on failure. */
bpe *bpe_create(const bpe_codes *codes, const bpe_settings *settings, sr_failure *why);
void bpe_free(bpe *b);
/* Appends the line in subwords to *out. Blanks, CR and LF at the ends stay; runs of blanks inside
 * become one. */
sr_status bpe_apply(bpe *b, const char *line, size_t length, byte_buffer *out, sr_failure *why);

/* Joins subwords to words, in place: removes every `separator` before a blank or the end, and that
 * blank. Returns the new length; a zero byte is written there when the line became shorter. */
size_t bpe_undo(char *line, size_t length, const char *separator);

#endif
