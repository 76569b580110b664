/* pair_set.c -- from two texts to token ids. */
#include "data/sets/pair_set.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers/hash.h"
#include "text/bpe/bpe_step.h"

sr_status pair_set_create(pair_set *s, const data_options *o, sr_failure *why) {
    const bool valid_only = !strcmp(o->max_tokens_of, "valid");
    *s = (pair_set){.max_tokens = o->max_tokens,
                    .rule = {batching_named(o->batching), o->max_tokens, valid_only},
                    .vocab_size = o->vocab_size,
                    .limit = o->limit,
                    .shuffle_sources = o->shuffle_sources,
                    .separate = !strcmp(o->dictionary, "separate"),
                    .seed = o->seed,
                    .entropy = NAN};
    if (o->max_tokens < 2)
        return sr_fail(why, SR_USAGE, "max-tokens %lld is below 2", (long long)o->max_tokens);
    if (o->vocab_size < 0 || (o->vocab_size > 0 && o->vocab_size <= TOKEN_FIRST_WORD))
        return sr_fail(why, SR_USAGE, "vocab-size %lld leaves no room for words beside %d specials",
                       (long long)o->vocab_size, TOKEN_FIRST_WORD);
    s->dictionary[SIDE_SOURCE] = vocab_create();
    s->dictionary[SIDE_TARGET] = s->separate ? vocab_create() : s->dictionary[SIDE_SOURCE];
    if (s->dictionary[SIDE_SOURCE] && s->dictionary[SIDE_TARGET]) return SR_OK;
    return sr_fail(why, SR_MEMORY, "out of memory for a dictionary");
}

void pair_set_free(pair_set *s) {
    for (int i = 0; i < PAIR_SPLITS; i++) {
        pair_split *p = &s->split[i];
        for (int k = 0; k < SIDES; k++)
            free(p->side[k].id), free(p->side[k].first), free(p->start[k]);
        pair_text_free(&p->raw);
        free(p->record);
        free(p->partner);
        line_hashes_free(&p->lines);
        batch_plan_free(&p->plan);
    }
    const bool joint = s->dictionary[SIDE_SOURCE] == s->dictionary[SIDE_TARGET];
    vocab_free(s->dictionary[SIDE_SOURCE]);
    if (!joint) vocab_free(s->dictionary[SIDE_TARGET]);
    for (int i = 0; i < s->steps; i++)
        if (s->step[i].free) s->step[i].free(s->step[i].self);
    for (int i = 0; i < PREFETCH_SLOTS; i++) {
        pair_buffers *b = &s->slot[i];
        free(b->order.item);
        free(b->source), free(b->target_in), free(b->target_out);
        free(b->source_mask), free(b->target_mask);
    }
    *s = (pair_set){0};
}

/* -- dictionaries */

/* Replaces an empty dictionary; a joint one for both sides. */
static sr_status read_dictionary(pair_set *s, data_side side, const char *path, sr_failure *why) {
    vocab *read = vocab_read(path, why);
    if (!read) return why ? why->status : SR_FORMAT;
    vocab_free(s->dictionary[side]);
    if (!s->separate) s->dictionary[SIDE_SOURCE] = s->dictionary[SIDE_TARGET] = read;
    s->dictionary[side] = read;
    s->dictionary_read[side] = true;
    if (!s->separate) s->dictionary_read[SIDE_SOURCE] = s->dictionary_read[SIDE_TARGET] = true;
    return SR_OK;
}

sr_status pair_set_prepare(pair_set *s, const data_options *o, sr_failure *why) {
    if (o->tokenizer) {
        s->step[s->steps] = *o->tokenizer;
        s->step[s->steps++].free = NULL; /* it is the caller's */
    }
    if (*o->bpe_codes && o->bpe_merges)
        return sr_fail(why, SR_USAGE, "bpe-codes and bpe-merges are both given");
    if (*o->bpe_codes || o->bpe_merges) {
        const line_transform step = bpe_step(o->bpe_codes, o->bpe_merges, why);
        if (!step.apply) return SR_MEMORY;
        s->step[s->steps++] = step;
    }
    sr_status status = SR_OK;
    const char *const path[SIDES] = {o->source_dictionary, o->target_dictionary};
    if (!s->separate && *path[SIDE_SOURCE] && *path[SIDE_TARGET])
        return sr_fail(why, SR_USAGE,
                       "a joint dictionary takes one of source-dictionary and target-dictionary");
    for (int i = 0; i < SIDES && status == SR_OK; i++)
        if (*path[i]) status = read_dictionary(s, (data_side)i, path[i], why);
    return status;
}

/* Counts training words, except for dictionaries that were read. */
static sr_status make_dictionaries(pair_set *s, const pair_text *train, sr_failure *why) {
    int64_t lines = pair_set_lines(s, SPLIT_TRAIN, train);
    bool done = true;
    for (int i = 0; i < SIDES; i++) {
        text_walk w = {&train->side[i], 0};
        const char *word;
        size_t length;
        for (int64_t k = 0; k < lines && !s->dictionary_read[i]; k++)
            while (done && text_word(&w, &word, &length))
                done = vocab_count(s->dictionary[i], word, length, 1);
    }
    for (int i = 0; i < SIDES; i++)
        if (!s->dictionary_read[i] && (s->separate || i == SIDE_SOURCE))
            done = done && vocab_finish(s->dictionary[i], s->vocab_size);
    return done ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory for the dictionary");
}

/* -- ids */

