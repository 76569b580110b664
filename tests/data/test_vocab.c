/* Dictionary order, sizes and padding words; words of a text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data_files.h"
#include "text/text.h"
#include "text/vocab.h"

static void count(vocab *v, const char *word, int64_t times) {
    assert_true(vocab_count(v, word, strlen(word), times));
}

static int32_t id_of(const vocab *v, const char *word) {
    return vocab_id(v, word, strlen(word));
}

static void orders_by_count_then_string(void **state) {
    (void)state;
    vocab *v = vocab_create();
    count(v, "b", 2), count(v, "Z", 3), count(v, "a", 2), count(v, "\xc3\xa4", 2),
        count(v, "ab", 1);
    count(v, "b", 1), count(v, "</s>", 9), count(v, "<unk>", 9);
    assert_true(vocab_finish(v, 0));
    static const char *const want[] = {"<s>", "<pad>", "</s>",     "<unk>", "Z",
                                       "b",   "a",     "\xc3\xa4", "ab"};
    for (int i = 0; i < 9; i++) assert_string_equal(vocab_word(v, i), want[i]);
    for (int i = 4; i < 9; i++) assert_int_equal(id_of(v, want[i]), i);
    assert_int_equal(vocab_words(v), 5);
    assert_int_equal(vocab_size(v), 16);
    assert_string_equal(vocab_word(v, 9), "madeupword0000");
    assert_string_equal(vocab_word(v, 15), "madeupword0006");
    assert_null(vocab_word(v, 16));
    assert_null(vocab_word(v, -1));
    assert_int_equal(id_of(v, "c"), TOKEN_UNK);
    assert_int_equal(id_of(v, "</s>"), TOKEN_UNK);
    vocab_free(v);
}

/* Running text: <eos>, then by count, ties in order of occurrence; <unk> is an ordinary word. */
static void orders_running_text(void **state) {
    (void)state;
    static const char *const want[] = {"<eos>", "<unk>", "z", "a", "</s>", "m"};
    for (int size = 0; size < 7; size++) {
        vocab *v = vocab_create_running();
        count(v, "z", 1), count(v, "a", 2), count(v, "<unk>", 3), count(v, "</s>", 1);
        count(v, "m", 1), count(v, "z", 1), count(v, "<eos>", 9);
        assert_true(vocab_finish(v, size));
        const int kept = size > 0 && size < 6 ? size : 6;
        assert_int_equal(vocab_size(v), kept);
        for (int i = 0; i < 6; i++) {
            if (i < kept) assert_string_equal(vocab_word(v, i), want[i]);
            assert_int_equal(id_of(v, want[i]), i < kept ? i : kept > 1 ? 1 : -1);
        }
        assert_int_equal(vocab_unknown(v), kept > 1 ? 1 : -1);
        assert_int_equal(id_of(v, "new"), kept > 1 ? 1 : -1);
        assert_null(vocab_word(v, kept));
        vocab_free(v);
    }
}

static void cuts_to_size_and_fills_up(void **state) {
    (void)state;
    for (int size = 5; size < 40; size++) {
        vocab *v = vocab_create();
        char word[16];
        for (int i = 0; i < 20; i++)
            snprintf(word, sizeof word, "w%02d", i), count(v, word, 30 - i);
        assert_true(vocab_finish(v, size));
        int words = size < 24 ? size - 4 : 20;
        assert_int_equal(vocab_words(v), words);
        assert_int_equal(vocab_size(v), (words + 4 + 7) / 8 * 8);
        assert_int_equal(id_of(v, "w00"), 4);
        assert_int_equal(id_of(v, "w19"), size < 24 ? TOKEN_UNK : 23);
        vocab_free(v);
    }
}

static void holds_many_words(void **state) {
    (void)state;
    vocab *v = vocab_create();
    char word[16];
    for (int i = 0; i < 50000; i++) snprintf(word, sizeof word, "%x", i), count(v, word, 1 + i % 3);
    assert_true(vocab_finish(v, 0));
    assert_int_equal(vocab_words(v), 50000);
    for (int i = 0; i < 50000; i++) {
        snprintf(word, sizeof word, "%x", i);
        assert_string_equal(vocab_word(v, id_of(v, word)), word);
    }
    vocab_free(v);
}

static void is_empty_without_words(void **state) {
    (void)state;
    vocab *v = vocab_create();
    assert_true(vocab_finish(v, 0));
    assert_int_equal(vocab_size(v), 8);
    assert_int_equal(id_of(v, "a"), TOKEN_UNK);
    vocab_free(v);
}

static file_bytes as_file(const char *bytes, size_t size) {
    return (file_bytes){.byte = (uint8_t *)(uintptr_t)bytes, .size = size, .path = "x.de"};
}

/* Words of all lines joined: '|' after each word, '/' after each line. */
static void expect_words(const char *text, const char *want) {
    file_bytes f = as_file(text, strlen(text));
    text_walk w = {&f, 0};
    int64_t lines;
    char got[256] = "";
    check_ok(text_check(&f, &lines, NULL), NULL);
    for (int64_t i = 0; i < lines; i++) {
        const char *word;
        size_t length;
        while (text_word(&w, &word, &length)) {
            strncat(got, word, length);
            strcat(got, "|");
        }
        strcat(got, "/");
    }
    assert_string_equal(got, want);
}

static void splits_lines_and_words(void **state) {
    (void)state;
    expect_words("", "");
    expect_words("\n", "/");
    expect_words("a", "a|/");
    expect_words("a b\nc\n", "a|b|/c|/");
    expect_words("  a \t b  \n\n c", "a|b|//c|/");
    expect_words("a b\r\nc\r\n", "a|b|/c|/");
    expect_words("a\xc2\xa0"
                 "b\xe3\x80\x80"
                 "c\xe2\x80\x89"
                 "d",
                 "a|b|c|d|/");
    expect_words("stra\xc3\x9f"
                 "e \xf0\x9f\x98\x80 @@x",
                 "stra\xc3\x9f"
                 "e|\xf0\x9f\x98\x80|@@x|/");
}

static void refuse_text(const char *bytes, size_t size, const char *part) {
    file_bytes f = as_file(bytes, size);
    int64_t lines;
    sr_failure why = {0};
    assert_int_equal(text_check(&f, &lines, &why), SR_FORMAT);
    check_failure(&why, SR_FORMAT, part);
}

static void refuses_what_is_not_utf8(void **state) {
    (void)state;
    refuse_text("a\nb\xe4 c\n", 7, "x.de:2: byte 1 of the line is 0xe4, not UTF-8");
    refuse_text("a\n\n\0b", 5, "x.de:3: byte 0 of the line is 0x00, not text");
    refuse_text("\x80", 1, "x.de:1: byte 0");
    refuse_text("\xc0\xaf", 2, "0xc0");
    refuse_text("\xe0\x80\xaf", 3, "0xe0");
    refuse_text("\xed\xa0\x80", 3, "0xed");
    refuse_text("\xf4\x90\x80\x80", 4, "0xf4");
    refuse_text("\xf5\x80\x80\x80", 4, "0xf5");
    refuse_text("ok \xf0\x9f\x98", 6, "byte 3 of the line is 0xf0");
    refuse_text("ok \xc3", 4, "byte 3 of the line is 0xc3");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders_by_count_then_string), cmocka_unit_test(orders_running_text),
        cmocka_unit_test(cuts_to_size_and_fills_up),   cmocka_unit_test(holds_many_words),
        cmocka_unit_test(is_empty_without_words),      cmocka_unit_test(splits_lines_and_words),
        cmocka_unit_test(refuses_what_is_not_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
