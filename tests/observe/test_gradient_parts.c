/* test_gradient_parts.c -- the parts of dx that flow through batch statistics (g_mu, g_sigma2,
 * g_psi2), as recorded in the run file. Compared with a brute-force decomposition of each method's
 * dx. A method that declares a family with other formulas than its own fails here.
 *
 * dx is linear in g, feature by feature: dx = a g + R, where R flows through statistics. Statistics
 * depend on g through its sums with 1 and with x. A vector w orthogonal to both thus passes
 * directly: a = <w, dx(w) - dx(0)>/<w, w>. R(g) = dx(g) - a g has two parts: its mean over the rows
 * (through mu) and the rest (through sigma2); or all of it flows through psi2. Divided by d as in
 * the file:
 *
 *     g_mu = sqrt(sum_k mean_i[R]^2)/d    g_sigma2 = sqrt(sum_k var_i[R])/d    g_psi2 = sqrt(sum_k
 *     mean_i[R^2])/d
 *
 * and g_*_rowmean, the mean over rows of the root of the sum over k of the same squares, over d.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "observe/hooks.h"
#include "statrec/runfile.h"
#include "testing/check.h"
#include "testing/run_builder.h"

enum { ROWS = 60, D = 8, STEPS = 4, METHODS = 64 };

/* Settings after the first calls, where several methods are equal. Penalties are 0: they are no
 * part through statistics of g. */
static const struct {
    const char *norm, *param, *value;
} settings[] = {
    {"rbn", "lambda", "0"},          {"rbn", "nu", "0"},
    {"rbn-released", "lambda", "0"}, {"rbn-released", "nu", "0"},
    {"brn", "warmup", "0"},          {"brn", "r_calls", "0"},
    {"brn", "d_calls", "0"},         {"mabn", "buffer", "2"},
    {"mabn", "warmup", "0"},         {"mabn", "clip_calls", "0"},
    {"pn-released", "warmup", "0"},  {"un", "window", "2"},
    {"un", "warmup", "0"},           {"un", "filter", "off"},
    {"repbn", "eta0", "0.7"},
};

typedef struct layer {
    params p;
    norm_site site;
} layer;

static void layer_open(layer *l, const norm_method *m, int depth) {
    sr_failure why = {0};
    norm_options o = norm_options_default(m);
    char name[64];
    o.layer_scale = 0;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (!strcmp(settings[i].norm, m->name))
            check_ok(norm_options_set(&o, m, settings[i].param, settings[i].value, &why), &why);
    memset(l, 0, sizeof *l);
    params_init(&l->p, 3);
    snprintf(name, sizeof name, "site.%s", m->name);
    check_ok(norm_site_init(&l->site, &l->p, name, "x", depth, D, m, &o, &why), &why);
    for (int k = 0; k < D && l->site.gamma; k++)
        l->site.gamma->value[k] = (real)(0.6 + 0.2 * k), l->site.beta->value[k] = (real)(0.1 * k);
}

static void layer_close(layer *l) {
    norm_site_free(&l->site);
    params_free(&l->p);
}

/* One training pass; dx [ROWS, D]. */
static void one_pass(layer *l, tape *t, const real *x, const real *dy, const uint8_t *mask,
                     real *dx) {
    int64_t dim[2] = {ROWS, D}, one = 1;
    const size_t bytes = ROWS * D * sizeof(real);
    bool add;
    norm_rows r;
    tape_reset(t, rng_create(5), true, true);
    params_zero_grad(&l->p);
    assert_int_equal(norm_rows_init(&r, t, ROWS, mask, NORM_TRAIN), SR_OK);
    tensor *in = tape_tensor(t, 2, dim), *loss = tape_tensor(t, 1, &one);
    assert_true(in && loss);
    in->wants_grad = loss->wants_grad = true;
    memcpy(in->value, x, bytes);
    tensor *out = norm_apply(&l->site, t, in, &r);
    if (!out) fail_msg("%s", tape_failure(t)->text);
    memcpy(tape_grad(t, out, &add), dy, bytes);
    tape_backward(t, loss, 1);
    if (tape_failure(t)) fail_msg("%s", tape_failure(t)->text);
    memcpy(dx, in->grad, bytes);
}

/* -- data ------------------------------------------------------------------------------------ */

typedef struct data {
    real x[STEPS][ROWS * D], g[STEPS][ROWS * D], w[ROWS * D], zero[ROWS * D];
    uint8_t mask[ROWS];
    const uint8_t *given; /* mask or NULL */
    double n;
} data;

/* Sums one column of a times one of b (NULL: ones) over valid rows. */
static double inner(const data *d, const real *a, const real *b, int k) {
    double sum = 0;
    for (int i = 0; i < ROWS; i++)
        if (d->mask[i]) sum += (double)a[i * D + k] * (b ? (double)b[i * D + k] : 1);
    return sum;
}

