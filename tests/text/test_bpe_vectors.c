/* Byte-pair encoding against the shared vectors: codes, pieces with and without a vocabulary, and
 * dictionaries, byte for byte. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../oracle_file.h"
#include "bpe_texts.h"

static char *read_text(const oracle_file *f, int k, const char *name) {
    int64_t count;
    double *value = oracle_read(f, k, name, NULL, &count);
    if (!value) fail_msg("case%d/%s is absent", k, name);
    char *text = malloc((size_t)count + 1);
    assert_non_null(text);
    for (int64_t i = 0; i < count; i++) text[i] = (char)(unsigned char)value[i];
    text[count] = 0;
    free(value);
    return text;
}

static void check_result(const oracle_file *f, int k, const char *name, char *got) {
    char *want = read_text(f, k, name);
    if (strcmp(got, want) != 0) fail_msg("case%d/%s: got\n%s\nwant\n%s", k, name, got, want);
    free(want);
    free(got);
}

/* dict_pad1 is made of the training text in pieces, dict_pad8 has its filler. */
static void check_case(const oracle_file *f, int k) {
    char *train = read_text(f, k, "in/train"), *test = read_text(f, k, "in/test");
    char *vocabulary = read_text(f, k, "in/vocab");
    char *codes = learned(train, (int64_t)oracle_number(f, k, "merges", -1),
                          (int64_t)oracle_number(f, k, "min_frequency", -1));
    char *pieces = applied(codes, train, NULL, 0);
    const int64_t threshold = (int64_t)oracle_number(f, k, "vocab_threshold", -1);
    check_result(f, k, "out/codes", strdup(codes));
    check_result(f, k, "out/segmented", applied(codes, test, NULL, 0));
    check_result(f, k, "out/segmented_vocab", applied(codes, test, vocabulary, threshold));
    check_result(f, k, "out/dict_pad1", dictionary_of(pieces, 1));
    check_result(f, k, "out/dict_pad8", dictionary_of(pieces, 8));
    free(train), free(test), free(vocabulary), free(codes), free(pieces);
}

static void agrees_with_the_vectors(void **state) {
    (void)state;
    const char *path = check_shared("reference/vectors/models/bpe.h5");
    if (!path) skip();
    oracle_file *f = oracle_open(path);
    assert_non_null(f);
    assert_true(oracle_cases(f) >= 5);
    for (int k = 0; k < oracle_cases(f); k++) check_case(f, k);
    oracle_close(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(agrees_with_the_vectors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
