/* Word vectors of a text file: the table rows that they fill, and rejected files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch/batch.h"
#include "testing/check.h"
#include "testing/odd_lines.h"
#include "train/loaded_model.h"

enum { WIDTH = 3, WORDS = 4, ROWS = TOKEN_FIRST_WORD + WORDS };

static const char *write_file(const char *text) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/vectors.txt", check_temporary());
    FILE *f = fopen(path, "w");
    assert_true(f && fputs(text, f) >= 0 && fclose(f) == 0);
    return path;
}

/* Ids 4 to 7: the, of, 0, caf\u00e9. */
static vocab *dictionary(void) {
    static const char *const word[WORDS] = {"the", "of", "0", "caf\xc3\xa9"};
    vocab *v = vocab_create();
    assert_non_null(v);
    for (int i = 0; i < WORDS; i++) assert_true(vocab_count(v, word[i], strlen(word[i]), 9 - i));
    assert_true(vocab_finish_padded(v, 0, 1));
    return v;
}

/* value [ROWS, WIDTH], -1 before. */
static sr_status read_text(const char *text, real *value, vector_matches *m, sr_failure *why) {
    vocab *v = dictionary();
    tensor table = {.rank = 2, .dim = {ROWS, WIDTH, 1, 1}, .count = ROWS * WIDTH, .value = value};
    for (int i = 0; i < ROWS * WIDTH; i++) value[i] = -1;
    const sr_status status = word_vectors_read(write_file(text), v, &table, m, why);
    vocab_free(v);
    return status;
}

static void expect_row(const real *value, int64_t id, double a, double b, double c) {
    const double want[WIDTH] = {a, b, c};
    for (int k = 0; k < WIDTH; k++)
        if ((double)value[id * WIDTH + k] != want[k])
            fail_msg("row %d: %g, not %g", (int)id, (double)value[id * WIDTH + k], want[k]);
}

static void words_of_the_dictionary(void **state) {
    (void)state;
    real value[ROWS * WIDTH];
    sr_failure why = {0};
    vector_matches m;
    check_ok(read_text("of 1 2.5 -3\n"
                       "strange 7 7 7\n"
                       "caf\xc3\xa9 1e-1 0.25 4\r\n"
                       "<pad> 8 8 8\n<unk> 8 8 8\n"
                       "0 0 0 0\n"
                       "of 4 5 6",
                       value, &m, &why),
             &why);
    assert_int_equal(m.found, 3);
    for (int64_t id = 0; id <= TOKEN_FIRST_WORD; id++) expect_row(value, id, -1, -1, -1);
    expect_row(value, 5, 4, 5, 6);
    expect_row(value, 6, 0, 0, 0);
    expect_row(value, 7, (double)(real)0.1, 0.25, 4);
}

/* word2vec's header line; with vectors of one number, only the first line can be one. */
static void line_of_sizes(void **state) {
    (void)state;
    real value[ROWS * WIDTH];
    sr_failure why = {0};
    vector_matches m;
    check_ok(read_text("400 3\nthe 1 2 3\n", value, &m, &why), &why);
    assert_int_equal(m.found, 1);
    expect_row(value, 4, 1, 2, 3);
    assert_int_equal(read_text("the 1 2 3\n400 3\n", value, &m, &why), SR_FORMAT);
    check_failure(&why, SR_FORMAT,
                  "vectors.txt:2: 1 numbers, the model's word vectors have 3 (--word-dim)");
}