static void make_w(data *d) {
    const real *x = d->x[STEPS - 1];
    rng r = rng_create(9);
    for (int i = 0; i < ROWS * D; i++) d->w[i] = (real)rng_normal(&r);
    for (int k = 0; k < D; k++)
        for (int again = 0; again < 3; again++) {
            const double mean = inner(d, x, NULL, k) / d->n,
                         w_mean = inner(d, d->w, NULL, k) / d->n;
            for (int i = 0; i < ROWS; i++) d->w[i * D + k] -= (real)w_mean;
            const double slope = (inner(d, d->w, x, k) - mean * inner(d, d->w, NULL, k)) /
                                 (inner(d, x, x, k) - d->n * mean * mean);
            for (int i = 0; i < ROWS; i++)
                d->w[i * D + k] -= (real)(slope * ((double)x[i * D + k] - mean));
        }
}

/* Every batch has other means and standard deviations, far from the initial running statistics. */
static data *make_data(bool padded) {
    data *d = calloc(1, sizeof *d);
    assert_non_null(d);
    rng r = rng_create(padded ? 2 : 1);
    for (int i = 0; i < ROWS; i++) d->mask[i] = !padded || i % 7 != 3, d->n += d->mask[i];
    d->given = padded ? d->mask : NULL;
    for (int t = 0; t < STEPS; t++)
        for (int i = 0; i < ROWS * D; i++) {
            const int k = i % D;
            d->x[t][i] = (real)((0.3 + 0.1 * k + 0.15 * t) * rng_normal(&r) + 0.5 - 0.2 * k);
            d->g[t][i] = (real)(rng_normal(&r) + 0.4 + 0.7 * (double)d->x[t][i]);
        }
    make_w(d);
    return d;
}

/* -- brute force ----------------------------------------------------------------------------- */

/* dx of the last step for this g, after the same earlier steps. */
static void gradient(const norm_method *m, const data *d, tape *t, const real *g, real *dx) {
    layer l;
    layer_open(&l, m, 0);
    for (int step = 0; step < STEPS; step++)
        one_pass(&l, t, d->x[step], step < STEPS - 1 ? d->g[step] : g, d->given, dx);
    layer_close(&l);
}

enum { G_MU, G_SIGMA2, G_PSI2, SIGMA2_ROWMEAN, PSI2_ROWMEAN, PARTS };

static void decompose(const norm_method *m, const data *d, tape *t, double part[PARTS]) {
    static real of_g[ROWS * D], of_w[ROWS * D], of_zero[ROWS * D];
    const real *g = d->g[STEPS - 1];
    double sum[PARTS] = {0}, centred[ROWS] = {0}, plain[ROWS] = {0};
    gradient(m, d, t, g, of_g);
    gradient(m, d, t, d->w, of_w);
    gradient(m, d, t, d->zero, of_zero);
    for (int k = 0; k < D; k++) {
        double a = (inner(d, d->w, of_w, k) - inner(d, d->w, of_zero, k)) / inner(d, d->w, d->w, k);
        double mean = 0, square = 0, r[ROWS] = {0};
        for (int i = 0; i < ROWS; i++) {
            if (!d->mask[i]) continue;
            r[i] = (double)of_g[i * D + k] - a * (double)g[i * D + k];
            mean += r[i] / d->n;
            square += r[i] * r[i] / d->n;
        }
        for (int i = 0; i < ROWS; i++) centred[i] += pow(r[i] - mean, 2), plain[i] += r[i] * r[i];
        sum[G_MU] += mean * mean;
        sum[G_SIGMA2] += square - mean * mean;
        sum[G_PSI2] += square;
    }
    for (int p = 0; p < SIGMA2_ROWMEAN; p++) part[p] = sqrt(sum[p]) / D;
    part[SIGMA2_ROWMEAN] = part[PSI2_ROWMEAN] = 0;
    for (int i = 0; i < ROWS; i++) {
        if (!d->mask[i]) continue;
        part[SIGMA2_ROWMEAN] += sqrt(centred[i]) / d->n / D;
        part[PSI2_ROWMEAN] += sqrt(plain[i]) / d->n / D;
    }
}

/* -- recorded -------------------------------------------------------------------------------- */

/* A run with one site per method. */
static sr_runfile *record(const data *d, bool observed, tape *t, layer *l, int count) {
    static real dx[ROWS * D];
    norm_site *site[METHODS];
    char path[4096];
    sr_failure why = {0};
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    o.force = true;
    snprintf(path, sizeof path, "%s/parts.h5", check_temporary());
    sr_recorder *r = run_create(path, o);
    model m = {.site = site, .sites = count};
    for (int i = 0; i < count; i++) {
        layer_open(&l[i], norm_at(i), i);
        site[i] = &l[i].site;
        if (observed) check_ok(norm_site_observe_batch(site[i], 0.9, &why), &why);
    }
    bool all[METHODS];
    for (int i = 0; i < count; i++) all[i] = true;
    hooks *h = hooks_create(&m, r, all, true, NULL, &why);
    if (!h) fail_msg("%s", why.text);
    for (int step = 0; step < STEPS; step++) {
        sr_begin_step(r, step + 1);
        for (int i = 0; i < count; i++) one_pass(&l[i], t, d->x[step], d->g[step], d->given, dx);
        sr_end_step(r, &(sr_step){.size = sizeof(sr_step), .update = step + 1});
    }
    hooks_free(h);
    run_finish(r);
    for (int i = 0; i < count; i++) layer_close(&l[i]);
    sr_runfile *f = sr_run_open(path, &why);
    if (!f) fail_msg("%s", why.text);
    return f;
}

