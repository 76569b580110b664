/* batch.h -- one batch of a data set for a model. */
#ifndef BATCH_BATCH_H
#define BATCH_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/real.h"

typedef enum {
    TASK_IMAGES,    /* a class of each image */
    TASK_PAIRS,     /* target sentences given their sources */
    TASK_LM,        /* the next token of running text */
    TASK_SENTENCES, /* a class of each sentence */
    TASK_TAGS,      /* a tag of each word */
    TASK_TREES,     /* the transitions of a dependency parser */
} task;

struct tag_set; /* tags.h */

enum { TOKEN_BOS = 0, TOKEN_PAD = 1, TOKEN_EOS = 2, TOKEN_UNK = 3, TOKEN_FIRST_WORD = 4 };

/* Arrays live until the next batch of the same data set is made. Sentences are right-padded with
 * TOKEN_PAD; a source ends with </s>, target_in starts with </s>, target_out ends with it. Windows
 * of running text have no padding and no masks, and use ids of their own dictionary (vocab.h).
 * target_out[i] is the token after target_in[i]. */
typedef struct batch {
    task task;
    int64_t count; /* images, pairs or windows */
    /* TASK_IMAGES */
    int64_t height, width, channels;
    const real *image;    /* [count, height, width, channels], normalized */
    const int32_t *label; /* [count]; also of sentences and of transitions */
    /* TASK_PAIRS; TASK_SENTENCES, TASK_TAGS: of the sources; TASK_LM: of the targets, no masks */
    int64_t source_length, target_length;     /* padded */
    const int32_t *source;                    /* [count, source_length] */
    const int32_t *target_in;                 /* [count, target_length] */
    const int32_t *target_out;                /* [count, target_length] */
    const uint8_t *source_mask, *target_mask; /* 1 = not padding */
    const int64_t *pair;                      /* [count], number of each pair in its split */
    int64_t tokens;  /* divisor of a summed loss: images, target tokens with </s> without padding,
                        sentences (also for tags, whose loss is per sentence), transitions */
    int32_t unknown; /* TASK_LM: id of <unk>, -1: none */
    bool bytes;      /* TASK_LM: a token is a byte */
    /* TASK_TAGS */
    int64_t word_length;      /* padded characters of a word */
    const int32_t *character; /* [count, source_length, word_length], 0: padding, 1: unknown */
    const int32_t *tag;       /* [count, source_length], 0 where padded; from classes on: none */
    const uint8_t *allowed;   /* [(classes + 2)^2], from row to column; row classes: the start of a
                               sentence, column classes + 1: its end */
    const struct tag_set *tags; /* their names */
    /* TASK_TREES */
    int64_t features;
    const int32_t *feature; /* [count, features]: ids of words, then of POS tags, then of labels */
} batch;

/* Number of the first sample of a shard, 0 .. shares-1; for `shares`: the batch's count. */
int64_t batch_shard_first(const batch *b, int share, int shares);
/* `count` samples of a batch from number `first`, in the batch's arrays; tokens of these
   samples. */
batch batch_slice(const batch *b, int64_t first, int64_t count);

/* Properties of a data set that a model is built for. */
typedef struct data_shape {
    task task;
    int64_t height, width, channels; /* TASK_IMAGES */
    int64_t classes;                 /* classes of images and sentences; tags; transitions */
    int64_t characters;              /* TASK_TAGS: of their dictionary, with padding and unknown */
    int64_t meaning; /* digest of the names of ids: words, characters, tags, classes; 0: no names */
    int64_t pos_tags, arc_labels; /* TASK_TREES; labels 0: trees without labels */
    int64_t vocabulary; /* pairs: of the dictionary, with specials and filler; text: with <eos> */
    int64_t target_vocabulary; /* pairs: of a separate target dictionary; 0: joint */
    int64_t longest; /* longest sentence with its marks; running text: a window; 0: any length */
} data_shape;

#endif
