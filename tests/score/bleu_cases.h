/* bleu_cases.h -- helpers shared by the BLEU tests. */
#ifndef TESTS_SCORE_BLEU_CASES_H
#define TESTS_SCORE_BLEU_CASES_H

#include "score/score.h"
#include "testing/check.h"

bleu_text text_of(const char *line);
/* Counts of one hypothesis against references, closed by NULL. */
bleu_counts count_line(const bleu_form *form, const char *hyp, const char *const *ref);
/* A scorer of texts whose lines end in '\n', against one reference. */
bleu_scorer *score_texts(const bleu_form *form, const char *hyp, const char *ref);
void check_counts(const int64_t got[BLEU_ORDER], int64_t a, int64_t b, int64_t c, int64_t d);
/* The words that the tokenizer makes of the line, with one blank between them. */
void check_words(bleu_tokenizer tokenizer, bool lowercase, const char *line, const char *want);

#define REFS(...) ((const char *const[]){__VA_ARGS__, NULL})

#endif
