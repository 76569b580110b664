/* BLEU by hand: counts, brevity penalty, smoothing, several references, and the lines printed. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bleu_cases.h"
#include "score/scorer.h"
#include "text/text.h"

static const bleu_form multi = BLEU_MULTI_FORM, whole = BLEU_FORM;

static void near(double got, double want) {
    check_near_double("value", &got, &want, 1, 1e-13, 0);
}

static void counts_by_hand(void **state) {
    (void)state;
    bleu_counts c = count_line(&multi, "the cat sat on the mat", REFS("the cat sat on a mat"));
    check_counts(c.correct, 5, 3, 2, 1);
    check_counts(c.total, 6, 5, 4, 3);
    assert_int_equal(c.hyp_len, 6);
    assert_int_equal(c.ref_len, 6);
    c = count_line(&multi, "a b", REFS("a b c"));
    check_counts(c.correct, 2, 1, 0, 0);
    check_counts(c.total, 2, 1, 0, 0);
    assert_int_equal(c.ref_len, 3);
    c = count_line(&multi, "", REFS("a b c"));
    check_counts(c.total, 0, 0, 0, 0);
    assert_int_equal(c.hyp_len, 0);
    assert_int_equal(c.ref_len, 3);
    c = count_line(&multi, "a", REFS(""));
    check_counts(c.correct, 0, 0, 0, 0);
    assert_int_equal(c.ref_len, 0);
}

/* Papineni et al., section 2.1: "the the the the the the the" has two right. */
static void matches_are_clipped(void **state) {
    (void)state;
    bleu_counts c = count_line(&multi, "the the the the the the the",
                               REFS("the cat is on the mat", "there is a cat on the mat"));
    check_counts(c.correct, 2, 0, 0, 0);
    c = count_line(&multi, "a b a b a b", REFS("a b x a b"));
    check_counts(c.correct, 4, 2, 0, 0);
}

static void references_count_by_their_maximum(void **state) {
    (void)state;
    bleu_counts c = count_line(&multi, "a a a b", REFS("a a x", "a b y"));
    check_counts(c.correct, 3, 2, 0, 0); /* "a" twice in one of them, not three times in both */
    c = count_line(&multi, "c d", REFS("a b", "c d"));
    check_counts(c.correct, 2, 1, 0, 0);
}

static void closest_reference_length(void **state) {
    (void)state;
    const char *hyp = "a b c d e"; /* 5 words */
    assert_int_equal(count_line(&multi, hyp, REFS("a b c d e f g h", "a b c d")).ref_len, 4);
    assert_int_equal(count_line(&multi, hyp, REFS("a b c d e f", "a b c d")).ref_len, 4);
    assert_int_equal(count_line(&multi, hyp, REFS("a b c d", "a b c d e f")).ref_len, 4);
    assert_int_equal(count_line(&multi, hyp, REFS("a", "a b c d e f")).ref_len, 6);
    assert_int_equal(count_line(&multi, hyp, REFS("", "a b c d e f g h i j")).ref_len, 0);
}

static bleu_counts counts_of(int64_t hyp_len, int64_t ref_len) {
    return (bleu_counts){
        .correct = {8, 6, 4, 2}, .total = {10, 9, 8, 7}, .hyp_len = hyp_len, .ref_len = ref_len};
}

static void brevity_penalty(void **state) {
    (void)state;
    const bleu_form *const form[] = {&multi, &whole};
    for (int i = 0; i < 2; i++) {
        bleu_counts same = counts_of(10, 10), longer = counts_of(11, 10),
                    shorter = counts_of(8, 10);
        bleu_counts none = counts_of(0, 10);
        near(bleu_compute(form[i], &same).bp, 1);
        near(bleu_compute(form[i], &longer).bp, 1);
        near(bleu_compute(form[i], &shorter).bp, exp(-0.25));
        near(bleu_compute(form[i], &none).bp, 0);
        near(bleu_compute(form[i], &shorter).bleu,
             100 * exp(-0.25) * pow(.8 * 6 / 9 * .5 * 2 / 7, .25));
    }
}

