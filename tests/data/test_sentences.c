/* The sentence set: words, marks, padding, batches by number and by tokens, the random choices of
 * an epoch; tags and characters of words. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/sets/sentence_set.h"
#include "data_files.h"

static data_options options(int64_t batch_size) {
    data_options o = default_options("labelled", "");
    o.batch_size = batch_size;
    return o;
}

static void add(sentence_set *s, data_split split, const char *words, int32_t label) {
    char text[4096], *save = NULL;
    sr_failure why = {0};
    int32_t tag = 10;
    snprintf(text, sizeof text, "%s", words);
    for (char *w = strtok_r(text, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
        const sentence_word word = {w, strlen(w), w, strlen(w), tag++};
        check_ok(sentence_set_word(s, split, &word, &why), &why);
    }
    check_ok(sentence_set_end(s, split, label, s->split[split].count + 5, &why), &why);
}

static void create(sentence_set *s, const data_options *o) {
    sr_failure why = {0};
    check_ok(sentence_set_create(s, o, &why), &why);
}

static void build(sentence_set *s) {
    sr_failure why = {0};
    check_ok(sentence_set_build(s, &why), &why);
}

static void expect_row(const batch *b, int64_t row, const int32_t *want) {
    for (int64_t i = 0; i < b->source_length; i++) {
        assert_int_equal(b->source[row * b->source_length + i], want[i]);
        assert_int_equal(b->source_mask[row * b->source_length + i], want[i] != TOKEN_PAD);
    }
}

/* b 3 times, a twice, c and d once: ids 4, 5, and 6, 7 if one occurrence is enough. */
static void fill_small(sentence_set *s) {
    add(s, SPLIT_TRAIN, "b a b d", 1);
    add(s, SPLIT_TRAIN, "", 1);
    add(s, SPLIT_TRAIN, "a b c", 0);
    add(s, SPLIT_VALID, "c e b", 2);
    build(s);
}

static int64_t row_of(const batch *b, int64_t sentence) {
    for (int64_t i = 0; i < b->count; i++)
        if (b->pair[i] == sentence) return i;
    fail_msg("sentence %d is not there", (int)sentence);
    return -1;
}

static void words_and_padding(void **state) {
    (void)state;
    data_options o = options(8);
    sentence_set s;
    batch b;
    create(&s, &o);
    fill_small(&s);
    assert_int_equal(sentence_set_batches(&s, SPLIT_TRAIN), 1);
    sentence_set_batch(&s, 0, SPLIT_TRAIN, 0, 0, &b);
    assert_true(b.task == TASK_SENTENCES && b.count == 2 && b.tokens == 2 && b.source_length == 4);
    expect_row(&b, row_of(&b, 0), (int32_t[]){4, 5, 4, 7});
    expect_row(&b, row_of(&b, 1), (int32_t[]){5, 4, 6, TOKEN_PAD});
    assert_int_equal(b.label[row_of(&b, 0)], 1);
    assert_int_equal(b.label[row_of(&b, 1)], 0);
    assert_true(!b.tag && !b.character && !b.target_in);
    sentence_set_batch(&s, 0, SPLIT_VALID, 0, 0, &b);
    expect_row(&b, 0, (int32_t[]){6, TOKEN_UNK, 4});
    assert_int_equal(b.label[0], 2);
    assert_int_equal(s.split[SPLIT_TRAIN].empty, 1);
    assert_int_equal(s.split[SPLIT_VALID].unknown, 1);
    assert_int_equal(s.split[SPLIT_TRAIN].line[1], 6);
    sentence_set_free(&s);
}

static void rare_words_are_unknown(void **state) {
    (void)state;
    data_options o = options(8);
    sentence_set s;
    batch b;
    o.min_count = 2;
    create(&s, &o);
    fill_small(&s);
    assert_int_equal(vocab_size(s.dictionary), 6);
    sentence_set_batch(&s, 0, SPLIT_TRAIN, 0, 0, &b);
    expect_row(&b, row_of(&b, 0), (int32_t[]){4, 5, 4, TOKEN_UNK});
    sentence_set_free(&s);
    o.vocab_size = 5;
    create(&s, &o);
    fill_small(&s);
    assert_int_equal(vocab_size(s.dictionary), 5);
    assert_int_equal(s.split[SPLIT_TRAIN].unknown, 4);
    sentence_set_free(&s);
}

