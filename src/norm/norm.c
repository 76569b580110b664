/* norm.c -- one normalization layer: valid rows, the context of a call, tape node, parameter
 * gradients, layer scale, hooks. The mathematics of a method is in its file. */
#include "norm/norm_site.h"

#include <math.h>
#include <string.h>

#include "norm/bn_observer.h"
#include "norm/kernels/batch_stats.h"

/* One call, from forward to backward. */
typedef struct applied {
    norm_site *site;
    norm_call call;
    const real *x;              /* [rows, d] input of the method */
    layer_scale scale;          /* before the method; groups is 0 without one */
    bn_observer_call *observer; /* or NULL */
} applied;

_Static_assert(NORM_VECTOR_COUNT <= 32 && NORM_SCALAR_COUNT <= 32, "sets are bits of uint32_t");

static void zero_padded(const norm_call *c, real *y) {
    const norm_rows *r = c->rows;
    for (int64_t i = 0; r->mask && i < r->rows; i++)
        if (!r->mask[i]) memset(y + i * c->features, 0, (size_t)c->features * sizeof *y);
}

/* -- forward ----------------------------------------------------------------------------------- */

static bool is_training(const norm_rows *r) {
    return r->mode == NORM_TRAIN || r->frozen;
}

/* Whether no process has rows to normalize. Releases do not synchronize. */
static bool empty(const norm_site *s, const norm_call *c) {
    return c->rows->valid == 0 && (!c->rows->gather || s->method->padded);
}

static sr_status make_stats(norm_call *c) {
    int64_t count = NORM_VECTOR_COUNT * c->features;
    double *stat = tape_alloc(c->tape, (size_t)count * sizeof *stat);
    if (!stat) return SR_MEMORY;
    for (int64_t i = 0; i < count; i++) stat[i] = NAN;
    for (int v = 0; v < NORM_VECTOR_COUNT; v++) c->stat[v] = stat + v * c->features;
    for (int v = 0; v < NORM_SCALAR_COUNT; v++) c->scalar[v] = NAN;
    for (int64_t k = 0; k < c->features; k++) c->stat[NORM_gamma][k] = (double)c->gamma[k];
    c->dgamma = c->stat[NORM_sum_gx];
    c->dbeta = c->stat[NORM_sum_g];
    return SR_OK;
}

static sr_status make_own(norm_call *c, const norm_site *s) {
    for (int i = 0; i < NORM_OWN_MAX; i++) {
        if (!s->own[i]) continue;
        size_t bytes = (size_t)s->own[i]->count * sizeof(double);
        c->own[i] = s->own[i]->value;
        c->own_grad[i] = tape_alloc(c->tape, bytes);
        if (!c->own_grad[i]) return SR_MEMORY;
        memset(c->own_grad[i], 0, bytes);
    }
    return SR_OK;
}

static sr_status make_call(applied *a, norm_site *s, tape *t, const norm_rows *rows) {
    const bool counts = rows->mode == NORM_TRAIN;
    a->site = s;
    a->call = (norm_call){
        .method = s->method,
        .rows = rows,
        .features = s->features,
        .options = &s->options,
        .threads = t->threads,
        .has_hook = is_training(rows) && (s->forward_hook || s->backward_hook),
        .want_rows = counts && s->want_rows && s->backward_hook,
        .gamma = s->gamma ? s->gamma->value : s->ones,
        .beta = s->beta ? s->beta->value : s->zeros,
        .state = s->state,
        .tape = t,
    };
    a->call.calls = s->calls + (counts && !empty(s, &a->call));
    sr_status status = make_stats(&a->call);
    if (status == SR_OK) status = make_own(&a->call, s);
    size_t kept = s->method->kept_bytes ? s->method->kept_bytes(&a->call) : 0;
    if (status != SR_OK || !kept) return status;
    a->call.kept = tape_alloc(t, kept);
    if (!a->call.kept) return SR_MEMORY;
    memset(a->call.kept, 0, kept);
    return SR_OK;
}

