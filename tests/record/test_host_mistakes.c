/* test_host_mistakes.c -- a host program's mistakes that are rejected at the call, and values that
 * are NaN instead of wrong. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "record/recorder_state.h"
#include "testing/check.h"
#include "testing/run_builder.h"
#include "testing/sample_run.h"

enum { ROWS = 8, WIDTH = 4 };

static const sr_site bn = {.size = sizeof(sr_site),
                           .name = "bn",
                           .norm = "bn",
                           .family = SR_FAMILY_SIGMA,
                           .width = WIDTH,
                           .eps = 1e-5,
                           .alpha = 0.9};

static sr_recorder *create(const char *name) {
    sr_options o = run_options();
    o.vectors_every = 1;
    return run_create(sample_path(name), o);
}

static sr_recorder *create_with(const sr_site *site) {
    sr_recorder *r = create("mistake.h5");
    sr_add_site(r, site);
    return r;
}

static void expect_refused(sr_recorder *r, sr_status status, const char *part) {
    sr_failure why = {0};
    if (!sr_failed(r)) fail_msg("accepted, without: %s", part);
    check_failure(sr_failed(r), status, part);
    assert_int_equal(sr_close(r, &run_complete, &why), status);
}

static void fill(float *x, float *dy, int step) {
    for (int i = 0; i < ROWS * WIDTH; i++)
        x[i] = (float)sin(1.3 * i + step), dy[i] = (float)cos(2.1 * i + step);
}

static void take(sr_recorder *r, int site, const float *x, const float *dy, int64_t inner) {
    const sr_tensor t =
        SR_INIT(sr_tensor, .data = x, .outer = ROWS, .channels = WIDTH, .inner = inner);
    sr_tensor g = t;
    g.data = dy;
    sr_take_forward(r, site, &t, NULL);
    sr_take_backward(r, site, &g);
}

static float scalar_of(const sr_runfile *f, const char *name, int64_t site, int64_t step) {
    sr_failure why = {0};
    float value;
    check_ok(sr_run_scalar(f, name, site, step, 1, &value, &why), &why);
    return value;
}

/* -- values ---------------------------------------------------------------------------------- */

/* Steps: finite; NaN in x, infinity in x, NaN in dy, infinity in dy. */
static void test_not_finite(void **state) {
    (void)state;
    static const sr_family families[] = {SR_FAMILY_SIGMA, SR_FAMILY_PSI, SR_FAMILY_PN,
                                         SR_FAMILY_NONE, SR_FAMILY_NONE};
    sr_recorder *r = create("finite.h5");
    for (int i = 0; i < 5; i++) {
        char name[8];
        sr_site s = bn;
        snprintf(name, sizeof name, "s%d", i);
        s.name = name, s.family = families[i];
        sr_add_site(r, &s);
        if (i == 4) sr_set_observed(r, 4);
    }
    for (int step = 1; step <= 5; step++) {
        float x[ROWS * WIDTH], dy[ROWS * WIDTH];
        fill(x, dy, step);
        if (step == 2 || step == 3) x[5] = step == 2 ? NAN : INFINITY;
        if (step >= 4) dy[6] = step == 4 ? NAN : INFINITY;
        sr_begin_step(r, step);
        for (int i = 0; i < 5; i++) take(r, i, x, dy, 1);
        run_end_step(r, step);
    }
    run_finish(r);
    sr_runfile *f = sample_open(sample_path("finite.h5"));
    for (int i = 0; i < 5; i++)
        for (int step = 0; step < 5; step++) {
            const float dx = scalar_of(f, i == 4 ? "dx_norm_bn" : "dx_norm", i, step);
            if (step == 0) assert_true(dx > 0);
            if (step > 0 && isfinite(dx) && !(i == 3 && step < 3)) /* computed from dy only */
                fail_msg("site %d, step %d: dx_norm %g", i, step + 1, (double)dx);
        }
    sr_run_close(f);
}

static void put_moments(const double *variance, const double *square, const char *part) {
    const double mean[WIDTH] = {1, 2, 3, 4};
    sr_recorder *r = create_with(&bn);
    sr_begin_step(r, 1);
    sr_put_forward(r, 0,
                   &SR_INIT(sr_forward, .rows = ROWS, .mean = mean, .variance = variance,
                            .mean_square = square));
    expect_refused(r, SR_USAGE, part);
}