/* Allocates for every word and line of the text: a word and its blank are two bytes. */
static bool allocate_split(pair_split *p, const pair_text *t, int64_t lines) {
    for (int i = 0; i < SIDES; i++) {
        p->side[i].id = malloc((t->side[i].size / 2 + 1) * sizeof *p->side[i].id);
        p->side[i].first = malloc((size_t)(lines + 1) * sizeof *p->side[i].first);
        if (!p->side[i].id || !p->side[i].first) return false;
        p->side[i].first[0] = 0;
    }
    p->record = malloc((size_t)(lines + 1) * sizeof *p->record);
    p->partner = malloc((size_t)(lines + 1) * sizeof *p->partner);
    return p->record && p->partner;
}

/* Notes a pair whose side is longer than `most`. */
static void drop_long(pair_split *p, int64_t line, const int64_t length[SIDES], int64_t most) {
    if (p->dropped_long++) return;
    const data_side side = length[SIDE_SOURCE] + 1 > most ? SIDE_SOURCE : SIDE_TARGET;
    p->too_long = (long_line){.line = line, .tokens = length[side] + 1, .most = most, .side = side};
}

/* False when out of memory. */
static bool keep_pair(pair_split *p, int64_t line, const int64_t length[SIDES],
                      const uint64_t hash[SIDES]) {
    for (int k = 0; k < SIDES; k++) {
        const pair_side *side = &p->side[k];
        for (int64_t i = 0; i < length[k]; i++)
            p->unknown[k] += side->id[side->first[p->count] + i] == TOKEN_UNK;
    }
    p->tokens += length[SIDE_TARGET] + 1;
    p->record[p->count] = line;
    p->partner[p->count] = p->count;
    for (int i = 0; i < SIDES; i++)
        p->side[i].first[p->count + 1] = p->side[i].first[p->count] + length[i];
    p->count++;
    return line_hashes_add(&p->lines, hash_join(hash_join(0, hash[SIDE_SOURCE]), hash[SIDE_TARGET]),
                           length[SIDE_SOURCE] + length[SIDE_TARGET]);
}

/* Pairs with an empty side, or with one longer than `most` (</s> included), are dropped and
 * counted. False when out of memory. */
static bool encode_lines(pair_set *s, pair_split *p, const pair_text *t, int64_t lines,
                         int64_t most) {
    text_walk walk[SIDES] = {{&t->side[0], 0}, {&t->side[1], 0}};
    bool done = true;
    for (int64_t line = 0; done && line < lines; line++) {
        int64_t length[SIDES];
        uint64_t hash[SIDES];
        bool empty = false, large = false;
        for (int i = 0; i < SIDES; i++) {
            pair_side *side = &p->side[i];
            length[i] = text_codec_ids(s->dictionary[i], &walk[i], side->id + side->first[p->count],
                                       most, &hash[i]);
            empty = empty || length[i] == 0;
            large = large || length[i] + 1 > most;
        }
        p->dropped_empty += empty;
        if (large && !empty) drop_long(p, line, length, most);
        if (empty || large) continue;
        done = keep_pair(p, line, length, hash);
    }
    return done;
}

static sr_status encode_split(pair_set *s, data_split split, const pair_text *t, sr_failure *why) {
    pair_split *p = &s->split[split];
    if (!t->side[SIDE_SOURCE].byte) return SR_OK;
    int64_t lines = pair_set_lines(s, split, t);
    if (!allocate_split(p, t, lines))
        return sr_fail(why, SR_MEMORY, "%s: out of memory for its tokens", t->side[0].path);
    /* Training pairs must fit into a batch, all pairs into the model's positions. So runs with
     * other batches are evaluated on the same pairs. */
    const bool by_batch = split == SPLIT_TRAIN && s->max_tokens < PAIR_LONGEST;
    const int64_t most = by_batch ? s->max_tokens : PAIR_LONGEST;
    if (!encode_lines(s, p, t, lines, most))
        return sr_fail(why, SR_MEMORY, "%s: out of memory for its lines", t->side[0].path);
    if (p->count > 0) return SR_OK;
    return sr_fail(why, SR_FORMAT,
                   "%s: no pair left of %lld: %lld have an empty side, %lld exceed "
                   "%lld tokens",
                   t->side[0].path, (long long)lines, (long long)p->dropped_empty,
                   (long long)p->dropped_long, (long long)most);
}

/* Names the line in its file. */
static void locate_long(pair_split *p, const pair_text *t) {
    long_line *l = &p->too_long;
    const int64_t *number = t->number[l->side];
    if (!p->dropped_long) return;
    l->line = number ? number[l->line] : l->line + 1;
    memcpy(l->path, t->side[l->side].path, sizeof l->path);
}

sr_status pair_set_build(pair_set *s, pair_text text[PAIR_SPLITS], sr_failure *why) {
    pair_text ready[PAIR_SPLITS] = {0};
    sr_status status = pair_text_take_steps(s, text, ready, why);
    const pair_text *from = s->steps ? ready : text;
    if (status == SR_OK) status = make_dictionaries(s, &from[SPLIT_TRAIN], why);
    for (int i = 0; status == SR_OK && i < PAIR_SPLITS; i++)
        status = encode_split(s, (data_split)i, &from[i], why);
    for (int i = 0; i < PAIR_SPLITS; i++) locate_long(&s->split[i], &text[i]);
    for (int i = 0; i < PAIR_SPLITS; i++) pair_text_free(&ready[i]);
    for (int i = SPLIT_TRAIN + 1; status == SR_OK && i < PAIR_SPLITS; i++)
        status = pair_split_keep_raw(&s->split[i], &text[i], why);
    return status == SR_OK ? pair_set_plan(s, why) : status;
}
