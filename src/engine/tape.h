/* tape.h -- define-by-run differentiation over an arena.
 *
 * One step uses one arena. An op computes its value when it is called and, while the tape records,
 * adds a node; tape_backward runs the nodes from last to first. No op works in place. Copy results
 * that must outlive the step before the next tape_reset. Later results may reuse the memory of
 * values that no backward function reads (tape_release_input), or that can be recomputed
 * (tape_drop_value).
 *
 * Failures are sticky: the tape keeps the first one. Ops return NULL for a NULL input, so a model
 * is written as one expression and the training loop calls tape_failure once.
 *
 * After an op has passed its gradient on, the gradient of its result is undefined: earlier
 * gradients reuse its memory. Gradients of leaves stay. With `reuse_activations` results are reused
 * likewise.
 *
 * Gradients add. To avoid zeroing and re-reading large buffers, the first contribution to a
 * tensor's gradient may overwrite it: tape_grad reports which. */
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

/* Row-major, contiguous. Images (N, H, W, C), text (B, T, C), others as (rows, features). */
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
    struct tensor *twin;              /* tensor that shares the gradient memory, or NULL */
    const struct tape_node *producer; /* node that can recompute value, or NULL */
} tensor;

typedef struct tape tape;
typedef struct tape_node tape_node;
typedef void tape_backward_fn(tape *t, const tape_node *node);
/* Writes out->value again, bit for bit, from data that the op keeps and its backward function
 * reads. */
typedef void tape_recompute_fn(tape *t, const tape_node *node);

enum { NODE_INPUTS = 8 };

/* Seconds and calls of one kind of op while the tape profiles. Forward time is the time since the
 * previous push, so it includes preparing the op's inputs. */
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
    void *kept;                   /* in the arena, or outlives the step; the op's own struct */
    unsigned reads;               /* READS_ bits: values that backward reads */
    tape_recompute_fn *recompute; /* or NULL */
    tape_node *before;
};

struct tape {
    arena *arena;
    int threads;    /* number of threads of OpenMP regions */
    bool recording; /* false: evaluation, no nodes, no gradients */
    bool training;  /* dropout is active, norms use batch statistics */
    /* backward passes reuse results too, except small ones; set by the owner */
    bool reuse_activations;
    bool bf16;      /* op_linear and op_conv2d multiply in bfloat16; set by the owner */
    rng random;     /* stream of this step; each op that draws takes its own split (tape_random) */
    uint64_t draws; /* ops that drew so far */
    tape_node *last;
    struct tape_spare *spare; /* free memory of gradients and values, smallest first */
    sr_failure failure;
    /* Called after each node of a backward pass, also without a gradient; NULL: not called. */
    void (*passed)(void *context, const tape_node *node);
    void *passed_context;
    /* Called when an op has computed its value, before its node exists; NULL: not called. */
    void (*pushed)(const char *op);
    /* first sample of this pass within the whole batch; random draws depend on it */
    int64_t sample_first;
    int64_t samples;                   /* samples of this pass; 0: the whole batch */
    bool profiling;                    /* set by the owner; costs two clock readings per op */
    double mark;                       /* end of the previous op */
    tape_profile profile[PROFILE_OPS]; /* op NULL ends */
    /* Cache of op_conv2d: prepared data per shape. It outlives the steps; tape_free frees it by
     * conv_cache_free. */
    void *conv_cache;
    void (*conv_cache_free)(void *cache);
    scratch_memory operands; /* packed or rounded operands of products; outlives the steps */
};

/* Returns NULL and *why on failure. threads >= 1. */
tape *tape_create(int threads, sr_failure *why);
void tape_free(tape *t);

/* Starts a step: removes all tensors and nodes and clears the failure. */
void tape_reset(tape *t, rng random, bool training, bool recording);

