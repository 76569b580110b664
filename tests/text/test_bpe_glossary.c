/* Words that glossaries keep whole, and their regular expressions. The expected texts come from
 * subword-nmt 0.3.8. */
#include <stdlib.h>
#include <string.h>

#include "bpe_texts.h"

static const char *const codes =
    "#version: 0.2\na b\nab a\na b</w>\nab ab</w>\nb 1\n\xc3\xa9 a\nab \xc3\xa9\n1 1\n";

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static void keeps_and_isolates(void **state) {
    (void)state;
    check_text(applied_with(codes, "USA 1934USABUSA USAxab", LIST("USA")),
               "USA 1@@ 9@@ 3@@ 4@@ USA@@ B@@ USA USA@@ x@@ ab");
    check_text(applied_with(codes, "<n>a b</n> <n>abc</n>x", LIST("<n>\\w*</n>")),
               "<@@ n@@ >@@ a b@@ <@@ /@@ n@@ > <n>abc</n>@@ x");
    check_text(applied_with(codes, "USA", LIST("UK")), "U@@ S@@ A");
    check_text(applied_with(codes, "abcd", LIST("b", "bc")), "a@@ b@@ c@@ d");
    check_text(applied_with(codes, "abcd", LIST("bc", "b")), "a@@ b@@ c@@ d");
    check_text(applied_with(codes, "abab abab1", LIST("abab")), "abab abab@@ 1");
}

static void repeats_and_choices(void **state) {
    (void)state;
    check_text(applied_with(codes, "x1111y 11", LIST("1{2,3}")), "x@@ 111@@ 1@@ y 11");
    check_text(applied_with(codes, "x1111y", LIST("1{2,3}?")), "x@@ 11@@ 11@@ y");
    check_text(applied_with(codes, "xUKy USx", LIST("(?:UK|US)")), "x@@ UK@@ y US@@ x");
    /* the first choice that fits, not the longest */
    check_text(applied_with(codes, "xUSAy", LIST("(?:US|USA)")), "x@@ US@@ A@@ y");
    /* subword-nmt searches whole words with "^a|b$": there ^ binds to a only */
    check_text(applied_with(codes, "axb xab", LIST("a|b")), "a@@ x@@ b x@@ a@@ b");
    check_text(applied_with(codes, "\xc3\xa9t\xc3\xa9-1 \xc3\xa9+", LIST("\\w+-\\d")),
               "\xc3\xa9t\xc3\xa9-1 \xc3\xa9@@ +");
    check_text(applied_with(codes, "a.b axb", LIST("a\\.b")), "a.b a@@ x@@ b");
    check_text(applied_with(codes, "]- {x} a{", LIST("[]-]+", "\\{x}", "a{")), "]- {x} a{");
    check_text(applied_with(codes, "qzab zq", LIST("^[^q]b?")), "q@@ z@@ ab z@@ q");
    check_text(applied_with(codes, "a[xb", LIST("[[x]+")), "a@@ [x@@ b");
}

static void refuses(void **state) {
    (void)state;
    static const char *const wrong[][2] = {
        {"(a)", "glossary '(a)', byte 0: only groups of the form (?:...)"},
        {"a\\b", "byte 1: this escape is not supported"},
        {"a)", "byte 1: unmatched closing parenthesis"},
        {"(?:a", "byte 4: missing closing parenthesis"},
        {"[a", "byte 2: missing terminating ]"},
        {"[b-a]", "byte 3: range out of order"},
        {"C++", "byte 2: a repetition of a repetition"},
        {"*a", "byte 0: quantifier does not follow a repeatable item"},
        {"^*", "byte 1: quantifier does not follow a repeatable item"},
        {"a*", "glossary 'a*' matches the empty text"},
        {"(?:a*)+", "glossary '(?:a*)+' matches the empty text"},
        {"a{3,2}", "byte 5: numbers out of order"},
        {"(?:a{65535}){65535}", "regular expression is too large"},
        {"a\\", "byte 1: a backslash at the end"},
        {"a{2}+", "byte 4: a repetition of a repetition"},
        {"a{,2}", "byte 1: a repetition without its least number"},
        {"[^[:alpha:]]", "byte 2: a class of characters"},
        {"[a[.b.]]", "byte 2: a class of characters"},
        {"[a[=b=]]", "byte 2: a class of characters"},
        {"(?=a)", "byte 0: only groups of the form (?:...)"},
        {"a\\Qb", "byte 1: this escape is not supported"},
        {"(?:a)\\1", "byte 5: this escape is not supported"},
        {"[a\\b]", "byte 2: this escape is not supported"},
    };
    file_bytes file = text_file(codes);
    sr_failure why = {0};
    bpe_codes *c = bpe_codes_parse(&file, -1, &why);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        why = (sr_failure){0};
        const bpe_settings settings = {"@@", NULL, LIST("ok", wrong[i][0]), 2};
        assert_null(bpe_create(c, &settings, &why));
        check_failure(&why, SR_USAGE, wrong[i][1]);
    }
    bpe_codes_free(c);
}