/* Bounds include the marks; words cut off are in no dictionary. */
static void marks_and_bounds(void **state) {
    (void)state;
    data_options o = options(8);
    sentence_set s;
    batch b;
    o.mark_start = o.mark_end = true;
    o.max_length = 5;
    create(&s, &o);
    fill_small(&s);
    sentence_set_batch(&s, 0, SPLIT_TRAIN, 0, 0, &b);
    assert_int_equal(b.source_length, 5);
    expect_row(&b, row_of(&b, 0), (int32_t[]){TOKEN_BOS, 4, 5, 4, TOKEN_EOS});
    assert_int_equal(s.split[SPLIT_TRAIN].cut, 1);
    assert_int_equal(vocab_id(s.dictionary, "d", 1), TOKEN_UNK);
    sentence_set_free(&s);
    o.max_length = 0, o.pad_to = 7;
    create(&s, &o);
    fill_small(&s);
    sentence_set_batch(&s, 0, SPLIT_TRAIN, 0, 0, &b);
    assert_int_equal(b.source_length, 7);
    expect_row(&b, row_of(&b, 1), (int32_t[]){TOKEN_BOS, 5, 4, 6, TOKEN_EOS, TOKEN_PAD, TOKEN_PAD});
    assert_int_equal(s.split[SPLIT_TRAIN].cut, 0);
    assert_int_equal(s.longest, 7);
    sentence_set_free(&s);
}

static void tags_and_characters(void **state) {
    (void)state;
    data_options o = options(8);
    sentence_set s;
    batch b;
    o.mark_start = true;
    create(&s, &o);
    s.task = TASK_TAGS, s.spelled = true;
    add(&s, SPLIT_TRAIN, "aab \xc3\xa9", 0);
    add(&s, SPLIT_TRAIN, "aaa", 0);
    add(&s, SPLIT_VALID, "xa", 0);
    build(&s);
    /* a counts 5, b and the accented letter once: 2, 3, 4; padding 0, unknown 1 */
    assert_int_equal(sentence_set_characters(&s), 5);
    sentence_set_batch(&s, 1, SPLIT_TRAIN, 0, 0, &b);
    assert_true(b.task == TASK_TAGS && b.source_length == 3 && b.word_length == 3 && !b.label);
    const int64_t first = row_of(&b, 0), second = row_of(&b, 1);
    const int32_t tags[2][3] = {{0, 10, 11}, {0, 10, 0}};
    const int32_t letters[2][9] = {{0, 0, 0, 2, 2, 3, 4, 0, 0}, {0, 0, 0, 2, 2, 2, 0, 0, 0}};
    assert_memory_equal(b.tag + 3 * first, tags[0], sizeof tags[0]);
    assert_memory_equal(b.tag + 3 * second, tags[1], sizeof tags[1]);
    assert_memory_equal(b.character + 9 * first, letters[0], sizeof letters[0]);
    assert_memory_equal(b.character + 9 * second, letters[1], sizeof letters[1]);
    sentence_set_batch(&s, 0, SPLIT_VALID, 0, 0, &b);
    assert_true(b.word_length == 2 && b.character[2] == CHARACTER_UNKNOWN && b.character[3] == 2);
    sentence_set_free(&s);
}

/* -- batches */

enum { MANY = 203 };

/* Sentence i has 1 + i % 17 words and the class i % 3. */
static void fill_many(sentence_set *s, const data_options *o) {
    create(s, o);
    for (int i = 0; i < MANY; i++) {
        char text[4096] = "";
        for (int k = 0; k <= i % 17; k++) sprintf(text + strlen(text), "w%d ", (i + k) % 50);
        add(s, SPLIT_TRAIN, text, i % 3);
        if (i % 5 == 0) add(s, SPLIT_VALID, text, i % 3);
    }
    build(s);
}

