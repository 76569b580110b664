/* Phrases as conlleval.pl counts them: cases worked by hand, and random sequences compared with a
 * second implementation that reads whole sentences. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "score/conll_score.h"
#include "testing/check.h"

static conll_tag tag_of(const char *text) {
    return (conll_tag){text, strlen(text)};
}

static void add(conll_scorer *s, const char *gold, const char *found) {
    sr_failure why = {0};
    check_ok(conll_add(s, tag_of(gold), tag_of(found), &why), &why);
}

/* Words "GOLD/FOUND" between blanks, "|" between sentences. */
static conll_scorer *score(const char *text) {
    conll_scorer *s = conll_create();
    assert_non_null(s);
    char copy[1024], *rest;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char *slash = strchr(word, '/');
        if (!slash) {
            conll_end_sentence(s);
            continue;
        }
        *slash = 0;
        add(s, word, slash + 1);
    }
    return s;
}

static void check_counts(const char *text, int64_t gold, int64_t found, int64_t correct) {
    conll_scorer *s = score(text);
    const conll_counts sum = conll_sum(s);
    if (sum.gold != gold || sum.found != found || sum.correct != correct)
        fail_msg("%s: gold %lld, found %lld, correct %lld", text, (long long)sum.gold,
                 (long long)sum.found, (long long)sum.correct);
    conll_free(s);
}

static void by_hand(void **state) {
    (void)state;
    check_counts("B-P/B-P I-P/I-P O/O", 1, 1, 1);
    check_counts("B-P/B-P I-P/I-P", 1, 1, 1); /* to the end of the text */
    check_counts("B-P/B-P I-P/I-P | I-P/B-P", 2, 2, 2);
    check_counts("B-P/I-P I-P/I-P O/O", 1, 1, 1); /* IOB1 against IOB2 */
    check_counts("B-P/B-P I-P/O O/O", 1, 1, 0);
    check_counts("B-P/B-P O/I-P O/O", 1, 1, 0);
    check_counts("B-P/B-P I-P/B-P O/O", 1, 2, 0);
    check_counts("B-P/B-L I-P/I-L O/O", 1, 1, 0);
    check_counts("O/I-P O/I-L", 0, 2, 0); /* stray */
    check_counts("I-P/I-P I-L/I-L I-L/I-L", 2, 2, 2);
    check_counts("I-P/I-P I-L/I-L I-L/O", 2, 2, 1);
    check_counts("O-P/O I-P/B-P", 1, 1, 1); /* O with a type is O */
}

/* Prefixes other than B, I and O: conlleval.pl also interprets E, S, [, ] and '.'. */
static void parts_of_the_script(void **state) {
    (void)state;
    check_counts("B-P/B-P E-P/E-P B-P/B-P E-P/E-P", 1, 1, 1); /* B after E starts no new phrase */
    check_counts("E-P/E-P E-P/E-P I-P/I-P", 3, 3, 3);
    check_counts("S-P/S-P S-P/S-P", 1, 1, 1);
    check_counts("S-P/S-P S-L/S-L", 2, 2, 2);
    check_counts("[-P/[-P ]-P/]-P", 2, 2, 2);
    check_counts("B-P/B-P .-P/.-P O/O O/B-P", 1, 2, 0); /* no phrase ends after '.' */
    check_counts("B/B I/I O/O", 1, 1, 1);
    check_counts("B/B O/O B/B", 2, 2, 2);
    check_counts("B-0/B O/O", 1, 1, 1);
    check_counts("B-A-B/B-A I-A-B/I-A O/O", 1, 1, 0);
}

static void tokens_and_strays(void **state) {
    (void)state;
    conll_scorer *s = score("B-P/I-P I-P/I-P O/I-L B-0/B | O/O S-P/PER");
    const conll_counts sum = conll_sum(s);
    assert_int_equal(sum.tokens, 6);
    assert_int_equal(sum.right, 3);
    assert_int_equal(sum.stray_gold, 0);
    assert_int_equal(sum.stray_found, 2);
    assert_int_equal(sum.unknown, 2);
    conll_free(s);
}

static void check_print(const char *text, bool latex, const char *want) {
    conll_scorer *s = score(text);
    sr_failure why = {0};
    char *got = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&got, &size);
    check_ok(conll_print(s, latex, out, &why), &why);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(got, want);
    free(got);
    conll_free(s);
}

