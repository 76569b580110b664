/* test_raw_tensors.c -- raw tensors in the recorder, the values of a step, vector spacing and file
 * size. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "statrec/moments.h"
#include "testing/check.h"
#include "testing/run_builder.h"
#include "testing/sample_run.h"

enum { WIDTH = 5, OUTER = 6, INNER = 4, ROWS = OUTER * INNER, STEPS = 4, EMPTY_STEP = 2 };

static float value_at(int64_t step, int what, int64_t row, int64_t k) {
    return (float)(sin(1.7 * (double)step + 0.9 * (double)row + 2.3 * (double)k + 5 * what) +
                   (what ? 0 : 100 * (double)k));
}

static bool row_valid(int64_t step, int64_t row) {
    return step != EMPTY_STEP && (row + step) % 4 != 0;
}

/* Fills a tensor of one step; channels last ([ROWS, WIDTH]) or first ([OUTER, WIDTH, INNER]). */
static void fill(float *data, uint8_t *valid, int64_t step, int what, bool first) {
    for (int64_t row = 0; row < ROWS; row++) {
        valid[row] = row_valid(step, row);
        for (int64_t k = 0; k < WIDTH; k++) {
            float v = valid[row] ? value_at(step, what, row, k) : NAN;
            int64_t at = first ? (row / INNER * WIDTH + k) * INNER + row % INNER : row * WIDTH + k;
            data[at] = v;
        }
    }
}

static void observe_run(const char *path, sr_family family, bool first) {
    sr_failure why = {0};
    float x[ROWS * WIDTH], dy[ROWS * WIDTH], gamma[WIDTH] = {1, -2, 0, 0.5f, 3};
    uint8_t valid[ROWS];
    sr_recorder *r = sr_create(path, NULL, &why);
    assert_non_null(r);
    int site = sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                                         .name = "site",
                                         .norm = "x",
                                         .family = family,
                                         .width = WIDTH,
                                         .eps = 1e-3,
                                         .alpha = 0.75});
    sr_set_alpha_backward(r, site, 0.5);
    for (int64_t step = 0; step < STEPS; step++) {
        fill(x, valid, step, 0, first), fill(dy, valid, step, 1, first);
        int64_t outer = first ? OUTER : ROWS, inner = first ? INNER : 1;
        sr_begin_step(r, step);
        sr_take_forward(
            r, site, &(sr_tensor){sizeof(sr_tensor), x, SR_FLOAT32, outer, WIDTH, inner, valid, 0},
            gamma);
        sr_take_backward(
            r, site, &(sr_tensor){sizeof(sr_tensor), dy, SR_FLOAT32, outer, WIDTH, inner, NULL, 0});
        sr_step row = {.size = sizeof(sr_step), .update = step};
        check_ok(sr_end_step(r, &row), sr_failed(r));
    }
    run_finish(r);
}

typedef struct expected {
    double vector[SR_VECTOR_COUNT][WIDTH];
    bool has[SR_VECTOR_COUNT];
    int64_t rows;
    long double dx2, direct2; /* sums of the squares of dx and of gamma/s g */
} expected;

typedef struct running {
    long double mu[WIDTH], sigma2[WIDTH], psi2[WIDTH], nu[WIDTH];
} running;

/* Adds the squares of one feature's dx, row by row. center and s: xhat = (x - center)/s. */
static void expect_dx(expected *e, sr_family family, int64_t step, int64_t k, long double center,
                      long double s, long double sum_g, long double sum_gx, long double nu) {
    static const double gamma[WIDTH] = {1, -2, 0, 0.5, 3};
    const long double n = e->rows, a = gamma[k] / s;
    for (int64_t row = 0; row < ROWS; row++) {
        if (!row_valid(step, row)) continue;
        const long double g = value_at(step, 1, row, k);
        const long double xhat = (value_at(step, 0, row, k) - center) / s;
        long double dx = a * (g - xhat * sum_gx / n);
        if (family == SR_FAMILY_SIGMA) dx -= a * sum_g / n;
        if (family == SR_FAMILY_PN) dx = a * g - nu * xhat / s;
        e->dx2 += dx * dx, e->direct2 += a * g * a * g;
    }
}