/* A search that takes too many steps is an error. The second one takes between a million and the
 * ten million steps of PCRE2's own limit. */
static void hard_expressions_end(void **state) {
    (void)state;
    enum { LENGTH = 100000 };
    char *word = malloc(LENGTH + 1);
    memset(word, 'a', LENGTH);
    word[LENGTH] = 0;
    char *pieces = applied_with(codes, word, LIST("(?:aa|a)+$"));
    assert_string_equal(pieces, word);
    free(pieces);
    free(word);
    file_bytes file = text_file(codes);
    const char line[] = "ab aaaaaaaaaaaaaaaaaaaaaaaaaaaabby\n";
    sr_failure why = {0};
    byte_buffer out = {0};
    bpe_codes *c = bpe_codes_parse(&file, -1, &why);
    bpe *b = bpe_create(c, &(bpe_settings){"@@", NULL, LIST("(?:a|a.)+y"), 1}, &why);
    assert_non_null(b);
    assert_int_equal(bpe_apply(b, line, strlen(line), &out, &why), SR_FORMAT);
    check_failure(&why, SR_FORMAT, "glossary '(?:a|a.)+y' takes more than 1000000 steps on 'aaaa");
    assert_null(strstr(why.text, "..."));
    const char longer[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabby\n";
    why = (sr_failure){0};
    assert_int_equal(bpe_apply(b, longer, strlen(longer), &out, &why), SR_FORMAT);
    check_failure(&why, SR_FORMAT, "aaaa...'");
    why = (sr_failure){0};
    const char *forty = strchr(longer, 'b') - 37; /* a word of 40 bytes is shown as a whole */
    assert_int_equal(bpe_apply(b, forty, strlen(forty), &out, &why), SR_FORMAT);
    check_failure(&why, SR_FORMAT, "aaaabby'");
    buffer_free(&out);
    bpe_free(b);
    bpe_codes_free(c);
}

/* The same if only part of a word matches, and for the rest of a word after another glossary's
 * match. */
static void hard_parts_end(void **state) {
    (void)state;
    static const char *const hard[][2] = {{"b(?:a|a.)+y", "never"}, {"^(?:a|a.)+y", "z"}};
    static const char *const lines[] = {"xbaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabby",
                                        "zaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabby"};
    file_bytes file = text_file(codes);
    sr_failure why = {0};
    bpe_codes *c = bpe_codes_parse(&file, -1, &why);
    for (int i = 0; i < 2; i++) {
        byte_buffer out = {0};
        why = (sr_failure){0};
        bpe *b = bpe_create(c, &(bpe_settings){"@@", NULL, hard[i], 2}, &why);
        assert_non_null(b);
        assert_int_equal(bpe_apply(b, lines[i], strlen(lines[i]), &out, &why), SR_FORMAT);
        check_failure(&why, SR_FORMAT, "takes more than 1000000 steps on '");
        buffer_free(&out);
        bpe_free(b);
    }
    bpe_codes_free(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_and_isolates),
        cmocka_unit_test(repeats_and_choices),
        cmocka_unit_test(refuses),
        cmocka_unit_test(hard_expressions_end),
        cmocka_unit_test(hard_parts_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
