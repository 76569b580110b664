/* Byte-pair encoding in detail: ties, overlaps, the end of a word, vocabularies, codes files. The
 * expected texts come from subword-nmt 0.3.8. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpe_texts.h"
#include "text/bpe/bpe_internal.h"

/* -- learning ---------------------------------------------------------------------------------- */

static void ties_go_to_the_greater_pair(void **state) {
    (void)state;
    check_text(learned("ab ab cd cd ef ef", 10, 2), "#version: 0.2\ne f</w>\nc d</w>\na b</w>\n");
    /* the end of the word is part of the symbol: "b</w>" is greater than "b" */
    check_text(learned("ab ab abx abx acx acx", 1, 2), "#version: 0.2\nc x</w>\n");
    check_text(learned("xb xb xbc xbc", 1, 2), "#version: 0.2\nx b</w>\n");
    check_text(learned("a\xc3\xa9 a\xc3\xa9 az az a\xf0\x9f\x98\x80 a\xf0\x9f\x98\x80", 2, 2),
               "#version: 0.2\na \xf0\x9f\x98\x80</w>\na \xc3\xa9</w>\n");
}

static void merges_do_not_overlap(void **state) {
    (void)state;
    check_text(learned("aaa aaaa aaaaa", 10, 2), "#version: 0.2\na a\naa a</w>\n");
    check_text(learned("aaaab aaaab aaaab", 10, 2), "#version: 0.2\na a\naa b</w>\naa aab</w>\n");
}

static void stops_at_the_least_frequency(void **state) {
    (void)state;
    check_text(learned("abc", 10, 2), "#version: 0.2\n");
    check_text(learned("ab ab cd cd cd", 10, 3), "#version: 0.2\nc d</w>\n");
    check_text(learned("abc", 10, 1), "#version: 0.2\nb c</w>\na bc</w>\n");
    check_text(learned("", 10, 2), "#version: 0.2\n");
    check_text(learned("a b c \r\n", 10, 1), "#version: 0.2\n");
    check_text(learned("ab ab", 0, 2), "#version: 0.2\n");
    sr_failure why = {0};
    bpe_counts *counts = counts_of("ab");
    assert_null(bpe_learn(counts, &(bpe_learning){.merges = 1}, &why));
    check_failure(&why, SR_USAGE, "least frequency of 0");
    bpe_counts_free(counts);
}

static void only_ascii_blanks_end_a_word(void **state) {
    (void)state;
    check_text(learned("a\tb a\tb\n a\tb  a\tb \r\n", 1, 4), "#version: 0.2\na \t\n");
    check_text(learned("a\xc2\xa0 a\xc2\xa0", 1, 2), "#version: 0.2\na \xc2\xa0</w>\n");
}

/* White space inside symbols leads the original to merge within them; see bpe_learn.c. */
static void white_space_in_symbols(void **state) {
    (void)state;
    check_text(learned("\t1110 \t11 \t11", 12, 1), "#version: 0.2\n\t 1\n\t1 1</w>\n1 1\n");
    check_text(learned("\t\t1110 0\t11 \t1\t", 12, 1),
               "#version: 0.2\n\t 1\n1 1\n0 \t1\n0\t1 1</w>\n\t1 \t</w>\n\t \t1\n");
}

#define EM "\xe2\x80\x83" /* U+2003, EM SPACE */

/* The same where white space is a character of several bytes. */
static void wide_space_in_symbols(void **state) {
    (void)state;
    check_text(learned(EM EM EM "ab aaa " EM EM EM EM EM "b", 12, 1),
               "#version: 0.2\n" EM " " EM "\n" EM EM " " EM "\n" EM EM EM " a\n" EM EM EM
               "a b</w>\na a</w>\na aa</w>\n");
    check_text(learned(EM "bbbba bab" EM "ba " EM "b" EM, 12, 1),
               "#version: 0.2\n" EM " b\nb b\n" EM "bb bb\n" EM "bbbb a</w>\n" EM "b " EM
               "</w>\n" EM "b a</w>\nb " EM "ba</w>\nb a</w>\nb a\nba b" EM "ba</w>\n");
}

