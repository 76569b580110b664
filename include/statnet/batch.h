/* batch.h -- what a data set hands to a model. */
#ifndef STATNET_BATCH_H
#define STATNET_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "statnet/real.h"

typedef enum { TASK_IMAGES, TASK_PAIRS, TASK_LM } task;

enum { TOKEN_BOS = 0, TOKEN_PAD = 1, TOKEN_EOS = 2, TOKEN_UNK = 3, TOKEN_FIRST_WORD = 4 };

/* Arrays live until the next batch of the same data set is made. Sentences are right-padded with
 * TOKEN_PAD; a source ends with </s>, target_in starts with </s>, target_out ends with it. Windows
 * of running text have no padding and no masks, and ids of a dictionary of their own (vocab.h):
 * target_out[i] is the token behind target_in[i]. */
typedef struct batch {
    task task;
    int64_t count; /* images, pairs or windows */
    /* TASK_IMAGES */
    int64_t height, width, channels;
    const real *image;    /* [count, height, width, channels], normalised */
    const int32_t *label; /* [count] */
    /* TASK_PAIRS; TASK_LM: of the targets, no masks */
    int64_t source_length, target_length;     /* padded */
    const int32_t *source;                    /* [count, source_length] */
    const int32_t *target_in;                 /* [count, target_length] */
    const int32_t *target_out;                /* [count, target_length] */
    const uint8_t *source_mask, *target_mask; /* 1 = not padding */
    const int64_t *pair;                      /* [count], number of each pair in its split */
    int64_t tokens;                           /* images, or non-pad target tokens with </s> */
    int32_t unknown;                          /* TASK_LM: id of <unk>, -1: none */
} batch;

/* What a model must know of a data set before it is built. */
typedef struct data_shape {
    task task;
    int64_t height, width, channels, classes; /* TASK_IMAGES */
    int64_t vocabulary; /* pairs: of the dictionary, with specials and filler; text: with <eos> */
    int64_t target_vocabulary; /* pairs: of the target's where it has its own; 0: it has none */
    int64_t longest;           /* pairs: longest sentence, </s> included; running text: a window */
} data_shape;

#endif
