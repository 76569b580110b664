/* pair_batch.c -- batches of sentence pairs.
 *
 * Batches are planned once per split (batch_plan.c). Training shuffles their order in each epoch,
 * unless batching is sorted. Every sentence ends with </s>; target_in is the same moved by one,
 * with </s> in front. Rows are padded on the right with <pad>, where the masks are 0.
 *
 * shuffle_sources gives every pair the source of another pair of its split, along one random cycle.
 * A model's validation result then comes from the targets alone. Lengths then differ within pairs,
 * so there are more batches. Compare such runs by updates, not by epochs.
 */
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "data/dataset.h"

/* Words, </s> not counted. */
static int64_t words_of(const pair_split *p, int side, int64_t pair) {
    return p->side[side].first[pair + 1] - p->side[side].first[pair];
}

static int64_t source_length(const pair_split *p, int64_t pair) {
    return words_of(p, SIDE_SOURCE, p->partner[pair]) + 1;
}

static int64_t target_length(const pair_split *p, int64_t pair) {
    return words_of(p, SIDE_TARGET, pair) + 1;
}

/* Pairs longer than max_tokens, which only evaluation splits have, enlarge their batches. */
static sr_status plan_split(pair_set *s, data_split split, sr_failure *why) {
    pair_split *p = &s->split[split];
    size_t bytes = (size_t)(p->count + 1) * sizeof(int64_t);
    int64_t *source = malloc(bytes), *target = malloc(bytes);
    batch_rule rule = s->rule;
    sr_status status = SR_MEMORY;
    if (source && target) {
        for (int64_t i = 0; i < p->count; i++) {
            source[i] = source_length(p, i), target[i] = target_length(p, i);
            int64_t longer = source[i] > target[i] ? source[i] : target[i];
            if (longer > s->longest) s->longest = longer;
            if (longer > rule.max_tokens) rule.max_tokens = longer;
        }
        rng random = data_stream(s->seed, STREAM_PLAN, split);
        status = batch_plan_make(&p->plan, source, target, p->count, &rule, random, why);
    }
    free(source);
    free(target);
    return status == SR_OK ? SR_OK : sr_fail(why, status, "out of memory for the batch plan");
}

/* Padded lengths of batch k. */
static void measure_batch(const pair_split *p, int64_t k, int64_t *source, int64_t *target) {
    *source = *target = 0;
    for (int64_t i = p->plan.first[k]; i < p->plan.first[k + 1]; i++) {
        int64_t pair = p->plan.pair[i];
        if (source_length(p, pair) > *source) *source = source_length(p, pair);
        if (target_length(p, pair) > *target) *target = target_length(p, pair);
    }
}

void pair_set_fill(const pair_split *p, int64_t *words, int64_t *positions) {
    *words = *positions = 0;
    for (int64_t k = 0; k < p->plan.count; k++) {
        int64_t source, target;
        measure_batch(p, k, &source, &target);
        *positions += source * (p->plan.first[k + 1] - p->plan.first[k]);
    }
    for (int64_t i = 0; i < p->count; i++) *words += source_length(p, i);
}

/* For the largest batch of all splits. */
static sr_status allocate_buffers(pair_set *s, sr_failure *why) {
    int64_t source = 1, target = 1;
    for (int i = 0; i < PAIR_SPLITS; i++)
        for (int64_t k = 0; k < s->split[i].plan.count; k++) {
            const int64_t *first = s->split[i].plan.first;
            int64_t longest_source, longest_target, count = first[k + 1] - first[k];
            measure_batch(&s->split[i], k, &longest_source, &longest_target);
            if (count * longest_source > source) source = count * longest_source;
            if (count * longest_target > target) target = count * longest_target;
        }
    bool made = true;
    for (int i = 0; i < PREFETCH_SLOTS; i++) {
        pair_buffers *b = &s->slot[i];
        const size_t batches = (size_t)s->split[SPLIT_TRAIN].plan.count + 1;
        b->source = malloc((size_t)source * sizeof *b->source);
        b->target_in = malloc((size_t)target * sizeof *b->target_in);
        b->target_out = malloc((size_t)target * sizeof *b->target_out);
        b->source_mask = malloc((size_t)source);
        b->target_mask = malloc((size_t)target);
        b->order.item = malloc(batches * sizeof *b->order.item);
        made = made && b->source && b->target_in && b->target_out && b->source_mask &&
               b->target_mask && b->order.item;
    }
    return made ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory for batches");
}