/* Rows whose layer scale the method's first pass does not compute. */
static sr_status rows_to_scale(const applied *a, column_passes *m) {
    const norm_call *c = &a->call;
    const norm_method *method = a->site->method;
    bool fused = method->fuses_scale && c->rows->mode != NORM_RUNNING;
    sr_status status = SR_OK;
    *m = method->padded ? column_passes_all(c) : column_passes_valid(c);
    if (fused && method->padded) status = column_passes_padded(c, m);
    if (fused && !method->padded) m->rows = 0;
    m->scale = &a->scale;
    return status;
}

/* Writes u to memory, in every row that has a scale. */
static const real *scaled_input(applied *a) {
    norm_call *c = &a->call;
    column_passes m = a->site->method->padded ? column_passes_all(c) : column_passes_valid(c);
    if (a->scale.u) return a->scale.u;
    a->scale.u = tape_alloc(c->tape, (size_t)(c->rows->rows * c->features) * sizeof(real));
    m.scale = &a->scale;
    if (a->scale.u) column_passes_scale_rows(&m, layer_scale_apply);
    return a->scale.u;
}

/* Sets the input of the method: x, if the method divides it itself, or the layer scale of x in
 * memory. */
static sr_status scale_input(applied *a, const tensor *x) {
    norm_call *c = &a->call;
    int64_t groups = c->options->layer_scale;
    column_passes m;
    a->x = x->value;
    if (!groups) return SR_OK;
    double *inverse = tape_alloc(c->tape, (size_t)(c->rows->rows * groups) * sizeof *inverse);
    if (!inverse) return SR_MEMORY;
    a->scale = (layer_scale){.groups = groups,
                             .width = c->features / groups,
                             .eps = c->options->eps,
                             .x = x->value,
                             .inverse = inverse,
                             .made = c->rows->mode == NORM_RUNNING};
    if (rows_to_scale(a, &m) != SR_OK) return SR_MEMORY;
    column_passes_scale_rows(&m, layer_scale_make);
    if (a->site->method->fuses_scale)
        c->scale = &a->scale;
    else
        a->x = scaled_input(a);
    return a->x ? SR_OK : SR_MEMORY;
}

/* Calls a hook of the site, with the input of the method. This is NULL when it is not in memory and
 * the hook does not want it. */
static sr_status call_hook(applied *a, norm_hook_fn *hook, norm_view o) {
    const norm_site *s = a->site;
    o.site = s;
    o.call = &a->call;
    o.x = !a->call.scale ? a->x : s->want_input ? scaled_input(a) : NULL;
    if (!o.x && s->want_input) return SR_MEMORY;
    hook(s->hook_context, &o);
    return SR_OK;
}

/* Records the state from before the call, if it is one of the vectors. */
static void record_state(norm_call *c) {
    static const char *const vector[] = {
#define VECTOR_NAME(name) #name,
        NORM_VECTORS(VECTOR_NAME)
#undef VECTOR_NAME
    };
    for (int i = 0; i < NORM_STATE_MAX && c->method->state[i].name; i++)
        for (int v = 0; v < NORM_VECTOR_COUNT; v++)
            if (!strcmp(vector[v], c->method->state[i].name))
                memcpy(c->stat[v], c->state[i], (size_t)c->features * sizeof(double));
}

static sr_status run_forward(applied *a, const tensor *x, real *y) {
    norm_call *c = &a->call;
    norm_site *s = a->site;
    if (empty(s, c)) {
        memset(y, 0, (size_t)x->count * sizeof *y);
        a->x = x->value;
    } else {
        sr_status status = scale_input(a, x);
        batch_kept unused = {0}; /* statistics that the frozen method does not need itself */
        if (status == SR_OK && c->rows->frozen && c->has_hook)
            status = batch_statistics(c, &unused, a->x);
        record_state(c);
        if (status == SR_OK) status = s->method->forward(c, a->x, y);
        a->scale.made = true;
        if (status == SR_OK) status = bn_observer_forward(s, c, a->x, &a->observer);
        if (status != SR_OK) return status;
        if (!s->method->padded) zero_padded(c, y);
        if (s->calls != c->calls) s->calls = c->calls; /* parallel decoders only read */
    }
    const bool final = c->rows->mode == NORM_BATCH && s->hook_in_batch_mode;
    if (!s->forward_hook || !(is_training(c->rows) || final)) return SR_OK;
    return call_hook(a, s->forward_hook, (norm_view){.y = y});
}

