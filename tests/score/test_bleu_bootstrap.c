/* The bootstrap interval of a BLEU score. */
#include <stdio.h>

#include "bleu_cases.h"

/* Scores `sentences` sentences; sentence i has i % 5 wrong words. */
static bleu_scorer *score_some(int sentences) {
    const bleu_form form = BLEU_FORM;
    bleu_scorer *s = bleu_create(&form);
    assert_non_null(s);
    for (int i = 0; i < sentences; i++) {
        char hyp[64], ref[] = "a b c d e f g h i j";
        snprintf(hyp, sizeof hyp, "%s", ref);
        for (int k = 0; k < i % 5; k++) hyp[4 * k] = 'x';
        const bleu_text r = text_of(ref);
        assert_int_equal(bleu_add(s, text_of(hyp), &r, 1, NULL), SR_OK);
    }
    return s;
}

static bleu_interval draw(const bleu_scorer *s, int64_t resamples, uint64_t seed) {
    bleu_interval interval = {.resamples = resamples, .seed = seed};
    sr_failure why = {0};
    check_ok(bleu_bootstrap(s, &interval, &why), &why);
    return interval;
}

static double score_of(const bleu_scorer *s) {
    const bleu_form form = BLEU_FORM;
    const bleu_counts sum = bleu_sum(s);
    return bleu_compute(&form, &sum).bleu;
}

static void same_seed_same_interval(void **state) {
    (void)state;
    bleu_scorer *s = score_some(60);
    const bleu_interval a = draw(s, 400, 7), b = draw(s, 400, 7), c = draw(s, 400, 8);
    check_equals(a.low, b.low);
    check_equals(a.high, b.high);
    assert_true(a.low != c.low || a.high != c.high);
    bleu_free(s);
}

static void holds_the_score(void **state) {
    (void)state;
    bleu_scorer *few = score_some(40), *many = score_some(640);
    const bleu_interval wide = draw(few, 1000, 1), narrow = draw(many, 1000, 1);
    check_below(wide.low, score_of(few));
    check_below(score_of(few), wide.high);
    check_below(narrow.low, score_of(many));
    check_below(score_of(many), narrow.high);
    /* a quarter as wide with 16 times the sentences */
    const double ratio = (wide.high - wide.low) / (narrow.high - narrow.low);
    check_above(ratio, 3);
    check_below(ratio, 5.3);
    bleu_free(few);
    bleu_free(many);
}

/* With 40 draws the interval drops one at each end; with the first 39 it drops none and is
 * wider. */
static void leaves_out_a_fortieth(void **state) {
    (void)state;
    bleu_scorer *s = score_some(30);
    const bleu_interval all = draw(s, 39, 3), inner = draw(s, 40, 3), one = draw(s, 1, 3);
    check_above(inner.low, all.low);
    check_below(inner.high, all.high);
    check_equals(one.low, one.high);
    bleu_free(s);
}

static void refusals(void **state) {
    (void)state;
    const bleu_form form = BLEU_FORM;
    bleu_scorer *s = bleu_create(&form), *some = score_some(2);
    bleu_interval interval = {.resamples = 10}, none = {.resamples = 0};
    sr_failure why = {0}, other = {0};
    assert_int_equal(bleu_bootstrap(s, &interval, &why), SR_USAGE);
    check_failure(&why, SR_USAGE, "no sentences");
    assert_int_equal(bleu_bootstrap(some, &none, &other), SR_USAGE);
    check_failure(&other, SR_USAGE, "0 resamples");
    bleu_free(s);
    bleu_free(some);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_seed_same_interval),
        cmocka_unit_test(holds_the_score),
        cmocka_unit_test(leaves_out_a_fortieth),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
