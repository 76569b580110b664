/* bleu_print.c -- prints a score and its signature. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "score/scorer.h"

/* The number-th word of "13a|intl|none". */
static void print_word(const char *words, int number, char *text, size_t size) {
    for (; number > 0; number--) words += strcspn(words, "|") + 1;
    snprintf(text, size, "%.*s", (int)strcspn(words, "|"), words);
}

void bleu_signature(const bleu_scorer *s, const bleu_interval *interval, char *text, size_t size) {
    const bleu_form *f = &s->form;
    char draws[64], tokenizer[16], smoothing[48];
    draws[0] = 0;
    if (interval)
        snprintf(draws, (sizeof draws), "bs:%" PRId64 "|seed:%" PRIu64 "|", interval->resamples,
                 interval->seed);
    print_word(BLEU_TOKENIZER_WORDS, (int)f->tokenizer, tokenizer, sizeof tokenizer);
    /* "floor[0.10]": two digits as in sacreBLEU, if they are exact */
    print_word(BLEU_SMOOTHING_WORDS, (int)f->smoothing, smoothing, sizeof smoothing);
    if (f->smoothing == BLEU_SMOOTH_FLOOR || f->smoothing == BLEU_SMOOTH_ADD_K) {
        const size_t used = strlen(smoothing), size_left = sizeof smoothing - used;
        snprintf(smoothing + used, size_left, "[%.2f]", f->smooth_value);
        if (strtod(smoothing + used + 1, NULL) != f->smooth_value)
            snprintf(smoothing + used, size_left, "[%.15g]", f->smooth_value);
    }
    if (f->multi)
        snprintf(text, size,
                 "statrec-multi-bleu|nrefs:%d|%scase:%s|tok:none|smooth:none|version:%s", s->refs,
                 draws, f->lowercase ? "lc-ascii" : "mixed", STATREC_VERSION);
    else
        snprintf(text, size, "statrec-bleu|nrefs:%d|%scase:%s|eff:no|tok:%s|smooth:%s|version:%s",
                 s->refs, draws, f->lowercase ? "lc" : "mixed", tokenizer, smoothing,
                 STATREC_VERSION);
}

static double ratio_of(const bleu_counts *c) {
    return c->ref_len ? (double)c->hyp_len / (double)c->ref_len : 0;
}

void bleu_print(const bleu_scorer *s, int digits, const bleu_interval *interval, char *text,
                size_t size) {
    const bleu_counts sum = bleu_sum(s);
    const bleu_value v = bleu_compute(&s->form, &sum);
    char signature[BLEU_LINE / 2];
    bleu_signature(s, interval, signature, sizeof signature);
    snprintf(text, size,
             "%s = %.*f %.1f/%.1f/%.1f/%.1f (BP = %.3f ratio = %.3f hyp_len = %" PRId64
             " ref_len = %" PRId64 ")",
             signature, digits, v.bleu, v.precision[0], v.precision[1], v.precision[2],
             v.precision[3], v.bp, ratio_of(&sum), sum.hyp_len, sum.ref_len);
}

void bleu_print_multi(const bleu_counts *sum, char *text, size_t size) {
    const bleu_form form = BLEU_MULTI_FORM;
    const bleu_value v = bleu_compute(&form, sum);
    if (sum->ref_len == 0)
        snprintf(text, size, "BLEU = 0, 0/0/0/0 (BP=0, ratio=0, hyp_len=0, ref_len=0)");
    else
        snprintf(text, size,
                 "BLEU = %.2f, %.1f/%.1f/%.1f/%.1f (BP=%.3f, ratio=%.3f, hyp_len=%" PRId64
                 ", ref_len=%" PRId64 ")",
                 v.bleu, v.precision[0], v.precision[1], v.precision[2], v.precision[3], v.bp,
                 ratio_of(sum), sum->hyp_len, sum->ref_len);
}

void bleu_print_interval(const bleu_interval *interval, int digits, char *text, size_t size) {
    snprintf(text, size, "95 %% interval [%.*f, %.*f] (%" PRId64 " resamples, seed %" PRIu64 ")",
             digits, interval->low, digits, interval->high, interval->resamples, interval->seed);
}
