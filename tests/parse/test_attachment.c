/* Attachment scores by hand: punctuation by each rule, labels with and without subtypes, counts. */
#include <math.h>
#include <string.h>

#include "parse/trees.h"
#include "testing/check.h"
#include "text/text.h"

static tree_field field(const char *text) {
    return (tree_field){text, (int32_t)strlen(text)};
}

static tree_word word(const char *form, const char *coarse, const char *fine, int32_t head,
                      const char *label) {
    return (tree_word){.form = field(form),
                       .coarse = field(coarse),
                       .fine = field(fine),
                       .label = field(label),
                       .head = head};
}

static void expect(const char *form, const char *coarse, const char *fine, const char *want) {
    const tree_word w = word(form, coarse, fine, 0, "_");
    char got[4] = "---";
    if (tree_is_punctuation(&w, TREE_PUNCTUATION_UNICODE)) got[0] = 'u';
    if (tree_is_punctuation(&w, TREE_PUNCTUATION_PTB_TAGS)) got[1] = 't';
    if (tree_is_punctuation(&w, TREE_PUNCTUATION_UPOS)) got[2] = 'p';
    assert_string_equal(got, want);
}

static void punctuation(void **state) {
    (void)state;
    expect(",", "PUNCT", ",", "utp");
    expect("?", "PUNCT", ".", "utp");
    expect("``", "PUNCT", "``", "-tp"); /* a grave accent is a symbol */
    expect("...", "PUNCT", ":", "utp");
    expect("...a", "X", "FW", "---");
    expect("a.", "X", "NN", "---");
    expect("-LRB-", "PUNCT", "-LRB-", "--p");
    expect("$", "SYM", "$", "---");
    expect("%", "SYM", "NN", "u--");
    expect("\xe2\x80\x9c\xe2\x80\xa6", "PUNCT", "''", "utp"); /* U+201C U+2026 */
    expect("\xe2\x82\xac", "SYM", "$", "---");                /* U+20AC */
    expect(":x", "X", "''x", "---");
    expect("'", "PART", "POS", "u--");
}

static void rules_of_formats(void **state) {
    (void)state;
    const tree_rules automatic = {0};
    tree_rules r = tree_rules_for(&automatic, TREES_MALT_TAB);
    assert_int_equal(r.punctuation, TREE_PUNCTUATION_PTB_TAGS);
    assert_int_equal(r.subtypes, TREE_SUBTYPES_COMPARE);
    r = tree_rules_for(&automatic, TREES_CONLLX);
    assert_int_equal(r.punctuation, TREE_PUNCTUATION_UNICODE);
    assert_int_equal(r.subtypes, TREE_SUBTYPES_COMPARE);
    r = tree_rules_for(&automatic, TREES_CONLLU);
    assert_int_equal(r.punctuation, TREE_PUNCTUATION_UNICODE);
    assert_int_equal(r.subtypes, TREE_SUBTYPES_IGNORE);
    const tree_rules said = {TREE_PUNCTUATION_UPOS, TREE_SUBTYPES_COMPARE};
    r = tree_rules_for(&said, TREES_CONLLU);
    assert_int_equal(r.punctuation, TREE_PUNCTUATION_UPOS);
    assert_int_equal(r.subtypes, TREE_SUBTYPES_COMPARE);
    assert_int_equal(text_find_word(TREE_PUNCTUATION_WORDS, "ptb-tags"), TREE_PUNCTUATION_PTB_TAGS);
    assert_int_equal(text_find_word(TREE_FORMAT_WORDS, "malt-tab"), TREES_MALT_TAB);
    assert_int_equal(text_find_word(TREE_FORMAT_WORDS, "malt"), -1);
    assert_int_equal(text_find_word(TREE_SUBTYPES_WORDS, "ignore"), TREE_SUBTYPES_IGNORE);
}

static bool agree(const char *a, const char *b, tree_subtypes s) {
    const tree_field x = field(a), y = field(b);
    return tree_labels_agree(&x, &y, s);
}

static void subtypes(void **state) {
    (void)state;
    assert_true(agree("nsubj", "nsubj", TREE_SUBTYPES_COMPARE));
    assert_false(agree("nsubj:pass", "nsubj", TREE_SUBTYPES_COMPARE));
    assert_true(agree("nsubj:pass", "nsubj", TREE_SUBTYPES_IGNORE));
    assert_true(agree("obl:tmod", "obl:npmod", TREE_SUBTYPES_IGNORE));
    assert_false(agree("nsubj:pass", "csubj:pass", TREE_SUBTYPES_IGNORE));
    assert_false(agree("ab", "a", TREE_SUBTYPES_IGNORE));
    assert_false(agree("a", "ab", TREE_SUBTYPES_IGNORE));
    assert_false(agree("a", "ab", TREE_SUBTYPES_COMPARE));
}

static void expect_counts(const attachment *a, int64_t words, int64_t head, int64_t label,
                          int64_t both) {
    assert_int_equal(a->words, words);
    assert_int_equal(a->head, head);
    assert_int_equal(a->label, label);
    assert_int_equal(a->both, both);
}

/* Five words: all correct; a wrong head; a wrong label; a wrong subtype; punctuation with a wrong
 * head. */
static void counts(void **state) {
    (void)state;
    const tree_word gold[] = {word("a", "DET", "DT", 2, "det"), word("b", "NOUN", "NN", 4, "obl"),
                              word("c", "ADV", "RB", 4, "advmod"),
                              word("d", "VERB", "VB", 0, "aux:pass"),
                              word(".", "PUNCT", ".", 4, "punct")};
    const int32_t head[] = {2, 3, 4, 0, 1};
    const char *label[] = {"det", "obl", "obl", "aux", "punct"};
    for (int ignore = 0; ignore < 2; ignore++) {
        attachments sum = {0};
        const tree_rules rules = {TREE_PUNCTUATION_UNICODE,
                                  ignore ? TREE_SUBTYPES_IGNORE : TREE_SUBTYPES_COMPARE};
        for (int i = 0; i < 5; i++) {
            const tree_field l = field(label[i]);
            attachment_count(&sum, &rules, &gold[i], head[i], &l);
        }
        expect_counts(&sum.all, 5, 3, 3 + ignore, 1 + ignore);
        expect_counts(&sum.plain, 4, 3, 2 + ignore, 1 + ignore);
    }
    const double third = 100.0 / 3, got = attachment_percent(1, 3);
    check_near_double("percent", &got, &third, 1, 1e-15, 0);
    assert_true(isnan(attachment_percent(0, 0)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(punctuation),
        cmocka_unit_test(rules_of_formats),
        cmocka_unit_test(subtypes),
        cmocka_unit_test(counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
