#include "bleu_cases.h"

#include <stdlib.h>
#include <string.h>

bleu_text text_of(const char *line) {
    return (bleu_text){line, strlen(line)};
}

bleu_counts count_line(const bleu_form *form, const char *hyp, const char *const *ref) {
    bleu_text text[BLEU_REFERENCES];
    int refs = 0;
    sr_failure why = {0};
    for (; ref[refs]; refs++) text[refs] = text_of(ref[refs]);
    bleu_scorer *s = bleu_create(form);
    assert_non_null(s);
    check_ok(bleu_add(s, text_of(hyp), text, refs, &why), &why);
    const bleu_counts c = bleu_sum(s);
    bleu_free(s);
    return c;
}

static bleu_text cut_line(const char **at) {
    const char *end = strchr(*at, '\n');
    assert_non_null(end);
    const bleu_text line = {*at, (size_t)(end - *at)};
    *at = end + 1;
    return line;
}

bleu_scorer *score_texts(const bleu_form *form, const char *hyp, const char *ref) {
    bleu_scorer *s = bleu_create(form);
    sr_failure why = {0};
    assert_non_null(s);
    while (*ref) {
        const bleu_text h = cut_line(&hyp), r = cut_line(&ref);
        check_ok(bleu_add(s, h, &r, 1, &why), &why);
    }
    assert_int_equal(*hyp, 0);
    return s;
}

void check_counts(const int64_t got[BLEU_ORDER], int64_t a, int64_t b, int64_t c, int64_t d) {
    const int64_t want[BLEU_ORDER] = {a, b, c, d};
    for (int n = 0; n < BLEU_ORDER; n++) assert_int_equal(got[n], want[n]);
}

void check_words(bleu_tokenizer tokenizer, bool lowercase, const char *line, const char *want) {
    const bleu_form form = {.tokenizer = tokenizer, .lowercase = lowercase};
    char *got = bleu_words(&form, text_of(line));
    assert_non_null(got);
    assert_string_equal(got, want);
    free(got);
}
