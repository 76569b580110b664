/* test_bn_observer.c -- batch statistics observed at sites that do not use them, for every method
 * of the table. Compared with sums recomputed in double and with bn and pnv layers on the same
 * tensors. The layer's own results do not change by a byte. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layer.h"

enum { ROWS = 300, WIDTH = 20, STEPS = 3 };

static const double ALPHA = 0.8;

/* -- the observer's statistics, recomputed from the tensors ------------------------------------ */

typedef struct raw {
    double mu[WIDTH], sigma2[WIDTH], psi2[WIDTH]; /* running, before the step */
    double *u;                                    /* [rows, d] the method's input */
    int calls;
} raw;

static void near(const norm_view *o, const char *what, norm_vector v, int64_t k, double want,
                 double size) {
    double got = o->call->stat[v][k];
    if (!(fabs(got - want) <= 1e-12 * size))
        fail_msg("%s: %s[%lld]: got %.17g want %.17g, terms %.3g", o->site->method->name, what,
                 (long long)k, got, want, size);
}

/* Released variants of BN keep their statistics: only psi2 is added. */
static bool own_reading(const norm_method *m) {
    return m->padded && m->vectors & NORM_BIT(sigma2);
}

/* Checks a running statistic of the observer, if it has one; then updates the expected value. */
static void running(const norm_view *o, const char *what, norm_vector v, int64_t k, double *value,
                    double batch) {
    double alpha = o->site->observer->alpha;
    if (o->site->observer->vectors >> v & 1) near(o, what, v, k, *value, fabs(*value) + 1);
    *value = alpha * *value + (1 - alpha) * batch;
}

static void see(void *context, const norm_view *o) {
    raw *r = context;
    const uint8_t *mask = o->call->rows->mask;
    double n = (double)o->call->rows->valid, eps = o->site->observer->eps;
    for (int64_t k = 0; k < WIDTH; k++) {
        double mu = 0, size = 0, sigma2 = 0, psi2 = 0, g = 0, g_size = 0, gx = 0, gx_size = 0;
        for (int64_t i = 0; i < ROWS; i++) {
            if (mask && !mask[i]) continue;
            double x = r->u[i * WIDTH + k];
            mu += x / n, size += fabs(x) / n, psi2 += x * x / n;
        }
        for (int64_t i = 0; i < ROWS; i++)
            if (!mask || mask[i]) sigma2 += pow(r->u[i * WIDTH + k] - mu, 2) / n;
        for (int64_t i = 0; i < ROWS; i++) {
            if (mask && !mask[i]) continue;
            double dy = (double)o->dy[i * WIDTH + k];
            double term = dy * (r->u[i * WIDTH + k] - mu) / sqrt(sigma2 + eps);
            g += dy, g_size += fabs(dy), gx += term, gx_size += fabs(term);
        }
        if (own_reading(o->site->method)) {
            running(o, "psi2", NORM_psi2, k, &r->psi2[k], o->call->stat[NORM_psi2_B][k]);
            continue;
        }
        near(o, "mu_B", NORM_mu_B, k, mu, size);
        near(o, "sigma2_B", NORM_sigma2_B, k, sigma2, sigma2);
        near(o, "psi2_B", NORM_psi2_B, k, psi2, psi2);
        near(o, "sum_g", NORM_sum_g, k, g, g_size);
        near(o, "sum_gx", NORM_sum_gx, k, gx, gx_size + g_size);
        if (o->site->observer->vectors & NORM_BIT(sum_gx)) /* mabn's gain without its factor r */
            near(o, "gamma", NORM_gamma, k, (double)o->call->gamma[k], 0);
        running(o, "mu", NORM_mu, k, &r->mu[k], mu);
        running(o, "sigma2", NORM_sigma2, k, &r->sigma2[k], sigma2);
        running(o, "psi2", NORM_psi2, k, &r->psi2[k], psi2);
    }
    r->calls++;
}

static void observe(layer *l, double alpha) {
    sr_failure why = {0};
    check_ok(norm_site_observe_batch(&l->site, alpha, &why), &why);
    assert_non_null(l->site.observer);
}

