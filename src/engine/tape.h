/* tape.h -- define-by-run differentiation over an arena.
 *
 * One step = one arena. An op computes its value when it is called and, while the tape records,
 * leaves a node; tape_backward walks the nodes from the last to the first. Nothing is done in
 * place. What must outlive the step is copied out before the next tape_reset. Values that no backward
 * function reads may be given up (tape_release_input), others made again for it (tape_drop_value): their memory serves
 * later results.
 *
 * Failure is sticky: the first one is kept, ops given a NULL tensor return NULL, so a model is
 * written as one expression and the loop asks tape_failure once.
 *
 * The gradient of an op's result is undefined once the op has passed it on: its memory serves the
 * gradients of earlier ops. Those of leaves stay. With `reuse_activations` the result itself goes the same way.
 *
 * Gradients add. To spare zeroing and re-reading large buffers the first contribution to a
 * tensor's gradient may overwrite it: tape_grad says which.
 */
#ifndef ENGINE_TAPE_H
#define ENGINE_TAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/real.h"
#include "base/rng.h"
#include "engine/scratch.h"
#include "statrec/base.h"

/* Row-major, contiguous. Images (N, H, W, C), text (B, T, C), anything as (rows, features). */
typedef struct tensor {
    int rank;                         /* 1..4 */
    int64_t dim[4];                   /* [0..rank-1]; the rest are 1 */
    int64_t count;                    /* product of dim */
    real *value;                      /* [count] */
    real *grad;                       /* [count], dL/dvalue; NULL until the first contribution */
    bool wants_grad;                  /* false: backward functions skip it */
    bool has_grad;                    /* grad holds a value: the next contribution adds */
    bool own;                         /* value is memory of the tape that no other tensor shares */
    int readers;                      /* backward functions that read value */
    struct tensor *twin;              /* has the same memory for its gradient; NULL: nobody */
    const struct tape_node *producer; /* who can make value again; NULL: nobody */
} tensor;

typedef struct tape tape;
typedef struct tape_node tape_node;
typedef void tape_backward_fn(tape *t, const tape_node *node);
/* Writes out->value as the op did, bit for bit, from what the op keeps and its backward function reads. */
typedef void tape_recompute_fn(tape *t, const tape_node *node);

enum { NODE_INPUTS = 8 };

/* Seconds and calls of one kind of op while the tape profiles. An op's forward time is what passed
 * since the push before it, so it includes the shaping of its inputs. */
typedef struct tape_profile {
    const char *op;
    double forward, backward;
    int64_t calls;
} tape_profile;

enum { PROFILE_OPS = 24 };

struct tape_node {
    const char *op;             /* "linear", for messages */
    tape_backward_fn *backward; /* adds to the gradients of in[] from out->grad */
    tensor *out;
    tensor *in[NODE_INPUTS];      /* NULL where unused */
    void *kept;                   /* in the arena, or what outlives the step; the op's own struct */
    unsigned reads;               /* READS_ of these tensors */
    tape_recompute_fn *recompute; /* or NULL */
    tape_node *before;
};

struct tape {
    arena *arena;
    int threads;    /* OpenMP regions name it: num_threads(t->threads) */
    bool recording; /* false: evaluation, no nodes, no gradients */
    bool training;  /* dropout active, norms use batch statistics */
    bool
        reuse_activations; /* backward passes give up results too, but for those of few numbers; set by the owner */
    bool bf16;      /* op_linear and op_conv2d multiply in bfloat16 (ops.h); set by the owner */
    rng random;     /* of this step; each op that draws takes its own split (tape_random) */
    uint64_t draws; /* ops that drew so far */
    tape_node *last;
    struct tape_spare *spare; /* memory of gradients that were passed on, smallest first */
    sr_failure failure;
    /* Called behind each node of a backward pass, one whose gradient never came too; NULL: nobody. */
    void (*passed)(void *context, const tape_node *node);
    void *passed_context;
    int64_t sample_first; /* number of the pass's first sample in its whole batch: what is drawn */
    int64_t samples;      /* goes by it; so many does it have, 0: all, from the first */
    bool profiling;       /* set by the owner; costs two clock readings an op */
    double mark;          /* end of the op before */
    tape_profile profile[PROFILE_OPS]; /* op NULL ends */
    /* What op_conv2d prepares once per shape. Outlives the steps; tape_free calls the function
     * (when set), so that the tape need not know what it is. */
    void *conv_cache;
    void (*conv_cache_free)(void *cache);
    scratch_memory operands; /* of products, packed or rounded; outlives the steps */
};

/* NULL and *why on failure. threads >= 1. */
tape *tape_create(int threads, sr_failure *why);
void tape_free(tape *t);

/* Starts a step: forgets all tensors and nodes and clears the failure. */
void tape_reset(tape *t, rng random, bool training, bool recording);

