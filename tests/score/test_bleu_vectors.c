/* The shared vectors of BLEU (reference/vectors/models/bleu.h5). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../oracle_file.h"
#include "bleu_cases.h"

/* A text of the file with a zero byte behind it, NULL when it is not there. */
static char *read_text(const oracle_file *f, int k, const char *name) {
    int64_t count = 0;
    double *byte = oracle_read(f, k, name, NULL, &count);
    char *text = byte ? malloc((size_t)count + 1) : NULL;
    for (int64_t i = 0; text && i < count; i++) text[i] = (char)(unsigned char)byte[i];
    if (text) text[count] = 0;
    free(byte);
    return text;
}

static bool check_reals(const oracle_file *f, int k, const char *prefix, const char *name,
                        const double *got, int64_t count) {
    char full[64];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    return oracle_check(f, k, full, got, count, NULL, 1);
}

static bool check_integers(const oracle_file *f, int k, const char *prefix, const char *name,
                           const int64_t *got, int count) {
    double real[BLEU_ORDER];
    for (int i = 0; i < count; i++) real[i] = (double)got[i];
    return check_reals(f, k, prefix, name, real, count);
}

/* A case where the script dies has no line. */
static bool check_line(const oracle_file *f, int k, const char *prefix, const bleu_counts *sum) {
    char full[64], line[BLEU_LINE];
    snprintf(full, sizeof full, "out/%sline", prefix);
    char *want = read_text(f, k, full);
    bleu_print_multi(sum, line, sizeof line);
    const bool same = !want || strcmp(want, line) == 0;
    if (!same) fprintf(stderr, "case%d %s:\n  got  %s\n  want %s\n", k, full, line, want);
    if (!want && sum->hyp_len) fprintf(stderr, "case%d: no %s\n", k, full);
    free(want);
    return same && (want || !sum->hyp_len);
}

/* out/PREFIXname for all names: one form of the case, lowercased or not. */
static bool check_form(const oracle_file *f, int k, const char *prefix, bool lowercase,
                       const char *hyp, const char *ref) {
    const bleu_form multi = {.multi = true, .lowercase = lowercase},
                    none = {.tokenizer = BLEU_TOKENIZE_NONE,
                            .smoothing = BLEU_SMOOTH_EXP,
                            .lowercase = lowercase};
    bleu_scorer *bytes = score_texts(&multi, hyp, ref), *unicode = score_texts(&none, hyp, ref);
    const bleu_counts sum = bleu_sum(bytes), sum_unicode = bleu_sum(unicode);
    const bleu_value v = bleu_compute(&multi, &sum), sacre = bleu_compute(&none, &sum_unicode);
    bool same = check_integers(f, k, prefix, "correct", sum.correct, BLEU_ORDER);
    same &= check_integers(f, k, prefix, "total", sum.total, BLEU_ORDER);
    same &= check_integers(f, k, prefix, "hyp_len", &sum.hyp_len, 1);
    same &= check_integers(f, k, prefix, "ref_len", &sum.ref_len, 1);
    same &= check_reals(f, k, prefix, "bp", &v.bp, 1);
    same &= check_reals(f, k, prefix, "prec", v.precision, BLEU_ORDER);
    same &= check_reals(f, k, prefix, "bleu", &v.bleu, 1);
    same &= check_reals(f, k, prefix, "sacre", &sacre.bleu, 1);
    same &= check_line(f, k, prefix, &sum);
    bleu_free(bytes);
    bleu_free(unicode);
    return same;
}

static bool check_case(const oracle_file *f, int k) {
    char *hyp = read_text(f, k, "in/hyp"), *ref = read_text(f, k, "in/ref");
    const bool same = hyp && ref && check_form(f, k, "", false, hyp, ref) &&
                      check_form(f, k, "lc_", true, hyp, ref);
    free(hyp);
    free(ref);
    return same;
}

static void shared_vectors(void **state) {
    (void)state;
    const char *path = check_shared("reference/vectors/models/bleu.h5");
    if (!path) skip();
    oracle_file *f = oracle_open(path);
    assert_non_null(f);
    int wrong = 0;
    for (int k = 0; k < oracle_cases(f); k++) wrong += !check_case(f, k);
    assert_true(oracle_cases(f) > 0);
    oracle_close(f);
    assert_int_equal(wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(shared_vectors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
