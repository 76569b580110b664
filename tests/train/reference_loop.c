/* reference_loop.c -- see reference_loop.h. */
#include "reference_loop.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "testing/check.h"

/* -- observations at the sites */

static double square_distance(const double *a, const double *b, int64_t d, double keep, bool root) {
    double sum = 0;
    for (int64_t k = 0; k < d; k++) {
        double after = keep * b[k] + (1 - keep) * a[k];
        double u = root ? sqrt(a[k]) - sqrt(after) : a[k] - after;
        sum += u * u;
    }
    return sum;
}

/* RBN's default, docs/norms.md 14: compares with the running values after the update. */
static void add_penalty(void *context, const norm_view *o) {
    reference *r = context;
    const norm_site *s = o->site;
    if (strcmp(s->method->name, "rbn")) return;
    const double *const *stat = (const double *const *)o->call->stat;
    double keep = s->options.alpha;
    int64_t d = s->features;
    r->pass[r->passes].penalty +=
        0.1 * square_distance(stat[NORM_mu_B], stat[NORM_mu], d, keep, false) +
        0.01 * square_distance(stat[NORM_sigma2_B], stat[NORM_sigma2], d, keep, true);
}

static void add_gradients(void *context, const norm_view *o) {
    reference *r = context;
    const norm_rows *rows = o->call->rows;
    int64_t d = o->call->features;
    double *sum = r->pass[r->passes].sum_g[o->site->depth];
    for (int64_t i = 0; i < rows->valid; i++) {
        const real *dy = o->dy + (rows->index ? rows->index[i] : i) * d;
        for (int64_t k = 0; k < d; k++) sum[k] += (double)dy[k];
    }
}

/* -- one update */

static double *zeros(int64_t count) {
    double *x = calloc((size_t)count, sizeof *x);
    assert_non_null(x);
    return x;
}

/* Learning rate of update u + 1, whose last pass began at this epoch. */
static double learning_rate(const train_config *c, int64_t u, double epoch) {
    if (u < c->warmup_updates)
        return c->warmup_init + (double)u * (c->lr - c->warmup_init) / (double)c->warmup_updates;
    double at = strcmp(c->lr_steps_in, "updates") ? epoch : (double)u;
    return at >= atof(c->lr_steps) ? c->lr * c->lr_factor : c->lr;
}

static double sgd(const optim_options *o, double p, double g, double lr, double *buffer) {
    g += o->weight_decay * p;
    *buffer = o->momentum * *buffer + g;
    return p - lr * (o->nesterov ? g + o->momentum * *buffer : *buffer);
}

/* adam decays through g, the others separately; adam-fairseq compares eps with the uncorrected
 * root.
 */
static double adam(const train_config *c, double p, double g, double lr, int64_t t, double *m,
                   double *v) {
    const optim_options *o = &c->optim;
    bool beside = strcmp(c->optimizer, "adam"), fairseq = !strcmp(c->optimizer, "adam-fairseq");
    if (!beside) g += o->weight_decay * p;
    *m = o->beta1 * *m + (1 - o->beta1) * g;
    *v = o->beta2 * *v + (1 - o->beta2) * g * g;
    double c1 = 1 - pow(o->beta1, (double)t), c2 = 1 - pow(o->beta2, (double)t);
    double eps = fairseq ? o->eps / sqrt(c2) : o->eps;
    return p - (beside ? lr * o->weight_decay * p : 0) - lr * *m / c1 / (sqrt(*v / c2) + eps);
}

/* A number of the mean gradient within +-bound; 0: unbounded. */
static double bounded(const reference *r, int i, int64_t j, double bound) {
    const double g = r->sum[i][j] / (double)r->tokens;
    return bound > 0 && fabs(g) > bound ? copysign(bound, g) : g;
}

static double mean_norm(const reference *r, double bound) {
    double square = 0;
    for (int i = 0; i < r->m->params.count; i++)
        for (int64_t j = 0; j < r->m->params.item[i]->t.count; j++)
            square += pow(bounded(r, i, j, bound), 2);
    return sqrt(square);
}

static void update(reference *r, reference_pass *p, double epoch) {
    const train_config *c = r->c;
    const double left = mean_norm(r, c->clip_value); /* entries are bounded first */
    p->grad_norm = mean_norm(r, 0);
    p->lr = learning_rate(c, r->updates++, epoch);
    p->cut = left < 0.99 * p->grad_norm;
    p->clipped = c->clip_norm > 0 && left > c->clip_norm;
    double factor = p->clipped ? c->clip_norm / left : 1;
    for (int i = 0; i < r->m->params.count; i++) {
        tensor *x = &r->m->params.item[i]->t;
        for (int64_t j = 0; j < x->count; j++) {
            double g = factor * bounded(r, i, j, c->clip_value), value = (double)x->value[j];
            x->value[j] =
                (real)(strcmp(c->optimizer, "sgd")
                           ? adam(c, value, g, p->lr, r->updates, &r->first[i][j], &r->second[i][j])
                           : sgd(&c->optim, value, g, p->lr, &r->first[i][j]));
            r->sum[i][j] = 0;
        }
    }
    r->tokens = 0;
}

