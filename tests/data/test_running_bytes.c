/* Running text byte by byte: parts, symbols and their order, unknown bytes, evaluation windows,
 * errors. Also the counts of the shared prefix of enwik8 if present. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data_files.h"

static data_options small_options(const char *text) {
    const char *dir = make_folder();
    write_text(dir, "small.gz", text);
    data_options o = default_options("bytes", dir);
    strcpy(o.file, "small");
    o.valid_share = o.test_share = NAN;
    o.batch_size = 2, o.eval_batch_size = 1, o.window = 2;
    return o;
}

static batch get(dataset *d, data_split split, int64_t index) {
    batch b;
    sr_failure why = {0};
    check_ok(data_batch(d, split, 0, index, &b, &why), &why);
    return b;
}

/* The bytes of ids. */
static const char *spell(const dataset *d, const int32_t *id, int64_t count) {
    static char text[4][256];
    static int used;
    char *t = text[used++ % 4];
    for (int64_t i = 0; i < count; i++) {
        const char *word = data_word(d, SIDE_TARGET, id[i]);
        t[i] = strcmp(word, "<unk>") == 0 ? '?' : (char)atoi(word);
    }
    t[count] = 0;
    return t;
}

/* 20 bytes: 10 training, 6 validation, 4 test. A newline is an ordinary byte. */
static void parts_and_windows(void **state) {
    (void)state;
    data_options o = small_options("ab\nbacbbca|abcabc|ba\n\n");
    o.valid_bytes = 7, o.test_bytes = 5;
    dataset *d = open_data(&o);
    static const char *const want[] = {"98", "97", "99", "10", "<unk>"}; /* b 4, a 3, c 2 */
    assert_true(data_get_shape(d)->task == TASK_LM && data_get_shape(d)->vocabulary == 5);
    for (int i = 0; i < 5; i++) assert_string_equal(data_word(d, SIDE_SOURCE, i), want[i]);
    assert_int_equal(data_batches(d, SPLIT_TRAIN), 2);
    batch b = get(d, SPLIT_TRAIN, 0);
    assert_true(b.task == TASK_LM && b.count == 2 && b.target_length == 2 && b.tokens == 4);
    assert_true(b.bytes && b.unknown == 4);
    assert_string_equal(spell(d, b.target_in, 4), "abcb");
    assert_string_equal(spell(d, b.target_out, 4), "b\nbb");
    b = get(d, SPLIT_TRAIN, 1);
    assert_string_equal(spell(d, b.target_in, 4), "\nbbc");
    assert_string_equal(spell(d, b.target_out, 4), "baca");
    b = get(d, SPLIT_VALID, 0);
    assert_string_equal(spell(d, b.target_in, 2), "?a");
    b = get(d, SPLIT_VALID, 2);
    assert_string_equal(spell(d, b.target_out, 2), "bc");
    check_within(data_unknown_share(d, SPLIT_VALID), 1.0 / 7, 1e-12);
    b = get(d, SPLIT_TEST, 1);
    assert_string_equal(spell(d, b.target_out, 2), "\n\n");
    int64_t tokens;
    assert_int_equal(data_left_out(d, SPLIT_TRAIN, &tokens), 10 - 8);
    assert_int_equal(tokens, 10);
    assert_true(data_sequences(d, SPLIT_TRAIN) == 2 && data_sequences(d, SPLIT_TEST) == 1);
    assert_non_null(strstr(data_describe(d), "; 5 symbols; windows of 2 bytes; training 10 bytes, "
                                             "0.00 % <unk>, 2 sequences, 2 windows of each, 2 "
                                             "bytes left out; validation 7 bytes, 14.29 % <unk>"));
    data_close(d);
}

/* <unk> exists only if it is needed. */
static void known_bytes(void **state) {
    (void)state;
    data_options o = small_options("abababababbaabababab");
    o.valid_bytes = 4, o.test_bytes = 4, o.limit = 6;
    dataset *d = open_data(&o);
    int64_t tokens;
    assert_int_equal(data_get_shape(d)->vocabulary, 2);
    assert_string_equal(data_word(d, SIDE_TARGET, 0), "97"); /* as often as b, and before it */
    assert_int_equal(get(d, SPLIT_TRAIN, 0).unknown, -1);
    data_left_out(d, SPLIT_TRAIN, &tokens);
    assert_int_equal(tokens, 6);
    assert_string_equal(spell(d, get(d, SPLIT_VALID, 0).target_in, 2), "ab");
    data_close(d);
}