/* Reads every sentence once per epoch; returns a digest of their order. */
static uint64_t walk(sentence_set *s, int64_t epoch, int64_t most, int64_t tokens) {
    bool seen[MANY] = {false};
    uint64_t digest = 1;
    for (int64_t k = 0; k < sentence_set_batches(s, SPLIT_TRAIN); k++) {
        batch b;
        sentence_set_batch(s, 0, SPLIT_TRAIN, epoch, k, &b);
        assert_true(b.count <= most && b.count * b.source_length <= tokens);
        for (int64_t i = 0; i < b.count; i++) {
            assert_false(seen[b.pair[i]]);
            seen[b.pair[i]] = true;
            assert_int_equal(b.label[i], b.pair[i] % 3);
            digest = digest * 31 + (uint64_t)b.pair[i];
        }
    }
    for (int i = 0; i < MANY; i++) assert_true(seen[i]);
    return digest;
}

/* Random batches by number contain other sentences in every epoch. Other batches contain the same
 * ones in another order. */
static void every_sentence_once_in_an_order_of_its_epoch(void **state) {
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        data_options o = options(kind == 2 ? 1 : 16);
        sentence_set s;
        batch a, b;
        strcpy(o.batching, kind == 0 ? "random" : "bucketed");
        if (kind == 2) strcpy(o.batch_by, "tokens"), o.max_tokens = 100;
        fill_many(&s, &o);
        const int64_t most = kind == 2 ? MANY : 16, tokens = kind == 2 ? 100 : INT64_MAX;
        const uint64_t first = walk(&s, 0, most, tokens), second = walk(&s, 1, most, tokens);
        assert_true(first != second);
        assert_true(walk(&s, 0, most, tokens) == first);
        assert_int_equal(s.drawn, kind == 0);
        sentence_set_batch(&s, 0, SPLIT_VALID, 0, 1, &a);
        sentence_set_batch(&s, 1, SPLIT_VALID, 7, 1, &b);
        assert_true(digest_batch(&a) == digest_batch(&b));
        o.seed = 2;
        sentence_set_free(&s);
        fill_many(&s, &o);
        assert_true(walk(&s, 0, most, tokens) != first);
        sentence_set_free(&s);
    }
}

/* Longer sentences are cut to the common length. */
static void common_length_cuts(void **state) {
    (void)state;
    data_options o = options(4);
    sentence_set s;
    batch b;
    o.pad_to = 3, o.mark_end = true;
    create(&s, &o);
    fill_small(&s);
    sentence_set_batch(&s, 0, SPLIT_TRAIN, 0, 0, &b);
    assert_int_equal(b.source_length, 3);
    expect_row(&b, row_of(&b, 0), (int32_t[]){5, 4, TOKEN_EOS});
    expect_row(&b, row_of(&b, 1), (int32_t[]){4, 5, TOKEN_EOS});
    sentence_set_free(&s);
}

/* Shortest first, in every epoch. */
static void sorted_batches(void **state) {
    (void)state;
    data_options o = options(16);
    sentence_set s;
    strcpy(o.batching, "sorted");
    fill_many(&s, &o);
    assert_true(walk(&s, 0, 16, INT64_MAX) == walk(&s, 1, 16, INT64_MAX));
    for (int64_t k = 0, before = 0; k < sentence_set_batches(&s, SPLIT_TRAIN); k++) {
        batch b;
        sentence_set_batch(&s, 0, SPLIT_TRAIN, 2, k, &b);
        assert_true(b.source_length >= before);
        before = b.source_length;
    }
    sentence_set_free(&s);
}

/* Sentences of similar length share a batch, so that padding is small. */
static void buckets_spare_padding(void **state) {
    (void)state;
    int64_t words[2], positions[2];
    for (int random = 0; random < 2; random++) {
        data_options o = options(16);
        sentence_set s;
        strcpy(o.batching, random ? "random" : "bucketed");
        fill_many(&s, &o);
        sentence_set_fill(&s, &words[random], &positions[random]);
        sentence_set_free(&s);
    }
    assert_int_equal(words[0], words[1]);
    assert_true(positions[0] < words[0] + words[0] / 10);
    assert_true(positions[1] > words[1] + words[1] / 2);
}

