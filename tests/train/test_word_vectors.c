/* Word vectors of a text file: which rows of the table they fill, and what is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch/batch.h"
#include "testing/check.h"
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
static sr_status read_text(const char *text, real *value, int64_t *found, sr_failure *why) {
    vocab *v = dictionary();
    tensor table = {.rank = 2, .dim = {ROWS, WIDTH, 1, 1}, .count = ROWS * WIDTH, .value = value};
    for (int i = 0; i < ROWS * WIDTH; i++) value[i] = -1;
    const sr_status status = word_vectors_read(write_file(text), v, &table, found, why);
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
    int64_t found;
    check_ok(read_text("of 1 2.5 -3\n"
                       "strange 7 7 7\n"
                       "caf\xc3\xa9 1e-1 0.25 4\r\n"
                       "<pad> 8 8 8\n<unk> 8 8 8\n"
                       "0 0 0 0\n"
                       "of 4 5 6",
                       value, &found, &why),
             &why);
    assert_int_equal(found, 3);
    for (int64_t id = 0; id <= TOKEN_FIRST_WORD; id++) expect_row(value, id, -1, -1, -1);
    expect_row(value, 5, 4, 5, 6);
    expect_row(value, 6, 0, 0, 0);
    expect_row(value, 7, (double)(real)0.1, 0.25, 4);
}

/* word2vec's first line; where vectors are of one number, none is taken for it behind the first. */
static void line_of_sizes(void **state) {
    (void)state;
    real value[ROWS * WIDTH];
    sr_failure why = {0};
    int64_t found;
    check_ok(read_text("400 3\nthe 1 2 3\n", value, &found, &why), &why);
    assert_int_equal(found, 1);
    expect_row(value, 4, 1, 2, 3);
    assert_int_equal(read_text("the 1 2 3\n400 3\n", value, &found, &why), SR_FORMAT);
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
        int64_t found;
        assert_int_equal(read_text(row[i].text, value, &found, &why), SR_FORMAT);
        check_failure(&why, SR_FORMAT, row[i].why);
    }
    sr_failure why = {0};
    int64_t found;
    assert_int_equal(word_vectors_read("/nowhere/vectors.txt", NULL, NULL, &found, &why), SR_IO);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_the_dictionary),
        cmocka_unit_test(line_of_sizes),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
