/* test_norm.c -- norm_apply for every method of the table: rows, threads, hooks, options. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layer.h"

enum { ROWS = 1500, WIDTH = 24, SAMPLES = 45 };

static tape *make_tape(int threads) {
    sr_failure why = {0};
    tape *t = tape_create(threads, &why);
    check_ok(why.status, &why);
    return t;
}

/* All results of a few training passes. */
typedef struct outcome {
    real y[ROWS * WIDTH], dx[ROWS * WIDTH], dgamma[WIDTH], dbeta[WIDTH], own[NORM_OWN_MAX][WIDTH];
    double state[NORM_STATE_MAX][16 * WIDTH];
} outcome;

static void ignore(void *context, const norm_view *o) {
    (void)o;
    ++*(int *)context;
}

/* Samples of very different sizes; rows of a sample are not adjacent. */
static const int32_t *sample_numbers(void) {
    static int32_t sample[ROWS];
    for (int i = 0; i < ROWS; i++) sample[i] = i % 3 ? i % 5 : 5 + i % (SAMPLES - 5);
    return sample;
}

static outcome *train(const norm_method *m, int threads, bool watched, const uint8_t *mask) {
    layer l;
    int calls = 0;
    outcome *o = calloc(1, sizeof *o);
    real *x = layer_numbers(ROWS, WIDTH, 1, 2, 3), *dy = layer_numbers(ROWS, WIDTH, 2, 0.1, 1);
    tape *t = make_tape(threads);
    assert_non_null(o);
    layer_make(&l, m, WIDTH, 2);
    l.sample = sample_numbers();
    l.samples = SAMPLES;
    if (watched) {
        l.site.forward_hook = l.site.backward_hook = ignore;
        l.site.hook_context = &calls;
        l.site.want_rows = true;
    }
    for (int step = 0; step < 3; step++)
        layer_pass(&l, t, x, dy, ROWS - step, mask, NORM_TRAIN, o->y, o->dx);
    assert_int_equal(calls, watched ? 6 : 0);
    assert_int_equal(l.site.calls, 3);
    for (int64_t k = 0; k < WIDTH && l.site.gamma; k++) {
        o->dgamma[k] = l.site.gamma->grad[k];
        o->dbeta[k] = l.site.beta->grad[k];
    }
    for (int i = 0; i < NORM_OWN_MAX && l.site.own[i]; i++)
        memcpy(o->own[i], l.site.own[i]->grad, (size_t)l.site.own[i]->count * sizeof(real));
    for (int i = 0; i < NORM_STATE_MAX && l.site.state[i]; i++) {
        assert_true(l.site.state_count[i] <= 16 * WIDTH);
        memcpy(o->state[i], l.site.state[i], (size_t)l.site.state_count[i] * sizeof(double));
    }
    tape_free(t);
    layer_free(&l);
    free(x);
    free(dy);
    return o;
}

static void check_same(const norm_method *m, const uint8_t *mask, int threads, bool watched) {
    outcome *a = train(m, 1, false, mask), *b = train(m, threads, watched, mask);
    if (memcmp(a, b, sizeof *a))
        fail_msg("%s: %d threads%s: other bytes", m->name, threads, watched ? ", watched" : "");
    free(a);
    free(b);
}

static void make_mask(uint8_t *mask) {
    for (int i = 0; i < ROWS; i++) mask[i] = i % 7 != 3 && i % 11 != 0;
}

static void test_threads(void **state) {
    (void)state;
    uint8_t mask[ROWS];
    make_mask(mask);
    for (int i = 0; norm_at(i); i++) {
        for (int threads = 2; threads <= 3; threads++) {
            check_same(norm_at(i), NULL, threads, false);
            check_same(norm_at(i), mask, threads, false);
        }
    }
}

static void test_watching_changes_nothing(void **state) {
    (void)state;
    uint8_t mask[ROWS];
    make_mask(mask);
    for (int i = 0; norm_at(i); i++) check_same(norm_at(i), mask, 2, true);
}