static void put_square(sr_vector which, const char *part) {
    sr_recorder *r = create_with(&bn);
    sr_begin_step(r, 1);
    sr_put_vector(r, 0, which, (const double[WIDTH]){0, NAN, 1, -2});
    expect_refused(r, SR_USAGE, part);
}

static void end_step(sr_step row, const char *part) {
    sr_recorder *r = create_with(&bn);
    sr_begin_step(r, 7);
    row.size = sizeof row;
    sr_end_step(r, &row);
    if (part)
        expect_refused(r, SR_USAGE, part);
    else
        run_finish(r);
}

static void test_negative(void **state) {
    (void)state;
    static const double good[WIDTH] = {1, 0, NAN, INFINITY}, bad[WIDTH] = {1, -0.5, 2, 3};
    put_moments(bad, good, "sr_put_forward: variance -0.5 of feature 1 at site bn is negative");
    put_moments(good, bad, "sr_put_forward: mean square -0.5 of feature 1 at site bn is negative");
    put_square(SR_sigma2_B, "sr_put_vector: sigma2_B -2 of feature 3 at site bn is negative");
    put_square(SR_psi2_B, "sr_put_vector: psi2_B -2 of feature 3 at site bn is negative");
    end_step((sr_step){.update = -5}, "sr_end_step: update -5 of step 7 is negative");
    end_step((sr_step){.tokens = -7}, "sr_end_step: tokens -7 of step 7 is negative");
    end_step((sr_step){.lr = -0.1}, "sr_end_step: lr -0.1 of step 7 is negative");
    end_step((sr_step){.grad_norm = -2}, "sr_end_step: grad_norm -2 of step 7 is negative");
    end_step((sr_step){.loss = -1, .epoch = NAN, .lr = NAN, .grad_norm = NAN}, NULL);
}

/* Also with force: the writer may be this process. */
static void test_two_recorders_of_a_file(void **state) {
    (void)state;
    sr_options o = run_options();
    sr_failure why = {0};
    o.force = true;
    sr_recorder *r = run_create(sample_path("both.h5"), o);
    assert_null(sr_create(sample_path("both.h5"), &o, &why));
    check_failure(&why, SR_EXISTS, "both.h5.part: another run is writing this file");
    assert_string_equal(why.hint, "use another name, or end that run");
    run_finish(r);
}

static void test_inner(void **state) {
    (void)state;
    float x[ROWS * WIDTH], dy[ROWS * WIDTH];
    fill(x, dy, 0);
    sr_recorder *r = create_with(&bn);
    sr_begin_step(r, 1);
    take(r, 0, x, dy, 0);
    expect_refused(r, SR_USAGE,
                   "[8, 4, 0] of element 0 at site bn of width 4; inner is at least 1");
    r = create_with(&bn); /* a batch without rows is no mistake */
    sr_begin_step(r, 1);
    sr_take_forward(r, 0, &SR_INIT(sr_tensor, .channels = WIDTH, .inner = 1), NULL);
    run_end_step(r, 1);
    run_finish(r);
}

/* -- options --------------------------------------------------------------------------------- */

static void refuse_options(sr_options o, const char *text, const char *hint) {
    sr_failure why = {0};
    if (sr_create(sample_path("o.h5"), &o, &why)) fail_msg("accepted, without: %s", text);
    check_failure(&why, SR_USAGE, text);
    assert_string_equal(why.hint, hint);
}

static void test_options(void **state) {
    (void)state;
    const char *const other = "begin with sr_options o = SR_OPTIONS_DEFAULT";
    sr_options o = run_options();
    o.loss_reduction = "avg";
    refuse_options(o, "sr_options: loss_reduction 'avg' is not 'sum' or 'mean'", "");
    o.loss_reduction = NULL;
    refuse_options(o, "sr_options: loss_reduction NULL is not 'sum' or 'mean'", "");
    refuse_options(SR_INIT(sr_options, .loss_reduction = "sum"),
                   "sr_options: flush_steps 0 is less than 1", other);
    o = run_options(), o.vectors_every = -2;
    refuse_options(o, "sr_options: vectors_every -2 is less than -1", other);
    o = run_options(), o.overhead = NAN;
    refuse_options(o, "sr_options: overhead nan is less than 0", other);
}