static void limit_is_of_training(void **state) {
    (void)state;
    data_options o = options(16);
    sentence_set s;
    o.limit = 20;
    create(&s, &o);
    for (int i = 0; i < 30; i++) add(&s, SPLIT_TRAIN, i < 20 ? "a" : "later", 0);
    for (int i = 0; i < 30; i++) add(&s, SPLIT_VALID, "a", 0);
    build(&s);
    assert_int_equal(s.split[SPLIT_TRAIN].count, 20);
    assert_int_equal(s.split[SPLIT_VALID].count, 30);
    assert_int_equal(vocab_id(s.dictionary, "later", 5), TOKEN_UNK);
    sentence_set_free(&s);
}

/* -- errors */

static void refuse(const data_options *o, const char *part) {
    sentence_set s;
    sr_failure why = {0};
    assert_int_equal(sentence_set_create(&s, o, &why), SR_USAGE);
    check_failure(&why, SR_USAGE, part);
    sentence_set_free(&s);
}

static void impossible_options(void **state) {
    (void)state;
    data_options o = options(0);
    refuse(&o, "batch-size 0 is below 1");
    o = options(1), strcpy(o.batch_by, "tokens"), o.max_tokens = 1;
    refuse(&o, "max-tokens 1 is below 2");
    o = options(1), o.vocab_size = 4;
    refuse(&o, "vocab-size 4 leaves no room");
    o = options(1), o.max_length = 2, o.mark_start = o.mark_end = true;
    refuse(&o, "max-length 2 leaves no room for words beside 2 marks");
    o = options(1), o.pad_to = 1, o.mark_end = true;
    refuse(&o, "pad-to 1 leaves no room for words beside 1 mark");
    o = options(1), o.max_length = 1, o.mark_end = true;
    refuse(&o, "max-length 1 leaves no room for words beside 1 mark");
    o = options(1), o.pad_to = 2, o.mark_start = o.mark_end = true;
    refuse(&o, "pad-to 2 leaves no room for words beside 2 marks");
    o = options(1), o.pad_to = 8, o.max_length = 9;
    refuse(&o, "max-length 9 is above pad-to 8");
}

static void impossible_sentences(void **state) {
    (void)state;
    data_options o = options(1);
    sentence_set s;
    sr_failure why = {0};
    create(&s, &o);
    add(&s, SPLIT_TRAIN, "", 0);
    assert_int_equal(sentence_set_build(&s, &why), SR_FORMAT);
    check_failure(&why, SR_FORMAT, "no training sentence is left, 1 are empty");
    sentence_set_free(&s);
    strcpy(o.batch_by, "tokens"), o.max_tokens = 3;
    create(&s, &o);
    add(&s, SPLIT_TRAIN, "a b c d", 0);
    why = (sr_failure){0};
    assert_int_equal(sentence_set_build(&s, &why), SR_USAGE);
    check_failure(&why, SR_USAGE,
                  "training text: a sentence of 4 tokens, at most 3 (--max-tokens)");
    sentence_set_free(&s);
    create(&s, &o);
    add(&s, SPLIT_TRAIN, "a", 0);
    add(&s, SPLIT_VALID, "a b c d", 0); /* evaluated nevertheless */
    build(&s);
    assert_int_equal(sentence_set_batches(&s, SPLIT_VALID), 1);
    sentence_set_free(&s);
    create(&s, &o);
    add(&s, SPLIT_TRAIN, "a", 0);
    add(&s, SPLIT_VALID, "a b c d", 0); /* with the same number of tokens in one other batch */
    for (int i = 0; i < 4; i++) add(&s, SPLIT_VALID, "a", 0);
    build(&s);
    assert_int_equal(sentence_set_batches(&s, SPLIT_VALID), 2);
    sentence_set_free(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_and_padding),
        cmocka_unit_test(rare_words_are_unknown),
        cmocka_unit_test(marks_and_bounds),
        cmocka_unit_test(tags_and_characters),
        cmocka_unit_test(every_sentence_once_in_an_order_of_its_epoch),
        cmocka_unit_test(common_length_cuts),
        cmocka_unit_test(sorted_batches),
        cmocka_unit_test(buckets_spare_padding),
        cmocka_unit_test(limit_is_of_training),
        cmocka_unit_test(impossible_options),
        cmocka_unit_test(impossible_sentences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
