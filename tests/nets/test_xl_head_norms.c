/* test_xl_head_norms.c -- Transformer-XL with norms of queries and keys (docs/models.md 2.9, 4),
 * with memory of several lengths, against plain loops in double. Compares logits, updated running
 * statistics, and the rows that hooks get. In the double build, gradients of every parameter by
 * differences. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/loss/loss_ops.h"
#include "nets/models.h"
#include "testing/check.h"

#ifdef REAL_DOUBLE
static const double CLOSE = 1e-9;
#else
static const double CLOSE = 1e-4;
#endif

enum { WORDS = 9, SEQS = 2, T = 3, MEMORY = 4, D = 6, HEADS = 2, DH = 4, FFN = 5, LAYERS = 2 };
enum { WIDTH = HEADS * DH, KEYS = MEMORY + T, ROOM = SEQS * KEYS * (D > WIDTH ? D : WIDTH) };

static const int32_t words[SEQS * T] = {3, 0, 8, 5, 5, 1},
                                  next_words[SEQS * T] = {0, 8, 2, 5, 1, 7};

/* -- the model */

typedef struct trial {
    model *m;
    tape *t;
    const char *placement;
    norm_mode mode;
    /* as in evaluate --tid: sites compute batch statistics in NORM_RUNNING too */
    bool of_batch;
    int64_t filled;
    real memory[LAYERS * SEQS * MEMORY * D];
    double state[NORM_STATE_MAX][DH]; /* initial state of head norms */
} trial;

static model *make(const char *placement, const char *qk) {
    model_options o = {.name = "transformer_xl",
                       .preset = "enwik8-mini",
                       .norm = "ln",
                       .norm_eps = 1e-5,
                       .norm_alpha = NAN,
                       .layers = LAYERS,
                       .embed_dim = D,
                       .ffn_dim = FFN,
                       .heads = HEADS,
                       .head_dim = DH,
                       .mem_len = MEMORY,
                       .eval_mem_len = MEMORY,
                       .seed = 3};
    const data_shape shape = {.task = TASK_LM, .vocabulary = WORDS, .longest = T};
    sr_failure why = {0};
    strcpy(o.placement, placement);
    strcpy(o.qk_norm, qk);
    for (int i = 0; norm_option_at(i); i++)
        if (!strcmp(qk, "repbn") && !strcmp(norm_option_at(i)->key, "norm-t0"))
            strcpy(o.norm_param[i], "3");
    model *m = model_create(&o, &shape, &why);
    if (!m) fail_msg("%s", why.text);
    return m;
}

static bool is_of_heads(const norm_site *s) {
    return strstr(s->name, ".attention.") != NULL;
}

/* Large weights, so that rounding hides no path; arbitrary running statistics. */
static trial *trial_open(const char *placement, const char *qk) {
    trial *p = calloc(1, sizeof *p);
    sr_failure why = {0};
    rng r = rng_create(8);
    assert_non_null(p);
    p->m = make(placement, qk);
    p->t = tape_create(1, &why);
    assert_non_null(p->t);
    p->placement = placement;
    for (int i = 0; i < p->m->params.count; i++) {
        tensor *x = &p->m->params.item[i]->t;
        for (int64_t n = 0; n < x->count; n++) x->value[n] += (real)(0.4 * rng_normal(&r));
    }
    for (int i = 0; i < LAYERS * SEQS * MEMORY * D; i++) p->memory[i] = (real)rng_normal(&r);
    for (int k = 0; k < DH; k++) {
        p->state[0][k] = 0.5 * rng_normal(&r);
        p->state[1][k] = 0.5 + 2 * rng_uniform(&r);
        p->state[2][k] = 0.75;
    }
    return p;
}

static void trial_close(trial *p) {
    tape_free(p->t);
    model_free(p->m);
    free(p);
}

static void begin_states(const trial *p) {
    for (int i = 0; i < p->m->sites; i++) {
        norm_site *s = p->m->site[i];
        s->calls = 0;
        s->never_running = p->of_batch;
        for (int k = 0; is_of_heads(s) && k < NORM_STATE_MAX && s->state[k]; k++)
            memcpy(s->state[k], p->state[k], sizeof p->state[k]);
    }
}

