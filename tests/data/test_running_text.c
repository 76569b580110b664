/* Running text: tokens and their order, windows worked out by hand, errors, and the counts of the
 * shared corpora if present. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data_files.h"

/* Training: 11 tokens, with the <eos> of the empty line: b a <eos> a c <eos> <eos> <unk> a b
 * <eos>. */
static const char *write_small(void) {
    const char *dir = make_folder();
    write_text(dir, "train.gz", " b a \na c\n\n<unk> a b\n");
    write_text(dir, "valid", "a q\nb");
    return dir;
}

static data_options small_options(void) {
    data_options o = default_options("text", write_small());
    o.batch_size = 2, o.eval_batch_size = 1, o.window = 2;
    return o;
}

static batch get(dataset *d, data_split split, int64_t epoch, int64_t index) {
    batch b;
    sr_failure why = {0};
    check_ok(data_batch(d, split, epoch, index, &b, &why), &why);
    return b;
}

static const char *spell(const dataset *d, const int32_t *id, int64_t count) {
    static char text[4][256];
    static int used;
    char *t = text[used++ % 4];
    t[0] = 0;
    for (int64_t i = 0; i < count; i++) {
        if (i) strcat(t, " ");
        strcat(t, data_word(d, SIDE_TARGET, id[i]));
    }
    return t;
}

/* Two sequences of 5 tokens; the last token is dropped: b a <eos> a c | <eos> <eos> <unk> a b. */
static void cuts_windows(void **state) {
    (void)state;
    data_options o = small_options();
    dataset *d = open_data(&o);
    static const char *const want[] = {"<eos>", "a", "b", "c", "<unk>"};
    assert_int_equal(data_get_shape(d)->task, TASK_LM);
    assert_int_equal(data_get_shape(d)->vocabulary, 5);
    assert_int_equal(data_get_shape(d)->longest, 2);
    for (int i = 0; i < 5; i++) assert_string_equal(data_word(d, SIDE_SOURCE, i), want[i]);
    assert_null(data_word(d, SIDE_TARGET, 5));
    assert_int_equal(data_batches(d, SPLIT_TRAIN), 2);
    for (int epoch = 0; epoch < 3; epoch++) { /* never shuffled */
        batch b = get(d, SPLIT_TRAIN, epoch, 0);
        assert_true(b.task == TASK_LM && b.count == 2 && b.target_length == 2 && b.tokens == 4);
        assert_int_equal(b.unknown, 4);
        assert_string_equal(spell(d, b.target_in, 4), "b a <eos> <eos>");
        assert_string_equal(spell(d, b.target_out, 4), "a <eos> <eos> <unk>");
        b = get(d, SPLIT_TRAIN, epoch, 1);
        assert_string_equal(spell(d, b.target_in, 4), "<eos> a <unk> a");
        assert_string_equal(spell(d, b.target_out, 4), "a c a b");
    }
    data_close(d);
}

static void tells_what_is_left_out(void **state) {
    (void)state;
    data_options o = small_options();
    dataset *d = open_data(&o);
    int64_t tokens;
    assert_int_equal(data_left_out(d, SPLIT_TRAIN, &tokens), 11 - 8);
    assert_int_equal(tokens, 11);
    assert_int_equal(data_left_out(d, SPLIT_VALID, &tokens), 5 - 4); /* a <unk> <eos> b <eos> */
    assert_int_equal(data_left_out(d, SPLIT_TEST, &tokens), 0);
    check_within(data_unknown_share(d, SPLIT_VALID), 0.2, 1e-12);
    assert_true(isnan(data_unknown_share(d, SPLIT_TEST)) && isnan(data_entropy(d)));
    assert_false(data_has_split(d, SPLIT_TEST));
    assert_non_null(strstr(data_describe(d),
                           "training 4 lines, 11 tokens, 9.09 % <unk>, 2 sequences, 2 "
                           "windows of each, 3 tokens left out"));
    data_close(d);
}

