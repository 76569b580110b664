/* The run file's vectors against a double-precision recomputation from the step's raw X and dL/dY,
 * captured by a hook. Tolerance: 1e-5 of the sum of absolute terms. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "observe/hooks.h"
#include "statrec/runfile.h"
#include "task/task.h"
#include "testing/check.h"
#include "testing/run_builder.h"

enum { SITES = 32 };

/* One site of one step, raw. */
typedef struct capture {
    norm_hook_fn *next;
    void *next_context;
    const norm_site *site;
    double *x, *g, *running[2]; /* [n, d], [n, d], state before the step */
    int64_t n, d;
} capture;

static void keep(void *context, const norm_view *o) {
    capture *c = context;
    const norm_rows *rows = o->call->rows;
    c->n = rows->valid;
    c->d = o->call->features;
    c->x = malloc((size_t)(c->n * c->d) * sizeof(double));
    c->g = malloc((size_t)(c->n * c->d) * sizeof(double));
    for (int64_t i = 0; i < c->n; i++) {
        int64_t row = rows->index ? rows->index[i] : i;
        for (int64_t k = 0; k < c->d; k++) {
            c->x[i * c->d + k] = (double)o->x[row * c->d + k];
            c->g[i * c->d + k] = (double)o->dy[row * c->d + k];
        }
    }
    c->next(c->next_context, o);
}

static void wrap(capture *c, norm_site *s) {
    *c = (capture){.next = s->backward_hook, .next_context = s->hook_context, .site = s};
    for (int i = 0; i < 2; i++) {
        if (!s->state[i]) continue;
        c->running[i] = malloc((size_t)s->features * sizeof(double));
        memcpy(c->running[i], s->state[i], (size_t)s->features * sizeof(double));
    }
    s->backward_hook = keep;
    s->hook_context = c;
}

static void capture_free(capture *c) {
    free(c->x);
    free(c->g);
    free(c->running[0]);
    free(c->running[1]);
}

/* One feature, recomputed. terms: sums of absolute terms of sum_g and sum_gx. */
typedef struct column {
    double mu, sigma2, psi2, mu_terms, sum_g, g_terms;
} column;

static column recompute(const capture *c, int64_t k) {
    column r = {0};
    double n = (double)c->n;
    for (int64_t i = 0; i < c->n; i++) {
        double x = c->x[i * c->d + k], g = c->g[i * c->d + k];
        r.mu += x / n;
        r.mu_terms += fabs(x) / n;
        r.psi2 += x * x / n;
        r.sum_g += g;
        r.g_terms += fabs(g);
    }
    for (int64_t i = 0; i < c->n; i++) {
        double u = c->x[i * c->d + k] - r.mu;
        r.sigma2 += u * u / n;
    }
    return r;
}

/* sum g xhat of feature k and its absolute terms; LN has xhat per row. */
static double sum_gx(const capture *c, const column *r, int64_t k, double *terms) {
    const char *norm = c->site->method->name;
    double sum = 0, eps = c->site->options.eps;
    *terms = 0;
    for (int64_t i = 0; i < c->n; i++) {
        const double *x = c->x + i * c->d;
        double xhat;
        if (!strcmp(norm, "ln")) {
            double mean = 0, var = 0;
            for (int64_t j = 0; j < c->d; j++) mean += x[j] / (double)c->d;
            for (int64_t j = 0; j < c->d; j++) var += (x[j] - mean) * (x[j] - mean) / (double)c->d;
            xhat = (x[k] - mean) / sqrt(var + eps);
        } else {
            bool centred = !strcmp(norm, "bn");
            xhat = (x[k] - (centred ? r->mu : 0)) / sqrt((centred ? r->sigma2 : r->psi2) + eps);
        }
        sum += c->g[i * c->d + k] * xhat;
        *terms += fabs(c->g[i * c->d + k] * xhat);
    }
    return sum;
}

static void near(const capture *c, const char *what, int64_t k, double got, double want,
                 double terms) {
    if (fabs(got - want) <= 1e-5 * terms) return;
    fail_msg("%s %s[%lld]: got %.9g want %.9g, terms %.3g", c->site->name, what, (long long)k, got,
             want, terms);
}

static float *vector_row(const sr_runfile *f, const char *name, const capture *c) {
    sr_failure why = {0};
    float *value = malloc((size_t)c->d * sizeof *value);
    check_ok(sr_run_vector(f, name, sr_run_find_site(f, c->site->name), 0, 1, value, &why), &why);
    return value;
}

static double scalar(const sr_runfile *f, const char *name, const capture *c) {
    sr_failure why = {0};
    float value;
    check_ok(sr_run_scalar(f, name, sr_run_find_site(f, c->site->name), 0, 1, &value, &why), &why);
    return (double)value;
}