static bleu_value smoothed(bleu_smoothing smoothing, double value, bleu_counts c) {
    const bleu_form form = {.smoothing = smoothing, .smooth_value = value};
    return bleu_compute(&form, &c);
}

static void smoothing_by_hand(void **state) {
    (void)state;
    const bleu_counts c = {
        .correct = {5, 2, 0, 0}, .total = {8, 7, 6, 5}, .hyp_len = 8, .ref_len = 8};
    bleu_value v = smoothed(BLEU_SMOOTH_NONE, 0, c);
    check_equals(v.bleu, 0);
    check_equals(v.precision[2], 0);
    v = smoothed(BLEU_SMOOTH_EXP, 0, c);
    near(v.precision[1], 200. / 7);
    near(v.precision[2], 100. / (2 * 6));
    near(v.precision[3], 100. / (4 * 5));
    near(v.bleu, 100 * pow(5. / 8 * 2 / 7 / 12 / 20, .25));
    v = smoothed(BLEU_SMOOTH_FLOOR, .1, c);
    near(v.precision[2], 10. / 6);
    near(v.precision[3], 10. / 5);
    v = smoothed(BLEU_SMOOTH_FLOOR, .25, c);
    near(v.precision[3], 25. / 5);
    v = smoothed(BLEU_SMOOTH_ADD_K, 1, c);
    near(v.precision[0], 500. / 8); /* the first order is left alone */
    near(v.precision[1], 300. / 8);
    near(v.precision[2], 100. / 7);
    near(v.precision[3], 100. / 6);
    v = smoothed(BLEU_SMOOTH_ADD_K, .5, c);
    near(v.precision[3], 50. / 5.5);
    near(bleu_smooth_default(BLEU_SMOOTH_FLOOR), .1);
    near(bleu_smooth_default(BLEU_SMOOTH_ADD_K), 1);
}

static void nothing_to_smooth(void **state) {
    (void)state;
    const bleu_counts wrong = {.total = {4, 3, 2, 1}, .hyp_len = 4, .ref_len = 5};
    const bleu_counts brief = {
        .correct = {4, 2, 0, 0}, .total = {4, 2, 0, 0}, .hyp_len = 4, .ref_len = 4};
    for (int k = BLEU_SMOOTH_NONE; k <= BLEU_SMOOTH_ADD_K; k++) {
        bleu_value v = smoothed((bleu_smoothing)k, 1, wrong);
        check_equals(v.bleu, 0);
        check_equals(v.precision[0], 0);
        near(v.bp, exp(-.25));
        v = smoothed((bleu_smoothing)k, 1, brief); /* no 4-gram in the text */
        if (k == BLEU_SMOOTH_ADD_K)
            near(v.bleu, 100);
        else {
            check_equals(v.bleu, 0);
            check_equals(v.precision[1], 100);
            check_equals(v.precision[2], 0);
        }
    }
}

static void sums_before_it_divides(void **state) {
    (void)state;
    bleu_scorer *s = score_texts(&multi, "a b c d e\n\nx y z v w\n", "a b c d e\nq q\nx y z v u\n");
    assert_int_equal(s->sentences, 3);
    const bleu_counts sum = bleu_sum(s);
    check_counts(sum.correct, 9, 7, 5, 3);
    check_counts(sum.total, 10, 8, 6, 4);
    assert_int_equal(sum.ref_len, 12);
    near(bleu_compute(&multi, &sum).bleu,
         100 * exp(1 - 1.2) * pow(.9 * 7 / 8 * 5 / 6 * 3 / 4, .25));
    bleu_free(s);
}

static void words_of_the_two_forms(void **state) {
    (void)state;
    const bleu_form none = {.tokenizer = BLEU_TOKENIZE_NONE};
    /* NBSP and U+2028 are blanks of Unicode, no bytes that Perl's split cuts at */
    const char *line = "a\xc2\xa0"
                       "b\xe2\x80\xa8"
                       "c\td\re\vf\x1cg";
    assert_int_equal(count_line(&multi, line, REFS("x")).hyp_len, 4);
    assert_int_equal(count_line(&none, line, REFS("x")).hyp_len, 7);
    /* any bytes will do for multi-bleu */
    assert_int_equal(count_line(&multi, "\xff \xc3 a", REFS("\xff \xc3 b")).correct[1], 1);
    sr_failure why = {0};
    bleu_scorer *s = bleu_create(&none);
    const bleu_text ref = text_of("a");
    assert_int_equal(bleu_add(s, text_of("ab\xff"), &ref, 1, &why), SR_FORMAT);
    check_failure(&why, SR_FORMAT, "byte 2 of the line is 0xff, not UTF-8");
    assert_int_equal(s->sentences, 0);
    bleu_free(s);
}

