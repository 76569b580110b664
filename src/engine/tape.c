/* tape.c -- records ops as nodes, runs them backward, and reuses the memory of tensors. */
#include "engine/tape.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/program/progress.h"
#include "engine/work_chunks.h"

tape *tape_create(int threads, sr_failure *why) {
    if (threads < 1) {
        sr_fail(why, SR_USAGE, "threads: %d is not positive", threads);
        return NULL;
    }
    tape *t = calloc(1, sizeof *t);
    if (t) t->arena = arena_create(0);
    if (!t || !t->arena) {
        free(t);
        sr_fail(why, SR_MEMORY, "out of memory for a tape");
        return NULL;
    }
    t->threads = threads;
    return t;
}

void tape_free(tape *t) {
    if (!t) return;
    if (t->conv_cache_free) t->conv_cache_free(t->conv_cache);
    arena_free(t->arena);
    free(t->operands.start);
    free(t);
}

void tape_reset(tape *t, rng random, bool training, bool recording) {
    arena_reset(t->arena);
    t->random = random;
    t->draws = 0;
    t->training = training;
    t->recording = recording;
    t->last = NULL;
    t->spare = NULL;
    t->failure = (sr_failure){0};
    if (t->profiling) t->mark = progress_clock();
}

const sr_failure *tape_failure(const tape *t) {
    return t->failure.status == SR_OK ? NULL : &t->failure;
}

sr_status tape_status(const tape *t, sr_failure *why) {
    const sr_failure *f = tape_failure(t);
    return f ? sr_fail(why, f->status, "%s", f->text) : SR_OK;
}