sr_status pair_set_plan(pair_set *s, sr_failure *why) {
    sr_status status = SR_OK;
    for (int i = 0; status == SR_OK && i < PAIR_SPLITS; i++) {
        pair_split *p = &s->split[i];
        if (p->count == 0) continue;
        if (s->shuffle_sources) { /* along one random cycle */
            rng random = data_stream(s->seed, STREAM_SOURCES, (uint64_t)i);
            int64_t *cycle = malloc((size_t)p->count * sizeof *cycle);
            if (!cycle) return sr_fail(why, SR_MEMORY, "out of memory for shuffled sources");
            for (int64_t k = 0; k < p->count; k++) cycle[k] = k;
            rng_shuffle(&random, cycle, p->count);
            for (int64_t k = 0; k < p->count; k++) p->partner[cycle[k]] = cycle[(k + 1) % p->count];
            free(cycle);
        }
        status = plan_split(s, (data_split)i, why);
    }
    return status == SR_OK ? allocate_buffers(s, why) : status;
}

/* The sentence, </s>, padding. */
static void put_row(const pair_side *side, int64_t sentence, int64_t padded, int32_t *row,
                    uint8_t *mask) {
    const int32_t *id = side->id + side->first[sentence];
    int64_t n = side->first[sentence + 1] - side->first[sentence];
    memcpy(row, id, (size_t)n * sizeof *row);
    row[n] = TOKEN_EOS;
    for (int64_t i = n + 1; i < padded; i++) row[i] = TOKEN_PAD;
    for (int64_t i = 0; i < padded; i++) mask[i] = i <= n;
}

void pair_set_batch(pair_set *s, int slot, data_split split, int64_t epoch, int64_t index,
                    batch *b) {
    pair_buffers *to = &s->slot[slot];
    const pair_split *p = &s->split[split];
    if (split == SPLIT_TRAIN) {
        epoch_order_set(&to->order, s->seed, epoch, p->plan.count,
                        s->rule.batching != BATCHING_SORTED);
        index = to->order.item[index];
    }
    int64_t first = p->plan.first[index];
    *b = (batch){.task = TASK_PAIRS, .count = p->plan.first[index + 1] - first};
    b->pair = p->plan.pair + first;
    measure_batch(p, index, &b->source_length, &b->target_length);
    b->source = to->source, b->source_mask = to->source_mask;
    b->target_in = to->target_in, b->target_out = to->target_out, b->target_mask = to->target_mask;
    for (int64_t i = 0; i < b->count; i++) {
        int64_t pair = p->plan.pair[first + i];
        int64_t at_source = i * b->source_length, at_target = i * b->target_length;
        put_row(&p->side[SIDE_SOURCE], p->partner[pair], b->source_length, to->source + at_source,
                to->source_mask + at_source);
        put_row(&p->side[SIDE_TARGET], pair, b->target_length, to->target_out + at_target,
                to->target_mask + at_target);
        /* </s>, the sentence, padding: the row of put_row, shifted */
        const int32_t *out = to->target_out + at_target;
        int32_t *in = to->target_in + at_target;
        in[0] = TOKEN_EOS;
        for (int64_t k = 1; k < b->target_length; k++)
            in[k] = to->target_mask[at_target + k] ? out[k - 1] : TOKEN_PAD;
        b->tokens += target_length(p, pair);
    }
}