static void case_of_the_two_forms(void **state) {
    (void)state;
    bleu_form ascii = BLEU_MULTI_FORM, unicode = BLEU_FORM;
    ascii.lowercase = unicode.lowercase = true;
    const char *hyp = "DAS \xc3\x9c"
                      "BEL \xce\x9f\xce\x94\xce\x9f\xce\xa3";
    const char *ref = "das \xc3\xbc"
                      "bel \xce\xbf\xce\xb4\xce\xbf\xcf\x82";
    assert_int_equal(count_line(&ascii, hyp, REFS(ref)).correct[0], 1);
    assert_int_equal(count_line(&unicode, hyp, REFS(ref)).correct[0], 3);
    assert_int_equal(count_line(&whole, hyp, REFS(ref)).correct[0], 0);
    assert_int_equal(count_line(&ascii,
                                "\xc3\x9c"
                                "BEL",
                                REFS("\xc3\x9c"
                                     "bel"))
                         .correct[0],
                     1);
}

/* Many words, so that the tables grow, in a sentence between short ones. */
static void long_lines(void **state) {
    (void)state;
    enum { WORDS = 5000, SIZE = WORDS * 8 };
    static char line[SIZE];
    size_t used = 0;
    for (int i = 0; i < WORDS; i++)
        used += (size_t)snprintf(line + used, SIZE - used, "w%d ", i % 1999);
    bleu_counts c = count_line(&multi, line, REFS("w0", line, "w1"));
    check_counts(c.correct, WORDS, WORDS - 1, WORDS - 2, WORDS - 3);
    assert_int_equal(c.ref_len, WORDS);
    c = count_line(&multi, "w1 w2", REFS(line));
    check_counts(c.correct, 2, 1, 0, 0);
}

static void references_are_of_one_number(void **state) {
    (void)state;
    bleu_scorer *s = bleu_create(&multi);
    const bleu_text ref[BLEU_REFERENCES + 1] = {{"a", 1}, {"b", 1}};
    sr_failure why = {0}, other = {0};
    assert_int_equal(bleu_add(s, ref[0], ref, 0, &why), SR_USAGE);
    check_failure(&why, SR_USAGE, "0 references");
    assert_int_equal(bleu_add(s, ref[0], ref, BLEU_REFERENCES + 1, NULL), SR_USAGE);
    assert_int_equal(bleu_add(s, ref[0], ref, 2, NULL), SR_OK);
    assert_int_equal(bleu_add(s, ref[0], ref, 1, &other), SR_USAGE);
    check_failure(&other, SR_USAGE, "the sentences before had 2");
    assert_int_equal(s->sentences, 1);
    bleu_free(s);
}

static void lines_printed(void **state) {
    (void)state;
    char line[BLEU_LINE];
    bleu_counts c = counts_of(8, 10), none = {.hyp_len = 3};
    bleu_print_multi(&c, line, sizeof line);
    assert_string_equal(line, "BLEU = 40.92, 80.0/66.7/50.0/28.6 (BP=0.779, ratio=0.800, "
                              "hyp_len=8, ref_len=10)");
    bleu_print_multi(&none, line, sizeof line);
    assert_string_equal(line, "BLEU = 0, 0/0/0/0 (BP=0, ratio=0, hyp_len=0, ref_len=0)");
    bleu_form form = BLEU_FORM;
    form.smoothing = BLEU_SMOOTH_FLOOR;
    form.smooth_value = .1;
    form.tokenizer = BLEU_TOKENIZE_INTL;
    form.lowercase = true;
    bleu_scorer *s = score_texts(&form, "a b c d e\n", "a b c d E f\n");
    bleu_print(s, 3, NULL, line, sizeof line);
    assert_string_equal(line, "statrec-bleu|nrefs:1|case:lc|eff:no|tok:intl|smooth:floor[0.10]|"
                              "version:" STATREC_VERSION
                              " = 81.873 100.0/100.0/100.0/100.0 (BP = 0.819 ratio = 0.833 "
                              "hyp_len = 5 ref_len = 6)");
    bleu_free(s);
}

