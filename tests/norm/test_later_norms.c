/* test_later_norms.c -- un, repbn, unit, dyt and derf by hand: their schedules, several threads
 * with settings past the first calls, two processes. Also bn's unbiased running variance in two
 * processes. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layer.h"

enum { MANY = 700, WIDE_ROWS = 20 };

/* A layer with "a=1 b=2" set and initial learnable parameters. */
static void make_layer(layer *l, const char *method, const char *values, int64_t d, bool random) {
    sr_failure why = {0};
    const norm_method *m = norm_find(method);
    norm_options o = norm_options_default(m);
    char text[128], *rest = text;
    snprintf(text, sizeof text, "%s", values);
    for (char *word; (word = strtok_r(rest, " ", &rest));) {
        char *value = strchr(word, '=');
        *value++ = 0;
        check_ok(norm_options_set(&o, m, word, value, &why), &why);
    }
    if (random) {
        layer_make_with(l, m, d, &o);
        return;
    }
    memset(l, 0, sizeof *l);
    params_init(&l->p, 3);
    check_ok(norm_site_init(&l->site, &l->p, "n", "encoder", 0, d, m, &o, &why), &why);
}

static tape *make_tape(int threads) {
    sr_failure why = {0};
    tape *t = tape_create(threads, &why);
    check_ok(why.status, &why);
    return t;
}

static void near(const char *what, double got, double want) {
    if (!(fabs(got - want) <= 3e-7 * fmax(1, fabs(want))))
        fail_msg("%s: got %.9g want %.9g", what, got, want);
}

/* -- learned parameters ---------------------------------------------------------------------- */

static void parameters(void **state) {
    (void)state;
    static const struct {
        const char *method, *values, *name;
        int64_t count;
        double first;
    } want[] = {
        {"dyt", "", "n.alpha", 1, 0.5},        {"dyt", "alpha0=-2", "n.alpha", 1, -2},
        {"derf", "", "n.alpha", 1, 0.5},       {"derf", "", "n.s", 1, 0},
        {"derf", "s0=0.25", "n.s", 1, 0.25},   {"repbn", "", "n.eta", 1, 1},
        {"repbn", "eta0=0", "n.eta", 1, 0},    {"repbn", "", "n.ln_gamma", 0, 0},
        {"repbn", "t0=9", "n.ln_gamma", 4, 1}, {"repbn", "t0=9", "n.ln_beta", 4, 0},
        {"unit", "", "n.s", 4, 0.5}, /* 1/sqrt(4) */
        {"unit", "s_scale=3", "n.s", 4, 3},    {"unit", "", "n.gamma", 0, 0},
        {"unit", "", "n.beta", 0, 0},          {"dyt", "", "n.gamma", 4, 1},
        {"dyt", "", "n.beta", 4, 0},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        layer l;
        make_layer(&l, want[i].method, want[i].values, 4, false);
        const param *p = params_find(&l.p, want[i].name);
        if ((p ? p->t.count : 0) != want[i].count)
            fail_msg("%s %s: %s", want[i].method, want[i].values, want[i].name);
        for (int64_t k = 0; k < want[i].count; k++)
            near(p->name, (double)p->t.value[k], want[i].first);
        layer_free(&l);
    }
}

static void long_names(void **state) {
    (void)state;
    sr_failure why = {0};
    norm_site s;
    params p;
    char name[PARAM_NAME];
    const norm_method *m = norm_find("repbn");
    const norm_options o = norm_options_default(m);
    params_init(&p, 1);
    memset(name, 'x', sizeof name);
    name[PARAM_NAME - sizeof ".ln_gamma"] = 0;
    check_ok(norm_site_init(&s, &p, name, "k", 0, 2, m, &o, &why), &why);
    norm_site_free(&s);
    name[PARAM_NAME - sizeof ".ln_gamma"] = 'x';
    name[PARAM_NAME - sizeof ".ln_gamma" + 1] = 0;
    norm_site_init(&s, &p, name, "k", 0, 2, m, &o, &why);
    check_failure(&why, SR_USAGE, "too long");
    params_free(&p);
}

/* -- by hand --------------------------------------------------------------------------------- */

