/* Lines of a text, and the words of each tokenizer.
 * Readers: src/text/text_lines.c src/score/bleu_tokenize_13a.c
 *   src/score/bleu_tokenize_intl.c */

#include <stdlib.h>

#include "fuzz.h"
#include "score/score.h"
#include "text/text_lines.h"

static void make_words(const char *line, size_t length) {
    const bleu_form forms[] = {BLEU_FORM,
                               {.tokenizer = BLEU_TOKENIZE_INTL, .lowercase = true},
                               {.tokenizer = BLEU_TOKENIZE_NONE},
                               BLEU_MULTI_FORM};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        free(bleu_words(&forms[i], (bleu_text){line, length}));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sr_failure why = {0};
    const char *line;
    size_t length;
    text_lines *t = text_lines_open(fuzz_store("f.txt", data, size), &why);
    fuzz_expect_reason(!t, &why);
    while (t && text_lines_next(t, &line, &length, &why) == SR_OK && line) {
        fuzz_expect(length > 0 && text_first_line(line, length) <= length, "a line of no length");
        make_words(line, length - (line[length - 1] == '\n'));
    }
    text_lines_close(t);
    return 0;
}
