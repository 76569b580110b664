/* test_norm_hooks.c -- the hooks' statistics against the raw tensors: batch statistics, sum_g and
 * sum_gx recomputed in double. Tolerance: 1e-5 of the sum of absolute terms. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layer.h"

enum { ROWS = 700, WIDTH = 20 };

typedef struct raw {
    const norm_method *method;
    double *u;                                          /* [rows, d] the method's input */
    double mean[WIDTH], variance[WIDTH], square[WIDTH]; /* [d] from x */
    int forward, backward;
} raw;

static bool valid(const norm_view *o, int64_t i) {
    return !o->call->rows->mask || o->call->rows->mask[i];
}

static void check_term(const norm_view *o, norm_vector v, int64_t k, double want, double size) {
    double got = o->call->stat[v][k];
    if (!(fabs(got - want) <= 1e-5 * size))
        fail_msg("%s: statistic %d [%lld]: got %.12g want %.12g", o->site->method->name, (int)v,
                 (long long)k, got, want);
}

/* Hooks get the method's input. */
static void check_input(const raw *r, const norm_view *o) {
    for (int64_t i = 0; i < o->call->rows->rows; i++)
        for (int64_t k = 0; valid(o, i) && k < WIDTH; k++)
            if (!(fabs((double)o->x[i * WIDTH + k] / r->u[i * WIDTH + k] - 1) <= 1e-7))
                fail_msg("%s: x[%lld, %lld] is %.9g, not %.9g", o->site->method->name, (long long)i,
                         (long long)k, (double)o->x[i * WIDTH + k], r->u[i * WIDTH + k]);
}

static void see_forward(void *context, const norm_view *o) {
    raw *r = context;
    check_input(r, o);
    double n = (double)o->call->rows->valid;
    for (int64_t k = 0; k < WIDTH; k++) {
        double sum = 0, size = 0, second = 0, square = 0;
        for (int64_t i = 0; i < o->call->rows->rows; i++) {
            if (!valid(o, i)) continue;
            sum += r->u[i * WIDTH + k];
            size += fabs(r->u[i * WIDTH + k]);
        }
        for (int64_t i = 0; i < o->call->rows->rows; i++) {
            double x = r->u[i * WIDTH + k];
            if (!valid(o, i)) continue;
            second += (x - sum / n) * (x - sum / n);
            square += x * x;
        }
        r->mean[k] = sum / n;
        r->variance[k] = second / n;
        r->square[k] = square / n;
        if (o->site->method->vectors & NORM_BIT(mu_B)) {
            check_term(o, NORM_mu_B, k, r->mean[k], size / n);
            check_term(o, NORM_sigma2_B, k, r->variance[k], r->variance[k]);
            check_term(o, NORM_psi2_B, k, r->square[k], r->square[k]);
        }
    }
    r->forward++;
}

/* xhat of the two methods whose divisor follows directly from the raw tensors. */
static double xhat(const raw *r, const norm_view *o, int64_t i, int64_t k) {
    bool centred = !strcmp(r->method->name, "bn");
    double eps = o->site->options.eps, x = r->u[i * WIDTH + k];
    return centred ? (x - r->mean[k]) / sqrt(r->variance[k] + eps) : x / sqrt(r->square[k] + eps);
}

static void see_backward(void *context, const norm_view *o) {
    raw *r = context;
    for (int64_t k = 0; k < WIDTH; k++) {
        double sum_g = 0, size_g = 0, sum_gx = 0, size_gx = 0;
        for (int64_t i = 0; i < o->call->rows->rows; i++) {
            if (!valid(o, i)) continue;
            double g = (double)o->dy[i * WIDTH + k], gx = g * xhat(r, o, i, k);
            sum_g += g;
            size_g += fabs(g);
            sum_gx += gx;
            size_gx += fabs(gx);
        }
        check_term(o, NORM_sum_g, k, sum_g, size_g);
        check_term(o, NORM_sum_gx, k, sum_gx, size_gx);
    }
    r->backward++;
}