/* y and dx of one row (3, -4), g = (1, 2), with initial parameters. */
static void pass_of_two(const char *method, const char *values, double want[4]) {
    layer l;
    tape *t = make_tape(1);
    const real x[] = {3, -4}, g[] = {1, 2};
    real y[2], dx[2];
    make_layer(&l, method, values, 2, false);
    layer_pass(&l, t, x, g, 1, NULL, NORM_TRAIN, y, dx);
    for (int k = 0; k < 2; k++) {
        near(method, (double)y[k], want[k]);
        near(method, (double)dx[k], want[2 + k]);
    }
    layer_free(&l);
    tape_free(t);
}

static void rows_by_hand(void **state) {
    (void)state;
    /* z = (0.6, -0.8), r = 5: dx = (g - z (0.6 - 1.6))/5 */
    pass_of_two("unit", "", (double[]){0.6, -0.8, 0.32, 0.24});
    pass_of_two("unit", "s_init=10", (double[]){6, -8, 3.2, 2.4});
    pass_of_two("unit", "s_init=10 s_scale=7", (double[]){6, -8, 3.2, 2.4});
    pass_of_two("dyt", "", (double[]){0.905148254, -0.964027580, 0.090353319, 0.070650825});
    pass_of_two("derf", "", (double[]){0.966105146, -0.995322265, 0.059465145, 0.020666985});
    pass_of_two("derf", "alpha0=0.25 s0=0.25",
                (double[]){0.842700793, -0.711155634, 0.103776874, 0.321465535});
    /* one row: BN gives beta and no gradient */
    pass_of_two("repbn", "", (double[]){3, -4, 1, 2});
    pass_of_two("repbn", "eta0=-0.5", (double[]){-1.5, 2, -0.5, -1});
}

/* s changes with p by s_init/s_scale: dp is ds times that. */
static void scale_of_unit(void **state) {
    (void)state;
    layer l;
    tape *t = make_tape(1);
    const real x[] = {3, -4}, g[] = {1, 2};
    make_layer(&l, "unit", "s_init=10 s_scale=2", 2, false);
    layer_pass(&l, t, x, g, 1, NULL, NORM_TRAIN, NULL, NULL);
    near("dp", (double)l.site.own[0]->grad[0], 5 * 0.6);
    near("dp", (double)l.site.own[0]->grad[1], 5 * -1.6);
    layer_free(&l);
    tape_free(t);
}

static double bn_norm, own_norm, gain;

static void take_bn(void *context, const norm_view *o) {
    (void)context;
    bn_norm = o->call->scalar[NORM_SCALAR_dx_norm_bn];
    own_norm = o->call->scalar[NORM_SCALAR_dx_norm];
    gain = o->call->stat[NORM_gamma][1];
}

/* bn with the gain of a unit site equals bn with gamma = s, for any learned value. */
static void gain_of_unit(void **state) {
    (void)state;
    enum { N = 30, D = 4 };
    double norm_of_bn = 0;
    for (int i = 0; i < 2; i++) {
        layer l;
        tape *t = make_tape(1);
        real *x = layer_numbers(N, D, 1, 1, 1), *dy = layer_numbers(N, D, 2, 0.2, 1);
        make_layer(&l, i ? "unit" : "bn", i ? "s_init=3 s_scale=0.7" : "", D, false);
        for (int k = 0; k < D && !i; k++) l.site.gamma->value[k] = 3;
        check_ok(norm_site_observe_batch(&l.site, 0.9, NULL), NULL);
        l.site.observer->eps = norm_find("bn")->eps;
        l.site.backward_hook = take_bn;
        layer_pass(&l, t, x, dy, N, NULL, NORM_TRAIN, NULL, NULL);
        near("gain", gain, 3);
        if (i) near("dx_norm_bn", bn_norm, norm_of_bn);
        norm_of_bn = own_norm;
        layer_free(&l);
        tape_free(t);
        free(x), free(dy);
    }
}

/* -- schedules ------------------------------------------------------------------------------- */

/* One call of un on a column of +-root, with mean square root^2. v: s^2 from y = x/s. psi: dx's
 * part along z; with g = push z, dx = (push - psi) z/s. */
typedef struct call_of_un {
    double square, push, v, psi;
} call_of_un;

static call_of_un call_un(layer *l, tape *t, double square, double push, norm_mode mode) {
    const real root = (real)sqrt(square), x[] = {root, -root};
    real g[2], y[2], dx[2];
    layer_pass(l, t, x, x, 2, NULL, NORM_BATCH, y, dx); /* changes nothing */
    for (int i = 0; i < 2; i++) g[i] = i ? (real)-push : (real)push;
    layer_pass(l, t, x, g, 2, NULL, mode, y, dx);
    const double s = (double)root / (double)y[0], z = (double)y[0];
    const double mean = push * z; /* mean of g z */
    return (call_of_un){square, mean, s * s, (push - s * (double)dx[0]) / z};
}

