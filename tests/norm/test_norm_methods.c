/* test_norm_methods.c -- identities between methods, and options that no vector file covers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layer.h"
#include "testing/gradcheck.h"

enum { N = 12, D = 6 };

/* A few float roundings for numbers from 1 to 10. */
static const double close = 4e-6;

typedef struct pair {
    layer a, b;
    tape *t;
    real *x, *dy, ya[N * D], yb[N * D], da[N * D], db[N * D];
} pair;

static pair *pair_make(const char *a, const char *b) {
    sr_failure why = {0};
    pair *p = calloc(1, sizeof *p);
    assert_non_null(p);
    p->t = tape_create(1, &why);
    assert_non_null(p->t);
    layer_make(&p->a, norm_find(a), D, 0);
    layer_make(&p->b, norm_find(b), D, 0);
    p->x = layer_numbers(N, D, 1, 0.5, 1);
    p->dy = layer_numbers(N, D, 2, 0.1, 1);
    return p;
}

static void pair_free(pair *p) {
    layer_free(&p->a);
    layer_free(&p->b);
    tape_free(p->t);
    free(p->x);
    free(p->dy);
    free(p);
}

static void pair_run(pair *p, norm_mode a, norm_mode b) {
    layer_pass(&p->a, p->t, p->x, p->dy, N, NULL, a, p->ya, p->da);
    layer_pass(&p->b, p->t, p->x, p->dy, N, NULL, b, p->yb, p->db);
}

static void check_near(const char *what, const real *got, const real *want) {
    for (int i = 0; i < N * D; i++)
        if (!(fabs((double)got[i] - (double)want[i]) <= close * (1 + fabs((double)want[i]))))
            fail_msg("%s [%d]: %.9g, not %.9g", what, i, (double)got[i], (double)want[i]);
}

static void set(layer *l, const char *name, double value) {
    int i = norm_param_find(l->site.method, name);
    assert_true(i >= 0);
    l->site.options.param[i] = value;
}

static void move_state(layer *l, double first, double second) {
    for (int64_t k = 0; k < D; k++) {
        l->site.state[0][k] = first + 0.1 * (double)k;
        if (l->site.state[1]) l->site.state[1][k] = second + 0.1 * (double)k;
    }
}

static void test_groupnorm_of_tokens_is_ln(void **state) {
    (void)state;
    pair *p = pair_make("groupnorm", "ln");
    pair_run(p, NORM_TRAIN, NORM_TRAIN);
    check_near("y", p->ya, p->yb);
    check_near("dx", p->da, p->db);
    pair_free(p);
}

/* Without limits, BRN normalizes in training as in inference. */
static void test_brn_unclipped(void **state) {
    (void)state;
    pair *p = pair_make("brn", "brn");
    layer *const both[] = {&p->a, &p->b};
    for (int i = 0; i < 2; i++) {
        set(both[i], "r_max", 1e9);
        set(both[i], "d_max", 1e9);
        set(both[i], "warmup", 0);
        set(both[i], "r_calls", 0);
        set(both[i], "d_calls", 0);
        move_state(both[i], 0.3, 0.7);
    }
    pair_run(p, NORM_TRAIN, NORM_RUNNING);
    check_near("y", p->ya, p->yb);
    pair_free(p);
}

static void test_brn_warmup(void **state) {
    (void)state;
    pair *p = pair_make("brn", "bn");
    p->a.site.options.eps = p->b.site.options.eps = 1e-5;
    set(&p->a, "warmup", 2);
    set(&p->a, "r_calls", 4);
    set(&p->a, "d_calls", 4);
    for (int call = 1; call <= 4; call++) {
        move_state(&p->a, 0.3, 0.4);
        pair_run(p, NORM_TRAIN, NORM_TRAIN);
        bool same = true;
        for (int i = 0; i < N * D; i++) same &= fabs((double)p->ya[i] - (double)p->yb[i]) <= 1e-3;
        assert_int_equal(same, call <= 2);
    }
    pair_free(p);
}

