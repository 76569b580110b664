/* Dictionaries in fairseq's text form: written, read back, rejected line by line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch/batch.h"
#include "testing/check.h"
#include "text/vocab.h"

static vocab *parse(const char *text, sr_failure *why) {
    file_bytes f = {.byte = (uint8_t *)(uintptr_t)text, .size = strlen(text), .path = "dict.txt"};
    return vocab_parse(&f, why);
}

static vocab *parse_good(const char *text) {
    sr_failure why = {0};
    vocab *v = parse(text, &why);
    if (!v) fail_msg("%s", why.text);
    return v;
}

static void refuse(const char *text, const char *message) {
    sr_failure why = {0};
    vocab *v = parse(text, &why);
    if (v) fail_msg("taken, expected: %s", message);
    assert_int_equal(why.status, SR_FORMAT);
    assert_string_equal(why.text, message);
    assert_null(parse(text, NULL));
}

static int32_t id_of(const vocab *v, const char *word) {
    return vocab_id(v, word, strlen(word));
}

static void count(vocab *v, const char *word, int64_t times) {
    assert_true(vocab_count(v, word, strlen(word), times));
}

/* Text that vocab_write writes; malloc'd. */
static char *written(const vocab *v) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_true(vocab_write(v, out));
    assert_int_equal(fclose(out), 0);
    return text;
}

static void writes_the_form(void **state) {
    (void)state;
    vocab *v = vocab_create();
    count(v, "b", 3), count(v, "a", 3), count(v, "l\xc3\xa4uft", 12), count(v, "</s>", 50);
    assert_true(vocab_finish(v, 0));
    char *text = written(v);
    assert_string_equal(text, "l\xc3\xa4uft 12\na 3\nb 3\nmadeupword0000 0\n");
    free(text);
    vocab_free(v);
}

static void words_have_the_ids_of_their_lines(void **state) {
    (void)state;
    vocab *v = parse_good("z 1\na 9\r\nb@@ 9");
    assert_int_equal(vocab_size(v), TOKEN_FIRST_WORD + 3); /* not filled up */
    assert_int_equal(id_of(v, "z"), 4);
    assert_int_equal(id_of(v, "a"), 5);
    assert_int_equal(id_of(v, "b@@"), 6);
    assert_int_equal(id_of(v, "c"), TOKEN_UNK);
    assert_int_equal(id_of(v, "</s>"), TOKEN_UNK);
    assert_string_equal(vocab_word(v, 4), "z");
    assert_string_equal(vocab_word(v, TOKEN_UNK), "<unk>");
    assert_null(vocab_word(v, 7));
    char *text = written(v);
    assert_string_equal(text, "z 1\na 9\nb@@ 9\n");
    free(text);
    vocab_free(v);
}

static void repeated_words_are_written_as_they_were_read(void **state) {
    (void)state;
    static const char text[] = "a 1\nb 2\na 3 #fairseq:overwrite\n";
    vocab *v = parse_good(text);
    char *again = written(v);
    assert_int_equal(id_of(v, "a"), 6);
    assert_string_equal(again, text);
    free(again);
    vocab_free(v);
}

/* As in fairseq, the text's word gets the later index, and the special token keeps its own. */
static void a_special_is_overwritten(void **state) {
    (void)state;
    static const char text[] = "a 1\n<pad> 0 #fairseq:overwrite\n<unk> 3 #fairseq:overwrite\n";
    vocab *v = parse_good(text);
    char *again = written(v);
    assert_int_equal(vocab_size(v), 7);
    assert_int_equal(id_of(v, "<pad>"), 5);
    assert_int_equal(id_of(v, "<unk>"), 6);
    assert_int_equal(vocab_unknown(v), TOKEN_UNK);
    assert_int_equal(id_of(v, "other"), TOKEN_UNK);
    assert_string_equal(again, text);
    free(again);
    vocab_free(v);
}

