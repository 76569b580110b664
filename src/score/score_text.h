/* score_text.h -- a text that grows, and the tokenizers that rewrite one. */
#ifndef SCORE_SCORE_TEXT_H
#define SCORE_SCORE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A zero byte follows. After `failed` (out of memory) nothing is added any more. */
typedef struct score_text {
    uint8_t *byte;
    size_t size, capacity;
    bool failed;
} score_text;

void score_text_clear(score_text *t);
void score_text_put(score_text *t, const void *bytes, size_t count);
void score_text_free(score_text *t);

/* The line as the tokenizer leaves it: words between blanks. `from` is a line without blanks at its
 * end and is used up; the result is in `to`. */
void bleu_tokenize_13a(score_text *from, score_text *to);
void bleu_tokenize_intl(score_text *from, score_text *to);

#endif
