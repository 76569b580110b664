/* vectors_optim.c -- optim.h5, clip.h5, lr.h5: optimizer steps with their state, bounds on
 * gradients, learning rate curves. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_vectors.h"
#include "train/optim/optim.h"

/* -- optimizers */

static const optim_row *find_optimizer(model_case *c) {
    static const char *const names[][2] = {{"adam_l2", "adam"},
                                           {"adam_adamw", "adamw"},
                                           {"adam_fairseq", "adam-fairseq"},
                                           {"sgd", "sgd"}};
    const char *kind = case_text(c, "kind");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(kind, names[i][0])) return optim_find(names[i][1]);
    case_skip(c, "optimizer %s is not built yet", kind);
    return NULL;
}

static optim_options read_optimizer(model_case *c, const optim_row *row) {
    optim_options o = {.weight_decay = case_number(c, "wd")};
    if (row->slots == 1) {
        o.momentum = case_number(c, "momentum");
        o.nesterov = case_number(c, "nesterov") != 0;
    } else {
        o.beta1 = case_number(c, "beta1");
        o.beta2 = case_number(c, "beta2");
        o.eps = case_number(c, "eps");
    }
    return o;
}

/* p and both slots after every step, [steps, n]. */
typedef struct course {
    int64_t steps, n;
    const double *grad, *lr;
    real *p, *m, *v;
} course;

static bool read_course(model_case *c, course *k) {
    int64_t p0[4], grad[4], lr[4];
    if (!case_read(c, "in/p0", 1, p0)) return false;
    *k = (course){.n = p0[0]};
    k->grad = case_read(c, "in/grad", 2, grad);
    k->lr = case_read(c, "in/lr", 1, lr);
    if (!k->grad || !k->lr) return false;
    k->steps = grad[0];
    if (grad[1] != k->n || lr[0] != k->steps) {
        case_fail(c, "grad [%lld, %lld] with %lld numbers and %lld learning rates",
                  (long long)grad[0], (long long)grad[1], (long long)k->n, (long long)lr[0]);
        return false;
    }
    const int64_t all = k->steps * k->n;
    k->p = case_alloc(c, all, sizeof *k->p);
    k->m = case_alloc(c, all, sizeof *k->m);
    k->v = case_alloc(c, all, sizeof *k->v);
    return k->p && k->m && k->v;
}

static void run_course(model_case *c, const optim_row *row, const optim_options *o, course *k,
                       params *p) {
    tensor *x = params_add(p, "p", 1, &k->n, INIT_CONSTANT, 0);
    if (!x || params_slots(p, row->slots, NULL) != SR_OK) {
        case_fail(c, "no memory for the parameter");
        return;
    }
    case_fill(c, "in/p0", x);
    const size_t bytes = (size_t)k->n * sizeof(real);
    real *const *slot = p->item[0]->slot;
    for (int64_t s = 0; s < k->steps; s++) {
        /* a scale of 1/4 on four times the gradient: the same step */
        for (int64_t i = 0; i < k->n; i++) x->grad[i] = (real)(4 * k->grad[s * k->n + i]);
        optim_apply(row, &(optim_step){o, s + 1, k->lr[s], 0.25, 2}, p);
        memcpy(k->p + s * k->n, x->value, bytes);
        /* without momentum PyTorch keeps no buffer, and the file holds zeros */
        if (row->slots == 2 || o->momentum > 0) memcpy(k->m + s * k->n, slot[0], bytes);
        if (slot[1]) memcpy(k->v + s * k->n, slot[1], bytes);
    }
}

void check_optim(model_case *c) {
    const optim_row *row = find_optimizer(c);
    if (!row) return;
    const optim_options o = read_optimizer(c, row);
    course k;
    params p;
    if (!case_fine(c) || !read_course(c, &k)) return;
    params_init(&p, 1);
    run_course(c, row, &o, &k, &p);
    params_free(&p);
    case_compare_reals(c, "p", k.p, k.steps * k.n, NULL, 1);
    case_compare_reals(c, "m", k.m, k.steps * k.n, NULL, 1);
    case_compare_reals(c, "v", k.v, k.steps * k.n, NULL, 1);
}

/* -- clipping */