static void refusals(void **state) {
    (void)state;
    static const struct {
        const char *text, *why;
    } row[] = {
        {"the 1 2 3\nof 1 2\n", "vectors.txt:2: 2 numbers, the model's word vectors have 3"},
        {"the 1 2 3 4\n", "vectors.txt:1: 4 numbers"},
        {"the 1 2 x\n", "vectors.txt:1: not a word and its numbers"},
        {"the 1 2 3x\n", "vectors.txt:1: not a word and its numbers"},
        {"the 1 2 nan\n", "vectors.txt:1: not a word and its numbers"},
        {"the 1 2 1e999\n", "vectors.txt:1: not a word and its numbers"},
        {"the 1 2 3\n\n", "vectors.txt:2: not a word and its numbers"},
        {" 1 2 3\n", "vectors.txt:1: not a word and its numbers"},
        {"the 1 2 3\nof\xff 1 2 3\n", "vectors.txt:2: "},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        real value[ROWS * WIDTH];
        sr_failure why = {0};
        vector_matches m;
        assert_int_equal(read_text(row[i].text, value, &m, &why), SR_FORMAT);
        check_failure(&why, SR_FORMAT, row[i].why);
    }
    sr_failure why = {0};
    vector_matches m;
    assert_int_equal(word_vectors_read("/nowhere/vectors.txt", NULL, NULL, &m, &why), SR_IO);
}

/* Every column of the odd lines is a separate word; words with spaces are in no dictionary. */
static void odd_words(void **state) {
    (void)state;
    static char text[1 << 15];
    char *at = text + sprintf(text, "\xef\xbb\xbfthe\t1\t2  3\n. . . 1 2 3\n");
    vocab *v = vocab_create();
    assert_true(v && vocab_count(v, "the", 3, 9) && vocab_count(v, ".", 1, 9));
    for (int i = 0; i < ODD_LINES; i++)
        for (const char *word = odd_lines[i].columns; *word; word += *word == '\n') {
            const size_t length = strcspn(word, "\n");
            assert_true(vocab_count(v, word, length, 1));
            at += sprintf(at, "%.*s 1 2 3\n", (int)length, word);
            word += length;
        }
    assert_true(vocab_finish_padded(v, 0, 1));
    tensor table = {.rank = 2, .dim = {vocab_size(v), WIDTH, 1, 1}};
    table.value = calloc((size_t)vocab_size(v), WIDTH * sizeof(real));
    sr_failure why = {0};
    vector_matches m;
    check_ok(word_vectors_read(write_file(text), v, &table, &m, &why), &why);
    assert_int_equal(m.words, vocab_words(v));
    assert_int_equal(m.found, m.words - 1);
    assert_int_equal(m.missing, 1);
    assert_string_equal(vocab_word(v, m.example[0]), ".");
    assert_false(vector_matches_few(&m));
    free(table.value);
    vocab_free(v);
}

/* 20 % are not few. */
static void few_words(void **state) {
    (void)state;
    real value[ROWS * WIDTH];
    sr_failure why = {0};
    vector_matches m;
    char text[256];
    check_ok(read_text("haus 1 2 3\r\nhund 1 2\t3\n", value, &m, &why), &why);
    assert_int_equal(m.found, 0);
    assert_true(vector_matches_few(&m));
    vocab *v = dictionary();
    vector_matches_warning(&m, v, "german.txt", text, sizeof text);
    assert_string_equal(text, "word vectors: german.txt has 0 of 4 words (0.0 %), not 'the', 'of', "
                              "'0'; do both have the same case (--lowercase) and language?");
    vocab_free(v);
    assert_false(vector_matches_few(&(vector_matches){.found = 2, .words = 10}));
    assert_true(vector_matches_few(&(vector_matches){.found = 1, .words = 6}));
    check_ok(read_text("", value, &m, &why), &why);
    assert_int_equal(m.found, 0);
    assert_int_equal(read_text("the 1\r2 3 4\n", value, &m, &why), SR_FORMAT);
    assert_int_equal(read_text("the 1 \v2 3\n", value, &m, &why), SR_FORMAT);
    assert_non_null(strstr(why.text, "not a word and its numbers"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_the_dictionary),
        cmocka_unit_test(line_of_sizes),
        cmocka_unit_test(refusals),
        cmocka_unit_test(odd_words),
        cmocka_unit_test(few_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
