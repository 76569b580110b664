/* tokenizer_option.c -- --tokenize and --lowercase as a step of lines, with the tokenizers of BLEU
   (docs/scores.md): training text and scores are tokenized alike. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/loaded_model.h"

static sr_status apply(void *self, int side, const char *line, size_t length, byte_buffer *out,
                       sr_failure *why) {
    const bleu_form *form = self;
    (void)side;
    char *words = bleu_words(form, (bleu_text){line, length});
    const bool done = words && buffer_put(out, words, strlen(words));
    free(words);
    return done ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory for a line of text");
}

line_transform tokenizer_option_step(const char *tokenize, bool lowercase, bleu_form *form) {
    const bool cuts = *tokenize && strcmp(tokenize, "none") != 0;
    if (!strcmp(tokenize, BASIC_ENGLISH)) return basic_english_step(); /* in small letters */
    *form = (bleu_form)BLEU_FORM;
    form->lowercase = lowercase;
    form->tokenizer = (bleu_tokenizer)(cuts ? text_find_word(BLEU_TOKENIZER_WORDS, tokenize)
                                            : BLEU_TOKENIZE_NONE);
    if (cuts) return (line_transform){.name = tokenize, .apply = apply, .self = form};
    return lowercase ? lowercase_step() : (line_transform){0};
}

dataset *train_data_open(const train_config *c, train_text *text, sr_failure *why) {
    data_options o = c->data;
    text->tokenizer = tokenizer_option_step(c->tokenize, c->lowercase, &text->form);
    if (text->tokenizer.apply) o.tokenizer = &text->tokenizer;
    return data_open(&o, why);
}
