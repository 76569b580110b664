/* sentence_set.c -- from words to ids. Words are kept as text until training words are counted.
 *
 * Dictionary: <s>, <pad>, </s>, <unk>, then training words with at least min_count occurrences.
 * Order: count descending, ties by string; nothing pads the dictionary. Training characters: 0
 * padding, 1 unknown, then the same order.
 */
#include "data/sets/sentence_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/containers/hash.h"
#include "base/containers/vector.h"
#include "base/utf8.h"

static sr_status check_options(const data_options *o, sr_failure *why) {
    const int64_t marks = o->mark_start + o->mark_end;
    const bool by_tokens = !strcmp(o->batch_by, "tokens");
    if (!by_tokens && o->batch_size < 1)
        return sr_fail(why, SR_USAGE, "batch-size %lld is below 1", (long long)o->batch_size);
    if (by_tokens && o->max_tokens < 2)
        return sr_fail(why, SR_USAGE, "max-tokens %lld is below 2", (long long)o->max_tokens);
    if (o->vocab_size < 0 || (o->vocab_size > 0 && o->vocab_size <= TOKEN_FIRST_WORD))
        return sr_fail(why, SR_USAGE, "vocab-size %lld leaves no room for words beside %d specials",
                       (long long)o->vocab_size, TOKEN_FIRST_WORD);
    if (o->max_length && o->max_length <= marks)
        return sr_fail(why, SR_USAGE, "max-length %lld leaves no room for words beside %lld mark%s",
                       (long long)o->max_length, (long long)marks, marks == 1 ? "" : "s");
    if (!o->pad_to) return SR_OK;
    if (o->pad_to <= marks)
        return sr_fail(why, SR_USAGE, "pad-to %lld leaves no room for words beside %lld mark%s",
                       (long long)o->pad_to, (long long)marks, marks == 1 ? "" : "s");
    if (o->max_length <= o->pad_to) return SR_OK;
    return sr_fail(why, SR_USAGE, "max-length %lld is above pad-to %lld", (long long)o->max_length,
                   (long long)o->pad_to);
}

sr_status sentence_set_create(sentence_set *s, const data_options *o, sr_failure *why) {
    const bool by_tokens = !strcmp(o->batch_by, "tokens");
    *s = (sentence_set){.task = TASK_SENTENCES,
                        .rule = {.batching = batching_named(o->batching),
                                 .max_tokens = o->max_tokens,
                                 .valid_only = !strcmp(o->max_tokens_of, "valid"),
                                 .pairs = by_tokens ? 0 : o->batch_size},
                        .starts = o->mark_start,
                        .ends = o->mark_end,
                        .min_count = o->min_count,
                        .vocab_size = o->vocab_size,
                        .limit = o->limit,
                        .max_length = o->max_length ? o->max_length : o->pad_to,
                        .pad_to = o->pad_to,
                        .seed = o->seed};
    s->drawn = s->rule.pairs > 0 && s->rule.batching == BATCHING_RANDOM;
    if (check_options(o, why) != SR_OK) return SR_USAGE;
    s->dictionary = vocab_create();
    s->characters = vocab_create();
    return s->dictionary && s->characters
               ? SR_OK
               : sr_fail(why, SR_MEMORY, "out of memory for a dictionary");
}

void sentence_set_free(sentence_set *s) {
    for (int i = 0; i < SENTENCE_SPLITS; i++) {
        sentence_split *p = &s->split[i];
        free(p->first), free(p->label), free(p->line);
        line_hashes_free(&p->lines);
        free(p->id), free(p->tag);
        free(p->character), free(p->letter);
        buffer_free(&p->text), buffer_free(&p->spelling);
        batch_plan_free(&p->plan);
    }
    vocab_free(s->dictionary);
    vocab_free(s->characters);
    for (int i = 0; i < PREFETCH_SLOTS; i++) {
        sentence_buffers *b = &s->slot[i];
        free(b->order.item), free(b->mask);
        free(b->source), free(b->label), free(b->tag), free(b->character);
    }
    *s = (sentence_set){0};
}

/* -- sentences as they come */

static bool grow_sentences(sentence_split *p) {
    const int64_t count = p->count + 2;
    if (!vector_reserve(&p->first, &p->first_capacity, count, sizeof *p->first) ||
        !vector_reserve(&p->line, &p->line_capacity, count, sizeof *p->line) ||
        !vector_reserve(&p->label, &p->label_capacity, count, sizeof *p->label))
        return false;
    if (p->count == 0) p->first[0] = 0;
    return true;
}

static bool put_word(byte_buffer *b, const char *word, size_t length) {
    buffer_put(b, word, length);
    return buffer_put(b, "\n", 1); /* false after one that failed */
}

static bool is_left_out(const sentence_set *s, data_split split) {
    return split == SPLIT_TRAIN && s->limit > 0 && s->split[split].count >= s->limit;
}

sr_status sentence_set_word(sentence_set *s, data_split split, const sentence_word *w,
                            sr_failure *why) {
    sentence_split *p = &s->split[split];
    const int64_t marks = s->starts + s->ends;
    if (is_left_out(s, split)) return SR_OK;
    bool done = grow_sentences(p) &&
                vector_reserve(&p->tag, &p->tag_capacity, p->words + 1, sizeof *p->tag);
    if (done && s->max_length && p->words - p->first[p->count] + marks >= s->max_length) {
        p->open_cut = true;
        return SR_OK;
    }
    done = done && put_word(&p->text, w->word, w->length);
    if (done && s->spelled) done = put_word(&p->spelling, w->spelling, w->spelling_length);
    if (!done) return sr_fail(why, SR_MEMORY, "out of memory for the words of sentences");
    p->tag[p->words++] = w->tag;
    return SR_OK;
}

