/* test_theorem.c -- the LN family's exact values of Theorem 1 (Xu et al., NeurIPS 2019), as hooks
 * get them, against values by hand.
 *
 * Rows alternate between two features, so a pair has every statistic of its row. With
 * x = (0, 2) and eps such that s = 2: xhat = (-1/2, 1/2), mean[xhat^2] = 1/4. With g = (1, 5):
 * gbar = 3, D_g = 4, m = mean[g xhat] = 1. */
#include <math.h>
#include <string.h>

#include "layer.h"

enum { D = 20, ROWS = 3 };

static const double tolerance = 1e-12; /* sums of a few small integers, in double */

typedef struct told {
    double scalar[NORM_SCALAR_COUNT];
} told;

static void see(void *context, const norm_view *o) {
    memcpy(((told *)context)->scalar, o->call->scalar, sizeof o->call->scalar);
}

static void set(layer *l, const char *name, double value) {
    int i = norm_param_find(l->site.method, name);
    assert_true(i >= 0);
    l->site.options.param[i] = value;
}

static void fill(real *row, double even, double odd) {
    for (int k = 0; k < D; k++) row[k] = (real)(k % 2 ? odd : even);
}

/* Two valid rows and a padded one between them. second: (x, g) of the last row. */
static told watch(layer *l, const double second[4]) {
    static const uint8_t mask[ROWS] = {1, 0, 1};
    real x[ROWS * D], g[ROWS * D];
    told seen = {0};
    sr_failure why = {0};
    tape *t = tape_create(1, &why);
    assert_non_null(t);
    fill(x, 0, 2);
    fill(g, 1, 5);
    fill(x + D, 7, -3);
    fill(g + D, 100, 30);
    fill(x + 2 * D, second[0], second[1]);
    fill(g + 2 * D, second[2], second[3]);
    l->site.backward_hook = see;
    l->site.hook_context = &seen;
    layer_pass(l, t, x, g, ROWS, mask, NORM_TRAIN, NULL, NULL);
    tape_free(t);
    return seen;
}

static void make(layer *l, const char *name, double eps) {
    layer_make(l, norm_find(name), D, 0);
    l->site.options.eps = eps;
}

static void check_number(const char *what, double got, double want) {
    if (!(fabs(got - want) <= tolerance)) fail_msg("%s: %.17g, not %.17g", what, got, want);
}

/* A value measured on dx, which was rounded to `real`. */
static void check_measured(const char *what, double got, double want) {
    double rounding = sizeof(real) == 8 ? tolerance : 1e-7 * (1 + fabs(want));
    if (!(fabs(got - want) <= rounding)) fail_msg("%s: %.17g, not %.17g", what, got, want);
}

/* Checks the closed form, and that dx agrees. */
static void check_exact(const told *seen, double mean, double variance) {
    check_number("exact mean", seen->scalar[NORM_SCALAR_row_exact_mean], mean);
    check_number("exact variance", seen->scalar[NORM_SCALAR_row_exact_var], variance);
    check_measured("mean of dx", seen->scalar[NORM_SCALAR_row_grad_mean], mean);
    check_measured("variance of dx", seen->scalar[NORM_SCALAR_row_grad_var], variance);
}

static void check_free(const told *seen, double variance) {
    check_number("variance with constants", seen->scalar[NORM_SCALAR_row_free_var], variance);
}

static const double same[4] = {0, 2, 1, 5};
/* A constant row: sigma = 0, s = sqrt(3), xhat = 0; gbar = 3, D_g = 9. */
static const double constant[4] = {4, 4, 0, 6};

typedef struct theorem_case {
    const char *method;
    double mean, variance; /* for the row above */
    double mean_constant, variance_constant;
} theorem_case;