/* Logits of a pass from these states and this memory. */
static tensor *forward(const trial *p, bool gradients) {
    model_memory k;
    sr_failure why = {0};
    check_ok(model_memory_init(&k, p->m, true, SEQS, &why), &why);
    memcpy(k.value, p->memory, sizeof p->memory);
    k.filled = p->filled;
    const batch b = {
        .task = TASK_LM, .count = SEQS, .target_length = T, .target_in = words, .tokens = SEQS * T};
    pass of = {.tape = p->t, .batch = &b, .mode = p->mode, .memory = &k};
    begin_states(p);
    tape_reset(p->t, rng_create(1), p->mode == NORM_TRAIN, gradients);
    tensor *y = p->m->row->forward(p->m, &of);
    if (!y) fail_msg("%s", tape_failure(p->t)->text);
    model_memory_free(&k);
    return y;
}

/* -- in plain loops */

static const tensor *parameter(const trial *p, const char *side, const char *name) {
    char full[2 * PARAM_NAME];
    snprintf(full, sizeof full, "%s.%s", side, name);
    const param *found = params_find(&p->m->params, full);
    if (!found) fail_msg("no parameter %s", full);
    return &found->t;
}

static norm_site *site_of(const trial *p, const char *side, const char *name) {
    char full[2 * PARAM_NAME];
    snprintf(full, sizeof full, "%s.%s", side, name);
    for (int i = 0; i < p->m->sites; i++)
        if (!strcmp(p->m->site[i]->name, full)) return p->m->site[i];
    fail_msg("no site %s", full);
    return NULL;
}

/* y = x W^T + b of n rows; b NULL: none. */
static void linear(const tensor *w, const tensor *b, int64_t n, const double *x, double *y) {
    const int64_t out = w->dim[0], in = w->dim[1];
    for (int64_t i = 0; i < n * out; i++) {
        y[i] = b ? (double)b->value[i % out] : 0;
        for (int64_t k = 0; k < in; k++)
            y[i] += x[i / out * in + k] * (double)w->value[i % out * in + k];
    }
}

/* Computes (x - mu)/sqrt(v + eps) with gain and bias of a row, in place. */
static void standardize(const norm_site *s, const double *mu, const double *v, double *x) {
    for (int64_t k = 0; k < s->features; k++)
        x[k] = (double)s->gamma->value[k] * (x[k] - mu[k]) / sqrt(v[k] + 1e-5) +
               (double)s->beta->value[k];
}

/* Each row alone: LN, or RMSNorm. */
static void normalize_rows(const norm_site *s, int64_t n, double *x) {
    const bool centred = !strcmp(s->method->name, "ln");
    for (int64_t i = 0; i < n; i++) {
        double mean = 0, square = 0, mu[ROOM], v[ROOM], *row = x + i * s->features;
        for (int64_t k = 0; k < s->features; k++)
            mean += centred ? row[k] / (double)s->features : 0;
        for (int64_t k = 0; k < s->features; k++)
            square += pow(row[k] - mean, 2) / (double)s->features;
        for (int64_t k = 0; k < s->features; k++) mu[k] = mean, v[k] = square;
        standardize(s, mu, v, row);
    }
}

/* BN of all rows: by their own statistics, which also update the running ones in `state`; or by
 * running statistics. */
static void normalize_batch(const norm_site *s, bool running, int64_t n, double *x,
                            double state[2][DH]) {
    double mu[DH] = {0}, v[DH] = {0};
    for (int64_t i = 0; i < n * DH; i++) mu[i % DH] += x[i] / (double)n;
    for (int64_t i = 0; i < n * DH; i++) v[i % DH] += pow(x[i] - mu[i % DH], 2) / (double)n;
    for (int64_t i = 0; i < n; i++)
        standardize(s, running ? state[0] : mu, running ? state[1] : v, x + i * DH);
    for (int k = 0; k < DH && !running; k++) {
        state[0][k] = s->options.alpha * state[0][k] + (1 - s->options.alpha) * mu[k];
        state[1][k] = s->options.alpha * state[1][k] + (1 - s->options.alpha) * v[k];
    }
}

static void normalize(const norm_site *s, bool running, int64_t n, double *x, double state[2][DH]) {
    if (!strcmp(s->method->name, "bn"))
        normalize_batch(s, running, n, x, state);
    else
        normalize_rows(s, n, x);
}

