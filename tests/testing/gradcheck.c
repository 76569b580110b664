/* gradcheck.c -- analytic derivatives against central differences; see gradcheck.h.
 *
 *   L(in) = sum_i w_i y_i,  y = f(in),  w uniform in [-1, 1] from a fixed stream
 *   numeric dL/dx = (L(x + h) - L(x - h)) / 2h
 *
 * Every call of f sees the same random stream and the tape in training mode; the calls for the
 * differences do not record. A backward function sees only the values that its op declared to read
 * (tape_push_reading). One analytic pass runs for each kind of input. COMES_AS_RESULT: another op's
 * result; its value is dropped before the backward pass and recomputed at another address, its
 * gradient not yet started. IS_WRITTEN: a parameter whose gradient is overwritten. IS_ADDED_TO: a
 * parameter whose gradient is accumulated. The last pass leaves its gradients in the inputs.
 * Recomputed results (tape_set_recompute) must be bit-identical.
 */
#include "testing/gradcheck.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WEIGHT_STREAM = 0x77, STEP_STREAM = 0x5e };

/* Kinds of input that a backward function sees, in the order of the passes. */
typedef enum { COMES_AS_RESULT, IS_WRITTEN, IS_ADDED_TO, FORMS } form;

static const char *const form_names[FORMS] = {"of a result", "written", "added"};

/* An input of f, and its memory outside a pass. */
typedef struct entry {
    real *value, *grad;
    real *copy;     /* [count] of the value */
    real *analytic; /* [FORMS, count] */
    tape_node producer;
} entry;

typedef struct check {
    gradcheck_fn *f;
    tensor *const *in;
    int count;
    void *context;
    double step;
    tape *tape;
    gradcheck_result *result;
    entry *entry; /* [count] */
} check;

static double weight(int64_t i) {
    return (double)(rng_at(WEIGHT_STREAM, (uint64_t)i) >> 11) * 0x1p-52 - 1;
}

static void weigh_backward(tape *t, const tape_node *node) {
    tensor *y = node->in[0];
    bool add;
    real *g = tape_grad(t, y, &add);
    if (!g) return;
    for (int64_t i = 0; i < y->count; i++)
        g[i] = node->out->grad[0] * (real)weight(i) + (add ? g[i] : 0);
}

/* L, and the tensor that holds it (its value rounded to real). */
static double evaluate(check *c, bool recording, tensor **loss) {
    tape_reset(c->tape, rng_create(STEP_STREAM), true, recording);
    tensor *y = c->f(c->tape, c->in, c->context);
    double sum = 0;
    for (int64_t i = 0; y && i < y->count; i++) sum += (double)y->value[i] * weight(i);
    if (!loss) return sum;
    *loss = y ? tape_tensor(c->tape, 1, (int64_t[]){1}) : NULL;
    if (!*loss) return sum;
    (*loss)->value[0] = (real)sum;
    *loss = tape_push_reading(c->tape, "weigh", weigh_backward, *loss, (tensor *[]){y, NULL}, NULL,
                              READS_NOTHING);
    return sum;
}

static size_t bytes_of(const tensor *x) {
    return (size_t)x->count * sizeof *x->value;
}

static void spoil(tensor *x) {
    memset(x->value, 0xff, bytes_of(x)); /* NaN */
}

/* Overwrites values without readers: a backward function may have kept their address. Results that
 * can be recomputed are recomputed first. */
static void spoil_unread(const check *c, bool recomputed) {
    for (const tape_node *n = c->tape->last; n; n = n->before)
        if (!n->out->readers && n->out->own && !n->recompute == !recomputed) spoil(n->out);
    for (int i = 0; i < c->count; i++)
        if (c->in[i] && c->in[i]->value && !c->in[i]->readers) spoil(c->in[i]);
}

/* -- recomputable results */

static bool has_what_it_reads(const tape_node *n) {
    for (int i = 0; i < NODE_INPUTS && n->in[i]; i++)
        if ((n->reads & READS_IN(i)) && !n->in[i]->value) return false;
    return n->out->value != NULL;
}