/* s = 2 from sigma = 1, eps = 3: Q = 1/4, and the variance of b and c is (4 - 1.75)/4. */
static void test_four_cases(void **state) {
    (void)state;
    const double root = sqrt(3.0);
    const theorem_case cases[] = {{"detach-both", 1.5, 1, 3 / root, 3},
                                  {"ln-simple", 0, 0.5625, 0, 3},
                                  {"detach-mean", 1.5, 0.5625, 3 / root, 3},
                                  {"detach-std", 0, 1, 0, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const theorem_case *c = &cases[i];
        layer l;
        make(&l, c->method, 3);
        told seen = watch(&l, same);
        check_exact(&seen, c->mean, c->variance);
        check_free(&seen, 1);
        seen = watch(&l, constant);
        check_exact(&seen, (c->mean + c->mean_constant) / 2,
                    (c->variance + c->variance_constant) / 2);
        check_free(&seen, 2);
        layer_free(&l);
    }
}

/* gamma = (3, 1): q = (3, 5), qbar = 4, D = 1, m = 1/2. */
static void test_gain(void **state) {
    (void)state;
    layer l;
    make(&l, "ln", 3);
    fill(l.site.gamma->value, 3, 1);
    told seen = watch(&l, same);
    check_exact(&seen, 0, 0.140625); /* (1 - 1.75/4)/4 */
    check_free(&seen, 0.25);
    check_number("mean of gamma g", seen.scalar[NORM_SCALAR_row_g_mean], 4);
    check_number("variance of gamma g", seen.scalar[NORM_SCALAR_row_g_var], 1);
    layer_free(&l);
}

/* C = 2, k = 1/2: phi = (2.5, 1.5), q = (2.5, 7.5), D = 6.25, m = 1.25. */
static void test_adanorm(void **state) {
    (void)state;
    layer l;
    make(&l, "adanorm", 3);
    set(&l, "C", 2);
    set(&l, "k", 0.5);
    told seen = watch(&l, same);
    check_exact(&seen, 0, 0.87890625); /* (6.25 - 1.75 * 1.5625)/4 */
    check_free(&seen, 1.5625);
    check_number("mean of g", seen.scalar[NORM_SCALAR_row_g_mean], 3);
    layer_free(&l);
}

/* Variance over d - 1 and eps outside the root, one at a time and both; s = 2 in each. */
static void test_released_forms(void **state) {
    (void)state;
    const double r = D / (D - 1.0), root = sqrt(r);
    const struct {
        double unbiased, placement, eps, variance;
    } forms[] = {
        {1, 0, 4 - r, (4 - r * (2 - r / 4)) / 4}, /* A = r, mean[xhat^2] = 1/4 */
        {0, 1, 1, 0.25},                          /* A = 2, dx = +-1/2 */
        {1, 1, 2 - root, (4 - 2 * root * (2 - root / 2)) / 4},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        layer l;
        make(&l, "ln-simple", forms[i].eps);
        set(&l, "unbiased", forms[i].unbiased);
        set(&l, "placement", forms[i].placement);
        told seen = watch(&l, same);
        check_exact(&seen, 0, forms[i].variance);
        check_free(&seen, 1);
        layer_free(&l);
    }
}

/* The theorem covers only methods that subtract the mean, over a single row. */
static void test_elsewhere(void **state) {
    (void)state;
    static const char *const names[] = {"rmsnorm", "groupnorm", "bn"};
    for (int i = 0; i < 3; i++) {
        layer l;
        make(&l, names[i], 3);
        told seen = watch(&l, constant);
        assert_true(isnan(seen.scalar[NORM_SCALAR_row_exact_mean]));
        assert_true(isnan(seen.scalar[NORM_SCALAR_row_exact_var]));
        assert_true(isnan(seen.scalar[NORM_SCALAR_row_free_var]));
        assert_int_equal(isnan(seen.scalar[NORM_SCALAR_row_grad_var]), i > 0);
        layer_free(&l);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_four_cases),
                                       cmocka_unit_test(test_gain), cmocka_unit_test(test_adanorm),
                                       cmocka_unit_test(test_released_forms),
                                       cmocka_unit_test(test_elsewhere)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
