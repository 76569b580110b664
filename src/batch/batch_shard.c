/* batch_shard.c -- splits a batch into shards.
 *
 * Shard s of S has the samples first(s) .. first(s+1)-1, where first(s) is the first sample with at
 * least s/S of the batch's weight before it. A sample of text weighs its words: of pairs the target
 * words with </s>, of sentences the source words. Any other sample weighs one. A shard exceeds its
 * part by less than one sample and may be empty. All arrays are the batch's own, from the first
 * sample of the shard on. Padded lengths stay.
 */
#include "batch/batch.h"

/* Words of sample i. */
static int64_t weight_of(const batch *b, int64_t i) {
    const bool pairs = b->task == TASK_PAIRS;
    const uint8_t *mask = pairs ? b->target_mask : b->source_mask;
    const int64_t length = pairs ? b->target_length : b->source_length;
    const bool words = pairs || b->task == TASK_SENTENCES || b->task == TASK_TAGS;
    int64_t weight = 0;
    if (!words || !mask) return 1;
    for (int64_t j = 0; j < length; j++) weight += mask[i * length + j];
    return weight;
}

int64_t batch_shard_first(const batch *b, int share, int shares) {
    int64_t total = 0, before = 0, i = 0;
    for (int64_t k = 0; k < b->count; k++) total += weight_of(b, k);
    for (; i < b->count && before * shares < total * share; i++) before += weight_of(b, i);
    return i;
}

/* The array from sample `first` on, of `size` numbers each; NULL stays. */
#define FROM(array, size) ((array) ? (array) + first * (size) : (array))

batch batch_slice(const batch *b, int64_t first, int64_t count) {
    batch p = *b;
    const bool classes =
        b->task == TASK_IMAGES || b->task == TASK_SENTENCES || b->task == TASK_TREES;
    p.count = count;
    p.image = FROM(b->image, b->height * b->width * b->channels);
    p.label = FROM(b->label, classes ? 1 : 0);
    p.source = FROM(b->source, b->source_length);
    p.source_mask = FROM(b->source_mask, b->source_length);
    p.target_in = FROM(b->target_in, b->target_length);
    p.target_out = FROM(b->target_out, b->target_length);
    p.target_mask = FROM(b->target_mask, b->target_length);
    p.pair = FROM(b->pair, 1);
    p.character = FROM(b->character, b->source_length * b->word_length);
    p.tag = FROM(b->tag, b->source_length);
    p.feature = FROM(b->feature, b->features);
    p.tokens = b->task == TASK_LM ? count * b->target_length : count;
    if (b->task == TASK_PAIRS) p.tokens = 0;
    for (int64_t i = 0; i < count && b->task == TASK_PAIRS; i++) p.tokens += weight_of(&p, i);
    return p;
}
