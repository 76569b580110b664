/* sentence_batch.c -- batches of sentences.
 *
 * Batches are planned once per split (batch_plan.c). Training permutes them in each epoch, unless
 * batching is sorted. With a fixed number of random sentences per batch, training draws new batches
 * in every epoch: epoch e cuts the permutation of (seed, e). A row is <s> if mark_start is set, the
 * words, </s> if mark_end is set, and padding. Its length is the longest row of the batch, or
 * pad_to; longer sentences have been cut to it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "data/dataset.h"

/* Words and marks. */
static int64_t row_length(const sentence_set *s, const sentence_split *p, int64_t sentence) {
    return p->first[sentence + 1] - p->first[sentence] + s->starts + s->ends;
}

static int64_t padded_length(const sentence_set *s, const sentence_split *p, int64_t sentence) {
    return s->pad_to ? s->pad_to : row_length(s, p, sentence);
}

/* -- plans */

static sr_status refuse_long(const sentence_set *s, int64_t line, int64_t tokens, sr_failure *why) {
    char place[FILE_PATH + 32] = "training text";
    if (s->place) s->place(s->loader, line, place, sizeof place);
    sr_fail(why, SR_USAGE, "%s: a sentence of %lld tokens, at most %lld (--max-tokens)", place,
            (long long)tokens, (long long)s->rule.max_tokens);
    if (s->task == TASK_TAGS)
        sr_hint(why, "--max-tokens %lld takes it", (long long)tokens);
    else
        sr_hint(why, "--max-length %lld cuts sentences, --max-tokens %lld takes this one",
                (long long)s->rule.max_tokens, (long long)tokens);
    return SR_USAGE;
}

/* A sentence longer than max_tokens enlarges evaluation batches; in training it is an error. */
static sr_status plan_by_length(const sentence_set *s, data_split split, const int64_t *length,
                                sentence_split *p, sr_failure *why) {
    batch_rule rule = s->rule;
    int64_t longest = 0, at = 0;
    for (int64_t i = 0; i < p->count; i++)
        if (length[i] > longest) longest = length[at = i];
    if (longest > rule.max_tokens && !rule.pairs && split == SPLIT_TRAIN)
        return refuse_long(s, p->line[at], longest, why);
    if (longest > rule.max_tokens) rule.max_tokens = longest;
    rng random = data_stream(s->seed, STREAM_PLAN, split);
    return batch_plan_make(&p->plan, length, length, p->count, &rule, random, why);
}

static sr_status plan_split(sentence_set *s, data_split split, sr_failure *why) {
    sentence_split *p = &s->split[split];
    int64_t *length = malloc((size_t)(p->count + 1) * sizeof *length);
    if (!length) return sr_fail(why, SR_MEMORY, "out of memory for the batch plan");
    for (int64_t i = 0; i < p->count; i++) {
        length[i] = padded_length(s, p, i);
        if (length[i] > s->longest) s->longest = length[i];
    }
    sr_status status = plan_by_length(s, split, length, p, why);
    free(length);
    return status;
}

static bool is_drawn(const sentence_set *s, data_split split) {
    return s->drawn && split == SPLIT_TRAIN;
}

/* Numbers of the sentences of batch k, `*count` of them. */
static const int64_t *batch_of(const sentence_set *s, const sentence_buffers *from,
                               data_split split, int64_t k, int64_t *count) {
    const sentence_split *p = &s->split[split];
    const int64_t first = p->plan.first[k];
    *count = p->plan.first[k + 1] - first;
    return (is_drawn(s, split) ? from->order.item : p->plan.pair) + first;
}

/* Row length of batch k; the longest of all if sentences are drawn in each epoch. */
static int64_t longest_row(const sentence_set *s, data_split split, int64_t k) {
    const sentence_split *p = &s->split[split];
    int64_t longest = 0;
    if (is_drawn(s, split)) return s->longest;
    for (int64_t i = p->plan.first[k]; i < p->plan.first[k + 1]; i++) {
        const int64_t length = padded_length(s, p, p->plan.pair[i]);
        if (length > longest) longest = length;
    }
    return longest;
}

sr_status sentence_set_plan(sentence_set *s, sr_failure *why) {
    sr_status status = SR_OK;
    int64_t rows = 1, size = 1;
    for (int i = 0; status == SR_OK && i < SENTENCE_SPLITS; i++)
        if (s->split[i].count > 0) status = plan_split(s, (data_split)i, why);
    if (status != SR_OK) return status;
    for (int i = 0; i < SENTENCE_SPLITS; i++) {
        const batch_plan *plan = &s->split[i].plan;
        for (int64_t k = 0; k < plan->count; k++) {
            const int64_t count = plan->first[k + 1] - plan->first[k];
            const int64_t longest = longest_row(s, (data_split)i, k);
            if (count > rows) rows = count;
            if (count * longest > size) size = count * longest;
        }
    }
    const int64_t letters = s->spelled ? s->longest_spelling : 1;
    const sentence_split *train = &s->split[SPLIT_TRAIN];
    const int64_t order = s->drawn ? train->count : train->plan.count;
    bool made = true;
    for (int i = 0; i < PREFETCH_SLOTS; i++) {
        sentence_buffers *b = &s->slot[i];
        b->order.item = malloc((size_t)(order + 1) * sizeof *b->order.item);
        b->source = malloc((size_t)size * sizeof *b->source);
        b->mask = malloc((size_t)size);
        b->label = malloc((size_t)rows * sizeof *b->label);
        b->tag = malloc((size_t)(s->task == TASK_TAGS ? size : 1) * sizeof *b->tag);
        b->character = malloc((size_t)(s->spelled ? size * letters : 1) * sizeof *b->character);
        made = made && b->order.item && b->source && b->mask && b->label && b->tag && b->character;
    }
    return made ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory for batches");
}