static void check_method(const char *name, int64_t groups, double mean, const uint8_t *mask) {
    layer l;
    raw r = {.method = norm_find(name)};
    sr_failure why = {0};
    tape *t = tape_create(2, &why);
    assert_non_null(t);
    layer_make(&l, r.method, WIDTH, groups);
    l.site.forward_hook = see_forward;
    l.site.backward_hook = see_backward;
    l.site.hook_context = &r;
    l.site.want_input = true;
    for (uint64_t step = 0; step < 3; step++) {
        real *x = layer_numbers(ROWS, WIDTH, 10 + step, mean, 1),
             *dy = layer_numbers(ROWS, WIDTH, 20 + step, 0.2, 1);
        r.u = layer_scaled(x, ROWS, WIDTH, groups, l.site.options.eps, NULL);
        layer_pass(&l, t, x, dy, ROWS, mask, NORM_TRAIN, NULL, NULL);
        free(r.u);
        free(x);
        free(dy);
    }
    assert_int_equal(r.forward, 3);
    assert_int_equal(r.backward, 3);
    layer_free(&l);
    tape_free(t);
}

static void test_raw(void **state) {
    (void)state;
    uint8_t mask[ROWS];
    const double means[] = {0, 30, 1e4};
    for (int i = 0; i < ROWS; i++) mask[i] = i % 5 != 2;
    for (int i = 0; i < 3; i++) {
        check_method("bn", 0, means[i], NULL);
        check_method("bn", 0, means[i], mask);
        check_method("pnv", 0, means[i], mask);
        check_method("pnv", 4, means[i], mask);
        check_method("bn", 2, means[i], NULL);
    }
}

/* The hook gets the layer's own gradient, not the sum: the input first gets another
 * contribution. */
static void keep_gradient(void *context, const norm_view *o) {
    memcpy(context, o->dx, (size_t)(o->call->rows->rows * WIDTH) * sizeof *o->dx);
}

static void test_own_gradient(void **state) {
    (void)state;
    enum { N = 6 };
    layer l;
    sr_failure why = {0};
    tape *t = tape_create(1, &why);
    real *x = layer_numbers(N, WIDTH, 1, 0, 1), *dy = layer_numbers(N, WIDTH, 2, 0, 1);
    real alone[N * WIDTH], seen[N * WIDTH];
    bool add;
    norm_rows r;
    assert_non_null(t);
    layer_make(&l, norm_find("bn"), WIDTH, 0);
    layer_pass(&l, t, x, dy, N, NULL, NORM_BATCH, NULL, alone);
    l.site.backward_hook = keep_gradient;
    l.site.hook_context = seen;
    tape_reset(t, rng_create(1), true, true);
    assert_int_equal(norm_rows_init(&r, t, N, NULL, NORM_TRAIN), SR_OK);
    tensor *in = tape_tensor(t, 2, (int64_t[]){N, WIDTH});
    tensor *loss = tape_tensor(t, 1, (int64_t[]){1});
    assert_true(in && loss);
    in->wants_grad = loss->wants_grad = true;
    memcpy(in->value, x, sizeof alone);
    tensor *y = norm_apply(&l.site, t, in, &r);
    real *skip_gradient = tape_grad(t, in, &add);
    for (int j = 0; j < N * WIDTH; j++) skip_gradient[j] = 100;
    memcpy(tape_grad(t, y, &add), dy, sizeof alone);
    tape_backward(t, loss, 1);
    assert_memory_equal(seen, alone, sizeof alone);
    for (int j = 0; j < N * WIDTH; j++) check_equals(in->grad[j], 100 + alone[j]);
    layer_free(&l);
    tape_free(t);
    free(x);
    free(dy);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_raw),
                                       cmocka_unit_test(test_own_gradient)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