static void recompute_node(tape *t, const tape_node *n) {
    const size_t bytes = bytes_of(n->out);
    real *was = tape_alloc(t, bytes);
    if (!was) return;
    memcpy(was, n->out->value, bytes);
    spoil(n->out);
    n->recompute(t, n);
    if (memcmp(was, n->out->value, bytes))
        tape_fail(t, SR_USAGE, "%s: made again, the result has other bytes", n->op);
}

static void make_all_again(tape *t) {
    for (const tape_node *n = t->last; n; n = n->before)
        if (n->recompute && has_what_it_reads(n)) recompute_node(t, n);
}

static void copy_back(tape *t, const tape_node *node) {
    (void)t;
    memcpy(node->out->value, ((const entry *)node->kept)->copy, bytes_of(node->out));
}

/* Drops values that are read, so that they come back at another address. A view has no own memory
 * and stays. */
static void take_away(const check *c) {
    for (const tape_node *n = c->tape->last; n; n = n->before)
        if (n->out->producer && n->out->own && n->out->value) {
            spoil(n->out);
            tape_drop_value(c->tape, n->out);
        }
    for (int i = 0; i < c->count; i++) {
        tensor *x = c->in[i];
        if (!x || !x->own || !x->value || !x->readers) continue;
        spoil(x);
        x->value = NULL;
        x->own = false;
    }
}

/* -- the analytic passes */

/* An accumulated gradient starts with ones, an overwritten one with NaN. */
static void arrange_input(tensor *x, entry *e, form how) {
    x->readers = 0;
    x->has_grad = how == IS_ADDED_TO;
    for (int64_t i = 0; x->grad && i < x->count; i++) x->grad[i] = x->has_grad ? 1 : (real)NAN;
    if (how != COMES_AS_RESULT) return;
    e->producer = (tape_node){.op = "input", .out = x, .kept = e, .recompute = copy_back};
    x->producer = &e->producer;
    x->own = true;
    x->grad = NULL;
}

static void collect_input(tensor *x, entry *e, form how) {
    real *to = e->analytic + how * x->count;
    const real before = how == IS_ADDED_TO ? 1 : 0;
    const bool came = x->has_grad && x->grad;
    for (int64_t i = 0; i < x->count; i++) to[i] = came ? x->grad[i] - before : 0;
    x->value = e->value;
    x->grad = e->grad;
    x->has_grad = true;
    x->own = false;
    x->producer = NULL;
    memcpy(x->value, e->copy, bytes_of(x));
    if (x->grad) memcpy(x->grad, to, bytes_of(x));
}

static void analytic_pass(check *c, form how) {
    for (int i = 0; i < c->count; i++)
        if (c->in[i]) arrange_input(c->in[i], &c->entry[i], how);
    tensor *loss;
    evaluate(c, true, &loss);
    spoil_unread(c, false);
    make_all_again(c->tape);
    spoil_unread(c, true);
    if (how == COMES_AS_RESULT) take_away(c);
    tape_backward(c->tape, loss, 1);
    for (int i = 0; i < c->count; i++)
        if (c->in[i]) collect_input(c->in[i], &c->entry[i], how);
}

static bool make_entries(check *c) {
    c->entry = calloc((size_t)c->count + 1, sizeof *c->entry);
    bool made = c->entry != NULL;
    for (int i = 0; i < c->count && made; i++) {
        if (!c->in[i]) continue;
        entry *e = &c->entry[i];
        e->value = c->in[i]->value;
        e->grad = c->in[i]->grad;
        e->copy = malloc(bytes_of(c->in[i]));
        e->analytic = malloc(FORMS * bytes_of(c->in[i]));
        made = e->copy && e->analytic;
        if (made) memcpy(e->copy, e->value, bytes_of(c->in[i]));
    }
    return made;
}

static void free_entries(check *c) {
    for (int i = 0; c->entry && i < c->count; i++)
        free(c->entry[i].copy), free(c->entry[i].analytic);
    free(c->entry);
}

static double difference(check *c, real *x) {
    const real held = *x;
    const real above = held + (real)c->step, below = held - (real)c->step;
    *x = above;
    double up = evaluate(c, false, NULL);
    *x = below;
    double down = evaluate(c, false, NULL);
    *x = held;
    return (up - down) / ((double)above - (double)below);
}