/* After its warm-up and within its limits MABN divides by the running value: r z = x/sqrt(run). */
static void test_mabn_ratio(void **state) {
    (void)state;
    pair *p = pair_make("mabn", "pnv");
    set(&p->a, "buffer", 1);
    set(&p->a, "warmup", 0);
    set(&p->a, "clip_calls", 0);
    for (int call = 1; call <= 3; call++) {
        move_state(&p->a, 1.5, 0);
        move_state(&p->b, 1.5, 0);
        pair_run(p, NORM_TRAIN, NORM_RUNNING);
        check_near("y", p->ya, p->yb);
    }
    pair_free(p);
}

/* pn-released without warm-up, padding and layer scale equals pn with the batch's divisor in the
 * backward pass. */
static void test_pn_released(void **state) {
    (void)state;
    pair *p = pair_make("pn-released", "pn");
    set(&p->a, "warmup", 0);
    for (int call = 0; call < 3; call++) {
        double ratio[D];
        for (int64_t k = 0; k < D; k++) {
            double square = 0, eps = p->a.site.options.eps;
            for (int i = 0; i < N; i++)
                square += (double)p->x[i * D + k] * (double)p->x[i * D + k] / N;
            ratio[k] = sqrt((p->b.site.state[0][k] + eps) / (square + eps));
        }
        pair_run(p, NORM_TRAIN, NORM_TRAIN);
        for (int i = 0; i < N * D; i++) p->db[i] = (real)((double)p->db[i] * ratio[i % D]);
        check_near("y", p->ya, p->yb);
        check_near("dx", p->da, p->db);
        for (int64_t k = 0; k < D; k++)
            check_within_inclusive(p->a.site.state[1][k], p->b.site.state[1][k],
                                   1e-12 * (1 + fabs(p->b.site.state[1][k])));
    }
    pair_free(p);
}

/* -- the penalty of RBN ------------------------------------------------------------------------ */

/* Penalty of one training pass with these running statistics; its gradient in dx (dy = 0). */
static double penalty_of(layer *l, tape *t, const real *x, double tokens, real *dx) {
    double penalty = 0;
    int64_t dim[2] = {N, D}, one = 1;
    norm_rows r;
    bool add;
    move_state(l, 0.3, 0.7);
    tape_reset(t, rng_create(5), true, true);
    assert_int_equal(norm_rows_init(&r, t, N, NULL, NORM_TRAIN), SR_OK);
    r.penalty = &penalty;
    r.tokens = tokens;
    tensor *in = tape_tensor(t, 2, dim), *loss = tape_tensor(t, 1, &one);
    assert_true(in && loss);
    in->wants_grad = loss->wants_grad = true;
    memcpy(in->value, x, N * D * sizeof *x);
    tensor *y = norm_apply(&l->site, t, in, &r);
    assert_non_null(y);
    memset(tape_grad(t, y, &add), 0, N * D * sizeof *x);
    tape_backward(t, loss, 1);
    assert_null(tape_failure(t));
    if (dx) memcpy(dx, in->grad, N * D * sizeof *dx);
    return penalty;
}

static void check_penalty(layer *l, tape *t, const real *x) {
    real dx[N * D], moved[N * D];
    const double h = 1e-3;
    double whole = penalty_of(l, t, x, 1, dx);
    check_above(whole, 0);
    for (int i = 0; i < N * D; i++) {
        memcpy(moved, x, sizeof moved);
        moved[i] = (real)((double)x[i] + h);
        double up = (double)moved[i], above = penalty_of(l, t, moved, 1, NULL);
        moved[i] = (real)((double)x[i] - h);
        double slope = (above - penalty_of(l, t, moved, 1, NULL)) / (up - (double)moved[i]);
        if (!(fabs(slope - (double)dx[i]) <= 2e-5 * (1 + fabs(slope))))
            fail_msg("%s [%d]: %.9g, differences give %.9g", l->site.method->name, i, (double)dx[i],
                     slope);
    }
}

static void test_penalty(void **state) {
    (void)state;
    pair *p = pair_make("rbn", "rbn-released");
    set(&p->a, "lambda", 2);
    set(&p->a, "nu", 3);
    set(&p->a, "running", 0);
    check_penalty(&p->a, p->t, p->x);
    double sum = penalty_of(&p->a, p->t, p->x, 7, NULL);
    set(&p->a, "scale", 1);
    check_within_inclusive(penalty_of(&p->a, p->t, p->x, 7, NULL), 7 * sum, 1e-12 * sum);
    p->b.site.options.alpha = 1; /* running statistics that do not change are constants */
    set(&p->b, "lambda", 2);
    set(&p->b, "nu", 3);
    for (int kind = 0; kind < 4; kind++) {
        set(&p->b, "penalty", kind);
        check_penalty(&p->b, p->t, p->x);
    }
    pair_free(p);
}