/* -- singular values ------------------------------------------------------------------------- */

static void put_spectrum(const double *values, const char *part) {
    sr_options o = run_options();
    const double good[WIDTH] = {4, 2, NAN, 0}, *const both[] = {good, values};
    o.spectra = true;
    sr_recorder *r = run_create(sample_path("spectra.h5"), o);
    sr_add_site(r, &bn);
    sr_begin_step(r, 1);
    sr_put_spectrum(r, 0, ROWS, both);
    if (part) {
        expect_refused(r, SR_USAGE, part);
    } else {
        run_end_step(r, 1);
        run_finish(r);
    }
}

static void put_embedding(const double *values, int64_t step, const char *part) {
    sr_recorder *r = create_with(&bn);
    const double good[2] = {3, 1};
    sr_add_embedding(r, "words", 9, 2);
    run_put_step(r, 1);
    check_ok(sr_put_singular_values(r, "words", 5, good), sr_failed(r));
    check_ok(sr_put_singular_values(r, "words", 5, good), sr_failed(r));
    sr_put_singular_values(r, "words", step, values);
    expect_refused(r, SR_USAGE, part);
}

static void test_singular_values(void **state) {
    (void)state;
    put_spectrum((const double[]){4, 3, 3, 0}, NULL);
    put_spectrum((const double[]){1, 2, 3, 4},
                 "gradient at site bn are negative or do not descend");
    put_spectrum((const double[]){4, 3, 2, -1}, "gradient at site bn are negative");
    put_embedding((const double[]){1, 2}, 6, "values of embedding words in step 6 are negative or");
    put_embedding((const double[]){1, -2}, 6, "are negative or do not descend");
    put_embedding((const double[]){2, 1}, 4, "embedding words: step 4 after step 5");
}

/* -- sites ----------------------------------------------------------------------------------- */

static void refuse_site(sr_site s, const char *part) {
    sr_recorder *r = create("site.h5");
    assert_int_equal(sr_add_site(r, &s), -1);
    expect_refused(r, SR_USAGE, part);
}

static void test_site(void **state) {
    (void)state;
    static const sr_family families[] = {SR_FAMILY_SIGMA, SR_FAMILY_PSI, SR_FAMILY_PN};
    for (int i = 0; i < 3; i++) {
        sr_site s = bn;
        s.family = families[i], s.constants = i ? "psi2" : "mu,sigma2";
        refuse_site(s, "use family own and put the g_* scalars");
        s.family = SR_FAMILY_OWN, s.uses = s.constants; /* the host program writes them there */
        sr_recorder *r = create_with(&s);
        run_put_step(r, 1);
        run_finish(r);
    }
    sr_site s = bn;
    s.name = "\xff\xfe";
    refuse_site(s, "site number 0: its name is not UTF-8");
    s = bn, s.kind = "\xc3";
    refuse_site(s, "site number 0: its kind is not UTF-8");
    static const char *const good[] = {"\xc3\xa9", "\xe0\xa0\x80", "\xed\x9f\xbf",
                                       "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"};
    static const char *const bad[] = {
        "\x80",         "\xc1\xbf",         "\xe0\x9f\xbf",
        "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
        "\xf5\x80",     "\xe2\x82",         "\xe2\x82(",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        s = bn, s.name = bad[i], refuse_site(s, "its name is not UTF-8");
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        s = bn, s.name = good[i];
        sr_abandon(create_with(&s));
    }
    sr_recorder *r = create_with(&bn);
    sr_add_metric(r, "f\xe9", "1", "", SR_BETTER_MORE);
    expect_refused(r, SR_USAGE, "is not UTF-8");
}

static sr_recorder *add_named(const char *name, int width, int depth, sr_recorder *r) {
    sr_site s = bn;
    s.name = name, s.width = width, s.depth = depth;
    if (!r) r = create("named.h5");
    assert_true(sr_add_site(r, &s) >= 0);
    return r;
}

static void refuse_start(sr_recorder *r, const char *part) {
    sr_begin_step(r, 1);
    expect_refused(r, SR_USAGE, part);
}