static void shares(void **state) {
    (void)state;
    char text[1001];
    memset(text, 'x', sizeof text), text[1000] = 0;
    text[899] = 'y', text[949] = 'z';
    data_options o = small_options(text);
    const int64_t want[3] = {900, 50, 50};
    int64_t tokens;
    dataset *d = open_data(&o);
    for (int i = 0; i < 3; i++) {
        data_left_out(d, (data_split)i, &tokens);
        assert_int_equal(tokens, want[i]);
    }
    assert_int_equal(data_get_shape(d)->vocabulary, 3); /* x, y, <unk> */
    data_close(d);
    o.valid_share = 0.1, o.test_share = 0;
    d = open_data(&o);
    data_left_out(d, SPLIT_VALID, &tokens);
    assert_int_equal(tokens, 100);
    assert_false(data_has_split(d, SPLIT_TEST));
    data_close(d);
}

static void windows_of_evaluation(void **state) {
    (void)state;
    data_options o = small_options("ababababacabababab");
    o.valid_bytes = 8, o.test_share = 0, o.eval_window = 5;
    dataset *d = open_data(&o);
    assert_int_equal(data_get_shape(d)->longest, 5);
    assert_int_equal(get(d, SPLIT_TRAIN, 0).target_length, 2);
    const batch b = get(d, SPLIT_VALID, 0);
    assert_true(b.target_length == 5 && b.tokens == 5);
    assert_string_equal(spell(d, b.target_in, 5), "ababa");
    assert_string_equal(spell(d, b.target_out, 5), "babab");
    assert_non_null(strstr(data_describe(d), "windows of 2 bytes, in evaluation of 5"));
    data_close(d);
}

static void refuses(void **state) {
    (void)state;
    data_options o = small_options("ababababab");
    o.valid_bytes = 6, o.test_bytes = 4;
    refuse_data(&o, SR_FORMAT, "small.gz: 10 bytes; validation 6 and test 4");
    o.valid_bytes = 0, o.test_bytes = 0, o.valid_share = 1.5;
    refuse_data(&o, SR_USAGE, "valid-share is 1.5");
    o.valid_share = -0.5;
    refuse_data(&o, SR_USAGE, "valid-share is -0.5");
    o.valid_share = 0, o.test_share = 1;
    refuse_data(&o, SR_USAGE, "test-share is 1, not in [0, 1)");
    o.test_share = 0, o.batch_size = 11;
    refuse_data(&o, SR_FORMAT, "10 tokens in 11 sequences are too few for windows of 2");
    o.batch_size = 2, o.limit = 6;
    dataset *d = open_data(&o);
    int64_t tokens;
    data_left_out(d, SPLIT_TRAIN, &tokens);
    assert_int_equal(tokens, 6);
    data_close(d);
    o.limit = 10;
    data_close(open_data(&o));
    o.limit = 0, o.window = 5;
    refuse_data(&o, SR_FORMAT, "small.gz: 10 tokens in 2 sequences are too few for windows of 5");
    strcpy(o.file, "other");
    refuse_data(&o, SR_IO, "other: No such file or directory (nor ");
    o = small_options("");
    refuse_data(&o, SR_FORMAT, "small.gz: holds no byte");
    write_raw(o.dir, "cut.gz", "\x1f\x8b\x08\0\0\0\0\0\0\3abc", 13);
    strcpy(o.file, "cut");
    refuse_data(&o, SR_FORMAT, "cut.gz: byte 1");
}

static void is_pure(void **state) {
    (void)state;
    data_options o = small_options("ab\nbacbbca|abcabc|ba\n\n");
    o.valid_bytes = o.test_bytes = 3;
    check_pure(&o, SPLIT_TRAIN);
}

static void shared_prefix(void **state) {
    (void)state;
    const char *path = check_shared("data/enwik8-prefix");
    if (!path) skip();
    data_options o = default_options("bytes", path);
    strcpy(o.file, "enwik8.first4000000");
    o.valid_share = o.test_share = NAN;
    dataset *d = open_data(&o);
    const int64_t want[3] = {3600000, 200000, 200000};
    for (int i = 0; i < 3; i++) {
        int64_t tokens;
        data_left_out(d, (data_split)i, &tokens);
        assert_int_equal(tokens, want[i]);
    }
    assert_int_equal(data_get_shape(d)->vocabulary, 200); /* the others add no symbol */
    assert_string_equal(data_word(d, SIDE_TARGET, 0), "32");
    check_equals(data_unknown_share(d, SPLIT_TEST), 0);
    data_close(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_and_windows),
        cmocka_unit_test(known_bytes),
        cmocka_unit_test(shares),
        cmocka_unit_test(windows_of_evaluation),
        cmocka_unit_test(refuses),
        cmocka_unit_test(is_pure),
        cmocka_unit_test(shared_prefix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