/* One feature of one step, written as in docs/norms.md 2, 10, 18.2, in long double. */
static void expect_feature(expected *e, running *s, sr_family family, int64_t step, int64_t k) {
    static const double gamma[WIDTH] = {1, -2, 0, 0.5, 3};
    const long double alpha = 0.75L, alpha_bwd = 0.5L, eps = 1e-3L;
    long double n = 0, mean = 0, var = 0, square = 0, sum_g = 0, sum_gx = 0;
    for (int64_t row = 0; row < ROWS; row++)
        if (row_valid(step, row)) mean += value_at(step, 0, row, k), n++;
    e->rows = (int64_t)n;
    if (n == 0) return;
    mean /= n;
    for (int64_t row = 0; row < ROWS; row++) {
        if (!row_valid(step, row)) continue;
        long double v = value_at(step, 0, row, k);
        var += (v - mean) * (v - mean) / n, square += v * v / n;
    }
    bool centred = family == SR_FAMILY_SIGMA || family == SR_FAMILY_ROW;
    long double divisor = centred ? var : family == SR_FAMILY_PN ? s->psi2[k] : square;
    for (int64_t row = 0; row < ROWS; row++) {
        if (!row_valid(step, row)) continue;
        long double g = value_at(step, 1, row, k), v = value_at(step, 0, row, k);
        sum_g += g, sum_gx += g * (v - (centred ? mean : 0)) / sqrtl(divisor + eps);
    }
    long double Gamma = square / (divisor + eps), Lambda = gamma[k] * sum_gx / n;
    expect_dx(e, family, step, k, centred ? mean : 0, sqrtl(divisor + eps), sum_g, sum_gx,
              s->nu[k]);
    const long double all[SR_VECTOR_COUNT] = {mean,         var,        square,   s->mu[k],
                                              s->sigma2[k], s->psi2[k], gamma[k], sum_g,
                                              sum_gx,       s->nu[k],   Gamma,    Lambda};
    for (int v = 0; v < SR_VECTOR_COUNT; v++) {
        e->vector[v][k] = (double)all[v];
        e->has[v] = v < SR_nu || (family == SR_FAMILY_PN && v <= SR_Lambda_t);
    }
    s->mu[k] = alpha * s->mu[k] + (1 - alpha) * mean;
    s->sigma2[k] = alpha * s->sigma2[k] + (1 - alpha) * var;
    s->psi2[k] = alpha * s->psi2[k] + (1 - alpha) * square;
    s->nu[k] = s->nu[k] * (1 - (1 - alpha_bwd) * Gamma) + (1 - alpha_bwd) * Lambda;
}

/* Row counts are recorded even if no row is valid. */
static void expect_others(const expected *e, sr_family family, bool first, double *scalar) {
    scalar[SR_SCALAR_nonfinite] = 0;
    if (first)
        scalar[SR_SCALAR_samples] = OUTER; /* rows of a flat tensor have no known sample numbers */
    scalar[SR_SCALAR_padded] = (double)(ROWS - e->rows);
    if (family == SR_FAMILY_ROW || e->rows == 0) return;
    scalar[SR_SCALAR_dx_norm] = (double)sqrtl(e->dx2);
    scalar[SR_SCALAR_direct_norm] = (double)sqrtl(e->direct2);
}

static void check_observed(const char *path, sr_family family, bool first) {
#define NAME(name, definition) #name,
    static const char *const names[] = {SR_VECTORS(NAME)};
    static const char *const scalars[] = {SR_SCALARS(NAME)};
    sr_failure why = {0};
    sr_runfile *f = sr_run_open(path, &why);
    assert_non_null(f);
    running s = {0};
    for (int k = 0; k < WIDTH; k++) s.sigma2[k] = s.psi2[k] = 1;
    for (int64_t step = 0; step < STEPS; step++) {
        expected e = {0};
        const double *put[SR_VECTOR_COUNT];
        double scalar[SR_SCALAR_COUNT];
        float got[WIDTH];
        for (int64_t k = 0; k < WIDTH; k++) expect_feature(&e, &s, family, step, k);
        for (int v = 0; v < SR_VECTOR_COUNT; v++) {
            put[v] = e.has[v] ? e.vector[v] : NULL;
            for (int k = 0; k < WIDTH && !e.has[v]; k++) e.vector[v][k] = NAN;
            check_ok(sr_run_vector(f, names[v], 0, step, 1, got, &why), &why);
            check_near_float(names[v], got, e.vector[v], WIDTH, 1e-6, 1e-6);
        }
        for (int i = 0; i < SR_SCALAR_COUNT; i++) scalar[i] = NAN;
        sr_derive_scalars(family, WIDTH, 1e-3, e.rows, put, scalar);
        expect_others(&e, family, first, scalar);
        for (int i = 0; i < SR_SCALAR_COUNT; i++) {
            check_ok(sr_run_scalar(f, scalars[i], 0, step, 1, got, &why), &why);
            check_near_float(scalars[i], got, &scalar[i], 1, 1e-6, 1e-9);
        }
    }
    sr_run_close(f);
}

