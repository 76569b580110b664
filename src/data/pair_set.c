/* pair_set.c -- from two texts to token ids. */
#include "pair_set.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static batching batching_of(const char *word) {
    if (!strcmp(word, "random")) return BATCHING_RANDOM;
    return !strcmp(word, "sorted") ? BATCHING_SORTED : BATCHING_BUCKETED;
}

sr_status pair_set_create(pair_set *s, const data_options *o, sr_failure *why) {
    const bool valid_only = !strcmp(o->max_tokens_of, "valid");
    *s = (pair_set){.max_tokens = o->max_tokens,
                    .rule = {batching_of(o->batching), o->max_tokens, valid_only},
                    .vocab_size = o->vocab_size,
                    .limit = o->limit,
                    .shuffle_sources = o->shuffle_sources,
                    .seed = o->seed,
                    .order_epoch = -1,
                    .entropy = NAN};
    if (o->max_tokens < 2)
        return sr_fail(why, SR_USAGE, "max-tokens %lld is below 2", (long long)o->max_tokens);
    if (o->vocab_size < 0 || (o->vocab_size > 0 && o->vocab_size <= TOKEN_FIRST_WORD))
        return sr_fail(why, SR_USAGE, "vocab-size %lld leaves no room for words beside %d specials",
                       (long long)o->vocab_size, TOKEN_FIRST_WORD);
    s->words = vocab_create();
    return s->words ? SR_OK : sr_fail(why, SR_MEMORY, "no memory for a dictionary");
}

static void free_split(pair_split *p) {
    for (int i = 0; i < SIDES; i++) free(p->side[i].id), free(p->side[i].first);
    free(p->record);
    free(p->partner);
    batch_plan_free(&p->plan);
}

void pair_set_free(pair_set *s) {
    for (int i = 0; i < PAIR_SPLITS; i++) free_split(&s->split[i]);
    vocab_free(s->words);
    free(s->order);
    free(s->source), free(s->target_in), free(s->target_out);
    free(s->source_mask), free(s->target_mask);
    *s = (pair_set){0};
}

void pair_text_free(pair_text *t) {
    for (int i = 0; i < SIDES; i++) file_free(&t->side[i]);
}

static int64_t lines_used(const pair_set *s, data_split split, const pair_text *t) {
    return split == SPLIT_TRAIN && s->limit > 0 && s->limit < t->lines ? s->limit : t->lines;
}

static bool count_words(pair_set *s, const file_bytes *f, int64_t lines) {
    text_walk w = {f, 0};
    const char *word;
    size_t length;
    for (int64_t i = 0; i < lines; i++)
        while (text_word(&w, &word, &length))
            if (!vocab_count(s->words, word, length, 1)) return false;
    return true;
}

static sr_status make_dictionary(pair_set *s, const pair_text *train, sr_failure *why) {
    int64_t lines = lines_used(s, SPLIT_TRAIN, train);
    bool done = true;
    for (int i = 0; i < SIDES; i++) done = done && count_words(s, &train->side[i], lines);
    done = done && vocab_finish(s->words, s->vocab_size);
    return done ? SR_OK : sr_fail(why, SR_MEMORY, "no memory for the dictionary");
}

/* Room for every word and line of the text: a word and its blank are two bytes. */
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

/* Ids of the walk's line behind those of the pairs kept so far; returns how many. */
static int64_t encode_line(const vocab *words, text_walk *w, int32_t *id) {
    const char *word;
    size_t length;
    int64_t n = 0;
    while (text_word(w, &word, &length)) id[n++] = vocab_id(words, word, length);
    return n;
}

static void keep_pair(pair_split *p, int64_t line, const int64_t length[SIDES]) {
    const pair_side *target = &p->side[SIDE_TARGET];
    for (int64_t i = 0; i < length[SIDE_TARGET]; i++)
        p->unknown += target->id[target->first[p->count] + i] == TOKEN_UNK;
    p->tokens += length[SIDE_TARGET] + 1;
    p->record[p->count] = line;
    p->partner[p->count] = p->count;
    for (int i = 0; i < SIDES; i++)
        p->side[i].first[p->count + 1] = p->side[i].first[p->count] + length[i];
    p->count++;
}

/* Pairs with an empty side, or with one longer than `most` (</s> included), are dropped and
 * counted. */
static void encode_lines(pair_set *s, pair_split *p, const pair_text *t, int64_t lines,
                         int64_t most) {
    text_walk walk[SIDES] = {{&t->side[0], 0}, {&t->side[1], 0}};
    for (int64_t line = 0; line < lines; line++) {
        int64_t length[SIDES];
        bool empty = false, large = false;
        for (int i = 0; i < SIDES; i++) {
            pair_side *side = &p->side[i];
            length[i] = encode_line(s->words, &walk[i], side->id + side->first[p->count]);
            empty = empty || length[i] == 0;
            large = large || length[i] + 1 > most;
        }
        p->dropped_empty += empty;
        p->dropped_long += large && !empty;
        if (!empty && !large) keep_pair(p, line, length);
    }
}

/* Training pairs must fit into a batch, all into the models' positions: runs with other batches are
 * evaluated on the same pairs. */
static int64_t longest_kept(const pair_set *s, data_split split) {
    return split == SPLIT_TRAIN && s->max_tokens < PAIR_LONGEST ? s->max_tokens : PAIR_LONGEST;
}

static sr_status encode_split(pair_set *s, data_split split, const pair_text *t, sr_failure *why) {
    pair_split *p = &s->split[split];
    if (!t->side[SIDE_SOURCE].byte) return SR_OK;
    int64_t lines = lines_used(s, split, t);
    if (!allocate_split(p, t, lines))
        return sr_fail(why, SR_MEMORY, "%s: no memory for its tokens", t->side[0].path);
    const int64_t most = longest_kept(s, split);
    encode_lines(s, p, t, lines, most);
    if (p->count > 0) return SR_OK;
    return sr_fail(why, SR_FORMAT,
                   "%s: none of %lld pairs is left: %lld have an empty side, %lld are longer than "
                   "%lld tokens",
                   t->side[0].path, (long long)lines, (long long)p->dropped_empty,
                   (long long)p->dropped_long, (long long)most);
}

sr_status pair_set_build(pair_set *s, const pair_text text[PAIR_SPLITS], sr_failure *why) {
    sr_status status = make_dictionary(s, &text[SPLIT_TRAIN], why);
    for (int i = 0; status == SR_OK && i < PAIR_SPLITS; i++)
        status = encode_split(s, (data_split)i, &text[i], why);
    return status == SR_OK ? pair_set_plan(s, why) : status;
}
