/* bleu_scorer.c -- tokenizes the lines of each sentence and keeps its counts. */
#include <stdlib.h>

#include "base/containers/vector.h"
#include "base/utf8.h"
#include "score/bleu_tokenize.h"
#include "score/scorer.h"
#include "text/unicode.h"

bleu_scorer *bleu_create(const bleu_form *form) {
    bleu_scorer *s = calloc(1, sizeof *s);
    if (s) s->form = *form;
    return s;
}

void bleu_free(bleu_scorer *s) {
    if (!s) return;
    buffer_free(&s->line);
    buffer_free(&s->spare);
    grams_free(&s->grams);
    free(s->sentence);
    free(s);
}

bleu_counts bleu_sum(const bleu_scorer *s) {
    bleu_counts sum = {0};
    for (int64_t i = 0; i < s->sentences; i++) bleu_counts_add(&sum, &s->sentence[i]);
    return sum;
}

/* -- a line ------------------------------------------------------------------------------------ */

/* The size of the line without blanks at its end. *valid: it is UTF-8. */
static size_t size_without_blanks(const byte_buffer *t, bool *valid) {
    size_t kept = 0, step;
    uint32_t code;
    *valid = true;
    for (size_t at = 0; at < t->size; at += step) {
        step = utf8_decode(t->byte + at, &code);
        if (!step) {
            *valid = false;
            return at;
        }
        if (!unicode_is_blank(code)) kept = at + step;
    }
    return kept;
}

/* Adds a line; its words are between blanks of s->line. */
static sr_status add_line(bleu_scorer *s, bleu_text text, sr_failure *why) {
    bool valid;
    s->line.size = 0;
    buffer_put(&s->line, text.byte, text.size);
    if (s->line.failed) return sr_fail(why, SR_MEMORY, "out of memory for a line");
    byte_buffer *t = &s->line;
    if (s->form.multi) {
        for (size_t i = 0; s->form.lowercase && i < t->size; i++)
            if (t->byte[i] >= 'A' && t->byte[i] <= 'Z') t->byte[i] += 'a' - 'A';
    } else {
        const size_t kept = size_without_blanks(t, &valid);
        if (!valid)
            return sr_fail(why, SR_FORMAT, "byte %zu of the line is 0x%02x, not UTF-8", kept,
                           (unsigned char)t->byte[kept]);
        t->byte[t->size = kept] = 0;
        if (s->form.lowercase) {
            size_t size;
            uint8_t *small = unicode_lower((const uint8_t *)t->byte, t->size, &size);
            t->size = 0;
            if (small)
                buffer_put(t, small, size);
            else
                t->failed = true;
            free(small);
        }
        if (s->form.tokenizer != BLEU_TOKENIZE_NONE) {
            const bool intl = s->form.tokenizer == BLEU_TOKENIZE_INTL;
            (intl ? bleu_tokenize_intl : bleu_tokenize_13a)(t, &s->spare);
            const byte_buffer made = s->spare;
            s->spare = s->line;
            s->line = made;
        }
    }
    if (grams_add(&s->grams, &s->line, s->form.multi)) return SR_OK;
    return sr_fail(why, SR_MEMORY, "out of memory for the words of a line");
}

/* -- sentences --------------------------------------------------------------------------------- */

sr_status bleu_add(bleu_scorer *s, bleu_text hyp, const bleu_text *ref, int refs, sr_failure *why) {
    if (refs < 1 || refs > BLEU_REFERENCES)
        return sr_fail(why, SR_USAGE, "%d references; a sentence has 1 to %d", refs,
                       BLEU_REFERENCES);
    if (s->refs && s->refs != refs)
        return sr_fail(why, SR_USAGE, "%d references; the sentences before had %d", refs, s->refs);
    if (!vector_reserve(&s->sentence, &s->capacity, s->sentences + 1, sizeof *s->sentence))
        return sr_fail(why, SR_MEMORY, "out of memory for the counts of a sentence");
    grams_begin(&s->grams);
    sr_status status = add_line(s, hyp, why);
    for (int i = 0; status == SR_OK && i < refs; i++) status = add_line(s, ref[i], why);
    if (status == SR_OK && !grams_count(&s->grams, &s->sentence[s->sentences]))
        status = sr_fail(why, SR_MEMORY, "out of memory for the n-grams of a sentence");
    if (status != SR_OK) return status;
    s->refs = refs;
    s->sentences++;
    return SR_OK;
}

char *bleu_words(const bleu_form *form, bleu_text line) {
    bleu_scorer *s = bleu_create(form);
    byte_buffer out = {0};
    if (s && add_line(s, line, NULL) == SR_OK) {
        buffer_put(&out, "", 0);
        for (int64_t i = 0; i < s->grams.words; i++) {
            if (i) buffer_put(&out, " ", 1);
            const gram_word *w = &s->grams.word[i];
            buffer_put(&out, s->grams.text.byte + w->start, w->length);
        }
        if (out.failed) buffer_free(&out);
    }
    bleu_free(s);
    return (char *)out.byte;
}