static void un_expect(const char *what, call_of_un got, double v, double psi) {
    if (!(fabs(got.v - v) <= 1e-4 * v) || !(fabs(got.psi - psi) <= 1e-4 * fabs(psi) + 1e-5))
        fail_msg("%s: v %.7g psi %.7g, not %.7g and %.7g", what, got.v, got.psi, v, psi);
}

static void smoothing(void **state) {
    (void)state;
    layer l;
    tape *t = make_tape(1);
    make_layer(&l, "un", "window=2 warmup=4 filter=off", 1, false);
    l.site.options.eps = 1e-12;
    /* early: its own value; e follows */
    un_expect("call 1", call_un(&l, t, 4, 1, NORM_TRAIN), 4, 1);   /* e = 0.1 */
    un_expect("call 2", call_un(&l, t, 16, 1, NORM_TRAIN), 16, 1); /* e = 0.19 */
    un_expect("call 3", call_un(&l, t, 1, 2, NORM_TRAIN), 1, 2);   /* c < W; e = 0.371 */
    /* v = sqrt(1 * 64) = 8, z = 8/sqrt(8), g z = 2.828; e = 0.9 * 0.371 + 0.1 (2 + 2.828427)/2 */
    un_expect("call 4", call_un(&l, t, 64, 1, NORM_TRAIN), 8, 0.57532135);
    un_expect("batch", call_un(&l, t, 25, 1, NORM_BATCH), 25, 1);
    /* v = sqrt(64 * 4) = 16, z = 0.5; e = 0.9 e + 0.1 (2.828427 + 0.5)/2 */
    un_expect("call 5", call_un(&l, t, 4, 1, NORM_TRAIN), 16, 0.68421057);
    /* psi2: 1, then 0.9 and 0.1 of 4, 16, 1, 8, 16 */
    double psi2 = 1;
    const double v[] = {4, 16, 1, 8, 16};
    for (int i = 0; i < 5; i++) psi2 = 0.9 * psi2 + 0.1 * v[i];
    near("psi2", l.site.state[0][0] / psi2, 1);
    un_expect("running", call_un(&l, t, 9, 1, NORM_RUNNING), psi2, 0);
    layer_free(&l);
    tape_free(t);
}

/* An outlier after calls at 1 and 1.21 is normalized by its own value, which does not enter the
 * windows. */
static void filtration(void **state) {
    (void)state;
    for (int on = 0; on < 2; on++) {
        layer l;
        tape *t = make_tape(1);
        make_layer(&l, "un", on ? "window=3 warmup=0" : "window=3 warmup=0 filter=off", 1, false);
        l.site.options.eps = 1e-12;
        for (int i = 0; i < 4; i++) call_un(&l, t, i % 2 ? 1.21 : 1, 1, NORM_TRAIN);
        const double psi2 = l.site.state[0][0], e = l.site.state[3][0];
        const call_of_un got = call_un(&l, t, 1e4, 1, NORM_TRAIN);
        if (on) {
            un_expect("outlier", got, 1e4, 1);
            near("slot", l.site.state[1][5 % 3], psi2);
            near("slot", l.site.state[2][5 % 3], e);
            near("e", l.site.state[3][0], 0.9 * e + 0.1);
            near("psi2", l.site.state[0][0], 0.9 * psi2 + 0.1 * 1e4);
        } else {
            un_expect("no filter", got, cbrt(1e4 * 1.21), got.psi);
            near("slot", l.site.state[1][5 % 3] / 1e4, 1);
        }
        layer_free(&l);
        tape_free(t);
    }
}

/* y = lambda LN(x) + (1 - lambda)(x + 3) for BN's gain 0 and bias 3; LN of (3, -1) is (1, -1). */
static void progress(void **state) {
    (void)state;
    enum { CALLS = 6 };
    layer l;
    tape *t = make_tape(1);
    const real x[] = {3, -1};
    const double lambda[CALLS] = {1, 0.75, 0.5, 0.25, 0, 0};
    real y[2], dx[2];
    make_layer(&l, "repbn", "t0=4", 2, false);
    l.site.options.eps = 1e-12;
    for (int k = 0; k < 2; k++) l.site.gamma->value[k] = 0, l.site.beta->value[k] = 3;
    for (int i = 0; i < CALLS; i++) {
        const norm_mode mode[] = {NORM_TRAIN, NORM_BATCH, NORM_RUNNING};
        for (int m = 0; m < 3; m++) {
            layer_pass(&l, t, x, x, 1, NULL, mode[m], y, dx);
            near("y", (double)y[0], lambda[i] + (1 - lambda[i]) * 6);
            near("y", (double)y[1], -lambda[i] + (1 - lambda[i]) * 2);
        }
        near("kept", l.site.state[2][1], lambda[i]);
    }
    layer_free(&l);
    tape_free(t);
}