/* P: 2 of 3 found, 2 of 2 there; L: 0 of 1, 0 of 2. */
static void printed(void **state) {
    (void)state;
    static const char text[] = "B-P/B-P I-P/I-P O/B-P | B-P/I-P B-L/B-L I-L/O O/O I-L/O";
    check_print(text, false,
                "processed 8 tokens with 4 phrases; found: 4 phrases; correct: 2.\n"
                "accuracy:  50.00%; precision:  50.00%; recall:  50.00%; FB1:  50.00\n"
                "                L: precision:   0.00%; recall:   0.00%; FB1:   0.00  1\n"
                "                P: precision:  66.67%; recall: 100.00%; FB1:  80.00  3\n");
    check_print(text, true,
                "        & Precision &  Recall  & F$_{\\beta=1} \\\\\\hline\n"
                "L       &    0.00\\% &   0.00\\% &   0.00 \\\\\n"
                "P       &   66.67\\% & 100.00\\% &  80.00 \\\\\\hline\n"
                "Overall &   50.00\\% &  50.00\\% &  50.00 \\\\\\hline\n");
    check_print("", false, "processed 0 tokens with 0 phrases; found: 0 phrases; correct: 0.\n");
    check_print("O/O", false,
                "processed 1 tokens with 0 phrases; found: 0 phrases; correct: 0.\n"
                "accuracy: 100.00%; precision:   0.00%; recall:   0.00%; FB1:   0.00\n");
    check_print("B/B", false, /* a nameless type in both: twice */
                "processed 1 tokens with 1 phrases; found: 1 phrases; correct: 1.\n"
                "accuracy: 100.00%; precision: 100.00%; recall: 100.00%; FB1: 100.00\n"
                "                 : precision: 100.00%; recall: 100.00%; FB1: 100.00  1\n"
                "                 : precision: 100.00%; recall: 100.00%; FB1: 100.00  1\n");
}

/* -- random B I O, legal or not: all [first, last] that are an entity */

enum { WORDS = 9 };

typedef struct word {
    char letter, type;
} word;

static bool goes_on(const word *w, int i) {
    return w[i].letter == 'I' && w[i - 1].letter != 'O' && w[i - 1].type == w[i].type;
}

static bool is_entity(const word *w, int words, int first, int last) {
    if (w[first].letter == 'O' || (first && goes_on(w, first))) return false;
    for (int i = first + 1; i <= last; i++)
        if (!goes_on(w, i)) return false;
    return last + 1 == words || !goes_on(w, last + 1);
}

static void random_sequences(void **state) {
    (void)state;
    rng r = rng_create(3);
    for (int round = 0; round < 300; round++) {
        conll_scorer *s = conll_create();
        conll_counts want = {0};
        for (int k = 0; k < 4; k++) {
            word w[2][WORDS];
            const int words = 1 + (int)rng_below(&r, WORDS);
            for (int i = 0; i < words; i++) {
                char tag[2][4];
                for (int side = 0; side < 2; side++) {
                    word *at = &w[side][i];
                    if (side && rng_below(&r, 3))
                        *at = w[0][i];
                    else
                        *at = (word){"BIO"[rng_below(&r, 3)], "PL"[rng_below(&r, 2)]};
                    snprintf(tag[side], 4, at->letter == 'O' ? "O" : "%c-%c", at->letter, at->type);
                }
                add(s, tag[0], tag[1]);
                want.tokens++;
                want.right += strcmp(tag[0], tag[1]) == 0;
            }
            for (int at = 0; at < words * words; at++) {
                const int first = at / words, last = at % words;
                const bool gold = first <= last && is_entity(w[0], words, first, last);
                const bool found = first <= last && is_entity(w[1], words, first, last);
                want.gold += gold;
                want.found += found;
                want.correct += gold && found && w[0][first].type == w[1][first].type;
            }
            conll_end_sentence(s);
        }
        const conll_counts got = conll_sum(s);
        assert_int_equal(got.tokens, want.tokens);
        assert_int_equal(got.right, want.right);
        assert_int_equal(got.gold, want.gold);
        assert_int_equal(got.found, want.found);
        assert_int_equal(got.correct, want.correct);
        conll_free(s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),           cmocka_unit_test(parts_of_the_script),
        cmocka_unit_test(tokens_and_strays), cmocka_unit_test(printed),
        cmocka_unit_test(random_sequences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