/* r: sets its u, unless NULL. */
static void three_steps(layer *l, tape *t, const uint8_t *mask, double mean, raw *r, real *y,
                        real *dx) {
    for (uint64_t step = 0; step < STEPS; step++) {
        real *x = layer_numbers(ROWS, WIDTH, 10 + step, mean, 1),
             *dy = layer_numbers(ROWS, WIDTH, 20 + step, 0.2, 1);
        const norm_options *o = &l->site.options;
        double *u = layer_scaled(x, ROWS, WIDTH, o->layer_scale, o->eps, NULL);
        if (r) r->u = u;
        layer_pass(l, t, x, dy, ROWS, mask, NORM_TRAIN, y, dx);
        free(u);
        free(x);
        free(dy);
    }
}

static void check_statistics(const norm_method *m, const uint8_t *mask) {
    layer l;
    raw r = {.calls = 0};
    sr_failure why = {0};
    tape *t = tape_create(2, &why);
    assert_non_null(t);
    layer_make(&l, m, WIDTH, m->layer_scale);
    const int clip = norm_param_find(m, "clip_calls"), warmup = norm_param_find(m, "warmup");
    if (clip >= 0) l.site.options.param[clip] = l.site.options.param[warmup] = 0; /* r is not 1 */
    observe(&l, ALPHA);
    for (int k = 0; k < WIDTH; k++) r.sigma2[k] = r.psi2[k] = 1;
    l.site.backward_hook = see;
    l.site.hook_context = &r;
    three_steps(&l, t, mask, 3, &r, NULL, NULL);
    assert_int_equal(r.calls, STEPS);
    check_equals(l.site.observer->alpha, (m->alpha > 0 ? m->alpha : ALPHA));
    check_above(l.site.observer->eps, 0);
    layer_free(&l);
    tape_free(t);
}

static void statistics(void **state) {
    (void)state;
    uint8_t mask[ROWS];
    const norm_method *m;
    for (int i = 0; i < ROWS; i++) mask[i] = i % 5 != 2;
    for (int i = 0; (m = norm_at(i)); i++) {
        check_statistics(m, NULL);
        check_statistics(m, mask);
    }
}

/* -- the layer itself -------------------------------------------------------------------------- */

typedef struct outcome {
    real y[ROWS * WIDTH], dx[ROWS * WIDTH], gamma[WIDTH], beta[WIDTH], own[NORM_OWN_MAX][WIDTH];
    double state[NORM_STATE_MAX][WIDTH * 64];
    int64_t calls;
} outcome;

static void make_outcome(outcome *out, const norm_method *m, bool observed, int threads,
                         const uint8_t *mask) {
    layer l;
    sr_failure why = {0};
    tape *t = tape_create(threads, &why);
    assert_non_null(t);
    memset(out, 0, sizeof *out);
    layer_make(&l, m, WIDTH, m->layer_scale);
    if (observed) observe(&l, ALPHA);
    three_steps(&l, t, mask, 3, NULL, out->y, out->dx);
    if (l.site.gamma) {
        memcpy(out->gamma, l.site.gamma->grad, sizeof out->gamma);
        memcpy(out->beta, l.site.beta->grad, sizeof out->beta);
    }
    for (int i = 0; i < NORM_OWN_MAX && l.site.own[i]; i++)
        memcpy(out->own[i], l.site.own[i]->grad, (size_t)l.site.own[i]->count * sizeof(real));
    for (int i = 0; i < NORM_STATE_MAX; i++) {
        if (!l.site.state[i]) continue;
        assert_true((size_t)l.site.state_count[i] * sizeof(double) <= sizeof out->state[i]);
        memcpy(out->state[i], l.site.state[i], (size_t)l.site.state_count[i] * sizeof(double));
    }
    out->calls = l.site.calls;
    layer_free(&l);
    tape_free(t);
}

static void same_bytes(void **state) {
    (void)state;
    static outcome plain, observed;
    uint8_t mask[ROWS];
    const norm_method *m;
    for (int i = 0; i < ROWS; i++) mask[i] = i % 7 != 3;
    for (int i = 0; (m = norm_at(i)); i++) {
        make_outcome(&plain, m, false, 1, mask);
        for (int threads = 1; threads <= 3; threads += 2) {
            make_outcome(&observed, m, true, threads, mask);
            if (memcmp(&plain, &observed, sizeof plain))
                fail_msg("%s: observing changed the layer", m->name);
        }
    }
}

/* -- against layers that use the statistics ---------------------------------------------------- */

typedef struct kept {
    double stat[NORM_VECTOR_COUNT][WIDTH];
} kept;