/* -- threads, and two processes --------------------------------------------------------------- */

static const struct {
    const char *method, *values;
} settled[] = {{"un", "window=2 warmup=0"},
               {"un", "window=2 warmup=0 filter=off"},
               {"repbn", "t0=7"},
               {"repbn", ""},
               {"bn", "unbiased=1"},
               {"unit", "s_init=3"},
               {"dyt", ""},
               {"derf", "s0=0.3"}};

enum { SETTLED = sizeof settled / sizeof *settled, STEPS = 4, RANKS = 2 };

/* Results of some steps: one process's, or the sum of several. */
typedef struct outcome {
    real y[MANY * WIDE_ROWS], dx[MANY * WIDE_ROWS];
    double gradient[5][WIDE_ROWS], state[NORM_STATE_MAX][2 * WIDE_ROWS], dx_norm, direct_norm;
} outcome;

static void take_norms(void *context, const norm_view *o) {
    outcome *out = context;
    out->dx_norm = o->call->scalar[NORM_SCALAR_dx_norm];
    out->direct_norm = o->call->scalar[NORM_SCALAR_direct_norm];
}

static void take_outcome(const layer *l, outcome *o) {
    const tensor *p[] = {l->site.gamma, l->site.beta, l->site.own[0], l->site.own[1],
                         l->site.own[2]};
    for (int i = 0; i < 5; i++)
        for (int64_t k = 0; p[i] && k < p[i]->count; k++) o->gradient[i][k] = (double)p[i]->grad[k];
    for (int i = 0; i < NORM_STATE_MAX && l->site.state[i]; i++)
        memcpy(o->state[i], l->site.state[i], (size_t)l->site.state_count[i] * sizeof(double));
}

static void on_threads(void **state) {
    (void)state;
    static outcome o[2];
    uint8_t mask[MANY];
    for (int i = 0; i < MANY; i++) mask[i] = i % 5 != 2;
    for (size_t i = 0; i < SETTLED; i++) {
        memset(o, 0, sizeof o);
        for (int k = 0; k < 2; k++) {
            layer l;
            tape *t = make_tape(1 + 2 * k);
            make_layer(&l, settled[i].method, settled[i].values, WIDE_ROWS, true);
            l.site.backward_hook = take_norms;
            l.site.hook_context = &o[k];
            for (uint64_t s = 0; s < STEPS; s++) {
                real *x = layer_numbers(MANY, WIDE_ROWS, 10 + s, 0.3, 1),
                     *dy = layer_numbers(MANY, WIDE_ROWS, 20 + s, 0.2, 1);
                layer_pass(&l, t, x, dy, MANY, mask, NORM_TRAIN, o[k].y, o[k].dx);
                free(x), free(dy);
            }
            take_outcome(&l, &o[k]);
            layer_free(&l);
            tape_free(t);
        }
        if (memcmp(&o[0], &o[1], sizeof o[0]))
            fail_msg("%s %s: other bytes on 3 threads", settled[i].method, settled[i].values);
        double square = 0;
        for (int j = 0; j < MANY * WIDE_ROWS; j++)
            square += (double)o[0].dx[j] * (double)o[0].dx[j];
        near("dx_norm", o[0].dx_norm / sqrt(square), 1);
    }
}

typedef struct rank {
    int number;
    size_t setting;
    int64_t first, end;
    pthread_barrier_t *meet;
    double **sums;
    outcome *out;
} rank;

static sr_status gather(void *context, double *all, int64_t width) {
    rank *r = context;
    r->sums[r->number] = all;
    pthread_barrier_wait(r->meet);
    for (int i = 0; i < RANKS; i++)
        if (i != r->number)
            memcpy(all + i * width, r->sums[i] + i * width, (size_t)width * sizeof *all);
    pthread_barrier_wait(r->meet);
    return SR_OK;
}