/* As released: weights 0.1 and 0.01; the penalty uses running statistics after the update. */
static void test_rbn_defaults(void **state) {
    (void)state;
    pair *p = pair_make("rbn", "rbn");
    double want = 0, keep = p->a.site.options.alpha;
    check_equals(keep, 0.95);
    for (int64_t k = 0; k < D; k++) {
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < N; i++) mean += (double)p->x[i * D + k] / N;
        for (int64_t i = 0; i < N; i++) variance += pow((double)p->x[i * D + k] - mean, 2) / N;
        double mu = 0.3 + 0.1 * (double)k, sigma2 = 0.7 + 0.1 * (double)k;
        double deviation = sqrt(variance) - sqrt(keep * sigma2 + (1 - keep) * variance);
        want += 0.1 * pow(keep * (mean - mu), 2) + 0.01 * pow(deviation, 2);
    }
    double got = penalty_of(&p->a, p->t, p->x, 1, NULL);
    check_near_double("penalty", &got, &want, 1, 1e-12, 0);
    pair_free(p);
}

/* -- weights before MABN ----------------------------------------------------------------------- */

static tensor *centralized(tape *t, tensor *const *in, void *context) {
    return norm_weight(context, t, in[0]);
}

static void test_weight(void **state) {
    (void)state;
    pair *p = pair_make("mabn", "bn");
    const int64_t dim[] = {3, 2, 2, 5};
    gradcheck_result result;
    sr_failure why = {0};
    tensor *w = gradcheck_tensor(4, dim, 9, true);
    assert_non_null(w);
    tape_reset(p->t, rng_create(1), true, true);
    assert_ptr_equal(norm_weight(&p->b.site, p->t, w), w);
    tensor *v = norm_weight(&p->a.site, p->t, w);
    assert_non_null(v);
    for (int unit = 0; unit < 3; unit++) {
        double sum = 0;
        for (int j = 0; j < 20; j++) sum += (double)v->value[unit * 20 + j];
        check_at_most(fabs(sum), 1e-5);
    }
    check_ok(gradcheck(centralized, &w, 1, &p->a.site, 1e-2, &result, &why), &why);
    check_at_most(result.worst, 1e-4);
    gradcheck_tensor_free(w);
    pair_free(p);
}

static void test_groups_must_divide(void **state) {
    (void)state;
    const norm_method *m = norm_find("groupnorm");
    norm_options o = norm_options_default(m);
    norm_site s;
    params p;
    sr_failure why = {0};
    params_init(&p, 1);
    check_ok(norm_options_set(&o, m, "groups", "4", &why), &why);
    norm_site_init(&s, &p, "x", "encoder", 0, D, m, &o, &why);
    check_failure(&why, SR_USAGE, "4 groups");
    params_free(&p);
}

static void test_option_words(void **state) {
    (void)state;
    const norm_method *m = norm_find("rbn-released");
    norm_options o = norm_options_default(m);
    sr_failure why = {0};
    check_ok(norm_options_set(&o, m, "penalty", "reldiff", &why), &why);
    check_equals(o.param[norm_param_find(m, "penalty")], 2);
    norm_options_set(&o, m, "penalty", "rel", &why);
    check_failure(&why, SR_USAGE, "is not one of: diff diff2 reldiff mag");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groupnorm_of_tokens_is_ln),
        cmocka_unit_test(test_brn_unclipped),
        cmocka_unit_test(test_brn_warmup),
        cmocka_unit_test(test_mabn_ratio),
        cmocka_unit_test(test_pn_released),
        cmocka_unit_test(test_penalty),
        cmocka_unit_test(test_rbn_defaults),
        cmocka_unit_test(test_weight),
        cmocka_unit_test(test_groups_must_divide),
        cmocka_unit_test(test_option_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