sr_status sentence_set_end(sentence_set *s, data_split split, int32_t label, int64_t line,
                           sr_failure *why) {
    sentence_split *p = &s->split[split];
    if (is_left_out(s, split)) return SR_OK;
    if (!grow_sentences(p)) return sr_fail(why, SR_MEMORY, "out of memory for sentences");
    p->cut += p->open_cut;
    p->open_cut = false;
    if (p->words == p->first[p->count]) {
        p->empty++;
        return SR_OK;
    }
    const uint64_t hash = hash_bytes(p->text.byte + p->begin, p->text.size - (size_t)p->begin);
    if (!line_hashes_add(&p->lines, hash, p->words - p->first[p->count]))
        return sr_fail(why, SR_MEMORY, "out of memory for sentences");
    p->begin = (int64_t)p->text.size;
    p->label[p->count] = label;
    p->line[p->count++] = line;
    p->first[p->count] = p->words;
    return SR_OK;
}

/* -- dictionaries and ids */

/* A position in a buffer of words; starts as {buffer, 0}. */
typedef struct word_walk {
    const byte_buffer *buffer;
    size_t at;
} word_walk;

static bool next_word(word_walk *w, const char **word, size_t *length) {
    if (w->at >= w->buffer->size) return false;
    *word = w->buffer->byte + w->at;
    *length = (size_t)(strchr(*word, '\n') - *word);
    w->at += *length + 1;
    return true;
}

/* Bytes of a character; 1 for a byte that is not UTF-8. */
static size_t character_size(const char *text) {
    const int n = utf8_bytes(text);
    return n > 0 ? (size_t)n : 1;
}

static sr_status make_dictionaries(sentence_set *s, sr_failure *why) {
    const sentence_split *train = &s->split[SPLIT_TRAIN];
    word_walk w = {&train->text, 0};
    const char *word;
    size_t length;
    bool done = true;
    while (done && next_word(&w, &word, &length))
        done = vocab_count(s->dictionary, word, length, 1);
    const byte_buffer *b = &train->spelling;
    for (size_t at = 0; done && s->spelled && at < b->size;) {
        const size_t n = character_size(b->byte + at);
        if (b->byte[at] != '\n') done = vocab_count(s->characters, b->byte + at, n, 1);
        at += n;
    }
    int64_t size = TOKEN_FIRST_WORD + vocab_frequent(s->dictionary, s->min_count);
    if (s->vocab_size && s->vocab_size < size) size = s->vocab_size;
    done = done && vocab_finish_padded(s->dictionary, size, 1) &&
           vocab_finish_padded(s->characters, 0, 1);
    return done ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory for the dictionary");
}

int64_t sentence_set_characters(const sentence_set *s) {
    if (!s->spelled) return 0;
    return vocab_size(s->characters) - TOKEN_FIRST_WORD + CHARACTER_FIRST;
}

static bool encode_words(sentence_set *s, sentence_split *p) {
    word_walk w = {&p->text, 0};
    const char *word;
    size_t length;
    p->id = malloc((size_t)(p->words + 1) * sizeof *p->id);
    for (int64_t i = 0; p->id && next_word(&w, &word, &length); i++) {
        p->id[i] = vocab_id(s->dictionary, word, length);
        p->unknown += p->id[i] == TOKEN_UNK;
    }
    buffer_free(&p->text);
    return p->id != NULL;
}

/* A character is at least one byte. */
static bool encode_characters(sentence_set *s, sentence_split *p) {
    word_walk w = {&p->spelling, 0};
    const char *word;
    size_t length;
    p->character = malloc((p->spelling.size + 1) * sizeof *p->character);
    p->letter = malloc((size_t)(p->words + 1) * sizeof *p->letter);
    if (!p->character || !p->letter) return false;
    p->letter[0] = 0;
    for (int64_t i = 0; next_word(&w, &word, &length); i++) {
        int64_t n = 0;
        for (size_t at = 0; at < length; n++) {
            const size_t size = character_size(word + at);
            const int32_t id = vocab_id(s->characters, word + at, size);
            p->character[p->letter[i] + n] =
                id < TOKEN_FIRST_WORD ? CHARACTER_UNKNOWN : id - TOKEN_FIRST_WORD + CHARACTER_FIRST;
            at += size;
        }
        p->letter[i + 1] = p->letter[i] + n;
        if (n > s->longest_spelling) s->longest_spelling = n;
    }
    buffer_free(&p->spelling);
    return true;
}

sr_status sentence_set_build(sentence_set *s, sr_failure *why) {
    if (s->split[SPLIT_TRAIN].count == 0)
        return sr_fail(why, SR_FORMAT, "no training sentence is left, %lld are empty",
                       (long long)s->split[SPLIT_TRAIN].empty);
    sr_status status = make_dictionaries(s, why);
    for (int i = 0; status == SR_OK && i < SENTENCE_SPLITS; i++) {
        sentence_split *p = &s->split[i];
        if (p->count == 0) continue;
        bool done = encode_words(s, p);
        if (done && s->spelled) done = encode_characters(s, p);
        if (!done) status = sr_fail(why, SR_MEMORY, "out of memory for the words of sentences");
    }
    return status == SR_OK ? sentence_set_plan(s, why) : status;
}