static void check_batch_statistics(const sr_runfile *f, const capture *c) {
    float *mu = vector_row(f, "mu_B", c), *sigma2 = vector_row(f, "sigma2_B", c),
          *psi2 = vector_row(f, "psi2_B", c);
    for (int64_t k = 0; k < c->d; k++) {
        column r = recompute(c, k);
        near(c, "mu_B", k, (double)mu[k], r.mu, r.mu_terms);
        near(c, "sigma2_B", k, (double)sigma2[k], r.sigma2, r.sigma2);
        near(c, "psi2_B", k, (double)psi2[k], r.psi2, r.psi2);
    }
    free(mu), free(sigma2), free(psi2);
}

static void check_gradient_sums(const sr_runfile *f, const capture *c) {
    float *g = vector_row(f, "sum_g", c), *gx = vector_row(f, "sum_gx", c);
    for (int64_t k = 0; k < c->d; k++) {
        column r = recompute(c, k);
        double terms, want = sum_gx(c, &r, k, &terms);
        near(c, "sum_g", k, (double)g[k], r.sum_g, r.g_terms);
        near(c, "sum_gx", k, (double)gx[k], want, terms);
    }
    free(g), free(gx);
}

/* Distances and gradient parts from the recomputed columns. */
static void check_bn_scalars(const sr_runfile *f, const capture *c) {
    double mu = 0, sigma2 = 0, g_mu = 0, g_mu_terms = 0, g_sigma2 = 0, g_sigma2_terms = 0;
    double d = (double)c->d, n = (double)c->n, eps = c->site->options.eps;
    for (int64_t k = 0; k < c->d; k++) {
        column r = recompute(c, k);
        double terms, gx = sum_gx(c, &r, k, &terms);
        double s = sqrt(r.sigma2 + eps), gamma = (double)c->site->gamma->value[k];
        mu += pow(r.mu - c->running[0][k], 2);
        sigma2 += pow(r.sigma2 - c->running[1][k], 2);
        g_mu += pow(gamma / s * r.sum_g / n, 2);
        g_mu_terms += pow(gamma / s * r.g_terms / n, 2);
        g_sigma2 += pow(gamma / s * gx / n, 2) * r.sigma2 / (r.sigma2 + eps);
        g_sigma2_terms += pow(gamma / s * terms / n, 2);
    }
    near(c, "dist_mu", 0, scalar(f, "dist_mu", c), sqrt(mu) / d, sqrt(mu) / d);
    near(c, "dist_sigma2", 0, scalar(f, "dist_sigma2", c), sqrt(sigma2) / d, sqrt(sigma2) / d);
    near(c, "g_mu", 0, scalar(f, "g_mu", c), sqrt(g_mu) / d, sqrt(g_mu_terms) / d);
    near(c, "g_sigma2", 0, scalar(f, "g_sigma2", c), sqrt(g_sigma2) / d, sqrt(g_sigma2_terms) / d);
}

/* Checks the running mean's move against its update; a method without one records none. */
static void check_moves(const sr_runfile *f, const capture *c) {
    double moved = 0, apart = 0, alpha = c->site->options.alpha;
    if (strcmp(c->site->method->name, "bn")) {
        if (sr_run_has_scalar(f, "mu_moved")) fail_msg("mu_moved of %s", c->site->method->name);
        return;
    }
    for (int64_t k = 0; k < c->d; k++) {
        const double mu = c->running[0][k], mu_B = recompute(c, k).mu;
        moved += (alpha * mu + (1 - alpha) * mu_B - mu) * (mu_B - mu);
        apart += (mu_B - mu) * (mu_B - mu);
    }
    near(c, "mu_moved", 0, scalar(f, "mu_moved", c), moved, moved);
    near(c, "mu_apart", 0, scalar(f, "mu_apart", c), apart, apart);
}

/* Mean of the sinusoids over a batch's words (docs/models.md 2.2): word i of a sentence has
 * position TOKEN_PAD + 1 + i. The running average starts at 0. */
static double position_at(int64_t place, int64_t k, int64_t d) {
    const int64_t half = d / 2;
    const double rate = exp(-(double)(k % half) * log(10000) / (double)(half - 1));
    return k < half ? sin((double)place * rate) : cos((double)place * rate);
}