/* Inputs of a layer's attention. */
typedef struct heads {
    int64_t M;
    double q[ROOM], k[ROOM], v[ROOM], k_front[ROOM], v_front[ROOM]; /* _front: [SEQS, M, WIDTH] */
    double r[KEYS * WIDTH];                                         /* [distance, WIDTH] */
    double state[2][2][DH];                                         /* q_norm's, k_norm's */
} heads;

static const double *row_of(const heads *h, const double *front, const double *own, int s,
                            int64_t j) {
    return j < h->M ? front + (s * h->M + j) * WIDTH : own + (s * T + j - h->M) * WIDTH;
}

static void fill_positions(const trial *p, const char *side, heads *h) {
    double P[KEYS * D];
    for (int64_t i = 0; i < KEYS * D; i++) {
        const double angle = (double)(i / D) * pow(10000, -2.0 * (double)(i % (D / 2)) / D);
        P[i] = i % D < D / 2 ? sin(angle) : cos(angle);
    }
    linear(parameter(p, side, "attention.r.weight"), NULL, KEYS, P, h->r);
}

/* front [SEQS, M, D] */
static void fill_heads(const trial *p, const char *side, const double *x, const double *front,
                       heads *h) {
    const bool running = p->mode == NORM_RUNNING && !p->of_batch;
    norm_site *q_norm = site_of(p, side, "attention.q_norm"),
              *k_norm = site_of(p, side, "attention.k_norm");
    const tensor *wk = parameter(p, side, "attention.k.weight"),
                 *wv = parameter(p, side, "attention.v.weight");
    linear(parameter(p, side, "attention.q.weight"), NULL, SEQS * T, x, h->q);
    linear(wk, NULL, SEQS * T, x, h->k);
    linear(wv, NULL, SEQS * T, x, h->v);
    linear(wk, NULL, SEQS * h->M, front, h->k_front);
    linear(wv, NULL, SEQS * h->M, front, h->v_front);
    for (int i = 0; i < 2; i++) memcpy(h->state[i], p->state, sizeof h->state[i]);
    normalize(k_norm, true, SEQS * h->M * HEADS, h->k_front, h->state[1]);
    normalize(q_norm, running, SEQS * T * HEADS, h->q, h->state[0]);
    normalize(k_norm, running, SEQS * T * HEADS, h->k, h->state[1]);
    fill_positions(p, side, h);
}

static double logit(const trial *p, const heads *h, int s, int64_t i, int64_t j, int64_t at) {
    const real *u = params_find(&p->m->params, "attention.u")->t.value,
               *z = params_find(&p->m->params, "attention.z")->t.value;
    const double *q = h->q + (s * T + i) * WIDTH, *k = row_of(h, h->k_front, h->k, s, j),
                 *r = h->r + (h->M + i - j) * WIDTH;
    double S = 0;
    for (int64_t c = at; c < at + DH; c++)
        S += (q[c] + (double)u[c]) * k[c] + (q[c] + (double)z[c]) * r[c];
    return S / sqrt(DH);
}

/* y [SEQS, T, WIDTH] */
static void attend(const trial *p, const heads *h, double *y) {
    memset(y, 0, sizeof *y * SEQS * T * WIDTH);
    for (int64_t n = 0; n < SEQS * T * HEADS; n++) {
        const int s = (int)(n / (T * HEADS));
        const int64_t i = n / HEADS % T, at = n % HEADS * DH;
        double weight[KEYS], sum = 0;
        for (int64_t j = 0; j <= h->M + i; j++) sum += weight[j] = exp(logit(p, h, s, i, j, at));
        for (int64_t j = 0; j <= h->M + i; j++)
            for (int64_t c = at; c < at + DH; c++)
                y[(s * T + i) * WIDTH + c] +=
                    weight[j] / sum * row_of(h, h->v_front, h->v, s, j)[c];
    }
}

static void add_feed_forward(const trial *p, const char *side, const double *x, double *sum) {
    double inner[SEQS * T * FFN], y[ROOM];
    linear(parameter(p, side, "ffn_block.in.weight"), parameter(p, side, "ffn_block.in.bias"),
           SEQS * T, x, inner);
    for (int i = 0; i < SEQS * T * FFN; i++) inner[i] = fmax(0, inner[i]);
    linear(parameter(p, side, "ffn_block.out.weight"), parameter(p, side, "ffn_block.out.bias"),
           SEQS * T, inner, y);
    for (int i = 0; i < SEQS * T * D; i++) sum[i] += y[i];
}

