/* Every rule of the tokenizers; expected tokens come from sacreBLEU 2.6.0. */
#include <stdlib.h>
#include <string.h>

#include "bleu_cases.h"

#define NBSP           "\xc2\xa0"
#define LINE_SEPARATOR "\xe2\x80\xa8"

typedef struct rule_case {
    const char *line, *want;
} rule_case;

static void check_cases(bleu_tokenizer tokenizer, bool lowercase, const rule_case *c,
                        size_t count) {
    for (size_t i = 0; i < count; i++) check_words(tokenizer, lowercase, c[i].line, c[i].want);
}

#define CHECK(tokenizer, lowercase, cases)                                                         \
    check_cases(tokenizer, lowercase, cases, sizeof cases / sizeof cases[0])

static void rules_of_13a(void **state) {
    (void)state;
    static const rule_case cases[] = {
        {"", ""},
        {"Hello, world.", "Hello , world ."},
        {"a{b|c}d~e[f\\g]h^i_j`k", "a { b | c } d ~ e [ f \\ g ] h ^ i _ j ` k"},
        {"!\"#$%&()*+/:;<=>?@", "! \" # $ % & ( ) * + / : ; < = > ? @"},
        {"don't well-known", "don't well-known"},
        {"1,000.5 a.b 1.b a.1", "1,000.5 a . b 1 . b a . 1"},
        {".5 5. 5", ". 5 5 . 5"},
        {"5.", "5 ."},
        {"...", ". . ."},
        {"a.,b,.", "a . , b , ."},
        {"1..2", "1 . . 2"},
        {"3-4 a-4 4-a --", "3 - 4 a-4 4 - a --"},
        {"&quot;x&quot; &lt;b&gt; A&amp;B", "\" x \" < b > A & B"},
        {"&amp;lt; &amp;amp; &amp;quot;", "< & amp ; & quot ;"},
        {"a<skipped>b", "ab"},
        {"a<skip>", "a < skip >"},
        {"x" NBSP "y" LINE_SEPARATOR "z.", "x y z ."},
        {"x." NBSP, "x ."},
        {"\xd9\xa1.\xd9\xa2", "\xd9\xa1 . \xd9\xa2"}, /* only 0 to 9 are digits here */
        {"\xc2\xab"
         "a\xc2\xbb \xe2\x82\xac"
         "5",
         "\xc2\xab"
         "a\xc2\xbb \xe2\x82\xac"
         "5"},
        {"  a \t b\r", "a b"},
    };
    CHECK(BLEU_TOKENIZE_13A, false, cases);
}

static void rules_of_intl(void **state) {
    (void)state;
    static const rule_case cases[] = {
        {"", ""},
        {"Hello, world.", "Hello , world ."},
        {"1,000.5 a.b 1.b", "1,000.5 a . b 1 . b"},
        {"in 1999.", "in 1999."}, /* the point stays with the number at the end */
        {"in 1999." NBSP, "in 1999."},
        {"in 1999. x", "in 1999 . x"},
        {"don't", "don ' t"},
        {"3-4", "3-4"},
        {"&quot;", "& quot ;"},
        {"\xc2\xab"
         "a\xc2\xbb \xe2\x82\xac"
         "5",
         "\xc2\xab a \xc2\xbb \xe2\x82\xac 5"},
        {"\xd9\xa1.\xd9\xa2", "\xd9\xa1.\xd9\xa2"},             /* Arabic digits are numbers */
        {"\xc2\xbd,5 x\xc2\xb2,y", "\xc2\xbd,5 x\xc2\xb2 , y"}, /* and so are fractions, powers */
        {"...a", ". . . a"},
        {"\xe2\x80\x9e"
         "a\xe2\x80\x9c\xe2\x80\xa6",
         "\xe2\x80\x9e a \xe2\x80\x9c \xe2\x80\xa6"},
        {"a\xf0\x9f\x99\x82"
         "b",
         "a \xf0\x9f\x99\x82 b"},
        {"x" NBSP "y" LINE_SEPARATOR "z.", "x y z ."},
    };
    CHECK(BLEU_TOKENIZE_INTL, false, cases);
}

static void no_tokenizer(void **state) {
    (void)state;
    static const rule_case cases[] = {
        {"  a,b  &quot; c. \t", "a,b &quot; c."},
        {"x" NBSP "y" LINE_SEPARATOR "z\x1c"
         "w",
         "x y z w"},
        {"\xef\xbb\xbf"
         "a\xe2\x80\x8b"
         "b",
         "\xef\xbb\xbf"
         "a\xe2\x80\x8b"
         "b"},
    };
    CHECK(BLEU_TOKENIZE_NONE, false, cases);
}

static void lower_case_comes_first(void **state) {
    (void)state;
    static const rule_case cases[] = {
        {"\xc3\x9c"
         "BER &QUOT;X",
         "\xc3\xbc"
         "ber \" x"},
        {"<SKIPPED>A", "a"},
        {"\xc4\xb0.", "i\xcc\x87 ."},
    };
    CHECK(BLEU_TOKENIZE_13A, true, cases);
}

static void refuses_what_is_no_text(void **state) {
    (void)state;
    const bleu_form form = BLEU_FORM;
    static const char *const lines[] = {"\xff", "a\xc3", "\xed\xa0\x80", "\xc0\xaf",
                                        "\xf5\x80\x80\x80"};
    for (int i = 0; i < 5; i++) assert_null(bleu_words(&form, text_of(lines[i])));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_of_13a),
        cmocka_unit_test(rules_of_intl),
        cmocka_unit_test(no_tokenizer),
        cmocka_unit_test(lower_case_comes_first),
        cmocka_unit_test(refuses_what_is_no_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
