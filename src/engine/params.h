/* params.h -- the trainable tensors of a model, in order of creation.
 *
 * A parameter is a tensor outside any tape: its value and gradient live as long as the params. The
 * gradient always exists. After params_zero_grad contributions add to it. After
 * params_invalidate_grad the first contribution overwrites it. params_finalize_grad then clears the
 * gradients that got no contribution in the backward pass. */
#ifndef ENGINE_PARAMS_H
#define ENGINE_PARAMS_H

#include "engine/tape.h"

enum { PARAM_NAME = 64 };

typedef struct param {
    char name[PARAM_NAME]; /* "encoder.0.attention.wq" */
    tensor t;
    real *slot[2]; /* optimizer state [count] each, initially zero; NULL until params_slots */
} param;

typedef struct params {
    param **item; /* pointers stay valid while parameters are added */
    int count;
    int64_t capacity;
    /* initialize weights of linear layers with U(1/sqrt(fan_in)), not by the layer's rule */
    bool fan_in;
    /* standard deviation of embedding entries (layer_embedding.c); 0 or NaN: the layer's rule */
    double embed_std;
    rng random;         /* initialization; each parameter draws from the split of its number */
    sr_failure failure; /* sticky, as in the tape */
    real *block; /* [blocks, block_length], owned (params_blocks); NULL: separate gradients */
    int64_t block_length;
    int blocks;
    /* most: values that the file to be read has, or 0. With a file nothing is drawn: all values are
     * 0 until they are read, and more than `most` values are an error. total: values so far. */
    int64_t most, total;
} params;

void params_init(params *p, uint64_t seed);
void params_free(params *p);

/* Initial values. a is the bound, standard deviation or constant. */
typedef enum { INIT_CONSTANT, INIT_UNIFORM /* U(a): [-a, a] */, INIT_NORMAL /* N(a) */ } init_kind;

/* Adds a parameter; NULL after a failure. */
tensor *params_add(params *p, const char *name, int rank, const int64_t *dim, init_kind kind,
                   double a);
/* params_add with the name OWNER.PART. */
tensor *params_add_part(params *p, const char *owner, const char *part, int rank,
                        const int64_t *dim, init_kind kind, double a);
param *params_find(const params *p, const char *name); /* NULL when absent */
int64_t params_total(const params *p);                 /* trainable values of all parameters */
void params_zero_grad(params *p);                      /* clears every block */
/* Like params_zero_grad, but leaves the memory until a backward pass overwrites it. Read gradients
 * only after params_finalize_grad. */
void params_invalidate_grad(params *p);
void params_finalize_grad(params *p);
/* Allocates `blocks` copies of all gradients, each in one aligned block in order of creation, all
 * zero. params_use_block selects the copy in use, at first copy 0. */
sr_status params_blocks(params *p, int blocks, sr_failure *why);
void params_use_block(params *p, int block);
real *params_block(const params *p, int block); /* [block_length] */
/* Allocates slots 0..count-1 of every parameter. */
sr_status params_slots(params *p, int count, sr_failure *why);

#endif
