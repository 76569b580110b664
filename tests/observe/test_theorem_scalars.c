/* test_theorem_scalars.c -- scalars of --theorems-every against plain loops in double, written
 * independently from the formulas of docs/norms.md 6, 10, 11 and 18.5. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "observe/run_record.h"
#include "statrec/runfile.h"
#include "testing/check.h"

enum { N = 7, WIDE = 144, STEPS = 2, PADDED = 2 };

typedef struct fixture {
    params p;
    norm_site site, *sites[1];
    model m;
    tape *t;
    run_record record;
    real x[N * WIDE], dy[N * WIDE];
    uint8_t mask[N];
} fixture;

static const char *path(void) {
    static char text[600];
    snprintf(text, sizeof text, "%s/theorems.h5", check_temporary());
    return text;
}

static void set(norm_options *o, const norm_method *m, const char *name, double value) {
    const int i = norm_param_find(m, name);
    assert_true(i >= 0);
    o->param[i] = value;
    o->given |= 1u << i;
}

/* x of step `step`; in row 0 one feature is far from the others. */
static void fill(fixture *f, int step) {
    for (int i = 0; i < N * WIDE; i++) {
        f->x[i] = (real)(sin(i * i + step) + 0.25 * step);
        f->dy[i] = (real)(cos(3 * i + step) + 0.5 * f->x[i]);
    }
    f->x[5] = 60;
    f->x[PADDED * WIDE + 1] = 1e6f;
    f->dy[PADDED * WIDE + 1] = 1e6f;
    for (int i = 0; i < N; i++) {
        f->mask[i] = i != PADDED;
        f->dy[i * WIDE + 7] = 0; /* a feature without gradient */
    }
    for (int k = 0; k < WIDE && f->site.gamma; k++)
        f->site.gamma->value[k] = (real)(0.5 + 0.01 * k);
}

static void open_site(fixture *f, const char *norm, norm_options (*change)(const norm_method *)) {
    const norm_method *method = norm_find(norm);
    const bool chosen = true;
    sr_options o = SR_OPTIONS_DEFAULT;
    sr_failure why = {0};
    assert_non_null(method);
    norm_options options = change ? change(method) : norm_options_default(method);
    memset(f, 0, sizeof *f);
    params_init(&f->p, 3);
    check_ok(norm_site_init(&f->site, &f->p, "wide", "x", 0, WIDE, method, &options, &why), &why);
    f->sites[0] = &f->site;
    f->m = (model){.site = f->sites, .sites = 1};
    f->t = tape_create(1, &why);
    o.overhead = 0, o.force = true;
    f->record = (run_record){
        .model = &f->m, .recorder = sr_create(path(), &o, &why), .shares = 1, .own_shares = 1};
    assert_true(f->t && f->record.recorder);
    f->record.hooks = hooks_create(&f->m, f->record.recorder, &chosen, false, NULL, &why);
    assert_non_null(f->record.hooks);
    f->record.theorems = theorem_scalars_create(f->record.recorder, f->record.hooks, true, &why);
    if (!f->record.theorems) fail_msg("%s", why.text);
}

static void one_pass(fixture *f, int64_t step, bool wanted, bool freeze) {
    int64_t dim[2] = {N, WIDE}, one = 1;
    norm_rows r;
    bool add;
    fill(f, (int)step);
    norm_site_freeze(&f->site, freeze);
    sr_begin_step(f->record.recorder, step);
    run_record_want_theorems(&f->record, wanted);
    tape_reset(f->t, rng_create(5), true, true);
    assert_int_equal(norm_rows_init(&r, f->t, N, f->mask, NORM_TRAIN), SR_OK);
    tensor *in = tape_tensor(f->t, 2, dim), *loss = tape_tensor(f->t, 1, &one);
    assert_true(in && loss);
    in->wants_grad = loss->wants_grad = true;
    memcpy(in->value, f->x, sizeof f->x);
    tensor *out = norm_apply(&f->site, f->t, in, &r);
    assert_non_null(out);
    memcpy(tape_grad(f->t, out, &add), f->dy, sizeof f->dy);
    tape_backward(f->t, loss, 1);
    if (tape_failure(f->t)) fail_msg("%s", tape_failure(f->t)->text);
    sr_end_step(f->record.recorder, &(sr_step){.size = sizeof(sr_step), .update = step});
}

/* Runs STEPS passes, the last one `last`; then reads the file. */
static sr_runfile *run(fixture *f, bool last, bool frozen) {
    sr_failure why = {0};
    for (int64_t step = 1; step <= STEPS; step++)
        one_pass(f, step, step == STEPS && last, step == STEPS && frozen);
    check_ok(sr_close(f->record.recorder,
                      &(sr_finish){.size = sizeof(sr_finish), .status = "complete"}, &why),
             &why);
    theorem_scalars_free(f->record.theorems);
    hooks_free(f->record.hooks);
    tape_free(f->t);
    sr_runfile *file = sr_run_open(path(), &why);
    if (!file) fail_msg("%s", why.text);
    return file;
}