static void test_observe(void **state) {
    (void)state;
    static const sr_family families[] = {SR_FAMILY_SIGMA, SR_FAMILY_PSI, SR_FAMILY_PN,
                                         SR_FAMILY_ROW};
    for (int i = 0; i < 4; i++)
        for (int first = 0; first < 2; first++) {
            char name[48];
            snprintf(name, sizeof name, "observe%d%d.h5", i, first);
            observe_run(sample_path(name), families[i], first);
            check_observed(sample_path(name), families[i], first);
        }
}

/* Without alpha no running statistics exist. */
static void test_observe_without_alpha(void **state) {
    (void)state;
    sr_failure why = {0};
    float x[] = {1, 2, 3, 4}, got[2];
    sr_recorder *r = sr_create(sample_path("still.h5"), NULL, &why);
    int site = sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                                         .name = "s",
                                         .family = SR_FAMILY_NONE,
                                         .width = 2,
                                         .alpha = NAN});
    sr_begin_step(r, 1);
    sr_take_forward(r, site, &(sr_tensor){sizeof(sr_tensor), x, SR_FLOAT32, 2, 2, 1, NULL, 0},
                    NULL);
    sr_step row = {.size = sizeof(sr_step)};
    sr_end_step(r, &row);
    run_finish(r);
    sr_runfile *f = sr_run_open(sample_path("still.h5"), &why);
    assert_non_null(f);
    check_ok(sr_run_vector(f, "mu_B", 0, 0, 1, got, &why), &why);
    check_equals(got[0], 2);
    check_equals(got[1], 3);
    assert_false(sr_run_has_vector(f, "mu"));
    sr_run_close(f);
}

/* The host's values replace derived ones; nonfinite counts float32 values. */
static void test_put_wins(void **state) {
    (void)state;
    sr_failure why = {0};
    float got;
    const double mu_B[] = {1, NAN}, mu[] = {1e39, INFINITY};
    sr_recorder *r = sr_create(sample_path("wins.h5"), NULL, &why);
    int site = sr_add_site(
        r, &(sr_site){.size = sizeof(sr_site), .name = "s", .family = SR_FAMILY_SIGMA, .width = 2});
    sr_add_site(
        r, &(sr_site){
               .size = sizeof(sr_site), .name = "silent", .family = SR_FAMILY_SIGMA, .width = 2});
    sr_begin_step(r, 1);
    sr_put_vector(r, site, SR_mu_B, mu_B), sr_put_vector(r, site, SR_mu, mu);
    sr_put_scalar(r, site, SR_SCALAR_dist_mu, 7);
    sr_step row = {.size = sizeof(sr_step)};
    sr_end_step(r, &row);
    run_finish(r);
    sr_runfile *f = sr_run_open(sample_path("wins.h5"), &why);
    assert_non_null(f);
    check_ok(sr_run_scalar(f, "dist_mu", 0, 0, 1, &got, &why), &why);
    check_equals(got, 7);
    check_ok(sr_run_scalar(f, "nonfinite", 0, 0, 1, &got, &why), &why);
    check_equals(got, 3);
    check_ok(sr_run_scalar(f, "rows", 0, 0, 1, &got, &why), &why);
    assert_true(isnan(got)); /* not put */
    check_ok(sr_run_scalar(f, "nonfinite", 1, 0, 1, &got, &why), &why);
    assert_true(isnan(got)); /* a site without values */
    sr_run_close(f);
}

/* A step's scalars do not depend on whether its vectors are kept. */
static void test_scalars_without_vectors(void **state) {
    (void)state;
    sr_failure why = {0};
    static const int64_t every[] = {1, 7, 0, -2};
    for (int i = 0; i < 4; i++) {
        sr_options o = SR_OPTIONS_DEFAULT;
        o.overhead = 0;
        o.force = true, o.vectors = every[i] != -2, o.vectors_every = every[i] < 0 ? 1 : every[i];
        sr_recorder *r = sample_begin(sample_path("spaced.h5"), &o);
        check_ok(sample_steps(r, 1, 30, 0), sr_failed(r));
        sr_begin_step(r, 35);
        assert_true(sr_wants_vectors(r) == (every[i] > 0));
        run_finish(r);
        sr_runfile *f = sr_run_open(sample_path("spaced.h5"), &why);
        assert_non_null(f);
        assert_int_equal(sr_run_get_info(f)->steps, 30); /* the open step is not a row */
        assert_int_equal(sr_run_get_info(f)->vectors, every[i] > 0 ? 30 / every[i] : 0);
        assert_true((sr_run_name(f, "vectors", 0) != NULL) == (every[i] > 0));
        if (every[i] > 0) sample_check(f, 1, every[i]);
        sr_run_close(f);
        check_ok(sr_run_check(sample_path("spaced.h5"), &why), &why);
    }
}