/* -- passes and evaluations */

static void forward_and_backward(reference *r, const batch *b) {
    reference_pass *p = &r->pass[r->passes];
    tape_reset(r->t, rng_create(1), true, true);
    params_zero_grad(&r->m->params);
    const task_options o = {.label_smoothing = r->c->label_smoothing, .smoothing = r->c->smoothing};
    pass one = {.tape = r->t, .batch = b, .mode = NORM_TRAIN};
    tensor *loss = task_loss(task_of(b->task), &o, r->m, &one, NULL);
    tape_backward(r->t, loss, 1);
    if (tape_failure(r->t)) fail_msg("%s", tape_failure(r->t)->text);
    for (int i = 0; i < r->m->params.count; i++) {
        const tensor *x = &r->m->params.item[i]->t;
        for (int64_t j = 0; j < x->count; j++) r->sum[i][j] += (double)x->grad[j];
    }
    double total = (double)loss->value[0] + p->penalty;
    p->update = r->updates + 1;
    p->tokens = b->tokens;
    p->loss = total / (double)b->tokens;
    p->lr = p->grad_norm = NAN;
    r->tokens += b->tokens;
    r->loss_sum += total;
    r->loss_tokens += b->tokens;
}

static void validation(reference *r, norm_mode mode, double *loss, double *nll, double *accuracy) {
    task_sums sum = {0}, one;
    sr_failure why = {0};
    batch b;
    for (int64_t i = 0; i < data_batches(r->data, SPLIT_VALID); i++) {
        check_ok(data_batch(r->data, SPLIT_VALID, 0, i, &b, &why), &why);
        tape_reset(r->t, rng_create(1), false, false);
        const task_options o = {.label_smoothing = r->c->label_smoothing,
                                .smoothing = r->c->smoothing};
        pass p = {.tape = r->t, .batch = &b, .mode = mode};
        const tensor *value = task_loss(task_of(b.task), &o, r->m, &p, &one);
        assert_non_null(value);
        sum.loss += (double)value->value[0]; /* no penalty */
        sum.nll += one.nll;
        sum.tokens += b.tokens;
        sum.correct += one.correct;
    }
    *loss = sum.loss / (double)sum.tokens;
    *nll = sum.nll / (double)sum.tokens;
    *accuracy = 100 * (double)sum.correct / (double)sum.tokens;
}

static void evaluate(reference *r) {
    assert_true(r->evals < EVALS_MAX);
    reference_eval *e = &r->eval[r->evals++];
    e->step = r->passes;
    e->train_loss = r->loss_sum / (double)r->loss_tokens;
    validation(r, NORM_RUNNING, &e->loss, &e->nll, &e->accuracy);
    validation(r, NORM_BATCH, &e->loss_batch, &e->nll_batch, &e->accuracy_batch);
    r->loss_sum = 0;
    r->loss_tokens = 0;
}

static void run_epoch(reference *r, int64_t number) {
    const train_config *c = r->c;
    int64_t batches = data_batches(r->data, SPLIT_TRAIN), gathered = 0;
    sr_failure why = {0};
    for (int64_t i = 0; i < batches; i++) {
        batch b;
        assert_true(r->passes < PASSES_MAX);
        check_ok(data_batch(r->data, SPLIT_TRAIN, number, i, &b, &why), &why);
        forward_and_backward(r, &b);
        reference_pass *p = &r->pass[r->passes++];
        bool last = i == batches - 1;
        if (++gathered < c->update_freq && !last) continue;
        update(r, p, (double)number + (double)i / (double)batches);
        gathered = 0;
        if (last || (c->validate_updates && r->updates % c->validate_updates == 0)) evaluate(r);
    }
}

void reference_run(reference *r, const train_config *c) {
    sr_failure why = {0};
    memset(r, 0, sizeof *r);
    r->c = c;
    r->data = data_open(&c->data, &why);
    if (!r->data) fail_msg("%s", why.text);
    r->m = model_create(&c->model, data_get_shape(r->data), &why);
    if (!r->m) fail_msg("%s", why.text);
    r->t = tape_create(2, &why);
    assert_non_null(r->t);
    assert_true(r->m->sites <= SITE_CAPACITY && r->m->params.count <= PARAM_CAPACITY);
    for (int i = 0; i < r->m->sites; i++) {
        assert_true(r->m->site[i]->features <= WIDTH_CAPACITY);
        r->m->site[i]->forward_hook = add_penalty;
        r->m->site[i]->backward_hook = add_gradients;
        r->m->site[i]->hook_context = r;
    }
    for (int i = 0; i < r->m->params.count; i++) {
        int64_t count = r->m->params.item[i]->t.count;
        r->sum[i] = zeros(count), r->first[i] = zeros(count), r->second[i] = zeros(count);
    }
    for (int64_t e = 0; e < c->epochs; e++) run_epoch(r, e);
}

void reference_free(reference *r) {
    for (int i = 0; i < r->m->params.count; i++)
        free(r->sum[i]), free(r->first[i]), free(r->second[i]);
    tape_free(r->t);
    model_free(r->m);
    data_close(r->data);
}