static void close_site(fixture *f, sr_runfile *file) {
    sr_run_close(file);
    norm_site_free(&f->site);
    params_free(&f->p);
}

static double number(sr_runfile *f, const char *name) {
    float value[STEPS];
    sr_failure why = {0};
    check_ok(sr_run_scalar(f, name, 0, 0, STEPS, value, &why), &why);
    assert_true(isnan(value[0])); /* not requested */
    return (double)value[STEPS - 1];
}

static void check_number(sr_runfile *f, const char *name, double want) {
    const double got = number(f, name);
    if (!(fabs(got - want) <= 2e-6 * (1 + fabs(want))))
        fail_msg("%s: %.9g, not %.9g", name, got, want);
}

static void check_absent(sr_runfile *f, const char *const *names) {
    for (; *names; names++)
        if (!isnan(number(f, *names))) fail_msg("%s has a value", *names);
}

static const char *const of_features[] = {
    "lemma2_max", "lemma2_above", "lemma2_diff",   "row_xhat_max",
    "row_q_max",  "Gamma_min",    "row_dxhat_max", NULL};
static const char *const of_rows[] = {"y_outside", "z_mean", "z_exact", NULL};

/* -- rows */

enum { C2K3 = 1, UNBIASED = 2, OUTSIDE = 4 };
static int form;

static norm_options changed(const norm_method *m) {
    norm_options o = norm_options_default(m);
    o.eps = 0.5;
    if (form & C2K3) set(&o, m, "C", -2), set(&o, m, "k", 0.3);
    if (form & UNBIASED) set(&o, m, "unbiased", 1);
    if (form & OUTSIDE) set(&o, m, "placement", 1);
    return o;
}

typedef struct wanted_rows {
    double outside, z, squares;
} wanted_rows;

static wanted_rows reference_rows(const fixture *f, double C, double k) {
    wanted_rows w = {0, 0, 0};
    for (int i = 0; i < N; i++) {
        double mean = 0, v = 0, z = 0, y2 = 0;
        if (i == PADDED) continue;
        for (int j = 0; j < WIDE; j++) mean += (double)f->x[i * WIDE + j] / WIDE;
        for (int j = 0; j < WIDE; j++) v += pow((double)f->x[i * WIDE + j] - mean, 2);
        v /= form & UNBIASED ? WIDE - 1 : WIDE;
        for (int j = 0; j < WIDE; j++) {
            const double s = form & OUTSIDE ? sqrt(v) + 0.5 : sqrt(v + 0.5);
            const double y = ((double)f->x[i * WIDE + j] - mean) / s;
            w.outside += y >= 10 || y <= -10 ? 1.0 / ((N - 1) * WIDE) : 0;
            z += C * (1 - k * y) * y / WIDE;
            y2 += y * y / WIDE;
        }
        w.z = fmax(w.z, fabs(z / (C * k)));
        w.squares = fmax(w.squares, y2);
    }
    return w;
}

/* Theorem 2 with C of both signs and every form of the divisor. |mean of z| is |C k| mean y^2, not
 * |k| mean y^2. One entry of 864 is beyond 10. */
static void adanorm(void **state) {
    (void)state;
    for (form = 0; form < 8; form++) {
        fixture f;
        open_site(&f, "adanorm", changed);
        sr_runfile *file = run(&f, true, false);
        const wanted_rows w = reference_rows(&f, form & C2K3 ? -2 : 1, form & C2K3 ? 0.3 : 0.1);
        assert_true(w.outside > 0 && w.z < 1);
        check_number(file, "y_outside", w.outside);
        check_number(file, "z_mean", w.z);
        check_number(file, "z_exact", w.squares);
        check_absent(file, of_features);
        close_site(&f, file);
    }
}

/* Layers of the family without phi have only equation 7, for the vector before the gain. */
static void other_rows(void **state) {
    (void)state;
    static const char *const norms[] = {"ln", "ln-simple", "detach-both"};
    for (int i = 0; i < 3; i++) {
        fixture f;
        form = 0;
        open_site(&f, norms[i], changed);
        sr_runfile *file = run(&f, true, false);
        check_number(file, "y_outside", reference_rows(&f, 1, 0.1).outside);
        check_absent(file, of_rows + 1);
        close_site(&f, file);
    }
}

/* -- features */

typedef struct column {
    double psi2, nu;            /* before step STEPS */
    double s, xhat[N], dx2, g2; /* at step STEPS */
} column;

