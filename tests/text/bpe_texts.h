/* bpe_texts.h -- byte-pair encoding of texts in memory, for tests. */
#ifndef TESTS_BPE_TEXTS_H
#define TESTS_BPE_TEXTS_H

#include "testing/check.h"
#include "text/bpe/bpe.h"

/* A file of this text; its bytes are the text's own. */
file_bytes text_file(const char *text);
/* Counts of the words of all lines. */
bpe_counts *counts_of(const char *text);
/* Codes learned from a text, as their file. malloc'd, as everything below. */
char *learned(const char *text, int64_t merges, int64_t min_frequency);
char *codes_text(const bpe_codes *codes);
/* The text as subwords, line by line; vocabulary NULL: none. */
char *applied(const char *codes, const char *text, const char *vocabulary, int64_t threshold);
/* The same with glossaries, a list that ends with NULL. */
char *applied_with(const char *codes, const char *text, const char *const *glossary);

void check_text(char *got, const char *want); /* frees got */

#endif
