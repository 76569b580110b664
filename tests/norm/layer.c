/* layer.c -- see layer.h. */
#include "layer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void layer_make(layer *l, const norm_method *m, int64_t features, int64_t groups) {
    norm_options o = norm_options_default(m);
    o.layer_scale = groups;
    layer_make_with(l, m, features, &o);
}

void layer_make_with(layer *l, const norm_method *m, int64_t features, const norm_options *o) {
    sr_failure why = {0};
    memset(l, 0, sizeof *l);
    params_init(&l->p, 3);
    check_ok(norm_site_init(&l->site, &l->p, "encoder.0.norm1", "encoder", 0, features, m, o, &why),
             &why);
    rng r = rng_create(11);
    for (int64_t k = 0; k < features && l->site.gamma; k++) {
        l->site.gamma->value[k] = (real)(1 + 0.5 * rng_normal(&r));
        l->site.beta->value[k] = (real)rng_normal(&r);
    }
    for (int i = 0; i < NORM_OWN_MAX && l->site.own[i]; i++)
        for (int64_t k = 0; k < l->site.own[i]->count; k++)
            l->site.own[i]->value[k] += (real)(0.2 * rng_normal(&r));
}

void layer_free(layer *l) {
    norm_site_free(&l->site);
    params_free(&l->p);
}

void layer_pass(layer *l, tape *t, const real *x, const real *dy, int64_t rows, const uint8_t *mask,
                norm_mode mode, real *y, real *dx) {
    int64_t d = l->site.features, dim[2] = {rows, d}, one = 1;
    size_t bytes = (size_t)(rows * d) * sizeof(real);
    bool add;
    norm_rows r;
    tape_reset(t, rng_create(5), true, true);
    params_zero_grad(&l->p);
    assert_int_equal(norm_rows_init(&r, t, rows, mask, mode), SR_OK);
    r.sample = l->sample;
    r.samples = l->samples;
    r.tokens = l->tokens;
    r.penalty = l->penalty;
    tensor *in = tape_tensor(t, 2, dim), *loss = tape_tensor(t, 1, &one);
    assert_true(in && loss);
    in->wants_grad = loss->wants_grad = true;
    memcpy(in->value, x, bytes);
    tensor *out = norm_apply(&l->site, t, in, &r);
    if (!out) fail_msg("%s", tape_failure(t)->text);
    memcpy(tape_grad(t, out, &add), dy, bytes);
    tape_backward(t, loss, 1);
    if (tape_failure(t)) fail_msg("%s", tape_failure(t)->text);
    if (y) memcpy(y, out->value, bytes);
    if (dx) memcpy(dx, in->grad, bytes);
}

real *layer_numbers(int64_t rows, int64_t d, uint64_t seed, double mean, double deviation) {
    real *x = malloc((size_t)(rows * d) * sizeof *x);
    assert_non_null(x);
    rng r = rng_create(seed);
    for (int64_t i = 0; i < rows * d; i++)
        x[i] = (real)(float)((mean + deviation * rng_normal(&r)) * (1 + (double)(i % d) / 4));
    return x;
}

double *layer_scaled(const real *x, int64_t rows, int64_t d, int64_t groups, double eps,
                     double *s) {
    double *u = malloc((size_t)(rows * d) * sizeof *u);
    int64_t w = groups ? d / groups : d;
    assert_non_null(u);
    for (int64_t q = 0; q < rows * d / w; q++) {
        double square = 0, divisor = 1;
        for (int64_t k = 0; k < w; k++) square += (double)x[q * w + k] * (double)x[q * w + k];
        if (groups) divisor = sqrt(square / (double)w + eps);
        for (int64_t k = 0; k < w; k++) u[q * w + k] = (double)x[q * w + k] / divisor;
        if (s) s[q] = divisor;
    }
    return u;
}