static void check_positions(const sr_runfile *f, const capture *c, const batch *b) {
    const bool encoder = !strcmp(c->site->name, "encoder.0.norm1");
    const int64_t length = encoder ? b->source_length : b->target_length;
    const uint8_t *mask = encoder ? b->source_mask : b->target_mask;
    if (!encoder && strcmp(c->site->name, "decoder.0.self")) return;
    float *got = vector_row(f, "position_B", c), *running = vector_row(f, "position", c);
    for (int64_t k = 0; k < c->d; k++) {
        double want = 0;
        for (int64_t i = 0; i < b->count * length; i++)
            if (mask[i]) want += position_at(TOKEN_PAD + 1 + i % length, k, c->d) / (double)c->n;
        near(c, "position_B", k, (double)got[k], want, 1);
        if (encoder && strcmp(c->site->method->name, "ln")) check_equals(running[k], 0);
        if (!encoder) assert_true(isnan(running[k])); /* ln has no running statistics */
    }
    free(got), free(running);
}

static void check_counts(const sr_runfile *f, const capture *c, const batch *b) {
    const bool encoder = !strncmp(c->site->name, "encoder", 7);
    const int64_t length = encoder ? b->source_length : b->target_length;
    check_equals(scalar(f, "samples", c), (double)b->count);
    check_equals(scalar(f, "padded", c), (double)(b->count * length - c->n));
}

static void check_site(const sr_runfile *f, const capture *c) {
    const char *norm = c->site->method->name;
    check_equals(scalar(f, "rows", c), (double)c->n);
    check_equals(scalar(f, "nonfinite", c), 0);
    check_gradient_sums(f, c);
    if (strcmp(norm, "ln")) check_batch_statistics(f, c);
    if (!strcmp(norm, "bn")) check_bn_scalars(f, c);
    if (strcmp(norm, "ln")) check_moves(f, c); /* the decoder is ln in every run */
}

/* One training step of the mini transformer on generated pairs, recorded and captured. */
static int one_step(model *m, dataset *data, const char *path, capture *c, batch *b) {
    sr_failure why = {0};
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    o.force = true;
    sr_recorder *r = run_create(path, o);
    bool *all = hooks_choose(m, "*", false, &why);
    assert_non_null(all);
    hooks *h = hooks_create(m, r, all, true, NULL, &why);
    free(all);
    if (!h) fail_msg("%s", why.text);
    for (int i = 0; i < m->sites; i++) wrap(&c[i], m->site[i]);
    check_ok(data_batch(data, SPLIT_TRAIN, 0, 0, b, &why), &why);
    tape *t = tape_create(2, &why);
    tape_reset(t, rng_create(3), true, true);
    sr_begin_step(r, 1);
    const task_options plain = {.label_smoothing = NAN};
    pass p = {.tape = t, .batch = b, .mode = NORM_TRAIN};
    tape_backward(t, task_loss(task_of(b->task), &plain, m, &p, NULL), 1);
    if (tape_failure(t)) fail_msg("%s", tape_failure(t)->text);
    sr_end_step(r, &(sr_step){.size = sizeof(sr_step), .update = 1, .tokens = b->tokens});
    run_finish(r);
    hooks_free(h);
    tape_free(t);
    return m->sites;
}

static void run_norm(const char *norm) {
    data_options wanted = {.name = "synth-pairs", .max_tokens = 512, .limit = 400, .seed = 1};
    sr_failure why = {0};
    dataset *data = data_open(&wanted, &why);
    if (!data) fail_msg("%s", why.text);
    model_options o = {.name = "transformer",
                       .preset = "mini",
                       .decoder_norm = "ln",
                       .norm_eps = NAN,
                       .norm_alpha = NAN,
                       .dropout = NAN,
                       .attention_dropout = NAN,
                       .relu_dropout = NAN};
    strcpy(o.norm, norm);
    model *m = model_create(&o, data_get_shape(data), &why);
    if (!m) fail_msg("%s", why.text);
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.h5", check_temporary(), norm);
    capture c[SITES];
    batch b;
    int sites = one_step(m, data, path, c, &b);
    sr_runfile *f = sr_run_open(path, &why);
    if (!f) fail_msg("%s", why.text);
    assert_int_equal(sr_run_get_info(f)->sites, sites);
    for (int i = 0; i < sites; i++) {
        check_site(f, &c[i]);
        check_counts(f, &c[i], &b);
        check_positions(f, &c[i], &b);
        capture_free(&c[i]);
    }
    sr_run_close(f);
    model_free(m);
    data_close(data);
}

static void bn(void **state) {
    (void)state;
    run_norm("bn");
}

static void pnv(void **state) {
    (void)state;
    run_norm("pnv");
}

static void ln(void **state) {
    (void)state;
    run_norm("ln");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(bn), cmocka_unit_test(pnv),
                                       cmocka_unit_test(ln)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