static void signatures(void **state) {
    (void)state;
    const bleu_interval interval = {.low = 1.25, .high = 2.5, .resamples = 1000, .seed = 12345};
    char line[BLEU_LINE];
    bleu_form form = BLEU_FORM;
    bleu_scorer *s = score_texts(&form, "a\n", "a\n");
    bleu_signature(s, NULL, line, sizeof line);
    assert_string_equal(
        line, "statrec-bleu|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:" STATREC_VERSION);
    bleu_free(s);
    form = (bleu_form){
        .tokenizer = BLEU_TOKENIZE_NONE, .smoothing = BLEU_SMOOTH_ADD_K, .smooth_value = .125};
    s = score_texts(&form, "a\n", "a\n");
    bleu_signature(s, &interval, line, sizeof line);
    assert_string_equal(line, "statrec-bleu|nrefs:1|bs:1000|seed:12345|case:mixed|eff:no|tok:none|"
                              "smooth:add-k[0.125]|version:" STATREC_VERSION);
    bleu_free(s);
    form = (bleu_form)BLEU_MULTI_FORM;
    form.lowercase = true;
    s = score_texts(&form, "a\n", "a\n");
    bleu_signature(s, NULL, line, sizeof line);
    assert_string_equal(
        line,
        "statrec-multi-bleu|nrefs:1|case:lc-ascii|tok:none|smooth:none|version:" STATREC_VERSION);
    bleu_free(s);
    bleu_print_interval(&interval, 2, line, sizeof line);
    assert_string_equal(line, "95 % interval [1.25, 2.50] (1000 resamples, seed 12345)");
}

static void words_of_options(void **state) {
    (void)state;
    assert_int_equal(text_find_word(BLEU_TOKENIZER_WORDS, "13a"), BLEU_TOKENIZE_13A);
    assert_int_equal(text_find_word(BLEU_TOKENIZER_WORDS, "intl"), BLEU_TOKENIZE_INTL);
    assert_int_equal(text_find_word(BLEU_TOKENIZER_WORDS, "none"), BLEU_TOKENIZE_NONE);
    assert_int_equal(text_find_word(BLEU_SMOOTHING_WORDS, "none"), BLEU_SMOOTH_NONE);
    assert_int_equal(text_find_word(BLEU_SMOOTHING_WORDS, "exp"), BLEU_SMOOTH_EXP);
    assert_int_equal(text_find_word(BLEU_SMOOTHING_WORDS, "floor"), BLEU_SMOOTH_FLOOR);
    assert_int_equal(text_find_word(BLEU_SMOOTHING_WORDS, "add-k"), BLEU_SMOOTH_ADD_K);
    assert_int_equal(text_find_word(BLEU_SMOOTHING_WORDS, "add"), -1);
    assert_int_equal(text_find_word(BLEU_SMOOTHING_WORDS, ""), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_by_hand),
        cmocka_unit_test(matches_are_clipped),
        cmocka_unit_test(references_count_by_their_maximum),
        cmocka_unit_test(closest_reference_length),
        cmocka_unit_test(brevity_penalty),
        cmocka_unit_test(smoothing_by_hand),
        cmocka_unit_test(nothing_to_smooth),
        cmocka_unit_test(sums_before_it_divides),
        cmocka_unit_test(words_of_the_two_forms),
        cmocka_unit_test(case_of_the_two_forms),
        cmocka_unit_test(long_lines),
        cmocka_unit_test(references_are_of_one_number),
        cmocka_unit_test(lines_printed),
        cmocka_unit_test(signatures),
        cmocka_unit_test(words_of_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