/* A mask of ones gives the same bits as no mask. */
static void test_mask_of_ones(void **state) {
    (void)state;
    uint8_t mask[ROWS];
    memset(mask, 1, sizeof mask);
    for (int i = 0; norm_at(i); i++) {
        outcome *a = train(norm_at(i), 1, false, NULL), *b = train(norm_at(i), 1, false, mask);
        assert_memory_equal(a, b, sizeof *a);
        free(a);
        free(b);
    }
}

/* Padded rows: their content changes neither valid rows nor state, and their output is zero. */
static void test_padding(void **state) {
    (void)state;
    enum { N = 9, D = 6 };
    const uint8_t mask[N] = {1, 0, 1, 1, 0, 1, 1, 0, 1};
    for (int i = 0; norm_at(i); i++) {
        if (norm_at(i)->padded) continue;
        layer a, b;
        tape *t = make_tape(1);
        real *x = layer_numbers(N, D, 1, 0, 1), *dy = layer_numbers(N, D, 2, 0, 1);
        real ya[N * D], yb[N * D], da[N * D], db[N * D];
        layer_make(&a, norm_at(i), D, 0);
        layer_make(&b, norm_at(i), D, 0);
        layer_pass(&a, t, x, dy, N, mask, NORM_TRAIN, ya, da);
        for (int j = 0; j < N * D; j++)
            if (!mask[j / D]) x[j] = (real)NAN, dy[j] = (real)INFINITY;
        layer_pass(&b, t, x, dy, N, mask, NORM_TRAIN, yb, db);
        assert_memory_equal(ya, yb, sizeof ya);
        assert_memory_equal(da, db, sizeof da);
        for (int j = 0; j < N * D; j++)
            if (!mask[j / D]) {
                check_equals(ya[j], 0);
                check_equals(da[j], 0);
            }
        for (int s = 0; s < NORM_STATE_MAX && a.site.state[s]; s++)
            assert_memory_equal(a.site.state[s], b.site.state[s],
                                (size_t)a.site.state_count[s] * sizeof(double));
        for (int s = 0; s < NORM_OWN_MAX && a.site.own[s]; s++)
            assert_memory_equal(a.site.own[s]->grad, b.site.own[s]->grad,
                                (size_t)a.site.own[s]->count * sizeof(real));
        layer_free(&a);
        layer_free(&b);
        tape_free(t);
        free(x);
        free(dy);
    }
}

static void see_nothing(void *context, const norm_view *o) {
    ++*(int *)context;
    for (int v = 0; v < NORM_VECTOR_COUNT; v++)
        if (v != NORM_gamma) assert_true(isnan(o->call->stat[v][0]));
}

static void test_no_valid_row(void **state) {
    (void)state;
    enum { N = 3, D = 4 };
    const uint8_t mask[N] = {0};
    for (int i = 0; norm_at(i); i++) {
        layer l, fresh;
        int seen = 0;
        tape *t = make_tape(2);
        real x[N * D] = {1, 2, 3}, y[N * D], dx[N * D];
        layer_make(&l, norm_at(i), D, 0);
        layer_make(&fresh, norm_at(i), D, 0);
        l.site.forward_hook = l.site.backward_hook = see_nothing;
        l.site.hook_context = &seen;
        layer_pass(&l, t, x, x, N, mask, NORM_TRAIN, y, dx);
        assert_int_equal(seen, 2);
        assert_int_equal(l.site.calls, 0);
        for (int j = 0; j < N * D; j++) {
            check_equals(y[j], 0);
            check_equals(dx[j], 0);
        }
        for (int s = 0; s < NORM_STATE_MAX && l.site.state[s]; s++)
            assert_memory_equal(l.site.state[s], fresh.site.state[s],
                                (size_t)l.site.state_count[s] * sizeof(double));
        layer_free(&l);
        layer_free(&fresh);
        tape_free(t);
    }
}

