/* transformer_step.h -- the state of a batch in transformer_decoder.c, and the layers of a step
   (transformer_step.c). */
#ifndef NETS_MODELS_TRANSFORMER_STEP_H
#define NETS_MODELS_TRANSFORMER_STEP_H

#include "nets/models/transformer.h"

/* Keys and values [rows, d] of a step. */
typedef struct memory {
    real *key, *value;
} memory;

typedef struct decoding {
    transformer net;     /* the model's own parts, with a table of positions that grows */
    packed_weights *own; /* NULL: another's */
    const packed_weights *weights;
    tape *tape;        /* memory of one sentence in the encoder, or of one step */
    arena *cache;      /* memory of one batch: */
    row_memory *cross; /* [count, layers] */
    int64_t *length;   /* [count] */
    int64_t count;
    int64_t t;     /* positions done */
    memory **self; /* [t] of [layers] */
    int64_t self_capacity;
    int64_t rows;
    int32_t *sentence; /* [rows] */
    int32_t *slot;     /* [rows, t] */
    int32_t *next_slot;
    int64_t slot_capacity, next_capacity;
    /* Results of the last step, in the tape's memory: */
    const real *logits;    /* [rows, vocabulary] */
    const double *log_sum; /* [rows] log p = logit - log_sum */
    const real *largest;   /* [rows, blocks] logits */
} decoding;

/* Arguments of the parts of a step. */
typedef struct one_step {
    decoding *s;
    text_pass text;
    int64_t rows, padded;
    real *average; /* [rows, longest source] weights of the last cross-attention, or NULL */
    int64_t longest;
} one_step;

/* [padded, features] with zeros after the rows; NULL after a failure, as of the two below. */
tensor *step_tensor(const one_step *p, int64_t features);
/* Token [rows] at the step's position. */
tensor *step_embedding(const one_step *p, const int32_t *token);
/* A decoder layer, whose keys and values of this position join the memory. x NULL: NULL. */
tensor *step_layer(const one_step *p, int64_t layer, tensor *x);

#endif