/* Returns the first failure since the reset, or NULL. */
const sr_failure *tape_failure(const tape *t);
/* Returns its status and copies it to *why; SR_OK without a failure. */
sr_status tape_status(const tape *t, sr_failure *why);
/* Keeps a failure; returns NULL so that ops can `return tape_fail(...)`. */
void *tape_fail(tape *t, sr_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Makes a tensor with undefined value. dim[rank]. NULL and a failure when out of memory or when a
 * dim is < 1. */
tensor *tape_tensor(tape *t, int rank, const int64_t *dim);
/* A tensor with the shape of x. */
tensor *tape_like(tape *t, const tensor *x);
/* A tensor with the shape of x except for the last dimension. */
tensor *tape_with_features(tape *t, const tensor *x, int64_t features);
/* Wraps the caller's memory ([product of dim]), not copied, without gradient. */
tensor *tape_wrap(tape *t, int rank, const int64_t *dim, real *value);
/* A view of the same numbers with another shape (counts must agree). Shares value and gradient. */
tensor *tape_reshape(tape *t, tensor *x, int rank, const int64_t *dim);
/* Scratch memory of this step; NULL and a failure when out of memory. */
void *tape_alloc(tape *t, size_t bytes);
/* Scratch memory for the duration of a function, which then returns it. Spare memory of tensors is
 * used first. */
void *tape_borrow(tape *t, size_t bytes);
void tape_return(tape *t, void *borrowed, size_t bytes);

/* Finishes an op. When the tape records and an input wants a gradient, sets out->wants_grad and
 * adds a node. in ends with NULL or has NODE_INPUTS entries. Returns out (NULL when out of
 * memory). */
tensor *tape_push(tape *t, const char *op, tape_backward_fn *backward, tensor *out,
                  tensor *const *in, void *kept);

/* Like tape_push, for backward functions that read only some values: in[i] for READS_IN(i), out for
 * READS_OUT. tape_push declares all of them. */
#define READS_IN(i) (1u << (i))
enum { READS_NOTHING = 0, READS_INPUTS = (1u << NODE_INPUTS) - 1, READS_OUT = 1u << NODE_INPUTS };
tensor *tape_push_reading(tape *t, const char *op, tape_backward_fn *backward, tensor *out,
                          tensor *const *in, void *kept, unsigned reads);

/* Call when only the op that made y uses x: frees the value of x, unless a backward function reads
 * it or y is x. Returns y. */
tensor *tape_release_input(tape *t, tensor *x, tensor *y);

/* Declares that y, which an op has just pushed, can be recomputed. Returns y. */
tensor *tape_set_recompute(tape *t, tensor *y, tape_recompute_fn *recompute);
/* Call when nothing reads x before the backward pass. A reuse_activations tape frees the value
 * until then, if it can be recomputed. */
void tape_drop_value(tape *t, tensor *x);

/* Returns the buffer for dL/dx; NULL when x wants none or memory ran out. *add false: the buffer is
 * undefined and the caller writes every element; true: the caller adds. */
real *tape_grad(tape *t, tensor *x, bool *add);
/* tape_grad for in[input] of a node, in its backward function. A reuse_activations tape may return
 * the memory of the value, when this node is its only reader (READS_IN). Read each number of the
 * value before writing its gradient. */
real *tape_grad_over(tape *t, const tape_node *node, int input, bool *add);
/* In the backward function of x's op: takes the gradient of x, which the caller returns by
 * tape_return. NULL when out of memory. */
real *tape_keep_grad(tape *t, tensor *x);
/* In the backward function of y's op, with input x: dL/dy becomes dL/dx unchanged and is gone from
 * y; later readers use x. Does nothing and returns false when x wants no gradient, has one already,
 * or has another count. */
bool tape_move_grad(tensor *y, tensor *x);
/* Lets dL/db share the memory of dL/da, until one of them is passed on, or is written (tape_grad),
 * which copies it. Returns false when b wants no gradient, has one, or has another count, or when a
 * shares already. */
bool tape_alias_grad(tensor *a, tensor *b);
/* tape_grad that returns the memory of dL/dy if tape_move_grad succeeds. Read each number of dL/dy
 * before writing dL/dx. */
real *tape_grad_in_place(tape *t, tensor *y, tensor *x, bool *add);
/* dL/dx = dy, or dL/dx += dy; dy [count of x]. */
void tape_pass_grad(tape *t, tensor *x, const real *dy);
/* tape_grad for scattered contributions: zeroed when fresh, always add. */
real *tape_grad_zeroed(tape *t, tensor *x);

/* Sets dL/dloss = seed, then runs every node backward. loss has count 1. */
void tape_backward(tape *t, tensor *loss, real seed);

/* Key of the random stream of the next op that draws. */
uint64_t tape_random(tape *t);
/* Index, within the whole batch, of the first of this pass's `count` elements. Samples are
 * contiguous. */
int64_t tape_first(const tape *t, int64_t count);

/* Rows and features of x as a matrix: the last dimension contains the features. */
static inline int64_t tensor_features(const tensor *x) {
    return x->dim[x->rank - 1];
}
static inline int64_t tensor_rows(const tensor *x) {
    return x->count / tensor_features(x);
}

#endif
