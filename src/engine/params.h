/* params.h -- the trainable tensors of a model, in order of creation.
 *
 * A parameter is a tensor outside any tape: its value and gradient live as long as the params. The
 * gradient always exists. After params_zero_grad contributions add to it; after params_invalidate_grad the
 * first one overwrites, and params_finalize_grad behind the backward pass clears those that none came to.
 */
#ifndef ENGINE_PARAMS_H
#define ENGINE_PARAMS_H

#include "engine/tape.h"

enum { PARAM_NAME = 64 };

typedef struct param {
    char name[PARAM_NAME]; /* "encoder.0.attention.wq" */
    tensor t;
    real *slot[2]; /* optimizer state [count] each, zero at first, NULL until asked for */
} param;

typedef struct params {
    param **item; /* pointers stay valid while more are added */
    int count, capacity;
    bool fan_in; /* weights of linear layers begin U(1/sqrt(fan_in)), whatever their own rule */
    double embed_std;   /* of the entries of embeddings (layer_embedding.c); 0 or NaN: their own */
    rng random;         /* initialisation; each parameter draws from the split of its number */
    sr_failure failure; /* sticky, as in the tape */
    real *block; /* params_blocks: [blocks, block_length], owned; NULL: gradients by themselves */
    int64_t block_length;
    int blocks;
    int64_t most, total; /* numbers that there may be, and are. most 0: any; else a file has so
                            many: its values are to come, and nothing is drawn before, all are 0 */
} params;

void params_init(params *p, uint64_t seed);
void params_free(params *p);

/* Initial values. a is the bound, standard deviation or constant. */
typedef enum { INIT_CONSTANT, INIT_UNIFORM /* U(a): [-a, a] */, INIT_NORMAL /* N(a) */ } init_kind;

/* A new parameter; NULL after a failure. */
tensor *params_add(params *p, const char *name, int rank, const int64_t *dim, init_kind kind,
                   double a);
param *params_find(const params *p, const char *name); /* NULL when absent */
int64_t params_total(const params *p);                 /* number of trainable numbers */
void params_zero_grad(params *p);                      /* of every block */
/* As params_zero_grad, but what is in the memory stays until a backward pass writes over it: it may be read
 * after params_finalize_grad alone. */
void params_invalidate_grad(params *p);
void params_finalize_grad(params *p);
/* Lays the gradients of all parameters side by side, in order of creation and aligned, so many times
 * over; params_use_block says which of these is the gradient from now on, at first that of 0. All are
 * zero. */
sr_status params_blocks(params *p, int blocks, sr_failure *why);
void params_use_block(params *p, int block);
real *params_block(const params *p, int block); /* [block_length] */
/* Makes slots 0..count-1 of every parameter. */
sr_status params_slots(params *p, int count, sr_failure *why);

#endif