void *tape_fail(tape *t, sr_status status, const char *format, ...) {
    char text[SR_FAILURE_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    sr_fail(&t->failure, status, "%s", text);
    return NULL;
}

void *tape_alloc(tape *t, size_t bytes) {
    void *p = arena_alloc(t->arena, bytes);
    return p ? p : tape_fail(t, SR_MEMORY, "out of memory for %zu bytes of a step", bytes);
}

/* Makes a tensor of this shape without a value. */
static tensor *shaped(tape *t, int rank, const int64_t *dim) {
    if (rank < 1 || rank > 4) return tape_fail(t, SR_USAGE, "tensor of rank %d", rank);
    tensor *x = tape_alloc(t, sizeof *x);
    if (!x) return NULL;
    *x = (tensor){.rank = rank, .dim = {1, 1, 1, 1}, .count = 1};
    for (int i = 0; i < rank; i++) {
        if (dim[i] < 1 || x->count > INT64_MAX / (int64_t)sizeof(real) / dim[i])
            return tape_fail(t, SR_USAGE, "tensor dimension %d is %lld", i, (long long)dim[i]);
        x->dim[i] = dim[i];
        x->count *= dim[i];
    }
    return x;
}

tensor *tape_wrap(tape *t, int rank, const int64_t *dim, real *value) {
    tensor *x = shaped(t, rank, dim);
    if (x) x->value = value;
    return x;
}

/* Returns the time since the mark and moves the mark to now. */
static double profile_lap(tape *t) {
    double now = progress_clock(), passed = now - t->mark;
    t->mark = now;
    return passed;
}

/* Returns the row of this op. The last row collects all ops that do not fit. */
static tape_profile *profile_row(tape *t, const char *op) {
    int i = 0;
    while (i < PROFILE_OPS - 1 && t->profile[i].op && strcmp(t->profile[i].op, op)) i++;
    if (!t->profile[i].op) t->profile[i].op = op;
    return &t->profile[i];
}

tensor *tape_push_reading(tape *t, const char *op, tape_backward_fn *backward, tensor *out,
                          tensor *const *in, void *kept, unsigned reads) {
    if (t->profiling) {
        tape_profile *row = profile_row(t, op);
        row->forward += profile_lap(t);
        row->calls++;
    }
    if (t->pushed) t->pushed(op);
    if (!out || !t->recording) return out;
    tape_node node = {.op = op,
                      .backward = backward,
                      .out = out,
                      .kept = kept,
                      .reads = reads,
                      .before = t->last};
    for (int i = 0; i < NODE_INPUTS && in[i]; i++) {
        node.in[i] = in[i];
        out->wants_grad |= in[i]->wants_grad;
    }
    if (!out->wants_grad) return out;
    out->readers += (reads & READS_OUT) != 0;
    for (int i = 0; i < NODE_INPUTS && in[i]; i++) in[i]->readers += (reads & READS_IN(i)) != 0;
    t->last = tape_alloc(t, sizeof node);
    if (!t->last) return NULL;
    *t->last = node;
    return out;
}

tensor *tape_push(tape *t, const char *op, tape_backward_fn *backward, tensor *out,
                  tensor *const *in, void *kept) {
    return tape_push_reading(t, op, backward, out, in, kept, READS_INPUTS | READS_OUT);
}

/* -- memory of tensors
 *
 * A backward pass needs few gradients at a time, and the next op alone reads many results. Free
 * memory goes into a list of spare blocks, sorted by size, which later tensors use first. */

/* A spare block; it is stored in the block itself. */
struct tape_spare {
    struct tape_spare *next;
    int64_t count; /* numbers in the block */
};

enum { SPARE_ALIGN = 64 / sizeof(real), SPARE_LEAST = SPARE_ALIGN };

static void put_spare(tape *t, real *at, int64_t count) {
    struct tape_spare **link = &t->spare, *s = (void *)at;
    if (!at || count < SPARE_LEAST) return;
    while (*link && (*link)->count < count) link = &(*link)->next;
    *s = (struct tape_spare){*link, count};
    *link = s;
}

static void give_value(tape *t, tensor *x) {
    if (!x->own || x->count < SPARE_LEAST) return;
    put_spare(t, x->value, x->count);
    x->value = NULL;
    x->own = false;
}

/* Ends the sharing of x's gradient memory; false when x shares with no tensor. */
static bool unlink_twin(tensor *x) {
    if (!x->twin) return false;
    x->twin = x->twin->twin = NULL;
    return true;
}

/* Takes the smallest block that is large enough; the rest stays spare. */
static real *take_spare(tape *t, int64_t count) {
    struct tape_spare **link = &t->spare;
    while (*link && (*link)->count < count) link = &(*link)->next;
    struct tape_spare *s = *link;
    if (!s) return NULL;
    *link = s->next;
    const int64_t used = (count + SPARE_ALIGN - 1) / SPARE_ALIGN * SPARE_ALIGN,
                  left = s->count - used;
    real *at = (real *)(void *)s;
    put_spare(t, at + used, left);
    return at;
}

static real *take_reals(tape *t, int64_t count) {
    real *at = take_spare(t, count);
    return at ? at : tape_alloc(t, (size_t)count * sizeof *at);
}

static int64_t reals_of(size_t bytes) {
    return (int64_t)((bytes + sizeof(real) - 1) / sizeof(real));
}

void *tape_borrow(tape *t, size_t bytes) {
    return take_reals(t, reals_of(bytes));
}

void tape_return(tape *t, void *borrowed, size_t bytes) {
    if (borrowed) put_spare(t, borrowed, reals_of(bytes));
}

tensor *tape_tensor(tape *t, int rank, const int64_t *dim) {
    tensor *x = shaped(t, rank, dim);
    if (x) x->value = take_reals(t, x->count);
    if (!x || !x->value) return NULL;
    x->own = true;
    return x;
}

tensor *tape_like(tape *t, const tensor *x) {
    return x ? tape_tensor(t, x->rank, x->dim) : NULL;
}

tensor *tape_with_features(tape *t, const tensor *x, int64_t features) {
    int64_t dim[4] = {x->dim[0], x->dim[1], x->dim[2], x->dim[3]};
    dim[x->rank - 1] = features;
    return tape_tensor(t, x->rank, dim);
}

tensor *tape_release_input(tape *t, tensor *x, tensor *y) {
    if (x && y && x != y && !x->readers) give_value(t, x);
    return y;
}

tensor *tape_set_recompute(tape *t, tensor *y, tape_recompute_fn *recompute) {
    if (!y || !t->last || t->last->out != y) return y;
    t->last->recompute = recompute;
    y->producer = t->last;
    return y;
}

void tape_drop_value(tape *t, tensor *x) {
    if (t->reuse_activations && x && x->producer) give_value(t, x);
}

static void recompute_value(tape *t, tensor *x);

/* Recomputes the dropped values that the node reads. */
static void recompute_inputs(tape *t, const tape_node *n) {
    for (int i = 0; i < NODE_INPUTS && n->in[i]; i++)
        if (n->reads & READS_IN(i)) recompute_value(t, n->in[i]);
}

static void recompute_value(tape *t, tensor *x) {
    if (x->value || !x->producer) return;
    recompute_inputs(t, x->producer);
    x->value = take_reals(t, x->count);
    x->own = x->value != NULL;
    if (x->value) x->producer->recompute(t, x->producer);
}

/* Gives x's gradient separate memory, with its previous contents; false when out of memory. */
static bool own_grad(tape *t, tensor *x) {
    const real *shared = x->twin ? x->grad : NULL;
    if (!x->grad || shared) {
        real *own = take_reals(t, x->count);
        if (!own) return false;
        x->grad = own;
    }
    if (shared) memcpy(x->grad, shared, (size_t)x->count * sizeof *shared);
    unlink_twin(x);
    return true;
}

real *tape_grad(tape *t, tensor *x, bool *add) {
    *add = false;
    if (!x || !x->wants_grad || !own_grad(t, x)) return NULL;
    *add = x->has_grad;
    x->has_grad = true;
    return x->grad;
}

real *tape_grad_over(tape *t, const tape_node *node, int input, bool *add) {
    tensor *x = node->in[input];
    /* otherwise the only reader is another node, which still has to run */
    const bool reads = node->reads & READS_IN(input);
    if (t->reuse_activations && x->wants_grad && !x->grad && x->own && x->readers == 1 && reads) {
        x->grad = x->value;
        x->own = false;
    }
    return tape_grad(t, x, add);
}

/* Detaches the gradient from y and returns it. */
static real *take_grad(tensor *y) {
    real *g = y->grad;
    if (g == y->value) y->value = NULL, y->own = false;
    y->grad = NULL;
    return g;
}

real *tape_keep_grad(tape *t, tensor *x) {
    return own_grad(t, x) ? take_grad(x) : NULL;
}

static void link_twins(tensor *a, tensor *b) {
    a->twin = b;
    b->twin = a;
}

bool tape_move_grad(tensor *y, tensor *x) {
    tensor *twin = y->twin;
    if (!x->wants_grad || x->grad || x->count != y->count) return false;
    x->grad = take_grad(y);
    if (unlink_twin(y)) link_twins(x, twin);
    return x->has_grad = true;
}

bool tape_alias_grad(tensor *a, tensor *b) {
    if (!b->wants_grad || b->grad || a->twin || a->count != b->count) return false;
    b->grad = a->grad;
    link_twins(a, b);
    return b->has_grad = true;
}

real *tape_grad_in_place(tape *t, tensor *y, tensor *x, bool *add) {
    *add = false;
    return !y->twin && tape_move_grad(y, x) ? x->grad : tape_grad(t, x, add);
}

real *tape_grad_zeroed(tape *t, tensor *x) {
    bool add;
    real *g = tape_grad(t, x, &add);
    if (g && !add) memset(g, 0, (size_t)x->count * sizeof *g);
    return g;
}

void tape_pass_grad(tape *t, tensor *x, const real *dy) {
    bool add;
    real *dx = tape_grad(t, x, &add);
    if (!dx) return;
    const int64_t chunks = chunk_count(x->count);
#pragma omp parallel for num_threads(t->threads) schedule(static) if (chunks > 1)
    for (int64_t p = 0; p < chunks; p++) {
        const int64_t end = p * CHUNK + chunk_length(p, x->count);
        for (int64_t i = p * CHUNK; add && i < end; i++) dx[i] += dy[i];
        for (int64_t i = p * CHUNK; !add && i < end; i++) dx[i] = dy[i];
    }
}

/* A view shares the value. Its gradient moves to x, or is added. */
static void reshape_backward(tape *t, const tape_node *node) {
    if (!tape_move_grad(node->out, node->in[0])) tape_pass_grad(t, node->in[0], node->out->grad);
}

tensor *tape_reshape(tape *t, tensor *x, int rank, const int64_t *dim) {
    if (!x) return NULL;
    tensor *y = tape_wrap(t, rank, dim, x->value);
    if (!y) return NULL;
    x->own = false;
    if (y->count != x->count)
        return tape_fail(t, SR_USAGE, "reshape of %lld numbers to %lld", (long long)x->count,
                         (long long)y->count);
    return tape_push(t, "reshape", reshape_backward, y, (tensor *[]){x, NULL}, NULL);
}

void tape_backward(tape *t, tensor *loss, real seed) {
    if (!loss || tape_failure(t)) return;
    bool add;
    real *g = tape_grad(t, loss, &add);
    if (!g) return;
    g[0] = add ? g[0] + seed : seed;
    if (t->profiling) profile_lap(t);
    for (const tape_node *n = t->last; n && !tape_failure(t); n = n->before) {
        if (n->out->has_grad) {
            recompute_inputs(t, n);
            if (!tape_failure(t)) n->backward(t, n);
            /* Frees x's gradient after it was passed on. All readers of the value came before. */
            if (!unlink_twin(n->out)) put_spare(t, n->out->grad, n->out->count);
            /* both share memory after tape_grad_over */
            if (n->out->grad && n->out->grad == n->out->value) n->out->value = NULL;
            n->out->grad = NULL;
            n->out->has_grad = false;
            if (t->reuse_activations) give_value(t, n->out);
        }
        if (t->passed) t->passed(t->passed_context, n);
        if (t->profiling) profile_row(t, n->op)->backward += profile_lap(t);
    }
}

int64_t tape_first(const tape *t, int64_t count) {
    return t->samples > 0 ? t->sample_first * (count / t->samples) : 0;
}

uint64_t tape_random(tape *t) {
    return rng_split(&t->random, t->draws++).key;
}