/* Counted, cut, filled up; every id and count comes back, and the second text is the first. */
static void comes_back_the_same(void **state) {
    (void)state;
    for (int64_t size = 0; size < 700; size += 133) {
        vocab *v = vocab_create();
        char word[16];
        for (int i = 0; i < 500; i++) snprintf(word, sizeof word, "w%x", i), count(v, word, i % 7);
        assert_true(vocab_finish(v, size));
        char *text = written(v);
        vocab *again = parse_good(text);
        char *text_again = written(again);
        assert_string_equal(text, text_again);
        assert_int_equal(vocab_size(again), vocab_size(v));
        for (int64_t i = 0; i < vocab_size(v); i++)
            assert_string_equal(vocab_word(again, i), vocab_word(v, i));
        for (int i = 0; i < 500; i++) {
            snprintf(word, sizeof word, "w%x", i);
            assert_int_equal(id_of(again, word), id_of(v, word));
        }
        free(text), free(text_again);
        vocab_free(v), vocab_free(again);
    }
}

static void pads_to_other_numbers(void **state) {
    (void)state;
    static const int multiples[] = {1, 2, 8, 100};
    static const int64_t sizes[] = {9, 10, 16, 100};
    for (int i = 0; i < 4; i++) {
        vocab *v = vocab_create();
        count(v, "a", 1), count(v, "b", 1), count(v, "c", 1), count(v, "d", 1), count(v, "e", 1);
        assert_true(vocab_finish_padded(v, 0, multiples[i]));
        assert_int_equal(vocab_size(v), sizes[i]);
        if (i == 3) assert_string_equal(vocab_word(v, 99), "madeupword0090");
        vocab_free(v);
    }
}

static void refuses_what_is_none(void **state) {
    (void)state;
    refuse("", "dict.txt:1: holds no word");
    refuse("a 1\n\nb 1\n", "dict.txt:2: no word in this line");
    refuse("a 1\nb\n", "dict.txt:2: no count after 'b'");
    refuse("a x\n", "dict.txt:1: 'x' is not a count");
    refuse("a -1\n", "dict.txt:1: '-1' is not a count");
    refuse("a 1.5\n", "dict.txt:1: '1.5' is not a count");
    refuse("a 99999999999999999999\n", "dict.txt:1: '99999999999999999999' is not a count");
    refuse("new york 7\n", "dict.txt:1: '7' after word and count");
    refuse("a 1 #fairseq:overwrite 2\n", "dict.txt:1: '#fairseq:overwrite' after word and count");
    refuse("a 1\nb 2\na 3\n", "dict.txt:3: 'a' is already in line 1");
    refuse("a 1\n<unk> 3\n", "dict.txt:2: <unk> is a special of every dictionary");
}

static void an_overwritten_word_has_its_later_place(void **state) {
    (void)state;
    vocab *v = parse_good("a 1\nb 2\na 3 #fairseq:overwrite\nc 4 #fairseq:overwrite\n");
    assert_int_equal(vocab_size(v), 8);
    assert_int_equal(id_of(v, "a"), 6);
    assert_int_equal(id_of(v, "b"), 5);
    assert_int_equal(id_of(v, "c"), 7);
    assert_string_equal(vocab_word(v, 4), "a");
    vocab_free(v);
}

static void reads_files(void **state) {
    (void)state;
    char path[512];
    sr_failure why = {0};
    snprintf(path, sizeof path, "%s/dict.txt", check_temporary());
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs("\xef\xbb\xbfone 2\ntwo 1\n", f) >= 0);
    assert_int_equal(fclose(f), 0);
    vocab *v = vocab_read(path, &why);
    check_ok(v ? SR_OK : why.status, &why);
    assert_int_equal(id_of(v, "one"), TOKEN_FIRST_WORD); /* without the mark */
    vocab_free(v);
    assert_null(vocab_read("/nonexistent/dict.txt", &why));
    check_failure(&why, SR_IO, "/nonexistent/dict.txt: No such file");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_the_form),
        cmocka_unit_test(words_have_the_ids_of_their_lines),
        cmocka_unit_test(repeated_words_are_written_as_they_were_read),
        cmocka_unit_test(a_special_is_overwritten),
        cmocka_unit_test(comes_back_the_same),
        cmocka_unit_test(pads_to_other_numbers),
        cmocka_unit_test(refuses_what_is_none),
        cmocka_unit_test(an_overwritten_word_has_its_later_place),
        cmocka_unit_test(reads_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
