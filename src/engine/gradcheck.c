/* gradcheck.c -- analytic derivatives against central differences; see gradcheck.h.
 *
 *   L(in) = sum_i w_i y_i,  y = f(in),  w uniform in [-1, 1] from a fixed stream
 *   numeric dL/dx = (L(x + h) - L(x - h)) / 2h
 *
 * Every call of f sees the same random stream and the tape in training mode; the calls for the
 * differences do not record. Gradients of the inputs are left as the analytic pass made them. A backward function
 * finds only the values that its op declared to read (tape_push_reading), on a tape that spends them.
 */
#include "statnet/gradcheck.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WEIGHT_STREAM = 0x77, STEP_STREAM = 0x5e };

typedef struct check {
    gradcheck_fn *f;
    tensor *const *in;
    int count;
    void *context;
    double step;
    tape *tape;
    gradcheck_result *result;
    real **value; /* [count] copies of the inputs' */
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

/* What nobody reads is not there: a backward function may have kept where it was. */
static void spoil_unread(const check *c) {
    for (const tape_node *n = c->tape->last; n; n = n->before)
        if (!n->out->readers && n->out->own) spoil(n->out);
    for (int i = 0; i < c->count; i++) {
        if (!c->in[i] || c->in[i]->readers) continue;
        memcpy(c->value[i], c->in[i]->value, bytes_of(c->in[i]));
        spoil(c->in[i]);
    }
}

static void put_back(const check *c) {
    for (int i = 0; i < c->count; i++)
        if (c->in[i] && !c->in[i]->readers)
            memcpy(c->in[i]->value, c->value[i], bytes_of(c->in[i]));
}

static bool make_copies(check *c) {
    c->value = calloc((size_t)c->count + 1, sizeof *c->value);
    bool made = c->value != NULL;
    for (int i = 0; i < c->count && made; i++)
        if (c->in[i]) made = (c->value[i] = malloc(bytes_of(c->in[i]))) != NULL;
    return made;
}

static void free_copies(check *c) {
    for (int i = 0; c->value && i < c->count; i++) free(c->value[i]);
    free(c->value);
}

static void analytic_pass(check *c) {
    for (int i = 0; i < c->count; i++) {
        if (!c->in[i]) continue;
        c->in[i]->readers = 0;
        if (c->in[i]->grad) memset(c->in[i]->grad, 0, (size_t)c->in[i]->count * sizeof(real));
    }
    tensor *loss;
    evaluate(c, true, &loss);
    spoil_unread(c);
    tape_backward(c->tape, loss, 1);
    put_back(c);
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

static void compare(check *c, int input, const double *numeric) {
    const tensor *x = c->in[input];
    double largest = 1;
    for (int64_t i = 0; i < x->count; i++) largest = fmax(largest, fabs(numeric[i]));
    for (int64_t i = 0; i < x->count; i++) {
        double error = fabs((double)x->grad[i] - numeric[i]) / largest;
        if (error <= c->result->worst) continue;
        *c->result = (gradcheck_result){isnan(error) ? INFINITY : error, input, i,
                                        (double)x->grad[i], numeric[i]};
    }
}

static sr_status check_input(check *c, int input, sr_failure *why) {
    const tensor *x = c->in[input];
    double *numeric = malloc((size_t)x->count * sizeof *numeric);
    if (!numeric) return sr_fail(why, SR_MEMORY, "out of memory for a gradient check");
    for (int64_t i = 0; i < x->count; i++) numeric[i] = difference(c, x->value + i);
    compare(c, input, numeric);
    free(numeric);
    return SR_OK;
}

sr_status gradcheck(gradcheck_fn *f, tensor *const *in, int count, void *context, double step,
                    gradcheck_result *result, sr_failure *why) {
    *result = (gradcheck_result){0};
    check c = {f, in, count, context, step, tape_create(1, why), result, NULL};
    if (!c.tape) return SR_MEMORY;
    c.tape->spending = true;
    sr_status status =
        make_copies(&c) ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory for a gradient check");
    if (status == SR_OK) analytic_pass(&c);
    for (int i = 0; i < count && status == SR_OK && !tape_failure(c.tape); i++)
        if (in[i] && in[i]->wants_grad) status = check_input(&c, i, why);
    const sr_failure *failure = tape_failure(c.tape);
    if (failure) status = sr_fail(why, failure->status, "%s", failure->text);
    tape_free(c.tape);
    free_copies(&c);
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
