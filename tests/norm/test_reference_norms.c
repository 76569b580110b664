/* test_reference_norms.c -- every method of the table against reference_norms.c: y, dx, gradients
 * of gain and bias, declared vectors, state, penalty. Covers several calls, every mode, and shapes
 * with remainders in every loop. A method without a reference fails, and so does a parameter that
 * no setting below changes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layer.h"
#include "reference_norms.h"

#ifdef REAL_DOUBLE
static const double relative = 1e-9, of_largest = 1e-11, scaled = 1e-9, stored = 1e-9;
#else
/* Tolerances. The kernels compute in double and round once. `scaled`: a layer scale stores du in
 * float. `stored`: it stores its output in float too. */
static const double relative = 2e-7, of_largest = 1e-10, scaled = 1e-6, stored = 2e-5;
#endif

static const double terms = 1e-10;

enum { CALLS = 5, PASSES = CALLS + 2, NORMALS = 50021 };

static const struct {
    const char *method, *values;
} settings[] = {
    {"bn", "unbiased=1"},
    {"ln", "unbiased=1"},
    {"ln-simple", "unbiased=1 placement=outside"},
    {"detach-mean", "unbiased=1 placement=outside"},
    {"detach-std", "unbiased=1 placement=outside"},
    {"detach-both", "unbiased=1 placement=outside"},
    {"adanorm", "C=2 k=0.3"},
    {"adanorm", "C=0.3 unbiased=1 placement=outside"},
    {"rmsnorm", "placement=outside"},
    {"groupnorm", "groups=3"},
    {"groupnorm", "groups=4"},
    {"groupnorm", "groups=5"},
    {"pn", "alpha_bwd=0.7"},
    {"pn-released", "alpha_bwd=0.7 warmup=2"},
    {"pn-released", "warmup=0"},
    {"rbn", "lambda=0.3 nu=0.2 running=before"},
    {"rbn", "lambda=0.3 nu=0.2 running=after scale=mean"},
    {"rbn-released", "lambda=0.3 nu=0.2 penalty=diff"},
    {"rbn-released", "lambda=0.3 nu=0.2 penalty=diff2"},
    {"rbn-released", "lambda=0.3 nu=0.2 penalty=reldiff"},
    {"rbn-released", "lambda=0.3 nu=0.2 penalty=mag"},
    {"brn", "warmup=1 r_calls=4 d_calls=3 r_max=1.3 d_max=0.4"},
    {"brn", "warmup=0 r_calls=0 d_calls=0 r_max=1000 d_max=1e6"},
    {"mabn", "buffer=2 warmup=0 clip_calls=3"},
    {"mabn", "buffer=3 warmup=5 clip_calls=0"},
    {"un", "window=2 warmup=0 filter=off"},
    {"un", "window=2 warmup=4 filter=off"},
    {"un", "window=3 warmup=0 filter=on"},
    {"repbn", "eta0=-0.7"},
    {"repbn", "t0=3"},
    {"repbn", "t0=40 eta0=0"},
    {"unit", "s_init=3"},
    {"unit", "s_init=0.2 s_scale=0.2"},
    {"unit", "s_scale=5"},
    {"dyt", "alpha0=-2"},
    {"derf", "alpha0=1.3 s0=0.4"},
};

typedef struct shape {
    int64_t rows, d;
} shape;

/* The last ones are several chunks of rows. */
static const shape shapes[] = {
    {1, 1},  {1, 3},   {1, 64},  {1, 65},   {1, 200}, {2, 1},    {2, 3},   {2, 64},
    {2, 65}, {2, 200}, {7, 1},   {7, 3},    {7, 64},  {7, 65},   {7, 200}, {67, 1},
    {67, 3}, {67, 64}, {67, 65}, {67, 200}, {773, 3}, {515, 40},
};

/* One comparison. */
typedef struct trial {
    const norm_method *method;
    const char *values;
    shape s;
    int64_t groups; /* groups of a layer scale */
    bool holes, large, samples;
    char name[256];
    layer l;
    reference_call c;
    double *pool, *next, *x, *g; /* the reference's arrays */
    double *seen;                /* [NORM_VECTOR_COUNT, d] from the last call */
    uint8_t *mask;
    int32_t *sample;
    double penalty;
    const real *normal; /* [NORMALS] */
    tape *tape;
} trial;