/* Recomputes y after the tape dropped it. */
static void norm_recompute(tape *t, const tape_node *node) {
    applied *a = node->kept;
    norm_call *c = &a->call;
    real *y = node->out->value;
    a->x = node->in[0]->value;
    sr_status status = a->site->method->recompute(c, a->x, y);
    if (!a->site->method->padded) zero_padded(c, y);
    if (status != SR_OK) tape_fail(t, status, "%s: recomputing failed", a->site->name);
}

/* -- backward ---------------------------------------------------------------------------------- */

/* Adds the sums of this call to the gradient of gain or bias. */
static void add_parameter_gradient(tape *t, tensor *p, const double *sum) {
    bool add;
    real *g = tape_grad(t, p, &add);
    if (!g) return;
    for (int64_t k = 0; k < p->count; k++)
        g[k] = add ? (real)((double)g[k] + sum[k]) : (real)sum[k];
}

/* Passes dx through the layer scale to `out`: in the method's last pass, or after it. */
static sr_status scaled_backward(applied *a, const real *dy, real *dx, real *out) {
    norm_call *c = &a->call;
    const norm_method *method = a->site->method;
    column_passes m = method->padded ? column_passes_all(c) : column_passes_valid(c);
    if (!a->scale.groups) return method->backward(c, a->x, dy, dx);
    a->scale.du = dx;
    a->scale.dx = out;
    m.scale = &a->scale;
    sr_status status = method->backward(c, a->x, dy, dx);
    if (status == SR_OK && !c->scale) column_passes_scale_rows(&m, layer_scale_backward);
    if (status == SR_OK && !method->padded && out != dx) zero_padded(c, out);
    return status;
}

/* Writes the gradient of this layer's own input to dx, which hooks see, and of the layer's input to
 * `out`. Both are the same memory when no hook needs dx, or when they are equal. */
static sr_status run_backward(applied *a, const real *dy, real *dx, real *out) {
    norm_call *c = &a->call;
    norm_site *s = a->site;
    if (empty(s, c)) {
        memset(dx, 0, (size_t)(c->rows->rows * c->features) * sizeof *dx);
        if (out != dx) memset(out, 0, (size_t)(c->rows->rows * c->features) * sizeof *out);
    } else {
        sr_status status = scaled_backward(a, dy, dx, out);
        if (status == SR_OK) status = bn_observer_backward(a->observer, c, a->x, dy);
        if (status != SR_OK) return status;
        if (!s->method->padded) zero_padded(c, dx);
    }
    /* No gradient flows through frozen statistics. */
    for (int i = 0; i < NORM_SCALAR_COUNT && c->rows->frozen; i++) c->scalar[i] = NAN;
    if (!s->backward_hook || !is_training(c->rows)) return SR_OK;
    const bool unknown = a->scale.groups && out == dx;
    return call_hook(a, s->backward_hook, (norm_view){.dy = dy, .dx = unknown ? NULL : dx});
}

/* Adds the input gradient to `grad`, or overwrites it. */
static sr_status input_gradient(applied *a, tape *t, const tensor *x, const real *dy, real *grad,
                                bool add) {
    const bool apart = !grad || add, twice = a->scale.groups && a->site->want_input;
    const size_t bytes = (size_t)x->count * sizeof *grad;
    real *out = apart ? tape_borrow(t, bytes) : grad;
    real *dx = twice ? tape_borrow(t, bytes) : out;
    sr_status status = out && dx ? run_backward(a, dy, dx, out) : SR_MEMORY;
    if (status == SR_OK && grad && add) {
#pragma omp parallel for num_threads(t->threads) schedule(static)
        for (int64_t i = 0; i < x->count; i++) grad[i] += out[i];
    }
    if (twice) tape_return(t, dx, bytes);
    if (apart) tape_return(t, out, bytes);
    return status;
}