static void test_replicas(void **state) {
    (void)state;
    refuse_start(add_named("a@1", 4, 0, NULL),
                 "site a@1 is a replica (NAME@K), but there is no site a");
    sr_recorder *r = add_named("a", 4, 0, NULL);
    add_named("a@1", 4, 0, r), add_named("a@3", 4, 0, r);
    refuse_start(r, "site a@3 is a replica (NAME@K), but there is no site a@2");
    r = add_named("a", 4, 0, NULL);
    refuse_start(add_named("a@1", 3, 0, r), "site a has 4 features, its replica a@1 has 3");
}

static void expect_depths(sr_recorder *r, const int *depth, int count) {
    run_put_step(r, 1);
    run_finish(r);
    sr_runfile *f = sample_open(sample_path("named.h5"));
    for (int i = 0; i < count; i++) assert_int_equal(sr_run_get_site(f, i)->depth, depth[i]);
    sr_run_close(f);
}

static void test_depths(void **state) {
    (void)state;
    sr_recorder *r = add_named("c", 4, 0, NULL);
    add_named("c@1", 4, 0, r), add_named("b", 4, 0, r), add_named("b@1", 4, 0, r);
    expect_depths(r, (const int[]){0, 0, 1, 1}, 4);
    r = add_named("c", 4, 7, NULL);
    expect_depths(add_named("b", 4, 0, r), (const int[]){7, 0}, 2);
    r = add_named("c", 4, 7, NULL);
    add_named("b", 4, 2, r), add_named("a", 4, 7, r);
    refuse_start(r, "sites c and a have the same depth 7");
}

/* Alpha 0, as SR_INIT leaves it, gives a row method no running statistics. */
static void test_idle_alpha(void **state) {
    (void)state;
    float x[ROWS * WIDTH], dy[ROWS * WIDTH];
    sr_recorder *r = create("alpha.h5");
    for (int i = 0; i < 4; i++) {
        sr_site s = bn;
        s.name = (const char *const[]){"ln", "observed", "weighed", "bn"}[i];
        s.family = i < 3 ? SR_FAMILY_ROW : SR_FAMILY_SIGMA, s.alpha = i == 2 ? 0.9 : 0;
        sr_add_site(r, &s);
    }
    sr_set_observed(r, 1);
    for (int step = 1; step <= 2; step++) {
        fill(x, dy, step);
        sr_begin_step(r, step);
        for (int i = 0; i < 4; i++) take(r, i, x, dy, 1);
        run_end_step(r, step);
    }
    run_finish(r);
    sr_runfile *f = sample_open(sample_path("alpha.h5"));
    for (int i = 0; i < 4; i++) {
        float mu[WIDTH];
        sr_failure why = {0};
        check_ok(sr_run_vector(f, "mu", i, 1, 1, mu, &why), &why);
        assert_true(isnan(sr_run_get_site(f, i)->alpha) == (i == 0));
        assert_true(isnan(mu[0]) == (i == 0));
    }
    sr_run_close(f);
}

static void test_pn_without_alpha(void **state) {
    (void)state;
    float x[ROWS * WIDTH], dy[ROWS * WIDTH];
    const double psi2[WIDTH] = {1, 2, 3, 4};
    sr_site s = bn;
    s.family = SR_FAMILY_PN, s.alpha = NAN;
    fill(x, dy, 0);
    for (int put = 0; put < 2; put++) {
        sr_recorder *r = create_with(&s);
        sr_begin_step(r, 1);
        take(r, 0, x, dy, 1);
        if (put) sr_put_vector(r, 0, SR_psi2, psi2);
        sr_end_step(r, &SR_INIT(sr_step, .update = 1));
        if (!put) expect_refused(r, SR_USAGE, "site bn: family pn without alpha (NaN) has no psi2");
        if (put) run_finish(r);
    }
}

/* -- steps, evaluations, the end ------------------------------------------------------------- */

static void test_order(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_recorder *r = create_with(&bn);
    sr_begin_step(r, -3);
    expect_refused(r, SR_USAGE, "step -3 is negative");
    r = create_with(&bn);
    sr_begin_eval(r, -3, NAN);
    expect_refused(r, SR_USAGE, "evaluation at step -3: it is negative");
    r = create_with(&bn);
    run_put_step(r, 1);
    sr_begin_eval(r, 1, NAN);
    assert_int_equal(sr_close(r, &run_complete, &why), SR_STATE);
    check_failure(&why, SR_STATE, "sr_close inside the evaluation at step 1");
    r = create_with(&bn);
    run_put_step(r, 1);
    sr_begin_step(r, 2);
    run_finish(r);
    sr_runfile *f = sample_open(sample_path("mistake.h5"));
    assert_string_equal(sr_run_get_info(f)->status, "complete");
    assert_string_equal(sr_run_get_info(f)->reason, "closed inside step 2, which is not recorded");
    sr_run_close(f);
}