static void keep(void *context, const norm_view *o) {
    kept *k = context;
    for (int v = 0; v < NORM_VECTOR_COUNT; v++)
        memcpy(k->stat[v], o->call->stat[v], sizeof k->stat[v]);
}

static void keep_last(kept *out, const char *method, bool observed, real *dx) {
    layer l;
    sr_failure why = {0};
    tape *t = tape_create(2, &why);
    assert_non_null(t);
    layer_make(&l, norm_find(method), WIDTH, 0);
    if (observed) observe(&l, norm_find("bn")->alpha);
    l.site.backward_hook = keep;
    l.site.hook_context = out;
    three_steps(&l, t, NULL, 3, NULL, NULL, dx);
    layer_free(&l);
    tape_free(t);
}

static void same_vectors(const kept *a, const kept *b, uint32_t vectors) {
    for (int v = 0; v < NORM_VECTOR_COUNT; v++)
        if (vectors >> v & 1) assert_memory_equal(a->stat[v], b->stat[v], sizeof a->stat[v]);
}

/* The observer of ln has bn's and pnv's statistics to the byte. With them, bn's dx is gamma/s g -
 * c_mu - c_sig xhat. */
static void like_bn(void **state) {
    (void)state;
    static kept bn, ln, pnv;
    static real dx[ROWS * WIDTH];
    keep_last(&ln, "ln", true, NULL);
    keep_last(&bn, "bn", false, dx);
    keep_last(&pnv, "pnv", false, NULL);
    same_vectors(&bn, &ln, norm_find("bn")->vectors);
    assert_memory_equal(ln.stat[NORM_psi2], pnv.stat[NORM_psi2], sizeof ln.stat[NORM_psi2]);
    real *x = layer_numbers(ROWS, WIDTH, 10 + STEPS - 1, 3, 1),
         *dy = layer_numbers(ROWS, WIDTH, 20 + STEPS - 1, 0.2, 1);
    double want[ROWS * WIDTH], got[ROWS * WIDTH];
    for (int i = 0; i < ROWS * WIDTH; i++) {
        int k = i % WIDTH;
        double s = sqrt(ln.stat[NORM_sigma2_B][k] + norm_find("ln")->eps);
        double factor = ln.stat[NORM_gamma][k] / s,
               xhat = ((double)x[i] - ln.stat[NORM_mu_B][k]) / s;
        double c_mu = factor * ln.stat[NORM_sum_g][k] / ROWS,
               c_sig = factor * ln.stat[NORM_sum_gx][k] / ROWS;
        want[i] = factor * (double)dy[i] - c_mu - c_sig * xhat;
        got[i] = (double)dx[i];
    }
    check_near_double("dx of bn", got, want, (int64_t)ROWS * WIDTH, 1e-6, 1e-6);
    free(x);
    free(dy);
}

/* The observer's (s sum_gx + mu_B sum_g)/psi is pnv's own sum_gx. */
static void like_pnv(void **state) {
    (void)state;
    static kept plain, observed;
    double own[WIDTH], eps = norm_find("pnv")->eps;
    keep_last(&plain, "pnv", false, NULL);
    keep_last(&observed, "pnv", true, NULL);
    same_vectors(&plain, &observed, norm_find("pnv")->vectors & ~NORM_BIT(sum_gx));
    for (int k = 0; k < WIDTH; k++)
        own[k] = (sqrt(observed.stat[NORM_sigma2_B][k] + eps) * observed.stat[NORM_sum_gx][k] +
                  observed.stat[NORM_mu_B][k] * observed.stat[NORM_sum_g][k]) /
                 sqrt(observed.stat[NORM_psi2_B][k] + eps);
    check_near_double("sum_gx of pnv", own, plain.stat[NORM_sum_gx], WIDTH, 1e-10, 1e-9);
}

/* -- one layer in two processes ---------------------------------------------------------------- */

enum { RANKS = 2 };

/* A rank: rows first .. end-1 of the batch are valid, the others padding. The ranks' sums are
 * exchanged at `meet`. */
typedef struct rank {
    int number;
    int64_t first, end;
    const char *method;
    pthread_barrier_t *meet;
    double *const *sums; /* [RANKS] of the current exchange */
    kept seen;
    real y[ROWS * WIDTH], dx[ROWS * WIDTH]; /* last step */
} rank;