/* State changes in NORM_TRAIN only. */
static void test_modes(void **state) {
    (void)state;
    enum { N = 8, D = 4 };
    const norm_mode still[] = {NORM_BATCH, NORM_RUNNING};
    for (int i = 0; norm_at(i); i++) {
        layer l;
        tape *t = make_tape(1);
        real *x = layer_numbers(N, D, 1, 3, 1);
        layer_make(&l, norm_at(i), D, 0);
        layer_pass(&l, t, x, x, N, NULL, NORM_TRAIN, NULL, NULL);
        for (int s = 0; s < NORM_STATE_MAX && l.site.state[s]; s++) {
            double before[16 * D];
            size_t bytes = (size_t)l.site.state_count[s] * sizeof(double);
            assert_true(bytes <= sizeof before);
            memcpy(before, l.site.state[s], bytes);
            for (int m = 0; m < 2; m++) layer_pass(&l, t, x, x, N, NULL, still[m], NULL, NULL);
            assert_memory_equal(before, l.site.state[s], bytes);
        }
        assert_int_equal(l.site.calls, 1);
        layer_free(&l);
        tape_free(t);
        free(x);
    }
}

/* Gradients add: a layer used twice in one step, and an input with another use. */
static void test_used_twice(void **state) {
    (void)state;
    enum { N = 5, D = 3 };
    layer l;
    tape *t = make_tape(1);
    bool add;
    real *x = layer_numbers(N, D, 1, 0, 1), *dy = layer_numbers(N, D, 2, 0, 1), once[N * D];
    layer_make(&l, norm_find("ln"), D, 0);
    layer_pass(&l, t, x, dy, N, NULL, NORM_TRAIN, NULL, once);
    double gain = (double)l.site.gamma->grad[1];
    tape_reset(t, rng_create(1), true, true);
    params_zero_grad(&l.p);
    norm_rows r;
    assert_int_equal(norm_rows_init(&r, t, N, NULL, NORM_TRAIN), SR_OK);
    tensor *in = tape_tensor(t, 2, (int64_t[]){N, D}), *loss = tape_tensor(t, 1, (int64_t[]){1});
    in->wants_grad = loss->wants_grad = true;
    memcpy(in->value, x, N * D * sizeof *x);
    tensor *y[2] = {norm_apply(&l.site, t, in, &r), norm_apply(&l.site, t, in, &r)};
    for (int i = 0; i < 2; i++) memcpy(tape_grad(t, y[i], &add), dy, N * D * sizeof *dy);
    tape_backward(t, loss, 1);
    assert_null(tape_failure(t));
    for (int j = 0; j < N * D; j++) check_equals(in->grad[j], 2 * once[j]);
    check_within_inclusive((double)l.site.gamma->grad[1], 2 * gain, 1e-6 * fabs(gain));
    layer_free(&l);
    tape_free(t);
    free(x);
    free(dy);
}

/* Runs two calls in one step, then both backward passes. The first takes rows outside the batch by
 * running statistics, the second runs in `mode`. */
static void pass_beside(layer *l, tape *t, const real *x, int64_t n, norm_mode mode, real *y,
                        real *dx) {
    const norm_mode of[2] = {NORM_RUNNING, mode};
    const int64_t count = n * l->site.features, dim[2] = {n, l->site.features}, one = 1;
    tensor *in[2], *out[2];
    norm_rows r[2];
    bool add;
    tape_reset(t, rng_create(1), true, true);
    params_zero_grad(&l->p);
    tensor *loss = tape_tensor(t, 1, &one);
    loss->wants_grad = true;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(norm_rows_init(&r[i], t, n, NULL, of[i]), SR_OK);
        r[i].outside = i == 0;
        in[i] = tape_tensor(t, 2, dim);
        in[i]->wants_grad = true;
        memcpy(in[i]->value, x, (size_t)count * sizeof *x);
        out[i] = norm_apply(&l->site, t, in[i], &r[i]);
        memcpy(tape_grad(t, out[i], &add), x, (size_t)count * sizeof *x);
    }
    tape_backward(t, loss, 1);
    assert_null(tape_failure(t));
    memcpy(y, out[0]->value, (size_t)count * sizeof *y);
    memcpy(dx, in[0]->grad, (size_t)count * sizeof *dx);
}

/* A call by running statistics: its gradient uses the statistics of its forward pass, although
 * training updated them since. It also uses them at a site that otherwise requires batch
 * statistics. */