static void norm_backward(tape *t, const tape_node *node) {
    applied *a = node->kept;
    tensor *x = node->in[0];
    bool add = false;
    real *grad = tape_grad(t, x, &add);
    if (x->wants_grad && !grad) return;
    /* Values recomputed since the forward pass may be at other addresses. */
    const norm_site *s = a->site;
    if (a->x != a->scale.u) a->x = x->value;
    a->scale.x = x->value;
    if (s->gamma) a->call.gamma = s->gamma->value;
    if (s->beta) a->call.beta = s->beta->value;
    for (int i = 0; i < NORM_OWN_MAX; i++)
        if (s->own[i]) a->call.own[i] = s->own[i]->value;
    sr_status status = input_gradient(a, t, x, node->out->grad, grad, add);
    if (status != SR_OK) tape_fail(t, status, "%s (%s): backward failed", s->name, s->method->name);
    if (status != SR_OK || empty(s, &a->call)) return;
    if (s->gamma) add_parameter_gradient(t, s->gamma, a->call.dgamma);
    if (s->beta) add_parameter_gradient(t, s->beta, a->call.dbeta);
    for (int i = 0; i < NORM_OWN_MAX; i++)
        if (s->own[i]) add_parameter_gradient(t, s->own[i], a->call.own_grad[i]);
}

/* -- the op ------------------------------------------------------------------------------------ */

static sr_status check_input(const norm_site *s, tape *t, const tensor *x, const norm_rows *rows) {
    if (tensor_features(x) == s->features && tensor_rows(x) == rows->rows &&
        rows->valid <= rows->rows && (rows->index || rows->valid == rows->rows))
        return SR_OK;
    tape_fail(t, SR_USAGE,
              "%s: input of %lld rows of %lld features, layer of %lld features, %lld of %lld rows "
              "valid",
              s->name, (long long)tensor_rows(x), (long long)tensor_features(x),
              (long long)s->features, (long long)rows->valid, (long long)rows->rows);
    return SR_USAGE;
}

bool norm_site_has_running(const norm_site *s) {
    return s->method->vectors & (NORM_BIT(mu) | NORM_BIT(sigma2) | NORM_BIT(psi2));
}

/* The same rows in another mode; NULL when out of memory. */
static const norm_rows *rows_in_mode(tape *t, const norm_rows *rows, norm_mode mode, bool frozen) {
    norm_rows *own = tape_alloc(t, sizeof *own);
    if (!own) return NULL;
    *own = *rows;
    own->mode = mode;
    own->frozen = frozen;
    return own;
}

/* With running statistics as constants dx = gamma/sigma g (docs/norms.md 24). In NORM_RUNNING every
 * method's backward pass computes this (batch_backward_constant). */
void norm_site_freeze(norm_site *s, bool frozen) {
    s->frozen = frozen && norm_site_has_running(s);
}

tensor *norm_apply(norm_site *s, tape *t, tensor *x, const norm_rows *rows) {
    if (!x || check_input(s, t, x, rows) != SR_OK) return NULL;
    applied *a = tape_alloc(t, sizeof *a);
    tensor *y = a ? tape_like(t, x) : NULL;
    if (s->never_running && !rows->outside && rows->mode == NORM_RUNNING)
        rows = rows_in_mode(t, rows, NORM_BATCH, false);
    else if (s->frozen && rows->mode == NORM_TRAIN)
        rows = rows_in_mode(t, rows, NORM_RUNNING, true);
    if (!y || !rows) return NULL;
    *a = (applied){0};
    sr_status status = make_call(a, s, t, rows);
    if (status == SR_OK) status = run_forward(a, x, y->value);
    if (status != SR_OK) return tape_fail(t, status, "%s (%s) failed", s->name, s->method->name);
    tensor *in[4 + NORM_OWN_MAX] = {x};
    int inputs = 1;
    if (s->gamma) in[inputs++] = s->gamma;
    if (s->beta) in[inputs++] = s->beta;
    for (int i = 0; i < NORM_OWN_MAX; i++)
        if (s->own[i]) in[inputs++] = s->own[i];
    y = tape_push_reading(t, "norm", norm_backward, y, in, a, READS_INPUTS);
    /* not with a layer scale, which keeps data of x */
    if (!s->method->recompute || a->scale.groups || empty(s, &a->call)) return y;
    return tape_set_recompute(t, y, norm_recompute);
}