/* First failure since the reset, or NULL. */
const sr_failure *tape_failure(const tape *t);
/* Keeps a failure; returns NULL so that ops can `return tape_fail(...)`. */
void *tape_fail(tape *t, sr_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A tensor whose value is undefined memory of the arena. dim[rank]. NULL (and failure) when out
 * of memory or when a dim is < 1. */
tensor *tape_tensor(tape *t, int rank, const int64_t *dim);
/* The same shape as x. */
tensor *tape_like(tape *t, const tensor *x);
/* The same but for the last dimension. */
tensor *tape_with_features(tape *t, const tensor *x, int64_t features);
/* Wraps memory of the caller's ([product of dim], not copied, no gradient wanted). */
tensor *tape_wrap(tape *t, int rank, const int64_t *dim, real *value);
/* The same numbers under another shape (count must agree); shares value and gradient flow. */
tensor *tape_reshape(tape *t, tensor *x, int rank, const int64_t *dim);
/* Scratch memory of this step; NULL and a failure when out of memory. */
void *tape_alloc(tape *t, size_t bytes);
/* The same for as long as a function runs, which then returns it: from where results and gradients were that
 * nobody needs any more, if there is room. */
void *tape_borrow(tape *t, size_t bytes);
void tape_return(tape *t, void *borrowed, size_t bytes);

/* Finishes an op: when the tape records and any input wants a gradient, out->wants_grad is set and
 * a node is kept. in is terminated by NULL or NODE_INPUTS. Returns out (NULL when out of memory).
 */
tensor *tape_push(tape *t, const char *op, tape_backward_fn *backward, tensor *out,
                  tensor *const *in, void *kept);

/* The same, of an op whose backward function reads the values of some of these tensors alone: those of in[i] for
 * READS_IN(i), of out for READS_OUT. tape_push: of all. */
#define READS_IN(i) (1u << (i))
enum { READS_NOTHING = 0, READS_INPUTS = (1u << NODE_INPUTS) - 1, READS_OUT = 1u << NODE_INPUTS };
tensor *tape_push_reading(tape *t, const char *op, tape_backward_fn *backward, tensor *out,
                          tensor *const *in, void *kept, unsigned reads);

/* y, which an op has made of x, where nobody takes x but that op: x is without its value from now on, unless
 * a backward function reads it (or y is x). */
tensor *tape_release_input(tape *t, tensor *x, tensor *y);

/* y, which an op has just pushed, can be made again. */
tensor *tape_set_recompute(tape *t, tensor *y, tape_recompute_fn *recompute);
/* Nobody reads x before the backward pass: a reuse_activations tape is without its value until then, where it can be
 * made again. */
void tape_drop_value(tape *t, tensor *x);

/* Where to put dL/dx. NULL when x wants none (or memory ran out). *add false: the buffer is
 * undefined and the caller writes every element; true: it adds to what is there. */
real *tape_grad(tape *t, tensor *x, bool *add);
/* The same for in[input] of a node, in its backward function; of a reuse_activations tape in the place of the value, where
 * the node is its only reader (READS_IN): who is done with a number when it writes its gradient. */
real *tape_grad_over(tape *t, const tape_node *node, int input, bool *add);
/* In the backward function of x's op: the gradient of x, which the caller keeps and gives back by tape_return. NULL when
 * memory ran out. */
real *tape_keep_grad(tape *t, tensor *x);
/* In the backward function of y's op, of which x is an input: dL/dy becomes dL/dx as it is, and is gone from y, so that
 * who goes on reading it takes it from x. False where x wants no gradient, has one to add to, or has not as many
 * numbers: then nothing has happened. */
bool tape_move_grad(tensor *y, tensor *x);
/* dL/db is dL/da, which is there, in the same memory, until one of them is written to (tape_grad), which then has memory of
 * its own, or has been passed on. False where b wants no gradient, has one, or has not as many numbers, or somebody shares that of a. */
bool tape_alias_grad(tensor *a, tensor *b);
/* As tape_grad, in the place of dL/dy where tape_move_grad gives it: who is done with a number of dL/dy, which he has taken
 * before, when he writes that of dL/dx. */
real *tape_grad_in_place(tape *t, tensor *y, tensor *x, bool *add);
/* As tape_grad, zeroed when fresh, for scattered contributions: always adds. */
real *tape_grad_zeroed(tape *t, tensor *x);

/* dL/dloss = seed, then every node backwards. loss has count 1. */
void tape_backward(tape *t, tensor *loss, real seed);

/* The stream of random numbers of the next op that draws. */
uint64_t tape_random(tape *t);
/* Number of the first of `count` elements of this pass, samples one behind the other, among those of the
 * whole batch. */
int64_t tape_first(const tape *t, int64_t count);

/* Rows and features of x seen as a matrix: the last dimension is the features. */
static inline int64_t tensor_features(const tensor *x) {
    return x->dim[x->rank - 1];
}
static inline int64_t tensor_rows(const tensor *x) {
    return x->count / tensor_features(x);
}

#endif