/* Without its rows a resumed run does not start, and the old file stays. */
static void test_resume_without_rows(void **state) {
    (void)state;
    const char *path = sample_path("resumed.h5"), *added = sample_path("resumed.h5.part.new");
    for (int step = 0; step < 2; step++) {
        sr_failure why = {0};
        sr_options o = run_options();
        sr_recorder *r = run_create(path, o);
        sr_add_site(r, &bn);
        run_put_step(r, 1);
        sr_flush(r), sr_abandon(r);
        o.resume = true;
        r = run_create(path, o);
        sr_add_site(r, &bn);
        if (step) assert_int_equal(sr_begin_step(r, 2), SR_STATE);
        assert_int_equal(sr_close(r, &run_complete, &why), SR_STATE);
        check_failure(&why, SR_STATE, "options.resume, but sr_copy_rows has copied nothing");
        assert_int_equal(access(added, F_OK), -1);
        sr_runfile *f = sample_open(path);
        assert_int_equal(sr_run_get_info(f)->steps, 1);
        sr_run_close(f);
    }
}

/* A relative path refers to the directory at sr_create, wherever the host program is later. */
static void test_elsewhere(void **state) {
    (void)state;
    char here[4096];
    assert_non_null(getcwd(here, sizeof here));
    for (int abandoned = 0; abandoned < 2; abandoned++) {
        assert_int_equal(chdir(check_temporary()), 0);
        sr_recorder *r = run_create("elsewhere.h5", run_options());
        sr_add_site(r, &bn);
        assert_int_equal(chdir("/"), 0);
        if (!abandoned) run_put_step(r, 1);
        abandoned ? sr_abandon(r) : run_finish(r);
        assert_int_equal(chdir(check_temporary()), 0);
        assert_int_equal(access("elsewhere.h5", F_OK), 0);
        assert_int_equal(access("elsewhere.h5.part", F_OK), -1);
    }
    assert_int_equal(chdir(here), 0);
}

/* Files of earlier versions contain such values: a copy keeps them. */
static void test_earlier_files(void **state) {
    (void)state;
    static const char *const names[] = {"a", "b", "a@2", "lone@1", "\xff"};
    const char *path = sample_path("earlier.h5"), *copy = sample_path("earlier-copy.h5");
    sr_failure why = {0};
    sr_options o = run_options();
    o.loss_reduction = "avg";
    sr_recorder *r = recorder_create(path, &o, true, &why);
    for (int i = 0; i < 5; i++) {
        sr_site s = bn;
        s.name = names[i], s.depth = 3, s.width = 1 + i, s.constants = "mu";
        s.family = i ? SR_FAMILY_SIGMA : SR_FAMILY_ROW, s.alpha = 0;
        if (!i) s.uses = "mu,sigma2";
        sr_add_site(r, &s);
    }
    run_put_step(r, 1);
    run_finish(r);
    check_ok(sr_run_recover(path, copy, true, -1, NULL, &why), &why);
    sr_runfile *f = sample_open(copy);
    assert_string_equal(sr_run_get_info(f)->loss_reduction, "avg");
    for (int i = 0; i < 5; i++) {
        const sr_run_site *s = sr_run_get_site(f, i);
        assert_string_equal(s->name, names[i]);
        assert_string_equal(s->constants, "mu");
        assert_true(s->depth == 3 && !(s->alpha > 0));
    }
    sr_run_close(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_negative),
        cmocka_unit_test(test_two_recorders_of_a_file),
        cmocka_unit_test(test_inner),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_singular_values),
        cmocka_unit_test(test_site),
        cmocka_unit_test(test_replicas),
        cmocka_unit_test(test_depths),
        cmocka_unit_test(test_idle_alpha),
        cmocka_unit_test(test_pn_without_alpha),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_resume_without_rows),
        cmocka_unit_test(test_elsewhere),
        cmocka_unit_test(test_earlier_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
