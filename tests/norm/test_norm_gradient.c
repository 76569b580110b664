/* test_norm_gradient.c -- every method's backward pass against central differences: in the double
 * build to 1e-6, in float for the memory checks only. A backward pass that is no derivative gives
 * the same gradients in any destination. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "layer.h"
#include "testing/gradcheck.h"

#ifdef REAL_DOUBLE
static const double step = 1e-5, tolerance = 1e-6;
#else
static const double step = 1e-2, tolerance = INFINITY;
#endif

/* Backward passes that are not the derivative of the forward pass, by definition. */
static const char *const not_derivatives[] = {"pn",          "pn-released", "adanorm",
                                              "detach-mean", "detach-std",  "detach-both"};

static bool is_derivative(const norm_method *m) {
    for (size_t i = 0; i < sizeof not_derivatives / sizeof *not_derivatives; i++)
        if (!strcmp(m->name, not_derivatives[i])) return false;
    return true;
}

typedef struct shape {
    int64_t rows, d, groups;
    const uint8_t *mask;
    const int32_t *sample;
    int64_t samples;
} shape;

static const uint8_t holes[7] = {1, 1, 0, 1, 0, 1, 1}, single[7] = {0, 0, 0, 0, 1, 0, 0},
                     nobody[7] = {0};
static const int32_t mixed[7] = {0, 1, 0, 1, 2, 0, 1};

static const shape shapes[] = {
    {7, 5, 0, NULL, NULL, 0},   {7, 5, 0, holes, NULL, 0},  {7, 18, 0, holes, NULL, 0},
    {1, 4, 0, NULL, NULL, 0},   {7, 4, 0, single, NULL, 0}, {7, 1, 0, holes, NULL, 0},
    {2, 3, 0, NULL, NULL, 0},   {7, 6, 1, holes, NULL, 0},  {7, 6, 3, NULL, NULL, 0},
    {7, 3, 0, nobody, NULL, 0}, {7, 6, 0, holes, mixed, 3}, {7, 6, 0, NULL, mixed, 3},
};

typedef struct context {
    layer *l;
    const shape *s;
    norm_mode mode;
} context;

static tensor *apply(tape *t, tensor *const *in, void *c) {
    const context *x = c;
    norm_rows *rows = tape_alloc(t, sizeof *rows);
    if (!rows || norm_rows_init(rows, t, x->s->rows, x->s->mask, x->mode) != SR_OK) return NULL;
    rows->sample = x->s->sample;
    rows->samples = x->s->samples;
    return norm_apply(&x->l->site, t, in[0], rows);
}

/* Settings that make the method another function. */
static const struct {
    const char *method, *param, *value;
} settings[] = {{"repbn", "t0", "5"}, {"unit", "s_init", "3"}};

static void check_method(const norm_method *m, const shape *s, norm_mode mode, bool set,
                         bool derivative) {
    layer l;
    gradcheck_result result;
    sr_failure why = {0};
    norm_options o = norm_options_default(m);
    o.layer_scale = s->groups;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (set && !strcmp(settings[i].method, m->name))
            check_ok(norm_options_set(&o, m, settings[i].param, settings[i].value, &why), &why);
    layer_make_with(&l, m, s->d, &o);
    norm_site_freeze(&l.site, mode == NORM_TRAIN);
    tensor *x = gradcheck_tensor(2, (int64_t[]){s->rows, s->d}, 17, true);
    assert_non_null(x);
    tensor *in[3 + NORM_OWN_MAX] = {x};
    int inputs = 1;
    if (l.site.gamma) in[inputs++] = l.site.gamma;
    if (l.site.beta) in[inputs++] = l.site.beta;
    for (int i = 0; i < NORM_OWN_MAX; i++)
        if (l.site.own[i]) in[inputs++] = l.site.own[i];
    check_ok(gradcheck(apply, in, inputs, &(context){&l, s, mode}, step, &result, &why), &why);
    if (!(result.apart <= tolerance))
        fail_msg("%s, %lld x %lld, mode %d: gradients written and added differ by %.3g", m->name,
                 (long long)s->rows, (long long)s->d, (int)mode, result.apart);
    if (derivative && result.worst > tolerance)
        fail_msg("%s, %lld x %lld, mode %d: input %d [%lld] analytic %.12g numeric %.12g", m->name,
                 (long long)s->rows, (long long)s->d, (int)mode, result.input,
                 (long long)result.element, result.analytic, result.numeric);
    gradcheck_tensor_free(x);
    layer_free(&l);
}

static void check_all(norm_mode mode) {
    int checked = 0;
    for (int i = 0; norm_at(i); i++) {
        bool row = !strcmp(norm_at(i)->axis, "row"); /* equal in both modes */
        const bool derivative = is_derivative(norm_at(i)) || (!row && mode != NORM_BATCH);
        for (size_t j = 0; j < sizeof shapes / sizeof *shapes; j++) {
            check_method(norm_at(i), &shapes[j], mode, false, derivative);
            check_method(norm_at(i), &shapes[j], mode, true, derivative);
        }
        checked += derivative;
    }
    assert_true(checked >= 18);
}

static void test_batch_statistics(void **state) {
    (void)state;
    check_all(NORM_BATCH);
}

static void test_running_statistics(void **state) {
    (void)state;
    check_all(NORM_RUNNING);
}

/* In training with frozen state: the derivative of the forward pass at any site. */
static void test_frozen_statistics(void **state) {
    (void)state;
    check_all(NORM_TRAIN);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_batch_statistics),
                                       cmocka_unit_test(test_running_statistics),
                                       cmocka_unit_test(test_frozen_statistics)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
