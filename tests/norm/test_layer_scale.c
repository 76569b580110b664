/* test_layer_scale.c -- every method after a layer scale against plain loops.
 *
 * The reference divides x by s in memory and passes u = x/s to the method without a layer scale.
 * It then converts du with the formula of layer_scale.c. The layer does the same within the
 * method's passes. Widths: multiples of eight and others; rows: in runs and single.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layer.h"

enum { ROWS = 300 };

typedef struct shape {
    int64_t rows, d, groups;
} shape;

static const shape shapes[] = {{ROWS, 16, 1}, {ROWS, 16, 2}, {37, 48, 3}, {ROWS, 40, 1},
                               {ROWS, 12, 4}, {9, 5, 1},     {3, 64, 8},  {1, 16, 1}};

static void unscale_plain(const shape *p, const double *s, const real *u, const real *du,
                          double *dx) {
    int64_t w = p->d / p->groups;
    for (int64_t q = 0; q < p->rows * p->groups; q++) {
        double dot = 0;
        for (int64_t k = 0; k < w; k++) dot += (double)du[q * w + k] * (double)u[q * w + k];
        for (int64_t k = 0; k < w; k++)
            dx[q * w + k] = ((double)du[q * w + k] - (double)u[q * w + k] * dot / (double)w) / s[q];
    }
}

typedef struct outcome {
    real y[ROWS * 64], dx[ROWS * 64];
    double scalar[NORM_SCALAR_COUNT];
} outcome;

static void keep_scalars(void *context, const norm_view *o) {
    outcome *out = context;
    memcpy(out->scalar, o->call->scalar, sizeof out->scalar);
}

/* The parts of dx that the hook gets by rows; both refer to u. */
static void compare_scalars(const norm_method *m, const outcome *got, const outcome *want) {
    static const norm_scalar by_row[] = {NORM_SCALAR_g_sigma2_rowmean, NORM_SCALAR_g_psi2_rowmean};
    double tolerance = sizeof(real) == 8 ? 1e-10 : 1e-5;
    for (int i = 0; i < 2; i++) {
        double a = got->scalar[by_row[i]], b = want->scalar[by_row[i]];
        if (!(m->scalars >> by_row[i] & 1) || (isnan(a) && isnan(b))) continue;
        if (!(fabs(a - b) <= tolerance * fabs(b) + 1e-12))
            fail_msg("%s: mean of row norms %.9g, not %.9g", m->name, a, b);
    }
}

static double largest(const double *x, int64_t count) {
    double most = 1;
    for (int64_t i = 0; i < count; i++)
        if (fabs(x[i]) > most) most = fabs(x[i]);
    return most;
}

static void compare(const norm_method *m, const shape *p, const char *what, const real *got,
                    const double *want) {
    int64_t count = p->rows * p->d;
    double scale = largest(want, count), tolerance = sizeof(real) == 8 ? 1e-11 : 3e-6;
    for (int64_t i = 0; i < count; i++)
        if (!(fabs((double)got[i] - want[i]) <= tolerance * scale))
            fail_msg("%s behind %lld groups of %lld: %s[%lld, %lld] is %.9g, not %.9g", m->name,
                     (long long)p->groups, (long long)p->d, what, (long long)(i / p->d),
                     (long long)(i % p->d), (double)got[i], want[i]);
}

static void run(const norm_method *m, const shape *p, int64_t groups, const real *x, const real *dy,
                const uint8_t *mask, norm_mode mode, bool watched, outcome *out) {
    layer l;
    sr_failure why = {0};
    tape *t = tape_create(watched ? 1 : 2, &why);
    assert_non_null(t);
    layer_make(&l, m, p->d, groups);
    l.site.want_input = watched;
    l.site.want_rows = true;
    l.site.backward_hook = keep_scalars;
    l.site.hook_context = out;
    layer_pass(&l, t, x, dy, p->rows, mask, mode, out->y, out->dx);
    layer_free(&l);
    tape_free(t);
}

static void check_shape(const norm_method *m, const shape *p, const uint8_t *mask, norm_mode mode) {
    outcome *got = malloc(sizeof *got), *want = malloc(sizeof *want), *seen = malloc(sizeof *seen);
    int64_t count = p->rows * p->d;
    double *s = malloc((size_t)(p->rows * p->groups) * sizeof *s);
    double *dx = malloc((size_t)count * sizeof *dx), *y = malloc((size_t)count * sizeof *y);
    real *u = malloc((size_t)count * sizeof *u), *dy = layer_numbers(p->rows, p->d, 8, 0.1, 1);
    real *x = layer_numbers(p->rows, p->d, 7, 0.5, 1);
    assert_true(got && want && seen && s && dx && y && u);
    double *exact = layer_scaled(x, p->rows, p->d, p->groups, norm_options_default(m).eps, s);
    for (int64_t i = 0; i < count; i++) u[i] = (real)exact[i];
    run(m, p, 0, u, dy, mask, mode, false, want);
    unscale_plain(p, s, u, want->dx, dx);
    for (int64_t i = 0; i < count; i++) y[i] = (double)want->y[i];
    run(m, p, p->groups, x, dy, mask, mode, false, got);
    compare(m, p, "y", got->y, y);
    compare(m, p, "dx", got->dx, dx);
    if (mode == NORM_TRAIN) compare_scalars(m, got, want);
    run(m, p, p->groups, x, dy, mask, mode, true, seen); /* dx of u apart; one thread */
    assert_memory_equal(seen->y, got->y, (size_t)count * sizeof(real));
    assert_memory_equal(seen->dx, got->dx, (size_t)count * sizeof(real));
    free(got), free(want), free(seen), free(s), free(dx), free(y), free(u), free(dy), free(x);
    free(exact);
}

static void check_mode(norm_mode mode) {
    const norm_method *m;
    uint8_t mask[ROWS];
    for (int i = 0; i < ROWS; i++) mask[i] = i % 31 != 3 && i % 7 != 2;
    for (int i = 0; (m = norm_at(i)); i++) {
        for (size_t j = 0; j < sizeof shapes / sizeof *shapes; j++) {
            check_shape(m, &shapes[j], NULL, mode);
            check_shape(m, &shapes[j], mask, mode);
        }
    }
}

static void training(void **state) {
    (void)state;
    check_mode(NORM_TRAIN);
}

static void batch(void **state) {
    (void)state;
    check_mode(NORM_BATCH);
}

static void running(void **state) {
    (void)state;
    check_mode(NORM_RUNNING);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(training), cmocka_unit_test(batch),
                                       cmocka_unit_test(running)};
    return cmocka_run_group_tests_name("layer_scale", tests, NULL, NULL);
}