static void check_features(const char *norm, bool pn, bool observed) {
    fixture f;
    sr_failure why = {0};
    static column c[WIDE];
    double most = 0, above = 0, count = 0, least = INFINITY, row[3] = {0, 0, 0};
    const double alpha = 0.9, alpha_bwd = 0.9, n = N - 1, eps = 0.5;
    form = 0;
    open_site(&f, norm, changed);
    f.site.options.alpha = alpha;
    if (observed) check_ok(norm_site_observe_batch(&f.site, alpha, &why), &why);
    for (int k = 0; k < WIDE; k++) c[k] = (column){.psi2 = 1};
    for (int step = 1; step <= STEPS; step++) {
        fill(&f, step);
        for (int k = 0; k < WIDE; k++) {
            double psi2_B = 0, along = 0, square = 0;
            const double gamma = (double)f.site.gamma->value[k];
            for (int i = 0; i < N; i++)
                if (i != PADDED) psi2_B += pow((double)f.x[i * WIDE + k], 2) / n;
            c[k].s = sqrt((pn ? c[k].psi2 : psi2_B) + eps);
            c[k].dx2 = c[k].g2 = 0;
            for (int i = 0; i < N; i++) {
                if (i == PADDED) continue;
                c[k].xhat[i] = (double)f.x[i * WIDE + k] / c[k].s;
                along += (double)f.dy[i * WIDE + k] * gamma * c[k].xhat[i] / n;
                square += pow(c[k].xhat[i], 2) / n;
            }
            const double slope = pn ? c[k].nu : along;
            for (int i = 0; i < N; i++) {
                if (i == PADDED) continue;
                const double g = (double)f.dy[i * WIDE + k];
                c[k].g2 += g * g;
                c[k].dx2 += pow((gamma * g - slope * c[k].xhat[i]) / c[k].s, 2);
            }
            if (step == STEPS) least = fmin(least, square);
            if (step == STEPS) continue;
            c[k].nu = c[k].nu * (1 - (1 - alpha_bwd) * square) + (1 - alpha_bwd) * along;
            c[k].psi2 = alpha * c[k].psi2 + (1 - alpha) * psi2_B;
        }
    }
    for (int k = 0; k < WIDE; k++) {
        if (k == 7) continue;
        most = fmax(most, c[k].dx2 / c[k].g2);
        above += c[k].dx2 > c[k].g2;
        count++;
    }
    for (int i = 0; i < N; i++) {
        double sum[3] = {0, 0, 0};
        for (int k = 0; k < WIDE && i != PADDED; k++) {
            const double q = (double)f.site.gamma->value[k] * (double)f.dy[i * WIDE + k];
            sum[0] += pow(c[k].xhat[i], 2);
            sum[1] += q * q;
            sum[2] += pow(q - c[k].nu * c[k].xhat[i], 2);
        }
        for (int j = 0; j < 3; j++) row[j] = fmax(row[j], sqrt(sum[j]));
    }
    sr_runfile *file = run(&f, true, false);
    check_number(file, "lemma2_max", most);
    check_number(file, "lemma2_above", above / count);
    assert_true(above > 0 && above < count);
    if (pn) {
        check_number(file, "row_xhat_max", row[0]);
        check_number(file, "row_q_max", row[1]);
        check_number(file, "row_dxhat_max", row[2]);
        check_number(file, "Gamma_min", least);
        assert_true(isnan(number(file, "lemma2_diff")));
        if (!(fabs(row[2] - row[1]) > 1e-3 * row[1])) fail_msg("%g %g", row[2], row[1]);
    } else {
        assert_true(number(file, "lemma2_diff") < 2e-6);
        check_absent(file, of_features + 3);
    }
    check_absent(file, of_rows);
    close_site(&f, file);
}

static void pnv(void **state) {
    (void)state;
    check_features("pnv", false, false);
    check_features("pnv", false, true);
}

static void pn(void **state) {
    (void)state;
    check_features("pn", true, false);
    check_features("pn", true, true);
}

/* Frozen running statistics have no backward pass of these theorems; bn has neither. */
static void nothing(void **state) {
    (void)state;
    static const struct {
        const char *norm;
        bool wanted, frozen;
    } of[] = {{"bn", true, false},     {"pn", true, true},        {"pnv", true, true},
              {"pn", false, false},    {"adanorm", false, false}, {"groupnorm", true, false},
              {"rmsnorm", true, false}};
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        fixture f;
        open_site(&f, of[i].norm, NULL);
        sr_runfile *file = run(&f, of[i].wanted, of[i].frozen);
        check_absent(file, of_rows);
        check_absent(file, of_features);
        close_site(&f, file);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(adanorm), cmocka_unit_test(other_rows),
                                       cmocka_unit_test(pnv), cmocka_unit_test(pn),
                                       cmocka_unit_test(nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