static sr_status gather(void *context, double *all, int64_t width) {
    rank *r = context;
    const size_t bytes = (size_t)width * sizeof *all;
    double **mine = (double **)r->sums + r->number;
    *mine = all;
    pthread_barrier_wait(r->meet);
    for (int i = 0; i < RANKS; i++)
        if (i != r->number) memcpy(all + i * width, r->sums[i] + i * width, bytes);
    pthread_barrier_wait(r->meet);
    return SR_OK;
}

static void rank_pass(rank *r, layer *l, tape *t, const real *x, const real *dy) {
    int64_t dim[2] = {ROWS, WIDTH}, one = 1;
    size_t bytes = (size_t)(ROWS * WIDTH) * sizeof(real);
    uint8_t mask[ROWS];
    bool add;
    norm_rows n;
    for (int64_t i = 0; i < ROWS; i++) mask[i] = i >= r->first && i < r->end;
    tape_reset(t, rng_create(5), true, true);
    params_zero_grad(&l->p);
    norm_rows_init(&n, t, ROWS, mask, NORM_TRAIN);
    n.gather = gather, n.gather_context = r, n.rank = r->number, n.ranks = RANKS;
    tensor *in = tape_tensor(t, 2, dim), *loss = tape_tensor(t, 1, &one);
    in->wants_grad = loss->wants_grad = true;
    memcpy(in->value, x, bytes);
    tensor *out = norm_apply(&l->site, t, in, &n);
    memcpy(tape_grad(t, out, &add), dy, bytes);
    tape_backward(t, loss, 1);
    memcpy(r->y, out->value, bytes);
    memcpy(r->dx, in->grad, bytes);
}

static void *rank_run(void *context) {
    rank *r = context;
    layer l;
    tape *t = tape_create(1, NULL);
    layer_make(&l, norm_find(r->method), WIDTH, 0);
    norm_site_observe_batch(&l.site, norm_find("bn")->alpha, NULL);
    l.site.backward_hook = keep;
    l.site.hook_context = &r->seen;
    for (uint64_t step = 0; step < STEPS; step++) {
        real *x = layer_numbers(ROWS, WIDTH, 10 + step, 3, 1),
             *dy = layer_numbers(ROWS, WIDTH, 20 + step, 0.2, 1);
        rank_pass(r, &l, t, x, dy);
        free(x);
        free(dy);
    }
    layer_free(&l);
    tape_free(t);
    return NULL;
}

/* Runs the same steps in one process. */
static void whole_run(const char *method, real *y, real *dx) {
    layer l;
    tape *t = tape_create(1, NULL);
    layer_make(&l, norm_find(method), WIDTH, 0);
    for (uint64_t step = 0; step < STEPS; step++) {
        real *x = layer_numbers(ROWS, WIDTH, 10 + step, 3, 1),
             *g = layer_numbers(ROWS, WIDTH, 20 + step, 0.2, 1);
        layer_pass(&l, t, x, g, ROWS, NULL, NORM_TRAIN, y, dx);
        free(x);
        free(g);
    }
    layer_free(&l);
    tape_free(t);
}

/* Two ranks, the first with the rows before the cut. */
static void run_ranks(rank r[RANKS], const char *method, int64_t cut) {
    double *sums[RANKS];
    pthread_barrier_t meet;
    pthread_t thread[RANKS];
    assert_int_equal(pthread_barrier_init(&meet, NULL, RANKS), 0);
    for (int i = 0; i < RANKS; i++) {
        r[i].number = i;
        r[i].first = i ? cut : 0, r[i].end = i ? ROWS : cut;
        r[i].method = method, r[i].meet = &meet, r[i].sums = sums;
    }
    for (int i = 0; i < RANKS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, rank_run, &r[i]), 0);
    for (int i = 0; i < RANKS; i++) pthread_join(thread[i], NULL);
    pthread_barrier_destroy(&meet);
}

/* The rows of both ranks count; a rank may have none. */
static void check_ranks(const char *method, int64_t cut) {
    static kept whole;
    static rank r[RANKS];
    run_ranks(r, method, cut);
    keep_last(&whole, method, true, NULL);
    const norm_vector compared[] = {NORM_mu_B,   NORM_sigma2_B, NORM_psi2_B, NORM_mu,
                                    NORM_sigma2, NORM_psi2,     NORM_sum_g,  NORM_sum_gx};
    for (int v = 0; v < 8; v++) {
        assert_memory_equal(r[0].seen.stat[compared[v]], r[1].seen.stat[compared[v]],
                            sizeof whole.stat[0]);
        check_near_double(method, r[0].seen.stat[compared[v]], whole.stat[compared[v]], WIDTH,
                          1e-12, 1e-11);
    }
}