/* Applies a layer to x [SEQS, T, D] in place. */
static void layer(const trial *p, int l, double *x, heads *h) {
    char side[PARAM_NAME];
    const bool pre = !strcmp(p->placement, "pre");
    double in[ROOM], front[ROOM], y[ROOM], a[ROOM];
    snprintf(side, sizeof side, "layer.%d", l);
    h->M = p->filled;
    for (int64_t i = 0; i < SEQS * h->M * D; i++) {
        const int64_t s = i / (h->M * D), row = MEMORY - h->M + i / D % h->M;
        front[i] = (double)p->memory[((l * SEQS + s) * MEMORY + row) * D + i % D];
    }
    memcpy(in, x, sizeof in);
    if (pre) normalize_rows(site_of(p, side, "norm1"), SEQS * T, in);
    fill_heads(p, side, in, front, h);
    attend(p, h, y);
    linear(parameter(p, side, "attention.o.weight"), NULL, SEQS * T, y, a);
    for (int i = 0; i < SEQS * T * D; i++) x[i] += a[i];
    if (!pre) normalize_rows(site_of(p, side, "norm1"), SEQS * T, x);
    memcpy(in, x, sizeof in);
    if (pre) normalize_rows(site_of(p, side, "norm2"), SEQS * T, in);
    add_feed_forward(p, side, in, x);
    if (!pre) normalize_rows(site_of(p, side, "norm2"), SEQS * T, x);
}

/* h: inputs of each layer's attention. */
static void plain(const trial *p, double *logits, heads h[LAYERS]) {
    double x[ROOM] = {0};
    const tensor *E = p->m->embedding;
    for (int i = 0; i < SEQS * T * D; i++)
        x[i] = sqrt(D) * (double)E->value[words[i / D] * D + i % D];
    for (int l = 0; l < LAYERS; l++) layer(p, l, x, &h[l]);
    linear(E, parameter(p, "output", "bias"), SEQS * T, x, logits);
}

/* -- checks */

static const char *described(const trial *p, const char *qk, const char *what) {
    static char text[200];
    snprintf(text, sizeof text, "%s of %s, %s, mode %d%s, %d rows of memory", what, qk,
             p->placement, (int)p->mode, p->of_batch ? " of the batch" : "", (int)p->filled);
    return text;
}

static void compare(const char *what, const real *got, const double *want, int64_t n) {
    double *wide = malloc((size_t)n * sizeof *wide);
    assert_non_null(wide);
    for (int64_t i = 0; i < n; i++) wide[i] = (double)got[i];
    const bool same = check_close(what, wide, want, n, CLOSE, CLOSE);
    free(wide);
    if (!same) fail_msg("%s", what);
}

/* Running statistics include only the rows of x, with memory or without. */
static void check_states(const trial *p, const char *qk, const heads h[LAYERS]) {
    static const char *const which[] = {"attention.q_norm", "attention.k_norm"};
    if (p->mode != NORM_TRAIN || strcmp(qk, "bn") != 0) return;
    for (int n = 0; n < 2 * LAYERS; n++) {
        char side[PARAM_NAME];
        snprintf(side, sizeof side, "layer.%d", n / 2);
        const norm_site *s = site_of(p, side, which[n % 2]);
        assert_int_equal(s->calls, 1);
        for (int k = 0; k < 2; k++)
            if (!check_close(which[n % 2], s->state[k], h[n / 2].state[n % 2][k], DH, CLOSE, CLOSE))
                fail_msg("%s", described(p, qk, "running values"));
    }
}

static void formulas(void **state) {
    (void)state;
    static const char *const qk[] = {"ln", "rmsnorm", "bn"}, *const placement[] = {"post", "pre"};
    static const norm_mode mode[] = {NORM_TRAIN, NORM_RUNNING, NORM_RUNNING};
    for (int n = 0; n < 3 * 2 * 3 * 3; n++) {
        trial *p = trial_open(placement[n / 3 % 2], qk[n % 3]);
        double want[SEQS * T * WORDS];
        heads *h = calloc(LAYERS, sizeof *h);
        assert_non_null(h);
        p->mode = mode[n / 6 % 3];
        p->of_batch = n / 6 % 3 == 2;
        p->filled = 2 * (n / 18);
        plain(p, want, h);
        compare(described(p, qk[n % 3], "logits"), forward(p, false)->value, want,
                SEQS * T * WORDS);
        check_states(p, qk[n % 3], h);
        free(h);
        trial_close(p);
    }
}