int64_t sentence_set_batches(const sentence_set *s, data_split split) {
    return s->split[split].plan.count;
}

/* -- batches */

static void shuffle_for(const sentence_set *s, sentence_buffers *to, int64_t epoch) {
    const sentence_split *train = &s->split[SPLIT_TRAIN];
    epoch_order_set(&to->order, s->seed, epoch, s->drawn ? train->count : train->plan.count,
                    s->rule.batching != BATCHING_SORTED);
}

static void put_row(const sentence_set *s, const sentence_split *p, int64_t sentence,
                    int64_t padded, int32_t *row, uint8_t *mask) {
    const int64_t words = p->first[sentence + 1] - p->first[sentence];
    int64_t n = 0;
    if (s->starts) row[n++] = TOKEN_BOS;
    memcpy(row + n, p->id + p->first[sentence], (size_t)words * sizeof *row);
    n += words;
    if (s->ends) row[n++] = TOKEN_EOS;
    for (int64_t i = 0; i < padded; i++) mask[i] = i < n;
    for (int64_t i = n; i < padded; i++) row[i] = TOKEN_PAD;
}

static void put_words(sentence_set *s, const sentence_split *p, sentence_buffers *to, batch *b) {
    const int64_t T = b->source_length;
    b->word_length = s->spelled;
    for (int64_t i = 0; i < b->count && s->spelled; i++)
        for (int64_t w = p->first[b->pair[i]]; w < p->first[b->pair[i] + 1]; w++)
            if (p->letter[w + 1] - p->letter[w] > b->word_length)
                b->word_length = p->letter[w + 1] - p->letter[w];
    const int64_t letters = b->word_length;
    for (int64_t i = 0; i < b->count; i++) {
        const int64_t sentence = b->pair[i], first = p->first[sentence];
        const int64_t words = p->first[sentence + 1] - first;
        to->label[i] = p->label[sentence];
        put_row(s, p, sentence, T, to->source + i * T, to->mask + i * T);
        if (s->task == TASK_TAGS) { /* 0 at positions without a word */
            int32_t *row = to->tag + i * T;
            memset(row, 0, (size_t)T * sizeof *row);
            memcpy(row + s->starts, p->tag + first, (size_t)words * sizeof *row);
        }
        if (s->spelled) {
            int32_t *row = to->character + i * T * letters;
            memset(row, 0, (size_t)(T * letters) * sizeof *row); /* CHARACTER_PAD */
            row += s->starts * letters;
            for (int64_t w = first; w < first + words; w++, row += letters)
                memcpy(row, p->character + p->letter[w],
                       (size_t)(p->letter[w + 1] - p->letter[w]) * sizeof *row);
        }
    }
    b->source = to->source, b->source_mask = to->mask;
    if (s->task == TASK_TAGS) b->tag = to->tag, b->tags = s->tags, b->allowed = s->allowed;
    if (s->task == TASK_SENTENCES) b->label = to->label;
    if (s->spelled) b->character = to->character;
}

void sentence_set_batch(sentence_set *s, int slot, data_split split, int64_t epoch, int64_t index,
                        batch *b) {
    sentence_buffers *to = &s->slot[slot];
    const sentence_split *p = &s->split[split];
    if (split == SPLIT_TRAIN) shuffle_for(s, to, epoch);
    if (split == SPLIT_TRAIN && !s->drawn) index = to->order.item[index];
    *b = (batch){.task = s->task};
    b->pair = batch_of(s, to, split, index, &b->count);
    b->tokens = b->count;
    for (int64_t i = 0; i < b->count; i++) {
        const int64_t length = padded_length(s, p, b->pair[i]);
        if (length > b->source_length) b->source_length = length;
    }
    put_words(s, p, to, b);
}

void sentence_set_fill(sentence_set *s, int64_t *words, int64_t *positions) {
    const sentence_split *p = &s->split[SPLIT_TRAIN];
    *words = *positions = 0;
    shuffle_for(s, &s->slot[0], 0);
    for (int64_t k = 0; k < p->plan.count; k++) {
        int64_t count, longest = 0;
        const int64_t *sentence = batch_of(s, &s->slot[0], SPLIT_TRAIN, k, &count);
        for (int64_t i = 0; i < count; i++) {
            const int64_t length = padded_length(s, p, sentence[i]);
            *words += row_length(s, p, sentence[i]);
            if (length > longest) longest = length;
        }
        *positions += count * longest;
    }
}
