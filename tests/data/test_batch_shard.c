/* test_batch_shard.c -- shards of a batch: every sample once and in order, words divided evenly,
 * arrays and tokens of each task's samples. */
#include <string.h>

#include "batch/batch.h"
#include "testing/check.h"

enum { COUNT = 7, LENGTH = 4 };

/* Sentences of 1 to 4 words. */
static void make_mask(uint8_t mask[COUNT * LENGTH]) {
    for (int i = 0; i < COUNT; i++)
        for (int j = 0; j < LENGTH; j++) mask[i * LENGTH + j] = j <= i % LENGTH;
}

static int64_t words(const uint8_t *mask, int64_t first, int64_t end) {
    int64_t sum = 0;
    for (int64_t i = first * LENGTH; i < end * LENGTH; i++) sum += mask[i];
    return sum;
}

/* A shard misses its fraction by less than the longest sentence. */
static void words_are_divided(void **state) {
    (void)state;
    uint8_t mask[COUNT * LENGTH];
    make_mask(mask);
    const batch b = {.task = TASK_PAIRS,
                     .count = COUNT,
                     .source_length = LENGTH,
                     .target_length = LENGTH,
                     .target_mask = mask};
    const int64_t all = words(mask, 0, COUNT);
    for (int shares = 1; shares <= 12; shares++) {
        int64_t tokens = 0;
        assert_int_equal(batch_shard_first(&b, 0, shares), 0);
        assert_int_equal(batch_shard_first(&b, shares, shares), COUNT);
        for (int s = 0; s < shares; s++) {
            const int64_t first = batch_shard_first(&b, s, shares),
                          end = batch_shard_first(&b, s + 1, shares);
            assert_true(first <= end);
            const batch part = batch_slice(&b, first, end - first);
            assert_int_equal(part.tokens, words(mask, first, end));
            assert_true(part.tokens * shares < all + LENGTH * shares);
            assert_true(words(mask, 0, first) * shares >= all * s &&
                        words(mask, 0, first) * shares < all * s + LENGTH * shares);
            tokens += part.tokens;
        }
        assert_int_equal(tokens, all);
    }
}

static void images_by_count(void **state) {
    (void)state;
    real image[COUNT * 2 * 3];
    int32_t label[COUNT];
    const batch b = {.task = TASK_IMAGES,
                     .count = COUNT,
                     .height = 2,
                     .width = 3,
                     .channels = 1,
                     .image = image,
                     .label = label,
                     .tokens = COUNT};
    const int64_t want[] = {0, 3, 5, 7};
    for (int s = 0; s <= 3; s++) assert_int_equal(batch_shard_first(&b, s, 3), want[s]);
    const batch part = batch_slice(&b, 3, 2);
    assert_true(part.count == 2 && part.tokens == 2);
    assert_true(part.image == image + 3 * 6 && part.label == label + 3);
    int64_t empty = 0;
    for (int s = 0; s < 10; s++)
        empty += batch_shard_first(&b, s, 10) == batch_shard_first(&b, s + 1, 10);
    assert_int_equal(empty, 3);
}

static void arrays_of_text(void **state) {
    (void)state;
    int32_t id[COUNT * LENGTH], character[COUNT * LENGTH * 2];
    uint8_t mask[COUNT * LENGTH];
    int64_t pair[COUNT];
    make_mask(mask);
    batch b = {.task = TASK_TAGS,
               .count = COUNT,
               .source_length = LENGTH,
               .source = id,
               .source_mask = mask,
               .tag = id,
               .character = character,
               .word_length = 2,
               .pair = pair,
               .allowed = mask};
    batch part = batch_slice(&b, 2, 3);
    assert_true(part.source == id + 2 * LENGTH && part.tag == part.source);
    assert_true(part.character == character + 2 * LENGTH * 2 && part.pair == pair + 2);
    assert_true(part.source_mask == mask + 2 * LENGTH && part.allowed == mask);
    assert_true(part.tokens == 3 && !part.target_in && !part.label);
    b = (batch){.task = TASK_LM,
                .count = COUNT,
                .target_length = LENGTH,
                .target_in = id,
                .target_out = id};
    part = batch_slice(&b, 1, 2);
    assert_true(part.target_in == id + LENGTH && part.tokens == 2 * LENGTH);
    b = (batch){.task = TASK_TREES, .count = COUNT, .features = 3, .feature = id, .label = id};
    part = batch_slice(&b, 2, 2);
    assert_true(part.feature == id + 6 && part.label == id + 2 && part.tokens == 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(words_are_divided),
                                       cmocka_unit_test(images_by_count),
                                       cmocka_unit_test(arrays_of_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