static void test_outside(void **state) {
    (void)state;
    enum { N = 7, D = 4 };
    real *x = layer_numbers(N, D, 1, 2, 1);
    for (int i = 0; norm_at(i); i++) {
        layer l;
        norm_options o = norm_options_default(norm_at(i));
        tape *t = make_tape(1);
        real y[2][N * D], dx[2][N * D], alone[N * D];
        sr_failure unknown = {0};
        norm_options_set(&o, norm_at(i), "t0", "9", &unknown); /* if the method has it */
        layer_make_with(&l, norm_at(i), D, &o);
        layer_pass(&l, t, x, x, N, NULL, NORM_TRAIN, NULL, NULL);
        layer_pass(&l, t, x, x, N, NULL, NORM_RUNNING, alone, NULL);
        l.site.never_running = true;
        pass_beside(&l, t, x, N, NORM_RUNNING, y[0], dx[0]);
        assert_memory_equal(y[0], alone, sizeof alone);
        l.site.never_running = false;
        pass_beside(&l, t, x, N, NORM_TRAIN, y[1], dx[1]);
        if (memcmp(y[0], y[1], sizeof *y) || memcmp(dx[0], dx[1], sizeof *dx))
            fail_msg("%s: other bytes beside a call in training", norm_at(i)->name);
        layer_free(&l);
        tape_free(t);
    }
    free(x);
}

static void test_refusals(void **state) {
    (void)state;
    layer l;
    norm_options o = norm_options_default(norm_find("bn"));
    norm_site s;
    params p;
    params_init(&p, 1);
    const struct {
        norm_options o;
        int64_t d;
        const char *part;
    } bad[] = {{{.eps = -1}, 4, "eps"},
               {{.eps = (double)NAN}, 4, "eps"},
               {{.alpha = 1.5}, 4, "alpha"},
               {{.layer_scale = 3}, 4, "groups"},
               {{.param = {7}, .given = 1}, 4, "unbiased"},
               {{.eps = 1e-5}, 0, "features"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sr_failure why = {0};
        norm_site_init(&s, &p, "x", "encoder", 0, bad[i].d, norm_find("bn"), &bad[i].o, &why);
        check_failure(&why, SR_USAGE, bad[i].part);
    }
    sr_failure why = {0};
    norm_options_set(&o, norm_find("bn"), "nothing", "1", &why);
    check_failure(&why, SR_USAGE, "bn has no parameter 'nothing'");
    why = (sr_failure){0};
    norm_options_set(&o, norm_find("bn"), "unbiased", "1x", &why);
    check_failure(&why, SR_USAGE, "not a number");
    why = (sr_failure){0};
    check_ok(norm_options_set(&o, norm_find("bn"), "unbiased", "1", &why), &why);
    check_equals(o.param[0], 1);
    assert_true(o.given == 1);
    tape *t = make_tape(1);
    tape_reset(t, rng_create(1), true, true);
    layer_make(&l, norm_find("bn"), 5, 0);
    norm_rows r = {.rows = 3, .valid = 3};
    assert_null(norm_apply(&l.site, t, tape_tensor(t, 2, (int64_t[]){3, 4}), &r));
    check_failure(tape_failure(t), SR_USAGE, "encoder.0.norm1");
    layer_free(&l);
    params_free(&p);
    tape_free(t);
}

static void test_table(void **state) {
    (void)state;
    for (int i = 0; norm_at(i); i++) {
        const norm_method *m = norm_at(i);
        assert_ptr_equal(norm_find(m->name), m);
        assert_true(m->name && m->citation && m->axis && m->summary && m->forward && m->backward);
        for (int j = 0; j < NORM_STATE_MAX && m->state[j].name; j++)
            if (m->state[j].rows) assert_true(norm_param_find(m, m->state[j].rows) >= 0);
        for (int j = 0; j < NORM_OWN_MAX && m->own[j].name; j++) {
            if (m->own[j].from) assert_true(norm_param_find(m, m->own[j].from) >= 0);
            if (m->own[j].when) assert_true(norm_param_find(m, m->own[j].when) >= 0);
        }
    }
    assert_null(norm_find("batch"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),      cmocka_unit_test(test_watching_changes_nothing),
        cmocka_unit_test(test_mask_of_ones), cmocka_unit_test(test_padding),
        cmocka_unit_test(test_no_valid_row), cmocka_unit_test(test_modes),
        cmocka_unit_test(test_used_twice),   cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_table),        cmocka_unit_test(test_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