/* The others are set aside after the first merge; then none is left, and they come back. */
static void rare_pairs_come_back(void **state) {
    (void)state;
    check_text(learned("ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab cd", 5, 1),
               "#version: 0.2\na b</w>\nc d</w>\n");
}

/* A byte that starts no character is a symbol by itself. */
static void bytes_that_are_no_characters(void **state) {
    (void)state;
    check_text(learned("\xffz \xffz \x80\tz", 1, 2), "#version: 0.2\n\xff z</w>\n");
    check_text(applied("#version: 0.2\na b\n", "ab\xff \xe2\x80", NULL, 0),
               "ab@@ \xff \xe2@@ \x80");
}

static void total_symbols_count_characters(void **state) {
    (void)state;
    sr_failure why = {0};
    bpe_counts *counts = counts_of("abab abab abab cdcd cdcd");
    /* a b c d and the last ones b d: 6 */
    bpe_codes *codes = bpe_learn(counts, &(bpe_learning){8, 2, true}, &why);
    assert_non_null(codes);
    assert_int_equal(codes->merges, 2);
    bpe_codes_free(codes);
    bpe_counts_free(counts);
}

static void counts_dictionaries(void **state) {
    (void)state;
    sr_failure why = {0};
    bpe_counts *c = counts_of("b a b");
    file_bytes file = text_file("a 3\r\n new 4\nb 0\nnew 1");
    check_ok(bpe_counts_add_dictionary(c, &file, &why), &why);
    assert_int_equal(bpe_counts_words(c), 3);
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    check_ok(bpe_counts_write(c, out, &why), &why);
    fclose(out);
    check_text(text, "new 5\na 4\nb 2\n");
    static const char *const wrong[][2] = {
        {"a 1\nb\n", "FILE:2: 'b' is not 'word count'"},
        {"a 1\n\n", "FILE:2: '' is not"},
        {"a  1\n", "FILE:1: 'a  1' is not"},
        {"a 1 1\n", "FILE:1: 'a 1 1' is not"},
        {"a -1\n", "FILE:1: '-1' is not a count"},
        {"a 1\na 99999999999999999999\n", "FILE:2: '99999999999999999999' is not a count"},
        {"aaaa 9007199254740992\n", "FILE:1: the counts are too large"},
        {"a\xff 1\n", "FILE:1: not UTF-8"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        why = (sr_failure){0};
        file = text_file(wrong[i][0]);
        assert_int_equal(bpe_counts_add_dictionary(c, &file, &why), SR_FORMAT);
        check_failure(&why, SR_FORMAT, wrong[i][1]);
    }
    bpe_counts_free(c);
}

/* -- applying ---------------------------------------------------------------------------------- */

static const char *const codes_low = "#version: 0.2\nl o\nlo w</w>\ne r</w>\nlo w\nlow er</w>\n";

static void takes_the_lowest_rank(void **state) {
    (void)state;
    check_text(applied(codes_low, "low lower lowest slow", NULL, 0),
               "low lower low@@ e@@ s@@ t s@@ low");
    check_text(applied("#version: 0.2\nb c\na b\n", "abcx", NULL, 0), "a@@ bc@@ x");
    check_text(applied("#version: 0.2\na b\nb c\n", "abcx", NULL, 0), "ab@@ c@@ x");
    /* a pair listed twice has the rank of its first line */
    check_text(applied("#version: 0.2\na b\nb c\na b\n", "abcx", NULL, 0), "ab@@ c@@ x");
    check_text(applied("#version: 0.2\n", "low", NULL, 0), "l@@ o@@ w");
}

static void applies_without_overlap(void **state) {
    (void)state;
    check_text(applied("#version: 0.2\na a\n", "aaax aaaax", NULL, 0), "aa@@ a@@ x aa@@ aa@@ x");
    check_text(applied("#version: 0.2\na a\naa a</w>\n", "aaa aaaa", NULL, 0), "aaa aa@@ a@@ a");
}

static void one_character_stays(void **state) {
    (void)state;
    check_text(applied(codes_low, "a \xc3\xa9 \xf0\x9f\x98\x80", "b 9\n", 0),
               "a \xc3\xa9 \xf0\x9f\x98\x80");
}

static void keeps_blanks_at_the_ends(void **state) {
    (void)state;
    check_text(applied(codes_low, "  low   lower \r\n\n   \n \r\nlow", NULL, 0),
               "  low lower \r\n\n   \n \r\nlow");
    check_text(applied(codes_low, "low\tlow", NULL, 0), "low@@ \t@@ low");
    check_text(applied("#version: 0.2\nl o\n", "\xef\xbb\xbflo", NULL, 0), "\xef\xbb\xbf@@ l@@ o");
}

static void version_01_has_an_end_of_its_own(void **state) {
    (void)state;
    check_text(applied("l o\nlo w\nlow </w>\ne r\ner </w>\n", "low lower lowx", NULL, 0),
               "low low@@ er low@@ x");
    check_text(applied("#version: 0.1\nl o\no w\n", "low", NULL, 0), "lo@@ w");
    check_text(applied("l o\nlo w</w>\n", "low", NULL, 0), "lo@@ w");
    /* when undone, the end marker alone leaves an empty subword in subword-nmt too */
    check_text(applied("l o\nlo w\nlow </w>\n", "low x", "zz 1\n", 0), "l@@ o@@ w@@  x");
    check_text(applied("l o\nlo w\nlow </w>\n", "low x", "low@@ 1\n", 0), "low@@  x");
    /* also where a merge produces the marker: its left part is no part of the word */
    check_text(applied("< /w>\nl o\nlo w\nlow </w>\n", "low x", "low@@ 1\n", 0), "low@@  x");
}

static void cuts_back_what_is_not_in_the_vocabulary(void **state) {
    (void)state;
    const char *text = "lower low";
    check_text(applied(codes_low, text, "lower 5\nlow 4\n", 5), "lower l@@ o@@ w");
    check_text(applied(codes_low, text, "lower 4\nlow 5\nlow@@ 5\n", 5), "low@@ e@@ r low");
    check_text(applied(codes_low, text, "lo@@ 5\ner 5\n", 5), "lo@@ w@@ er lo@@ w");
    /* the vocabulary lists a non-final subword with its separator only */
    check_text(applied(codes_low, "lowest", "low 5\n", 5), "l@@ o@@ w@@ e@@ s@@ t");
    check_text(applied(codes_low, "lowest", "low@@ 5\n", 5), "low@@ e@@ s@@ t");
}

static void an_empty_vocabulary_is_no_filter(void **state) {
    (void)state;
    check_text(applied(codes_low, "lower", "", 0), "lower");
    check_text(applied(codes_low, "lower", "x 3\n", 4), "lower");
    check_text(applied(codes_low, "lower", "x 3\n", 3), "l@@ o@@ w@@ e@@ r");
}

/* abc comes from bc and from ab: the earliest merge is undone. */
static void takes_back_the_earliest_merge(void **state) {
    (void)state;
    check_text(applied("#version: 0.2\nb c\na bc\na b\nab c\n", "abcx", "a@@ 1\nab@@ 1\n", 1),
               "a@@ b@@ c@@ x");
    check_text(applied("#version: 0.2\na b\nab c\nb c\na bc\n", "abcx", "a@@ 1\nab@@ 1\n", 1),
               "ab@@ c@@ x");
}

static void undoes(void **state) {
    (void)state;
    char whole[] = "a@@ b";
    assert_int_equal(bpe_undo(whole, 5, ""), 5); /* no separator: nothing to undo */
    assert_string_equal(whole, "a@@ b");
    static const char *const cases[][2] = {
        {"l@@ o@@ w e@@ r", "low er"}, {"lo@@ w@@", "low"}, {"lo@@ w@@\n", "low\n"}, {"", ""},
        {"a@@b c", "a@@b c"},          {"@@@ a", "@a"},     {"@@ @@ a", "a"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[64];
        strcpy(line, cases[i][0]);
        assert_int_equal(bpe_undo(line, strlen(line), "@@"), strlen(cases[i][1]));
        assert_string_equal(line, cases[i][1]);
    }
}

static void long_words_are_refused(void **state) {
    (void)state;
    sr_failure why = {0};
    size_t length = BPE_WORD_BYTES + 1;
    char *word = malloc(length + 1);
    memset(word, 'a', length);
    word[length] = 0;
    file_bytes file = text_file("#version: 0.2\na a\naa aa\n");
    bpe_codes *codes = bpe_codes_parse(&file, -1, &why);
    bpe *b = bpe_create(codes, &(bpe_settings){.separator = "@@"}, &why);
    byte_buffer out = {0};
    check_ok(bpe_apply(b, word, length - 1, &out, &why), &why);
    assert_int_equal(out.size, length - 1 + 3 * (length / 4 + 1)); /* aaaa@@ ... aa@@ a@@ a */
    assert_int_equal(bpe_apply(b, word, length, &out, &why), SR_FORMAT);
    check_failure(&why, SR_FORMAT, "a word of 1048577 bytes; at most 1048576");
    why = (sr_failure){0};
    bpe_counts *counts = bpe_counts_create();
    check_ok(bpe_counts_add(counts, word, length - 1, 1, &why), &why);
    assert_int_equal(bpe_counts_add_line(counts, word, length, &why), SR_FORMAT);
    check_failure(&why, SR_FORMAT, "a word of 1048577 bytes");
    bpe_counts_free(counts);
    bpe_free(b);
    bpe_codes_free(codes);
    free(out.byte);
    free(word);
}

/* -- files ------------------------------------------------------------------------------------- */

static void reads_codes(void **state) {
    (void)state;
    static const char *const same[][2] = {
        {"#version: 0.2\r\na b\r\nab c\r\n", "#version: 0.2\na b\nab c\n"},
        {"#version: 0.2\na b\nab c\n\n\n", "#version: 0.2\na b\nab c\n"},
        {"#version: 0.1\na b", "a b\n"},
        {" a b \na b\n", "a b\na b\n"},
        {"#version: 0.2", "#version: 0.2\n"},
        {"", ""},
        {"# a\n", "# a\n"},
    };
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        sr_failure why = {0};
        file_bytes file = text_file(same[i][0]);
        bpe_codes *codes = bpe_codes_parse(&file, -1, &why);
        if (!codes) check_ok(why.status, &why);
        check_text(codes_text(codes), same[i][1]);
        bpe_codes_free(codes);
    }
}

static void takes_the_first_merges(void **state) {
    (void)state;
    sr_failure why = {0};
    file_bytes file = text_file("#version: 0.2\na b\nc d\ne\n");
    bpe_codes *codes = bpe_codes_parse(&file, 1, &why);
    assert_non_null(codes);
    check_text(codes_text(codes), "#version: 0.2\na b\n");
    bpe_codes_free(codes);
    file = text_file("\xef\xbb\xbf#version: 0.2\r\na b\r\n"); /* as written by Windows */
    codes = bpe_codes_parse(&file, -1, &why);
    assert_non_null(codes);
    check_text(codes_text(codes), "#version: 0.2\na b\n");
    bpe_codes_free(codes);
}

static void names_malformed_lines(void **state) {
    (void)state;
    static const char *const wrong[][2] = {
        {"#version: 0.2\na b\nabc\n", "FILE:3: 'abc' is not 'left right'"},
        {"#version: 0.2\na b c\n", "FILE:2: 'a b c' is not"},
        {"a b\n\nb c\n", "FILE:2: '' is not"},
        {"a  b\n", "FILE:1: 'a  b' is not"},
        {"a\tb\n", "FILE:1: 'a\tb' is not"},
        {"#version: 0.3\na b\n", "FILE:1: version '0.3' of codes"},
        {"#version:\na b\n", "FILE:1: version '' of codes"},
        {"\xef\xbb\xbf#version: 0.3\na b\n", "FILE:1: version '0.3' of codes"},
        {"#version: 0.2\na \xff\n", "FILE:2: not UTF-8"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        sr_failure why = {0};
        file_bytes file = text_file(wrong[i][0]);
        assert_null(bpe_codes_parse(&file, -1, &why));
        check_failure(&why, SR_FORMAT, wrong[i][1]);
    }
    sr_failure why = {0};
    file_bytes file = text_file("ab@@ 3\nb\n");
    assert_null(bpe_vocabulary_parse(&file, 0, &why));
    check_failure(&why, SR_FORMAT, "FILE:2: 'b' is not 'piece count'");
    file = text_file("ab@@ 3\nb x\n");
    assert_null(bpe_vocabulary_parse(&file, 0, &why));
    check_failure(&why, SR_FORMAT, "FILE:2: ");
    assert_null(bpe_codes_read("/nowhere/codes", -1, &why));
    assert_null(bpe_vocabulary_read("/nowhere/codes", 0, &why));
}

/* A full disk is reported at the first write that fails. */
static void tells_a_full_disk(void **state) {
    (void)state;
    sr_failure why = {0};
    file_bytes file = text_file("#version: 0.2\na b\nb c\n");
    bpe_codes *codes = bpe_codes_parse(&file, -1, &why);
    bpe_counts *counts = counts_of("a b\n");
    for (int i = 0; i < 2; i++) {
        FILE *out = fopen("/dev/full", "w");
        assert_non_null(out);
        setvbuf(out, NULL, _IONBF, 0);
        why = (sr_failure){0};
        const sr_status status =
            i ? bpe_counts_write(counts, out, &why) : bpe_codes_write(codes, out, &why);
        assert_int_equal(status, SR_IO);
        check_failure(&why, SR_IO, "write failed: No space left");
        errno = 0, why = (sr_failure){0};
        bpe_check_write(out, &why); /* the reason was lost since */
        assert_string_equal(why.text, "write failed");
        fclose(out);
    }
    bpe_codes_free(codes), bpe_counts_free(counts);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_a_full_disk),
        cmocka_unit_test(ties_go_to_the_greater_pair),
        cmocka_unit_test(merges_do_not_overlap),
        cmocka_unit_test(stops_at_the_least_frequency),
        cmocka_unit_test(only_ascii_blanks_end_a_word),
        cmocka_unit_test(white_space_in_symbols),
        cmocka_unit_test(wide_space_in_symbols),
        cmocka_unit_test(rare_pairs_come_back),
        cmocka_unit_test(bytes_that_are_no_characters),
        cmocka_unit_test(total_symbols_count_characters),
        cmocka_unit_test(counts_dictionaries),
        cmocka_unit_test(takes_the_lowest_rank),
        cmocka_unit_test(applies_without_overlap),
        cmocka_unit_test(one_character_stays),
        cmocka_unit_test(keeps_blanks_at_the_ends),
        cmocka_unit_test(version_01_has_an_end_of_its_own),
        cmocka_unit_test(cuts_back_what_is_not_in_the_vocabulary),
        cmocka_unit_test(an_empty_vocabulary_is_no_filter),
        cmocka_unit_test(takes_back_the_earliest_merge),
        cmocka_unit_test(undoes),
        cmocka_unit_test(long_words_are_refused),
        cmocka_unit_test(reads_codes),
        cmocka_unit_test(takes_the_first_merges),
        cmocka_unit_test(names_malformed_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
