/* sentence_set.h -- sentences of one text in memory, with a class each or a tag for every word, and
 * their batches. The readers fill it:
 *
 *     sentence_set_create(s, o, why);
 *     for each split, each sentence: sentence_set_word(...)*, sentence_set_end(...)
 *     sentence_set_build(s, why);
 */
#ifndef DATA_SETS_SENTENCE_SET_H
#define DATA_SETS_SENTENCE_SET_H

#include "data/prefetch.h"
#include "data/sets/batch_plan.h"
#include "data/sets/epoch_order.h"
#include "data/sets/line_hashes.h"
#include "text/line_transform.h"
#include "text/vocab.h"

enum {
    SENTENCE_SPLITS = 3,
    CHARACTER_PAD = 0, /* ids of characters */
    CHARACTER_UNKNOWN = 1,
    CHARACTER_FIRST = 2
};

/* A word from a loader. */
typedef struct sentence_word {
    const char *word; /* as the dictionary has it: no newline, not empty */
    size_t length;
    const char *spelling; /* UTF-8, the characters; only for sets with characters */
    size_t spelling_length;
    int32_t tag; /* only for sets with tags */
} sentence_word;

typedef struct sentence_split {
    int64_t count;        /* sentences kept; 0: no such split */
    int64_t words;        /* words of all sentences */
    int64_t *first;       /* [count + 1]: sentence i is id[first[i]] .. id[first[i + 1] - 1] */
    int32_t *label;       /* [count] */
    int64_t *line;        /* [count], of sentence_set_end */
    line_hashes lines;    /* [count], of the words; none after the checks */
    int64_t begin;        /* start of the open sentence in the text */
    int32_t *id;          /* [words], without marks at the ends; NULL before the build */
    int32_t *tag;         /* [words] */
    int32_t *character;   /* characters of all words; NULL: none */
    int64_t *letter;      /* [words + 1]: word w is character[letter[w]] .. letter[w + 1] - 1 */
    int64_t empty;        /* skipped sentences without a word */
    int64_t cut;          /* sentences cut to max_length */
    int64_t unknown;      /* words that are <unk> */
    batch_plan plan;      /* one for all epochs, unless s->drawn */
    byte_buffer text;     /* words, each with a newline after it; before the build */
    byte_buffer spelling; /* the same for spellings */
    bool open_cut;        /* the open sentence is longer than max_length */
    int64_t first_capacity, line_capacity, label_capacity, tag_capacity;
} sentence_split;

/* Buffers of a batch. */
typedef struct sentence_buffers {
    epoch_order order; /* order of batches, or of sentences drawn for each epoch */
    int32_t *source, *label, *tag, *character;
    uint8_t *mask;
} sentence_buffers;

struct tag_set;

typedef struct sentence_set {
    /* Set by the loader after sentence_set_create, before the first sentence. */
    task task;              /* TASK_SENTENCES (default) or TASK_TAGS: label or tag counts */
    bool spelled;           /* words have characters */
    const uint8_t *allowed; /* copied into each batch */
    /* Writes "FILE:LINE" of a training sentence, by the number that sentence_set_end got; `loader`
       is valid until the build. */
    void (*place)(const void *loader, int64_t line, char *text, size_t size);
    const void *loader;
    const struct tag_set *tags;

    vocab *dictionary;
    vocab *characters; /* id - CHARACTER_FIRST counts its dictionary after the specials */
    sentence_split split[SENTENCE_SPLITS];
    batch_rule rule;
    bool drawn;                /* random, with a fixed number of sentences: drawn in every epoch */
    bool starts, ends;         /* <s> before a sentence, serves as <cls>; </s> after it */
    int64_t min_count;         /* rarer words of the training text are <unk> */
    int64_t vocab_size, limit; /* as options name them */
    int64_t max_length, pad_to;
    int64_t longest;          /* longest sentence of a batch, marks included */
    int64_t longest_spelling; /* longest word, in characters */
    uint64_t seed;
    sentence_buffers slot[PREFETCH_SLOTS];
} sentence_set;

sr_status sentence_set_create(sentence_set *s, const data_options *o, sr_failure *why);
void sentence_set_free(sentence_set *s);
/* The next word of the open sentence. */
sr_status sentence_set_word(sentence_set *s, data_split split, const sentence_word *w,
                            sr_failure *why);
/* Ends the sentence. Sentences without words are counted and skipped, as are training sentences
 * after the first `limit`. label: any for sets with tags. line: a number for the loader. */
sr_status sentence_set_end(sentence_set *s, data_split split, int32_t label, int64_t line,
                           sr_failure *why);
/* After the last sentence: cuts to max_length, counts training words, makes dictionaries and ids,
 * and plans batches. SR_FORMAT without training sentences. */
sr_status sentence_set_build(sentence_set *s, sr_failure *why);

/* sentence_batch.c */
sr_status sentence_set_plan(sentence_set *s, sr_failure *why);
int64_t sentence_set_batches(const sentence_set *s, data_split split);
/* In the buffers of a slot. pair [count] has the numbers of the sentences in their split. */
void sentence_set_batch(sentence_set *s, int slot, data_split split, int64_t epoch, int64_t index,
                        batch *b);
/* Positions with a word or a mark, and all positions, over the batches of the first epoch. */
void sentence_set_fill(sentence_set *s, int64_t *words, int64_t *positions);
/* Size of the dictionary of characters, with padding and unknown; 0: no characters. */
int64_t sentence_set_characters(const sentence_set *s);

#endif