static void synchronised(void **state) {
    (void)state;
    static const char *const methods[] = {"ln",   "rmsnorm", "groupnorm", "instancenorm",
                                          "none", "bn",      "pnv"};
    for (int i = 0; i < 7; i++) {
        check_ranks(methods[i], 100);
        check_ranks(methods[i], 0);
    }
}

/* Returns the largest difference between the ranks' rows and one process's, relative to its largest
 * number. */
static double distance_of(const rank *r, const real *whole, const real *at_rank[RANKS]) {
    double distance = 0, largest = 0;
    for (int64_t i = 0; i < ROWS * WIDTH; i++) {
        const int owner = i / WIDTH >= r[0].end;
        distance = fmax(distance, fabs((double)at_rank[owner][i] - (double)whole[i]));
        largest = fmax(largest, fabs((double)whole[i]));
    }
    return distance / largest;
}

/* Over ranks, outputs and gradients equal one process's. Excluded: unsynchronized methods with
 * batch statistics. */
static void every_method_over_ranks(void **state) {
    (void)state;
    static rank r[RANKS];
    static real y[ROWS * WIDTH], dx[ROWS * WIDTH];
    for (int i = 0; norm_at(i); i++) {
        const norm_method *m = norm_at(i);
        if (!m->synchronises && !strcmp(m->axis, "batch")) continue;
        run_ranks(r, m->name, 100);
        whole_run(m->name, y, dx);
        const double of_y = distance_of(r, y, (const real *[]){r[0].y, r[1].y}),
                     of_dx = distance_of(r, dx, (const real *[]){r[0].dx, r[1].dx});
        if (!(of_y <= 1e-6 && of_dx <= 1e-6))
            fail_msg("%s: y %g, dx %g from one process", m->name, of_y, of_dx);
    }
}

/* -- updates of the running statistics --------------------------------------------------------- */

static void only_training_moves(void **state) {
    (void)state;
    layer l;
    sr_failure why = {0};
    tape *t = tape_create(1, &why);
    uint8_t none[ROWS] = {0};
    real *x = layer_numbers(ROWS, WIDTH, 1, 3, 1), *dy = layer_numbers(ROWS, WIDTH, 2, 0, 1);
    assert_non_null(t);
    layer_make(&l, norm_find("ln"), WIDTH, 0);
    observe(&l, ALPHA);
    layer_pass(&l, t, x, dy, ROWS, NULL, NORM_RUNNING, NULL, NULL);
    layer_pass(&l, t, x, dy, ROWS, NULL, NORM_BATCH, NULL, NULL);
    layer_pass(&l, t, x, dy, ROWS, none, NORM_TRAIN, NULL, NULL);
    for (int k = 0; k < WIDTH; k++) {
        check_equals(l.site.observer->mu[k], 0);
        check_equals(l.site.observer->psi2[k], 1);
    }
    layer_pass(&l, t, x, dy, ROWS, NULL, NORM_TRAIN, NULL, NULL);
    for (int k = 0; k < WIDTH; k++) check_differs(l.site.observer->mu[k], 0);
    layer_free(&l);
    assert_null(l.site.observer);
    tape_free(t);
    free(x);
    free(dy);
}

static void refuses_alpha(void **state) {
    (void)state;
    layer l;
    sr_failure why = {0};
    layer_make(&l, norm_find("ln"), WIDTH, 0);
    assert_int_equal(norm_site_observe_batch(&l.site, 1.5, &why), SR_USAGE);
    check_failure(&why, SR_USAGE, "alpha is 1.5");
    assert_null(l.site.observer);
    assert_int_equal(norm_site_vectors(&l.site), norm_find("ln")->vectors);
    layer_free(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(statistics),
                                       cmocka_unit_test(same_bytes),
                                       cmocka_unit_test(like_bn),
                                       cmocka_unit_test(like_pnv),
                                       cmocka_unit_test(synchronised),
                                       cmocka_unit_test(every_method_over_ranks),
                                       cmocka_unit_test(only_training_moves),
                                       cmocka_unit_test(refuses_alpha)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
