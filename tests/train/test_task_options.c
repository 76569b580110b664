/* Options of single tasks reach their own fields, each with a distinct value; their defaults.
 * (Options of all runs: test_option_fields.c.) */
#include <string.h>

#include "testing/check.h"
#include "train/train.h"

enum { ARGS_MAX = 80 };

static train_config c;

static void parse(const char *const *args) {
    sr_failure why = {0};
    char *argv[ARGS_MAX] = {"statrec", "train", "-o", "x"};
    int argc = 4, positional;
    for (; args[argc - 4]; argc++) argv[argc] = (char *)args[argc - 4];
    check_ok(train_config_parse(&c, argc, argv, 2, &positional, &why), &why);
}

static void memory(void **state) {
    (void)state;
    const model_options *m = &c.model;
    const data_options *d = &c.data;
    parse((const char *const[]){"--model=transformer_xl", "--mem-len=11", "--eval-mem-len=12",
                                "--clamp-len=13", "--eval-clamp-len=14", "--no-same-length",
                                "--eval-tgt-len=15", "--valid-bytes=16", "--test-bytes=17",
                                "--data-file=f", NULL});
    assert_true(m->mem_len == 11 && m->eval_mem_len == 12 && m->clamp_len == 13);
    assert_true(m->eval_clamp_len == 14 && !m->same_length && d->eval_window == 15);
    assert_true(d->valid_bytes == 16 && d->test_bytes == 17);
    assert_string_equal(d->file, "f");
    parse((const char *const[]){"--model=transformer_xl", "--valid-share=0.18", "--test-share=0.19",
                                NULL});
    check_equals(d->valid_share, 0.18);
    check_equals(d->test_share, 0.19);
    parse((const char *const[]){"--model=transformer_xl", NULL});
    assert_true(m->same_length && m->eval_clamp_len == 820 && m->eval_mem_len == 2100);
    parse((const char *const[]){"--model=transformer_lm", NULL});
    assert_true(!m->same_length && !m->mem_len && !m->eval_mem_len && !m->clamp_len);
}

static void sentences(void **state) {
    (void)state;
    const model_options *m = &c.model;
    const data_options *d = &c.data;
    parse((const char *const[]){
        "--model=transformer_classifier", "--key-size=11", "--value-size=12", "--pooling=cls",
        "--positions=none", "--linear-init=xavier", "--max-length=13", "--pad-to=14", "--mark-end",
        "--min-count=15", "--encoding=latin-1", "--valid-count=16", "--test-count=17", NULL});
    assert_true(m->key_size == 11 && m->value_size == 12);
    assert_string_equal(m->pooling, "cls");
    assert_string_equal(m->positions, "none");
    assert_string_equal(m->linear_init, "xavier");
    assert_true(d->max_length == 13 && d->pad_to == 14 && d->mark_end && !d->mark_start);
    assert_true(d->min_count == 15 && d->valid_count == 16 && d->test_count == 17);
    assert_string_equal(d->encoding, "latin-1");
    assert_string_equal(d->batch_by, "tokens");
    parse((const char *const[]){"--model=transformer_classifier", "--mark-start", "--fold=2/10",
                                "--batch-by=sentences", NULL});
    assert_true(d->mark_start && !d->mark_end && d->valid_count == -1 && d->test_count == -1);
    assert_string_equal(d->fold, "2/10");
    assert_string_equal(d->batch_by, "sentences");
}

static void tags(void **state) {
    (void)state;
    const model_options *m = &c.model;
    const data_options *d = &c.data;
    parse((const char *const[]){"--model=tener", "--word-dim=11", "--word-vectors=v",
                                "--char-encoder=none", "--tag-scheme=bilou",
                                "--file-tag-scheme=bmes", "--word-column=12", "--tag-column=13",
                                "--delimiter=tab", "--no-zero-digits", NULL});
    assert_string_equal(d->delimiter, "tab");
    assert_true(m->word_dim == 11 && d->word_column == 12 && d->tag_column == 13);
    assert_string_equal(m->word_vectors, "v");
    assert_string_equal(m->char_encoder, "none");
    assert_string_equal(d->tag_scheme, "bilou");
    assert_string_equal(d->file_tag_scheme, "bmes");
    assert_false(d->zero_digits);
    parse((const char *const[]){"--model=tener", NULL});
    assert_string_equal(d->delimiter, "blank");
    assert_true(d->zero_digits && d->word_column == 1 && d->tag_column == 0);
    check_equals(c.clip_value, 5);
}

static void trees(void **state) {
    (void)state;
    const model_options *m = &c.model;
    const data_options *d = &c.data;
    parse((const char *const[]){"--model=mlp_parser", "--hidden-dim=11", "--activation=tanh",
                                "--tree-format=conllu", "--pos-column=fine", "--punctuation=upos",
                                "--subtypes=compare", "--optimizer=adagrad", "--adagrad-eps=0.12",
                                "--data=trees-cut", "--valid-count=13", "--test-count=14", NULL});
    assert_true(m->hidden_dim == 11);
    check_equals(c.optim.adagrad_eps, 0.12);
    assert_true(d->valid_count == 13 && d->test_count == 14);
    assert_string_equal(m->activation, "tanh");
    assert_string_equal(d->tree_format, "conllu");
    assert_string_equal(d->pos_column, "fine");
    assert_string_equal(d->punctuation, "upos");
    assert_string_equal(d->subtypes, "compare");
}

static void images(void **state) {
    (void)state;
    const data_options *d = &c.data;
    parse((const char *const[]){"--model=mnist_cnn", "--init=he", "--conv-norms",
                                "--valid-images=11", "--idx-transpose", "--idx-classes=12",
                                "--idx-train-images=a", "--idx-train-labels=b",
                                "--idx-test-images=c", "--idx-test-labels=d", NULL});
    assert_true(c.model.conv_norms && d->valid_images == 11 && d->idx_classes == 12);
    assert_true(d->idx_transpose && !d->augment);
    assert_string_equal(c.model.init, "he");
    assert_string_equal(d->idx_train_images, "a");
    assert_string_equal(d->idx_train_labels, "b");
    assert_string_equal(d->idx_test_images, "c");
    assert_string_equal(d->idx_test_labels, "d");
    parse((const char *const[]){"--model=resnet20", "--conv=direct", NULL});
    assert_string_equal(c.model.conv, "direct");
    parse((const char *const[]){"--model=resnet20", NULL});
    assert_string_equal(c.model.conv, "winograd");
    parse((const char *const[]){"--model=mnist_cnn", NULL});
    assert_false(c.model.conv_norms || d->idx_transpose);
    assert_int_equal(d->valid_images, -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(memory), cmocka_unit_test(sentences),
                                       cmocka_unit_test(tags), cmocka_unit_test(trees),
                                       cmocka_unit_test(images)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