static double *take(trial *t, int64_t count) {
    double *a = t->next;
    t->next += count;
    return a;
}

static void see(void *context, const norm_view *o) {
    trial *t = context;
    for (int v = 0; v < NORM_VECTOR_COUNT; v++)
        memcpy(t->seen + v * t->s.d, o->call->stat[v], (size_t)t->s.d * sizeof *t->seen);
}

/* Sets "a=1 b=word" in the options; false: they do not fit this width. */
static bool set_values(const trial *t, norm_options *o) {
    sr_failure why = {0};
    char text[256], *rest = text;
    snprintf(text, sizeof text, "%s", t->values);
    for (char *word; (word = strtok_r(rest, " ", &rest));) {
        char *value = strchr(word, '=');
        *value++ = 0;
        check_ok(norm_options_set(o, t->method, word, value, &why), &why);
    }
    return !t->method->check || t->method->check(t->s.d, o, &why) == SR_OK;
}

/* Gains of either sign, and zero. */
static void set_gain(trial *t) {
    for (int64_t k = 0; k < t->s.d && t->l.site.gamma; k++) {
        real *gain = &t->l.site.gamma->value[k];
        if (k % 5 == 0) *gain = 0;
        if (k % 5 == 2) *gain = -*gain;
    }
}

static void make_rows(trial *t) {
    t->mask = malloc((size_t)t->s.rows);
    t->sample = malloc((size_t)t->s.rows * sizeof *t->sample);
    assert_true(t->mask && t->sample);
    for (int64_t i = 0; i < t->s.rows; i++) {
        t->mask[i] = i % 3 != 1 && i % 7 != 5;
        t->sample[i] = (int32_t)(i * 2 % 5 % 3);
    }
    t->l.sample = t->samples ? t->sample : NULL;
    t->l.samples = 3;
    t->l.tokens = 12.5;
    t->l.penalty = &t->penalty;
}

static void make_reference(trial *t) {
    const int64_t d = t->s.d, cells = t->s.rows * d;
    const norm_site *s = &t->l.site;
    int64_t state = 0;
    for (int i = 0; i < NORM_STATE_MAX; i++) state += s->state_count[i];
    for (int i = 0; i < NORM_OWN_MAX; i++) state += s->own[i] ? 2 * s->own[i]->count : 0;
    t->next = t->pool =
        calloc((size_t)(6 * cells + (2 * NORM_VECTOR_COUNT + 4) * d + state), sizeof *t->pool);
    assert_non_null(t->pool);
    t->seen = take(t, NORM_VECTOR_COUNT * d);
    double *gamma = take(t, d), *beta = take(t, d);
    for (int64_t k = 0; k < d; k++) {
        gamma[k] = s->gamma ? (double)s->gamma->value[k] : 1;
        beta[k] = s->beta ? (double)s->beta->value[k] : 0;
    }
    t->x = take(t, cells);
    t->g = take(t, cells);
    t->c = (reference_call){.options = &s->options,
                            .method = t->method,
                            .rows = t->s.rows,
                            .d = d,
                            .mask = t->holes ? t->mask : NULL,
                            .sample = t->l.sample,
                            .samples = t->l.samples,
                            .tokens = t->l.tokens,
                            .x = t->x,
                            .g = t->g,
                            .gamma = gamma,
                            .beta = beta,
                            .y = take(t, cells),
                            .dx = take(t, cells),
                            .u = take(t, cells),
                            .du = take(t, cells),
                            .dgamma = take(t, d),
                            .dbeta = take(t, d)};
    for (int v = 0; v < NORM_VECTOR_COUNT; v++) t->c.stat[v] = take(t, d);
    for (int i = 0; i < NORM_OWN_MAX && s->own[i]; i++) {
        double *own = take(t, s->own[i]->count);
        for (int64_t k = 0; k < s->own[i]->count; k++) own[k] = (double)s->own[i]->value[k];
        t->c.own[i] = own;
        t->c.own_grad[i] = take(t, s->own[i]->count);
    }
    for (int i = 0; i < NORM_STATE_MAX && s->state[i]; i++) {
        t->c.state[i] = take(t, s->state_count[i]);
        memcpy(t->c.state[i], s->state[i], (size_t)s->state_count[i] * sizeof(double));
    }
}

