/* translator.h -- translates text: a model, its dictionaries and its line steps.
 *
 * Lines pass the steps of the model's training text (tokenizing, subwords) and the source
 * dictionary. Hypotheses come back as words of the target dictionary, subwords joined.
 */
#ifndef TASK_TRANSLATOR_H
#define TASK_TRANSLATOR_H

#include "data/data.h"
#include "decode/translate.h"
#include "score/score.h"
#include "text/bpe/text_codec.h"

/* Lines of more tokens than TRANSLATOR_LONGEST, </s> included: an error, translated without their
 * end, or not translated (an empty hypothesis list). */
enum { TRANSLATOR_LONGEST = 1024 };
typedef enum { LONG_ERROR, LONG_CROP, LONG_SKIP } long_lines;

typedef struct translator {
    model *model;
    text_codec codec;
    unknown_words unknown;
    translate_options options;
    long_lines long_lines;
    /* Called for each such line, with its number in the call and its tokens. NULL: not called. */
    void (*on_long)(void *context, int64_t line, int64_t tokens);
    void *context;
} translator;

/* A line of text. */
typedef struct translator_line {
    const char *byte;
    size_t length;
} translator_line;

/* Translates `count` lines into out [count], which the caller zeroes before and frees. An empty
 * line gives an empty hypothesis list. After a failure report->refused is its line. */
sr_status translator_run(const translator *t, const translator_line *line, int64_t count,
                         translation *out, translate_report *report, sr_failure *why);
/* Finds long lines without translating; SR_USAGE if there are some and they are errors. */
sr_status translator_check(const translator *t, const translator_line *line, int64_t count,
                           sr_failure *why);
/* The text of a hypothesis of a line; replaces *out. */
sr_status translator_text(const translator *t, translator_line line, const hypothesis *h,
                          byte_buffer *out, sr_failure *why);

/* BLEU of the best hypotheses of a split of sentence pairs, subwords joined. References: of the
 * form multi-bleu tokenized as the training text; of the others as they are in their file, as
 * `statrec score bleu` reads them. NULL on failure, also when stopped (*why untouched then). */
bleu_scorer *translator_bleu(const translator *t, const dataset *d, data_split split,
                             const bleu_form *form, sr_failure *why);
/* How many references of a split seem to be tokenized (bleu_seems_tokenized). */
int64_t translator_tokenized(const dataset *d, data_split split);

#endif