/* -- size ------------------------------------------------------------------------------------ */

/* Makes a run of `steps` steps of wide sites; returns the file's size, and the projection in
 * `projected`. */
static int64_t run_size(int64_t steps, int64_t limit, int64_t *projected, int64_t *every) {
    enum { WIDE = 256, SITES = 6 };
    double value[WIDE];
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    o.force = true, o.planned_steps = *projected ? steps : 0, o.size_limit = limit;
    sr_recorder *r = run_create(sample_path("size.h5"), o);
    for (int i = 0; i < SITES; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        sr_family family = i < 3 ? SR_FAMILY_SIGMA : SR_FAMILY_NONE; /* three record nothing */
        sr_add_site(
            r, &(sr_site){.size = sizeof(sr_site), .name = name, .family = family, .width = WIDE});
    }
    *projected = sr_projected_bytes(r);
    *every = sr_vectors_every(r);
    for (int64_t step = 1; step <= steps; step++) {
        sr_begin_step(r, step);
        for (int i = 0; i < 3; i++)
            for (int v = 0; v < SR_nu; v++) {
                for (int k = 0; k < WIDE; k++) value[k] = (double)(step + k);
                if (v != SR_psi2) sr_put_vector(r, i, (sr_vector)v, value);
            }
        for (int i = 0; i < SITES; i++) sr_put_rows(r, i, 10);
        sr_step row = {.size = sizeof(sr_step)};
        check_ok(sr_end_step(r, &row), sr_failed(r));
    }
    run_finish(r);
    struct stat s;
    assert_int_equal(stat(sample_path("size.h5"), &s), 0);
    return (int64_t)s.st_size;
}

static void expect_about(int64_t got, int64_t want, double share) {
    if (fabs((double)got - (double)want) > share * (double)want)
        fail_msg("%lld bytes, %lld projected", (long long)got, (long long)want);
}

static void test_projection(void **state) {
    (void)state;
    int64_t projected = 1, every;
    int64_t size = run_size(1000, 2000000000, &projected, &every);
    assert_int_equal(every, 1);
    printf("1000 steps: projected %lld, got %lld\n", (long long)projected, (long long)size);
    expect_about(size, projected, 0.1);
    assert_true(size > 1000 * 3 * 256 * 8 * 4); /* the size includes the vectors */
    projected = 1;
    size = run_size(1000, 6000000, &projected, &every);
    printf("limit 6000000: projected %lld, got %lld, every %lld\n", (long long)projected,
           (long long)size, (long long)every);
    assert_true(every > 3 && every < 8 && projected <= 6000000);
    expect_about(size, projected, 0.1);
    projected = 0;
    size = run_size(3000, 8000000, &projected, &every);
    printf("unplanned, limit 8000000: got %lld\n", (long long)size);
    assert_int_equal(projected, -1);
    assert_int_equal(every, 1);
    assert_true(size > 4000000 && size < 9000000);
}

static void test_expected_vectors(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    o.planned_steps = 1000;
    sr_recorder *r = sr_create(sample_path("expect.h5"), &o, &why);
    int site = sr_add_site(
        r,
        &(sr_site){.size = sizeof(sr_site), .name = "s", .family = SR_FAMILY_NONE, .width = 1000});
    int64_t before = sr_projected_bytes(r);
    assert_int_equal(sr_expect_vectors(r, site, 1u << SR_mu_B | 1u << SR_mu), SR_OK);
    int64_t more = sr_projected_bytes(r) - before;
    assert_true(more >= 8000000 && more < 8100000);
    assert_int_equal(sr_expect_vectors(r, 1, 0), SR_USAGE);
    sr_abandon(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_observe),    cmocka_unit_test(test_observe_without_alpha),
        cmocka_unit_test(test_put_wins),   cmocka_unit_test(test_scalars_without_vectors),
        cmocka_unit_test(test_projection), cmocka_unit_test(test_expected_vectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