static void rank_pass(rank *r, layer *l, tape *t, uint64_t step) {
    int64_t dim[2] = {MANY, WIDE_ROWS}, one = 1;
    const size_t bytes = sizeof r->out->y;
    uint8_t mask[MANY];
    bool add;
    norm_rows n;
    real *x = layer_numbers(MANY, WIDE_ROWS, 10 + step, 0.3, 1),
         *dy = layer_numbers(MANY, WIDE_ROWS, 20 + step, 0.2, 1);
    for (int64_t i = 0; i < MANY; i++) mask[i] = i >= r->first && i < r->end;
    tape_reset(t, rng_create(5), true, true);
    params_zero_grad(&l->p);
    norm_rows_init(&n, t, MANY, mask, NORM_TRAIN);
    if (r->meet) n.gather = gather, n.gather_context = r, n.rank = r->number, n.ranks = RANKS;
    tensor *in = tape_tensor(t, 2, dim), *loss = tape_tensor(t, 1, &one);
    in->wants_grad = loss->wants_grad = true;
    memcpy(in->value, x, bytes);
    tensor *out = norm_apply(&l->site, t, in, &n);
    memcpy(tape_grad(t, out, &add), dy, bytes);
    tape_backward(t, loss, 1);
    memcpy(r->out->y, out->value, bytes);
    memcpy(r->out->dx, in->grad, bytes);
    free(x), free(dy);
}

static void *rank_run(void *context) {
    rank *r = context;
    layer l;
    tape *t = tape_create(1, NULL);
    make_layer(&l, settled[r->setting].method, settled[r->setting].values, WIDE_ROWS, true);
    for (uint64_t step = 0; step < STEPS; step++) rank_pass(r, &l, t, step);
    take_outcome(&l, r->out);
    layer_free(&l);
    tape_free(t);
    return NULL;
}

/* Each rank has some rows or none. The running statistics equal the whole batch's; parameter
 * gradients add up to the whole's. */
static void check_ranks(size_t setting, int64_t cut) {
    static outcome whole, part[RANKS];
    double *sums[RANKS], want[5 * WIDE_ROWS], got[5 * WIDE_ROWS];
    pthread_barrier_t meet;
    pthread_t thread[RANKS];
    rank all = {0, setting, 0, MANY, NULL, NULL, &whole};
    rank r[RANKS] = {{0, setting, 0, cut, &meet, sums, &part[0]},
                     {1, setting, cut, MANY, &meet, sums, &part[1]}};
    memset(&whole, 0, sizeof whole), memset(part, 0, sizeof part);
    rank_run(&all);
    assert_int_equal(pthread_barrier_init(&meet, NULL, RANKS), 0);
    for (int i = 0; i < RANKS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, rank_run, &r[i]), 0);
    for (int i = 0; i < RANKS; i++) pthread_join(thread[i], NULL);
    pthread_barrier_destroy(&meet);
    assert_memory_equal(part[0].state, part[1].state, sizeof part[0].state);
    check_near_double("state", part[0].state[0], whole.state[0],
                      (int64_t)(sizeof whole.state / sizeof(double)), 1e-9, 1e-10);
    for (int i = 0; i < MANY * WIDE_ROWS; i++) {
        const outcome *o = &part[i / WIDE_ROWS >= cut];
        near("y", (double)o->y[i], (double)whole.y[i]);
        near("dx", (double)o->dx[i], (double)whole.dx[i]);
    }
    for (int i = 0; i < 5 * WIDE_ROWS; i++) {
        want[i] = whole.gradient[i / WIDE_ROWS][i % WIDE_ROWS];
        got[i] = part[0].gradient[i / WIDE_ROWS][i % WIDE_ROWS] +
                 part[1].gradient[i / WIDE_ROWS][i % WIDE_ROWS];
    }
    check_near_double(settled[setting].method, got, want, 5 * WIDE_ROWS, 1e-5, 1e-4);
}

static void two_processes(void **state) {
    (void)state;
    for (size_t i = 0; i < SETTLED; i++) {
        check_ranks(i, 300);
        check_ranks(i, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters),   cmocka_unit_test(long_names),
        cmocka_unit_test(rows_by_hand), cmocka_unit_test(scale_of_unit),
        cmocka_unit_test(gain_of_unit), cmocka_unit_test(smoothing),
        cmocka_unit_test(filtration),   cmocka_unit_test(progress),
        cmocka_unit_test(on_threads),   cmocka_unit_test(two_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