/* -- hooks */

static void count(void *context, const norm_view *o) {
    const norm_rows *r = o->call->rows;
    ++*(int *)context;
    assert_true(r->rows == SEQS * T * HEADS && r->valid == r->rows && !r->outside);
    assert_true(r->samples == SEQS && o->call->features == DH);
    for (int64_t i = 0; i < r->rows; i++) assert_int_equal(r->sample[i], i / (T * HEADS));
}

/* Hooks get the rows of x once per pass, rows of memory never: forward, backward, frozen. */
static void told_of_own_rows(void **state) {
    (void)state;
    static const norm_mode mode[] = {NORM_TRAIN, NORM_BATCH};
    for (int n = 0; n < 2; n++) {
        trial *p = trial_open("post", "bn");
        int calls[2] = {0, 0};
        p->filled = MEMORY, p->mode = mode[n];
        for (int i = 0; i < p->m->sites; i++) {
            norm_site *s = p->m->site[i];
            if (!is_of_heads(s)) continue;
            s->forward_hook = s->backward_hook = count;
            s->hook_context = &calls[strstr(s->name, "k_norm") != NULL];
            s->hook_in_batch_mode = true;
        }
        tensor *y = forward(p, true);
        tape_backward(p->t, op_cross_entropy(p->t, y, next_words, -1, -1, 0, SMOOTHING_ALL, NULL),
                      1);
        assert_null(tape_failure(p->t));
        for (int i = 0; i < 2; i++) assert_int_equal(calls[i], mode[n] == NORM_TRAIN ? 4 : 2);
        trial_close(p);
    }
}

/* -- gradients */

#ifdef REAL_DOUBLE

static double loss_of(const trial *p, bool gradients) {
    tensor *y = forward(p, gradients);
    tensor *loss = op_cross_entropy(p->t, y, next_words, -1, -1, 0, SMOOTHING_ALL, NULL);
    if (gradients) {
        params_zero_grad(&p->m->params);
        tape_backward(p->t, loss, 1);
    }
    assert_null(tape_failure(p->t));
    return loss->value[0];
}

static void check_parameter(const trial *p, const char *qk, param *of) {
    const double h = 1e-5;
    real *grad = malloc((size_t)of->t.count * sizeof *grad);
    assert_non_null(grad);
    loss_of(p, true);
    memcpy(grad, of->t.grad, (size_t)of->t.count * sizeof *grad);
    for (int64_t k = 0; k < of->t.count; k += 1 + of->t.count / 20) {
        const real held = of->t.value[k];
        of->t.value[k] = held + h;
        const double above = loss_of(p, false);
        of->t.value[k] = held - h;
        const double by_differences = (above - loss_of(p, false)) / (2 * h);
        of->t.value[k] = held;
        if (!(fabs(grad[k] - by_differences) <= 1e-6 * (1 + fabs(by_differences))))
            fail_msg("%s %s[%lld]: %.9g, by differences %.9g", described(p, qk, "gradient"),
                     of->name, (long long)k, grad[k], by_differences);
    }
    free(grad);
}

/* Running statistics are constants of a pass: their values before it, although it updates them. */
static void gradients(void **state) {
    (void)state;
    static const char *const qk[] = {"ln", "rmsnorm", "bn", "repbn"};
    static const char *const placement[] = {"post", "pre", "peri", "scaled"};
    for (int n = 0; n < 4 * 4; n++) {
        trial *p = trial_open(placement[n / 4], qk[n % 4]);
        p->mode = NORM_TRAIN;
        p->filled = n / 4 % 2 ? MEMORY : 3;
        for (int i = 0; i < p->m->params.count; i++)
            check_parameter(p, qk[n % 4], p->m->params.item[i]);
        trial_close(p);
    }
}

#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formulas),
        cmocka_unit_test(told_of_own_rows),
#ifdef REAL_DOUBLE
        cmocka_unit_test(gradients),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