static bool trial_open(trial *t) {
    norm_options o = norm_options_default(t->method);
    o.layer_scale = t->groups;
    if (!set_values(t, &o)) return false;
    layer_make_with(&t->l, t->method, t->s.d, &o);
    set_gain(t);
    make_rows(t);
    make_reference(t);
    t->l.site.backward_hook = see;
    t->l.site.hook_context = t;
    return true;
}

static void trial_close(trial *t) {
    layer_free(&t->l);
    free(t->pool);
    free(t->mask);
    free(t->sample);
}

static double largest(const double *a, int64_t count) {
    double most = 0;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(a[i])) most = fmax(most, fabs(a[i]));
    return most;
}

/* Allows rounding relative to the largest value and, for dx, to its terms (`terms`), which cancel.
 * A layer scale also divides the rounding of du. */
static void compare(const trial *t, const char *what, const double *got, const double *want,
                    int64_t count, double rtol) {
    char name[320];
    double most = largest(want, count);
    if (want == t->c.dx && t->l.site.options.layer_scale)
        most = fmax(most, largest(t->c.du, count));
    snprintf(name, sizeof name, "%s: %s", t->name, what);
    check_near_double(name, got, want, count, rtol,
                      terms + (rtol > relative ? rtol : of_largest) * most);
}

static void compare_reals(const trial *t, const char *what, const real *got, const double *want,
                          int64_t count, double rtol) {
    double *wide = malloc((size_t)count * sizeof *wide);
    assert_non_null(wide);
    for (int64_t i = 0; i < count; i++) wide[i] = (double)got[i];
    compare(t, what, wide, want, count, rtol);
    free(wide);
}

static void compare_pass(const trial *t, const real *y, const real *dx) {
    static const char *const vector[] = {
#define VECTOR_NAME(name) #name,
        NORM_VECTORS(VECTOR_NAME)
#undef VECTOR_NAME
    };
    const norm_site *s = &t->l.site;
    const int64_t d = t->s.d, cells = t->s.rows * d;
    const double rtol = !s->options.layer_scale  ? relative
                        : t->method->fuses_scale ? scaled
                                                 : stored;
    compare_reals(t, "y", y, t->c.y, cells, rtol);
    compare_reals(t, "dx", dx, t->c.dx, cells, rtol);
    if (s->gamma) compare_reals(t, "dgamma", s->gamma->grad, t->c.dgamma, d, rtol);
    if (s->beta) compare_reals(t, "dbeta", s->beta->grad, t->c.dbeta, d, rtol);
    for (int i = 0; i < NORM_OWN_MAX && s->own[i]; i++)
        compare_reals(t, t->method->own[i].name, s->own[i]->grad, t->c.own_grad[i],
                      s->own[i]->count, rtol);
    for (int v = 0; v < NORM_VECTOR_COUNT && t->c.mode == NORM_TRAIN; v++)
        if (t->method->vectors >> v & 1)
            compare(t, vector[v], t->seen + v * d, t->c.stat[v], d, rtol);
    for (int i = 0; i < NORM_STATE_MAX && s->state[i]; i++)
        compare(t, t->method->state[i].name, s->state[i], t->c.state[i], s->state_count[i], rtol);
    compare(t, "penalty", &t->penalty, &t->c.penalty, 1, rtol);
}

/* Optionally column means a thousand times their standard deviations, one column constant. Each
 * pass uses another part of the same normal numbers. */
static void make_numbers(trial *t, int pass, real *x, real *dy) {
    const int64_t d = t->s.d;
    const double mean = t->large ? 1000 : 0.4, deviation = 1 + 0.2 * pass;
    for (int64_t i = 0; i < t->s.rows * d; i++) {
        const double a = (double)t->normal[(i + 977 * pass) % NORMALS];
        const double b = (double)t->normal[(i + 977 * pass + NORMALS / 2) % NORMALS];
        x[i] = (real)(float)((mean + deviation * a) * (1 + (double)(i % d) / 4));
        if (t->large && i % d == d / 2) x[i] = (real)(float)(1234.567 + 0.1 * pass);
        dy[i] = (real)(float)(0.2 + b);
        t->x[i] = (double)x[i];
        t->g[i] = (double)dy[i];
    }
}