static void compare(check *c, int input, form how, const double *numeric) {
    const tensor *x = c->in[input];
    const real *got = c->entry[input].analytic + how * x->count;
    double largest = 1;
    for (int64_t i = 0; i < x->count; i++) largest = fmax(largest, fabs(numeric[i]));
    for (int64_t i = 0; i < x->count; i++) {
        double error = fabs((double)got[i] - numeric[i]) / largest;
        if (error <= c->result->worst) continue;
        *c->result = (gradcheck_result){isnan(error) ? INFINITY : error,
                                        input,
                                        i,
                                        (double)got[i],
                                        numeric[i],
                                        form_names[how],
                                        c->result->apart};
    }
}

/* The passes against the last one. */
static void compare_passes(check *c, int input) {
    const int64_t count = c->in[input]->count;
    const real *last = c->entry[input].analytic + IS_ADDED_TO * count;
    double largest = 1;
    for (int64_t i = 0; i < count; i++) largest = fmax(largest, fabs((double)last[i]));
    for (form how = 0; how < IS_ADDED_TO; how++)
        for (int64_t i = 0; i < count; i++) {
            const double got = (double)c->entry[input].analytic[how * count + i];
            const double apart = fabs(got - (double)last[i]) / largest;
            if (!(apart <= c->result->apart)) c->result->apart = isnan(apart) ? INFINITY : apart;
        }
}

static sr_status check_input(check *c, int input, sr_failure *why) {
    const tensor *x = c->in[input];
    double *numeric = malloc((size_t)x->count * sizeof *numeric);
    if (!numeric) return sr_fail(why, SR_MEMORY, "out of memory for a gradient check");
    for (int64_t i = 0; i < x->count; i++) numeric[i] = difference(c, x->value + i);
    for (form how = 0; how < FORMS; how++) compare(c, input, how, numeric);
    compare_passes(c, input);
    free(numeric);
    return SR_OK;
}

sr_status gradcheck(gradcheck_fn *f, tensor *const *in, int count, void *context, double step,
                    gradcheck_result *result, sr_failure *why) {
    *result = (gradcheck_result){0};
    check c = {f, in, count, context, step, tape_create(1, why), result, NULL};
    if (!c.tape) return SR_MEMORY;
    c.tape->reuse_activations = true;
    sr_status status =
        make_entries(&c) ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory for a gradient check");
    for (form how = 0; how < FORMS && status == SR_OK && !tape_failure(c.tape); how++)
        analytic_pass(&c, how);
    for (int i = 0; i < count && status == SR_OK && !tape_failure(c.tape); i++)
        if (in[i] && in[i]->wants_grad) status = check_input(&c, i, why);
    const sr_failure *failure = tape_failure(c.tape);
    if (failure) status = sr_fail(why, failure->status, "%s", failure->text);
    tape_free(c.tape);
    free_entries(&c);
    return status;
}

static real *numbers(int64_t count) {
    size_t bytes = ((size_t)count * sizeof(real) + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
    return aligned_alloc(ARENA_ALIGN, bytes);
}

tensor *gradcheck_tensor(int rank, const int64_t *dim, uint64_t seed, bool wants_grad) {
    tensor *x = calloc(1, sizeof *x);
    if (!x) return NULL;
    *x = (tensor){.rank = rank, .dim = {1, 1, 1, 1}, .count = 1, .wants_grad = wants_grad};
    for (int i = 0; i < rank; i++) x->count *= x->dim[i] = dim[i];
    x->value = numbers(x->count);
    x->grad = numbers(x->count);
    x->has_grad = true;
    if (!x->value || !x->grad) {
        gradcheck_tensor_free(x);
        return NULL;
    }
    rng r = rng_create(seed);
    for (int64_t i = 0; i < x->count; i++) x->value[i] = (real)(float)rng_normal(&r);
    memset(x->grad, 0, (size_t)x->count * sizeof *x->grad);
    return x;
}

void gradcheck_tensor_free(tensor *x) {
    if (!x) return;
    free(x->value);
    free(x->grad);
    free(x);
}