static double recorded(const sr_runfile *f, const char *scalar, int site) {
    sr_failure why = {0};
    float value;
    check_ok(sr_run_scalar(f, scalar, site, STEPS - 1, 1, &value, &why), &why);
    return (double)value;
}

static bool uses(const norm_method *m, int part) {
    static const uint32_t bit[PARTS] = {NORM_BIT(mu), NORM_BIT(sigma2), NORM_BIT(psi2),
                                        NORM_BIT(sigma2), NORM_BIT(psi2)};
    return !strcmp(m->axis, "batch") && m->uses & bit[part];
}

/* A part is recorded if the method uses the statistic over the batch, or if it is observed. */
static int compare(const norm_method *m, const sr_runfile *f, int site, const double *part) {
    static const char *const scalar[PARTS] = {"g_mu", "g_sigma2", "g_psi2", "g_sigma2_rowmean",
                                              "g_psi2_rowmean"};
    const bool observed = sr_run_get_site(f, site)->observed;
    int compared = 0;
    for (int p = 0; p < PARTS; p++) {
        const double got = recorded(f, scalar[p], site);
        if (!uses(m, p)) {
            if (isnan(got) == (observed && p < SIGMA2_ROWMEAN))
                fail_msg("%s: %s is %g", m->name, scalar[p], got);
            continue;
        }
        if (!(part[p] > 1e-3)) fail_msg("%s: %s tests nothing: %g", m->name, scalar[p], part[p]);
        if (!(fabs(got - part[p]) <= 2e-4 * part[p]))
            fail_msg("%s: %s is %.7g in the file, %.7g of dx: %.4g times", m->name, scalar[p], got,
                     part[p], got / part[p]);
        compared++;
    }
    return compared;
}

/* Whether the list "mu,sigma2" contains the word. */
static bool says(const char *words, const char *word, bool wanted) {
    const char *at = strstr(words, word);
    return (at != NULL) == wanted;
}

static bool says_all(const char *words, uint32_t bits) {
    return says(words, "mu", bits & NORM_BIT(mu)) &&
           says(words, "sigma2", bits & NORM_BIT(sigma2)) &&
           says(words, "psi2", bits & NORM_BIT(psi2));
}

/* /sites contains the method's row of the table. */
static void compare_row(const norm_method *m, const sr_run_site *s) {
    static const char *const family[] = {"none", "sigma", "psi", "pn", "row", "own"};
    if (strcmp(s->norm, m->name) != 0 || strcmp(s->axis, m->axis) != 0 ||
        strcmp(sr_family_name(s->family), family[m->family]) != 0 || !says_all(s->uses, m->uses) ||
        !says_all(s->constants, m->constants) || s->layer_scale_own != (m->layer_scale > 0))
        fail_msg("%s: family %s, axis %s, uses '%s', constants '%s', layer_scale_own %d", m->name,
                 sr_family_name(s->family), s->axis, s->uses, s->constants,
                 (int)s->layer_scale_own);
}

static int check_all(bool padded, bool observed) {
    sr_failure why = {0};
    int count = 0, compared = 0;
    layer *l = calloc(METHODS, sizeof *l);
    tape *t = tape_create(2, &why);
    data *d = make_data(padded);
    assert_true(l && t);
    while (norm_at(count)) count++;
    assert_true(count <= METHODS);
    sr_runfile *f = record(d, observed, t, l, count);
    for (int i = 0; i < count; i++) {
        double part[PARTS];
        compare_row(norm_at(i), sr_run_get_site(f, i));
        decompose(norm_at(i), d, t, part);
        compared += compare(norm_at(i), f, i, part);
    }
    sr_run_close(f);
    free(d);
    free(l);
    tape_free(t);
    return compared;
}

/* bn, rbn, brn, bn-powernorm, rbn-released, repbn: three each; pnv, pn, mabn, pn-released,
   un: two. */
static void all_rows_valid(void **state) {
    (void)state;
    assert_true(check_all(false, false) >= 28);
}

static void padded_rows(void **state) {
    (void)state;
    assert_true(check_all(true, false) >= 28);
}

/* A method's own statistics are recorded also at a site with an observer. */
static void observed_sites(void **state) {
    (void)state;
    assert_true(check_all(false, true) >= 28);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_rows_valid),
                                       cmocka_unit_test(padded_rows),
                                       cmocka_unit_test(observed_sites)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
