/* vectors_bleu.c -- bleu.h5: two texts scored like multi-bleu.perl and like sacreBLEU without a
 * tokenizer; names with lc_ are for lowercased texts. */
#include <stdio.h>
#include <string.h>

#include "model_vectors.h"
#include "score/score.h"

/* Takes the first line off; a last one without a newline is a line. */
static bleu_text cut_line(bleu_text *text) {
    const char *end = memchr(text->byte, '\n', text->size);
    const bleu_text line = {text->byte, end ? (size_t)(end - text->byte) : text->size};
    const size_t cut = line.size + (end != NULL);
    *text = (bleu_text){text->byte + cut, text->size - cut};
    return line;
}

/* NULL, reported, on failure. */
static bleu_scorer *score(model_case *c, const bleu_form *form, bleu_text hyp, bleu_text ref) {
    sr_failure why = {0};
    bleu_scorer *s = bleu_create(form);
    if (!s) case_fail(c, "out of memory");
    while (s && case_fine(c) && hyp.size && ref.size) {
        const bleu_text h = cut_line(&hyp), r = cut_line(&ref);
        if (bleu_add(s, h, &r, 1, &why) != SR_OK) case_fail(c, "%s", why.text);
    }
    if (case_fine(c) && (hyp.size || ref.size))
        case_fail(c, "%s has more lines", hyp.size ? "in/hyp" : "in/ref");
    if (case_fine(c)) return s;
    bleu_free(s);
    return NULL;
}

static void compare(model_case *c, const char *prefix, const char *name, const double *got,
                    int64_t count) {
    char full[64];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    case_compare(c, full, got, count, NULL, 1);
}

static void compare_counts(model_case *c, const char *prefix, const char *name, const int64_t *got,
                           int count) {
    double number[BLEU_ORDER];
    for (int i = 0; i < count; i++) number[i] = (double)got[i];
    compare(c, prefix, name, number, count);
}

/* Compares the line, if the file has one: the script fails on texts without words. */
static void compare_line(model_case *c, const char *prefix, const bleu_counts *sum) {
    char name[64], path[80], line[BLEU_LINE];
    snprintf(name, sizeof name, "%sline", prefix);
    snprintf(path, sizeof path, "out/%s", name);
    if (!case_has(c, path) && (!sum->hyp_len || !sum->ref_len)) return;
    bleu_print_multi(sum, line, sizeof line);
    case_compare_text(c, name, line, (int64_t)strlen(line));
}

static void compare_multi(model_case *c, const char *prefix, bool lowercase, bleu_text hyp,
                          bleu_text ref) {
    const bleu_form form = {.multi = true, .lowercase = lowercase};
    bleu_scorer *s = score(c, &form, hyp, ref);
    if (!s) return;
    const bleu_counts sum = bleu_sum(s);
    const bleu_value v = bleu_compute(&form, &sum);
    compare_counts(c, prefix, "correct", sum.correct, BLEU_ORDER);
    compare_counts(c, prefix, "total", sum.total, BLEU_ORDER);
    compare_counts(c, prefix, "hyp_len", &sum.hyp_len, 1);
    compare_counts(c, prefix, "ref_len", &sum.ref_len, 1);
    compare(c, prefix, "bp", &v.bp, 1);
    compare(c, prefix, "prec", v.precision, BLEU_ORDER);
    compare(c, prefix, "bleu", &v.bleu, 1);
    compare_line(c, prefix, &sum);
    bleu_free(s);
}

static void compare_sacre(model_case *c, const char *prefix, bool lowercase, bleu_text hyp,
                          bleu_text ref) {
    const bleu_form form = {
        .tokenizer = BLEU_TOKENIZE_NONE, .smoothing = BLEU_SMOOTH_EXP, .lowercase = lowercase};
    bleu_scorer *s = score(c, &form, hyp, ref);
    if (!s) return;
    const bleu_counts sum = bleu_sum(s);
    const bleu_value v = bleu_compute(&form, &sum);
    compare(c, prefix, "sacre", &v.bleu, 1);
    bleu_free(s);
}

void check_bleu(model_case *c) {
    int64_t hyp_size = 0, ref_size = 0;
    const char *hyp = case_bytes(c, "in/hyp", &hyp_size), *ref = case_bytes(c, "in/ref", &ref_size);
    if (!hyp || !ref) return;
    const bleu_text h = {hyp, (size_t)hyp_size}, r = {ref, (size_t)ref_size};
    compare_multi(c, "", false, h, r);
    compare_multi(c, "lc_", true, h, r);
    compare_sacre(c, "", false, h, r);
    compare_sacre(c, "lc_", true, h, r);
}