static void empty_lines(void **state) {
    (void)state;
    data_options o = small_options();
    int64_t tokens;
    o.eos_of_empty = false;
    dataset *d = open_data(&o);
    data_left_out(d, SPLIT_TRAIN, &tokens);
    assert_int_equal(tokens, 10);
    data_close(d);
    o.limit = 2; /* lines without <unk>: rejected with a validation text that needs it */
    refuse_data(&o, SR_FORMAT, "valid:1: 'q' is not in the dictionary");
    strcpy(o.validpref, "");
    d = open_data(&o);
    data_left_out(d, SPLIT_TRAIN, &tokens);
    assert_int_equal(tokens, 6);
    data_close(d);
    write_text(o.dir, "whole", "a\nb\nc\na\n"); /* the limit applies to training only */
    strcpy(o.validpref, "whole");
    d = open_data(&o);
    data_left_out(d, SPLIT_VALID, &tokens);
    assert_int_equal(tokens, 8);
    data_close(d);
}

static void refuses(void **state) {
    (void)state;
    data_options o = small_options();
    o.window = 5;
    refuse_data(&o, SR_FORMAT, "train.gz: 11 tokens in 2 sequences are too few for windows of 5");
    o.window = 0;
    refuse_data(&o, SR_USAGE, "tgt-len 0");
    o.window = 1, o.batch_size = 0;
    refuse_data(&o, SR_USAGE, "tgt-len 1, batch-size 0 and eval-batch-size 1 must be positive");
    o.batch_size = 1, o.eval_batch_size = 0;
    refuse_data(&o, SR_USAGE, "batch-size 1 and eval-batch-size 0 must be positive");
    o = small_options();
    o.vocab_size = 4; /* cuts <unk> */
    refuse_data(&o, SR_FORMAT, "train.gz:4: '<unk>' is not in the dictionary, which has no <unk>");
    strcpy(o.trainpref, "other");
    refuse_data(&o, SR_IO, "other.gz");
    strcpy(o.trainpref, "");
    refuse_data(&o, SR_USAGE, "trainpref is empty");
    o = small_options();
    write_text(o.dir, "test", "");
    refuse_data(&o, SR_FORMAT, "test:1: holds no line");
    write_text(o.dir, "test", "a b\nb \xff\n");
    refuse_data(&o, SR_FORMAT, "test:2: byte 2");
}

static void is_pure(void **state) {
    (void)state;
    data_options o = small_options();
    check_pure(&o, SPLIT_TRAIN);
}

typedef struct corpus {
    const char *folder, *file[3];
    int64_t vocabulary, tokens[3];
} corpus;

/* The published counts (README of the shared data). */
static const corpus corpora[] = {
    {"data/ptb", {"ptb.train.txt", "ptb.valid.txt", "ptb.test.txt"}, 10000, {929589, 73760, 82430}},
    {"data/wikitext-2",
     {"wiki.train.tokens", "wiki.valid.tokens", "wiki.test.tokens"},
     33278,
     {2088628, 217646, 245569}},
};

static void counts_of(const corpus *c, const char *path) {
    data_options o = default_options("text", path);
    strcpy(o.trainpref, c->file[0]), strcpy(o.validpref, c->file[1]),
        strcpy(o.testpref, c->file[2]);
    dataset *d = open_data(&o);
    assert_int_equal(data_get_shape(d)->vocabulary, c->vocabulary);
    assert_string_equal(data_word(d, SIDE_TARGET, 0), "<eos>");
    for (int i = 0; i < 3; i++) {
        int64_t tokens, left = data_left_out(d, (data_split)i, &tokens);
        const int64_t pieces = i == SPLIT_TRAIN ? 128 : 10;
        assert_int_equal(tokens, c->tokens[i]);
        assert_int_equal(tokens - left, pieces * 32 * ((tokens / pieces - 1) / 32));
    }
    int64_t tokens;
    if (c == corpora) assert_int_equal(data_left_out(d, SPLIT_TEST, &tokens), 82430 - 82240);
    data_close(d);
}

static void shared_corpora(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof corpora / sizeof corpora[0]; i++) {
        const char *path = check_shared(corpora[i].folder);
        if (!path) skip();
        counts_of(&corpora[i], path);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_windows), cmocka_unit_test(tells_what_is_left_out),
        cmocka_unit_test(empty_lines),  cmocka_unit_test(refuses),
        cmocka_unit_test(is_pure),      cmocka_unit_test(shared_corpora),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
