/* running_set.c -- running text cut into windows (docs/models.md 3.2).
 *
 * The N tokens, words and <eos> of every line, are cut into B contiguous sequences of n = N/B
 * tokens, without the remainder. The input of batch i is tokens i T .. i T + T - 1 of each
 * sequence. The output is shifted by one token. So there are (n - 1)/T windows, without the
 * remainder. The order is never shuffled.
 */
#include "data/sets/running_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/containers/hash.h"

sr_status running_set_create(running_set *s, const data_options *o, bool bytes, sr_failure *why) {
    *s = (running_set){.limit = o->limit,
                       .vocab_size = o->vocab_size,
                       .eos_of_empty = o->eos_of_empty,
                       .bytes = bytes};
    if (o->window < 1 || o->batch_size < 1 || o->eval_batch_size < 1)
        return sr_fail(why, SR_USAGE,
                       "tgt-len %lld, batch-size %lld and eval-batch-size %lld must be positive",
                       (long long)o->window, (long long)o->batch_size,
                       (long long)o->eval_batch_size);
    for (int i = 0; i < RUNNING_SPLITS; i++) {
        const bool training = i == SPLIT_TRAIN;
        s->split[i].pieces = training ? o->batch_size : o->eval_batch_size;
        s->split[i].window = training || !o->eval_window ? o->window : o->eval_window;
    }
    s->words = bytes ? vocab_create_symbols() : vocab_create_running();
    return s->words ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory for a dictionary");
}

void running_set_free(running_set *s) {
    for (int i = 0; i < RUNNING_SPLITS; i++) {
        free(s->split[i].id);
        line_hashes_free(&s->split[i].hashes);
    }
    vocab_free(s->words);
    for (int i = 0; i < PREFETCH_SLOTS; i++) free(s->input[i]), free(s->output[i]);
    *s = (running_set){0};
}

/* -- dictionary and ids */

static int64_t lines_used(const running_set *s, data_split split, int64_t lines) {
    return split == SPLIT_TRAIN && s->limit > 0 && s->limit < lines ? s->limit : lines;
}

/* Appends the words of the walk's line and <eos>. False at a word without id, and with *word NULL
 * when out of memory. */
static bool encode_line(const running_set *s, running_split *p, text_walk *w, const char **word,
                        size_t *length) {
    const int64_t before = p->tokens;
    uint64_t hash = 0;
    while (text_word(w, word, length)) {
        const int32_t id = vocab_id(s->words, *word, *length);
        if (id < 0) return false;
        hash = hash_join(hash,
                         id == vocab_unknown(s->words) ? hash_bytes(*word, *length) : (uint64_t)id);
        p->id[p->tokens++] = id;
        p->unknown += id == vocab_unknown(s->words);
    }
    const int64_t words = p->tokens - before;
    p->empty += words == 0;
    *word = NULL;
    if (words > 0 && !line_hashes_add(&p->hashes, hash, words)) return false;
    if (words > 0 || s->eos_of_empty) p->id[p->tokens++] = 0;
    return true;
}

static sr_status encode_split(running_set *s, running_split *p, const file_bytes *f, int64_t lines,
                              sr_failure *why) {
    text_walk w = {f, 0};
    const char *word;
    size_t length;
    /* a word and its blank are two bytes, a line's end is one */
    p->id = malloc((f->size + 1) * sizeof *p->id);
    if (!p->id) return sr_fail(why, SR_MEMORY, "%s: out of memory for its tokens", f->path);
    for (; p->lines < lines; p->lines++) {
        if (encode_line(s, p, &w, &word, &length)) continue;
        if (!word) return sr_fail(why, SR_MEMORY, "%s: out of memory for its lines", f->path);
        sr_fail(why, SR_FORMAT, "%s:%lld: '%.*s' is not in the dictionary, which has no <unk>",
                f->path, (long long)p->lines + 1, (int)(length < 80 ? length : 80), word);
        sr_hint(why, "the training text makes the dictionary, up to vocab-size words");
        return SR_FORMAT;
    }
    return SR_OK;
}

/* -- windows */

static sr_status allocate_buffers(running_set *s, sr_failure *why) {
    int64_t tokens = 1;
    for (int i = 0; i < RUNNING_SPLITS; i++) {
        const int64_t own = s->split[i].pieces * s->split[i].window;
        if (own > tokens) tokens = own;
    }
    bool made = true;
    for (int i = 0; i < PREFETCH_SLOTS; i++) {
        s->input[i] = calloc((size_t)tokens, sizeof(int32_t));
        s->output[i] = calloc((size_t)tokens, sizeof(int32_t));
        made = made && s->input[i] && s->output[i];
    }
    return made ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory for batches");
}

sr_status running_set_plan(running_set *s, const char *const *path, sr_failure *why) {
    sr_status status = SR_OK;
    for (int i = 0; i < RUNNING_SPLITS && status == SR_OK; i++) {
        running_split *p = &s->split[i];
        if (!*path[i]) continue;
        p->piece = p->tokens / p->pieces;
        p->batches = p->piece > 0 ? (p->piece - 1) / p->window : 0;
        if (p->batches == 0)
            status = sr_fail(
                why, SR_FORMAT, "%s: %lld tokens in %lld sequences are too few for windows of %lld",
                path[i], (long long)p->tokens, (long long)p->pieces, (long long)p->window);
    }
    return status == SR_OK ? allocate_buffers(s, why) : status;
}

sr_status running_set_build(running_set *s, const file_bytes text[RUNNING_SPLITS],
                            const int64_t lines[RUNNING_SPLITS], sr_failure *why) {
    text_walk w = {&text[SPLIT_TRAIN], 0};
    const char *word;
    size_t length;
    bool done = true;
    for (int64_t i = 0; i < lines_used(s, SPLIT_TRAIN, lines[SPLIT_TRAIN]); i++)
        while (done && text_word(&w, &word, &length)) done = vocab_count(s->words, word, length, 1);
    done = done && vocab_finish(s->words, s->vocab_size);
    sr_status status = (done ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory for the dictionary"));
    for (int i = 0; status == SR_OK && i < RUNNING_SPLITS; i++) {
        running_split *p = &s->split[i];
        if (!text[i].byte) continue;
        status = encode_split(s, p, &text[i], lines_used(s, (data_split)i, lines[i]), why);
    }
    const char *const path[] = {text[0].path, text[1].path, text[2].path};
    return status == SR_OK ? running_set_plan(s, path, why) : status;
}

void running_set_batch(running_set *s, int slot, data_split split, int64_t index, batch *b) {
    const running_split *p = &s->split[split];
    const int64_t T = p->window;
    *b = (batch){.task = TASK_LM, .count = p->pieces, .target_length = T};
    b->target_in = s->input[slot], b->target_out = s->output[slot];
    b->tokens = p->pieces * T;
    b->unknown = vocab_unknown(s->words);
    b->bytes = s->bytes;
    for (int64_t i = 0; i < p->pieces; i++) {
        const int32_t *from = p->id + i * p->piece + index * T;
        memcpy(s->input[slot] + i * T, from, (size_t)T * sizeof *from);
        memcpy(s->output[slot] + i * T, from + 1, (size_t)T * sizeof *from);
    }
}