/* Every dataset of in/ is the gradient of a parameter of its name. */
static void read_grads(model_case *c, params *p) {
    char name[48], path[64];
    int64_t dim[4];
    for (int i = 0; case_input(c, i, name, sizeof name) && case_fine(c); i++) {
        snprintf(path, sizeof path, "in/%s", name);
        const double *g = case_read(c, path, 0, dim);
        tensor *x = g ? params_add(p, name, 4, dim, INIT_CONSTANT, 0) : NULL;
        for (int64_t k = 0; x && k < x->count; k++) x->grad[k] = (real)g[k];
    }
    if (!p->count) case_fail(c, "no gradients in in");
}

/* A step of plain descent with learning rate 1 from 0 shows the gradient that it saw, negative. */
static void compare_seen(model_case *c, params *p, double scale) {
    const optim_row *sgd = optim_find("sgd");
    const optim_options plain = {0};
    if (params_slots(p, sgd->slots, NULL) != SR_OK) {
        case_fail(c, "out of memory");
        return;
    }
    optim_apply(sgd, &(optim_step){&plain, 1, 1, scale, 2}, p);
    for (int i = 0; i < p->count; i++) {
        tensor *x = &p->item[i]->t;
        for (int64_t k = 0; k < x->count; k++) x->value[k] = -x->value[k];
        case_compare_reals(c, p->item[i]->name, x->value, x->count, NULL, 1);
    }
}

void check_clip(model_case *c) {
    const double bound = case_number_or(c, "max_norm", NAN);
    const double value = case_number_or(c, "max_value", case_number_or(c, "clip_value", NAN));
    sr_failure why = {0};
    double norm;
    params p;
    params_init(&p, 1);
    read_grads(c, &p);
    if (isnan(bound) && isnan(value)) case_fail(c, "no attribute max_norm");
    if (case_fine(c) && optim_grad_norm(&p, 2, &norm, &why) != SR_OK) case_fail(c, "%s", why.text);
    if (case_fine(c)) {
        if (case_has(c, "out/norm")) case_compare(c, "norm", &norm, 1, NULL, 1);
        if (!isnan(value)) optim_clip_values(&p, 2, value);
        compare_seen(c, &p, isnan(bound) ? 1 : optim_clip_factor(norm, bound));
    }
    params_free(&p);
}

/* -- schedules */

static bool find_kind(model_case *c, schedule *s) {
    static const struct {
        const char *file;
        schedule_kind kind;
    } names[] = {{"inverse_sqrt", SCHEDULE_INVERSE_SQRT},
                 {"cosine", SCHEDULE_COSINE},
                 {"step", SCHEDULE_STEP},
                 {"linear_warmup_decay", SCHEDULE_LINEAR},
                 {"linear", SCHEDULE_LINEAR},
                 {"fixed", SCHEDULE_FIXED}};
    const char *kind = case_text(c, "kind");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(kind, names[i].file)) {
            s->kind = names[i].kind;
            return true;
        }
    case_skip(c, "schedule %s is not built yet", kind);
    return false;
}

/* "step .1 at epochs 100,150": only the label gives the epochs. */
static void read_milestones(model_case *c, schedule *s) {
    static const char mark[] = "epochs ";
    const char *at = strstr(case_text(c, "label"), mark);
    for (at = at ? at + strlen(mark) : ""; *at && s->milestones < SCHEDULE_STEPS_MAX;) {
        char *end;
        s->milestone[s->milestones++] = strtod(at, &end);
        if (end == at) break;
        at = *end == ',' ? end + 1 : "";
    }
    if (!s->milestones) case_fail(c, "no milestones in the label");
}

void check_lr(model_case *c) {
    int64_t dim[4];
    schedule s = {.lr = case_number(c, "lr"),
                  .warmup_init = case_number_or(c, "init_lr", 0),
                  .warmup = (int64_t)case_number_or(c, "warmup", 0),
                  .total = (int64_t)case_number_or(c, "total", 0),
                  .lowest = case_number_or(c, "min_lr", 0),
                  .factor = case_number_or(c, "factor", 1)};
    if (!find_kind(c, &s)) return;
    if (s.kind == SCHEDULE_STEP) read_milestones(c, &s);
    const double *at = case_read(c, "in/u", 1, dim);
    double *lr = at ? case_alloc(c, dim[0], sizeof *lr) : NULL;
    if (!lr || !case_fine(c)) return;
    /* the file counts epochs if the schedule does */
    for (int64_t i = 0; i < dim[0]; i++) lr[i] = schedule_lr(&s, (int64_t)at[i], at[i]);
    case_compare(c, "lr", lr, dim[0], NULL, 1);
}