static void run_pass(trial *t, int pass) {
    const size_t bytes = (size_t)(t->s.rows * t->s.d) * sizeof(real);
    real *x = malloc(bytes), *dy = malloc(bytes), *y = malloc(bytes), *dx = malloc(bytes);
    assert_true(x && dy && y && dx);
    make_numbers(t, pass, x, dy);
    t->c.mode = pass < CALLS ? NORM_TRAIN : pass == CALLS ? NORM_BATCH : NORM_RUNNING;
    t->c.call = pass < CALLS ? pass + 1 : CALLS;
    t->penalty = 0;
    snprintf(t->name, sizeof t->name, "%s %s, %lld x %lld%s%s%s, layer scale %lld, pass %d",
             t->method->name, t->values, (long long)t->s.rows, (long long)t->s.d,
             t->holes ? " with holes" : "", t->large ? " of large means" : "",
             t->samples ? " in samples" : "", (long long)t->groups, pass);
    layer_pass(&t->l, t->tape, x, dy, t->s.rows, t->c.mask, t->c.mode, y, dx);
    if (!reference_norm(&t->c))
        fail_msg("%s has no reference in reference_norms.c", t->method->name);
    compare_pass(t, y, dx);
    free(x), free(dy), free(y), free(dx);
}

/* Tries every combination of mask, means and samples; `start` has the other settings. */
static void try_shape(const trial *start) {
    for (int i = 0; i < 8; i++) {
        trial t = *start;
        t.holes = i & 1;
        t.large = i & 2;
        t.samples = i & 4;
        if (t.samples && strcmp(t.method->axis, "sample") != 0) continue;
        if (t.large && t.groups) continue; /* the stored u/s has no digits left */
        if (!trial_open(&t)) continue;
        for (int pass = 0; pass < PASSES; pass++) run_pass(&t, pass);
        trial_close(&t);
    }
}

/* Skips groups of one feature: their scaled value is 1 or -1, and the result only rounding. */
static void try_method(trial *t, const norm_method *m, const char *values) {
    t->method = m;
    t->values = values;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        t->s = shapes[i];
        if (!t->groups || (t->s.d % t->groups == 0 && t->s.d > t->groups)) try_shape(t);
    }
}

static void try_all(int64_t groups) {
    sr_failure why = {0};
    real *normal = layer_numbers(NORMALS, 1, 1, 0, 1);
    trial t = {.groups = groups, .normal = normal, .tape = tape_create(1, &why)};
    assert_non_null(t.tape); /* other thread counts: test_norm.c */
    for (int i = 0; norm_at(i); i++) try_method(&t, norm_at(i), "");
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        try_method(&t, norm_find(settings[i].method), settings[i].values);
    tape_free(t.tape);
    free(normal);
}

static void without_layer_scale(void **state) {
    (void)state;
    try_all(0);
}

static void one_group(void **state) {
    (void)state;
    try_all(1);
}

static void five_groups(void **state) {
    (void)state;
    try_all(5);
}

static bool is_set(const char *method, const char *name) {
    char word[64];
    snprintf(word, sizeof word, "%s=", name);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const char *at = strstr(settings[i].values, word);
        if (!strcmp(settings[i].method, method) && at &&
            (at == settings[i].values || at[-1] == ' '))
            return true;
    }
    return false;
}

static void every_parameter_is_set(void **state) {
    (void)state;
    for (int i = 0; norm_at(i); i++)
        for (int k = 0; k < NORM_PARAM_MAX && norm_at(i)->param[k].name; k++)
            if (!is_set(norm_at(i)->name, norm_at(i)->param[k].name))
                fail_msg("no setting of %s changes %s", norm_at(i)->name,
                         norm_at(i)->param[k].name);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(without_layer_scale),
                                       cmocka_unit_test(one_group), cmocka_unit_test(five_groups),
                                       cmocka_unit_test(every_parameter_is_set)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
