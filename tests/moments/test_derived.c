/* test_derived.c -- scalars computed from vectors, compared with hand-computed numbers and the
 * shared test vectors. */
#include <float.h>
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "statrec/moments.h"
#include "testing/check.h"

static void *need(size_t bytes) {
    void *p = calloc(bytes + 8, 1);
    assert_non_null(p);
    return p;
}

/* -- scalars by hand ------------------------------------------------------------------------- */

static void clear(double scalar[SR_SCALAR_COUNT]) {
    for (int i = 0; i < SR_SCALAR_COUNT; i++) scalar[i] = NAN;
}

static void expect(const double *scalar, sr_scalar which, double want) {
    char name[32];
    snprintf(name, sizeof name, "scalar %d", (int)which);
    check_near_double(name, &scalar[which], &want, 1, 1e-14, 0);
}

/* d = 2, n = 4, eps = 0: mu_B - mu = (3, 4), standard deviations 2 and 4 against 1 and 1. */
static void test_sigma_by_hand(void **state) {
    (void)state;
    const double mu_B[] = {3, 5}, mu[] = {0, 1}, sigma2_B[] = {4, 16}, sigma2[] = {1, 1};
    const double gamma[] = {2, 1}, sum_g[] = {12, 0}, sum_gx[] = {0, -32};
    const double *v[SR_VECTOR_COUNT] = {
        [SR_mu_B] = mu_B,   [SR_mu] = mu,       [SR_sigma2_B] = sigma2_B, [SR_sigma2] = sigma2,
        [SR_gamma] = gamma, [SR_sum_g] = sum_g, [SR_sum_gx] = sum_gx};
    double s[SR_SCALAR_COUNT];
    clear(s);
    sr_derive_scalars(SR_FAMILY_SIGMA, 2, 0, 4, v, s);
    expect(s, SR_SCALAR_rows, 4);
    expect(s, SR_SCALAR_dist_mu, 2.5);                /* 5 / 2 */
    expect(s, SR_SCALAR_dist_sigma, sqrt(1 + 9) / 2); /* 2-1, 4-1 */
    expect(s, SR_SCALAR_dist_sigma2, sqrt(9 + 225) / 2);
    expect(s, SR_SCALAR_tid_mean, 5 / sqrt(2));
    expect(s, SR_SCALAR_tid_var, sqrt(10) / sqrt(2));
    expect(s, SR_SCALAR_rel_sigma2, sqrt(9 + 225) / sqrt(2));
    const double large[] = {3, 4}; /* its root is another length */
    v[SR_sigma2] = large;
    clear(s);
    sr_derive_scalars(SR_FAMILY_SIGMA, 2, 0, 4, v, s);
    expect(s, SR_SCALAR_rel_sigma2, sqrt(1 + 144) / 5);
    v[SR_sigma2] = sigma2;
    expect(s, SR_SCALAR_g_mu, 1.5);   /* 2/2 * 12/4 = 3, over d */
    expect(s, SR_SCALAR_g_sigma2, 1); /* 1/4 * -32/4 = -2, over d */
    assert_true(isnan(s[SR_SCALAR_g_psi2]) && isnan(s[SR_SCALAR_dist_psi]));
    assert_true(isnan(s[SR_SCALAR_nonfinite]) && isnan(s[SR_SCALAR_Gamma_max]));
    /* Q = sigma2_B / (sigma2_B + eps) = 1/2 in both: c_sig = -32/4 / sqrt(32) in the second */
    const double half[] = {16, 16};
    v[SR_sigma2_B] = half;
    sr_derive_scalars(SR_FAMILY_SIGMA, 2, 16, 4, v, s);
    expect(s, SR_SCALAR_g_sigma2, 8 / sqrt(32) * sqrt(0.5) / 2);
    v[SR_gamma] = NULL; /* ones */
    sr_derive_scalars(SR_FAMILY_SIGMA, 2, 0, 4, v, s);
    expect(s, SR_SCALAR_g_mu, 12 / 4 / 4.0 / 2);
}

static void test_other_families_by_hand(void **state) {
    (void)state;
    const double psi2_B[] = {9, 25}, psi2[] = {4, 4}, gamma[] = {3, 5}, sum_gx[] = {6, 8};
    const double nu[] = {2, -4}, Gamma[] = {9, 1};
    const double *v[SR_VECTOR_COUNT] = {
        [SR_psi2_B] = psi2_B, [SR_psi2] = psi2, [SR_gamma] = gamma, [SR_sum_gx] = sum_gx};
    double s[SR_SCALAR_COUNT];
    clear(s);
    sr_derive_scalars(SR_FAMILY_PSI, 2, 0, 2, v, s);
    expect(s, SR_SCALAR_dist_psi, sqrt(1 + 9) / 2);
    expect(s, SR_SCALAR_dist_psi2, sqrt(25 + 441) / 2);
    expect(s, SR_SCALAR_rel_psi, sqrt(1 + 9) / sqrt(8)); /* 3-2, 5-2 */
    expect(s, SR_SCALAR_rel_psi2, sqrt(25 + 441) / sqrt(32));
    expect(s, SR_SCALAR_g_psi2, 2.5); /* (3, 4): 5 / 2 */
    assert_true(isnan(s[SR_SCALAR_g_sigma2]) && isnan(s[SR_SCALAR_dist_mu]));
    clear(s);
    v[SR_nu] = nu, v[SR_Gamma_t] = Gamma;
    sr_derive_scalars(SR_FAMILY_PN, 2, 0, 2, v, s);
    expect(s, SR_SCALAR_g_psi2, sqrt(9 + 4) / 2); /* 2/2*3, 4/2*1 */
    expect(s, SR_SCALAR_Gamma_max, 9);
    clear(s);
    sr_derive_scalars(SR_FAMILY_ROW, 2, 0, 2, v, s);
    assert_true(isnan(s[SR_SCALAR_g_psi2]) && isnan(s[SR_SCALAR_row_grad_mean]));
    clear(s);
    v[SR_psi2_B] = v[SR_psi2] = NULL;
    sr_derive_scalars(SR_FAMILY_NONE, 2, 0, 0, v, s);
    expect(s, SR_SCALAR_rows, 0);
    for (int i = 1; i < SR_SCALAR_COUNT; i++) assert_true(isnan(s[i]));
}

/* -- shared vectors -------------------------------------------------------------------------- */

/* Returns the dataset as double; NULL when absent. */
static double *load(hid_t file, int k, const char *name, int64_t *count) {
    char path[128], group[64];
    snprintf(group, sizeof group, "/case%d", k);
    snprintf(path, sizeof path, "/case%d/%s", k, name);
    if (H5Lexists(file, path, H5P_DEFAULT) <= 0) return NULL;
    hid_t set = H5Dopen2(file, path, H5P_DEFAULT), space = H5Dget_space(set);
    int64_t n = H5Sget_simple_extent_npoints(space);
    double *value = need((size_t)n * sizeof *value);
    assert_true(H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, value) >= 0);
    H5Sclose(space), H5Dclose(set);
    if (count) *count = n;
    return value;
}

static double attribute(hid_t file, int k, const char *object, const char *name) {
    char path[128];
    double value[64] = {0};
    snprintf(path, sizeof path, "/case%d/%s", k, object);
    hid_t a = H5Aopen_by_name(file, path, name, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(a >= 0 && H5Aread(a, H5T_NATIVE_DOUBLE, value) >= 0);
    H5Aclose(a);
    return value[0];
}

static double tolerance(hid_t file, int k, const char *object, int64_t s, const char *name) {
    char path[128];
    double value[64] = {0};
    snprintf(path, sizeof path, "/case%d/%s", k, object);
    hid_t a = H5Aopen_by_name(file, path, name, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(a >= 0);
    hid_t space = H5Aget_space(a);
    int64_t n = H5Sget_simple_extent_npoints(space);
    assert_true(n <= 64 && H5Aread(a, H5T_NATIVE_DOUBLE, value) >= 0);
    H5Sclose(space), H5Aclose(a);
    return value[n == 1 ? 0 : s];
}

typedef struct shared_case {
    hid_t file;
    int k;
    int64_t S, B, d;
    double eps;
    float *x, *dy, *gamma;
    uint8_t *mask;
} shared_case;

static float *narrow(double *value, int64_t count) {
    float *f = need((size_t)count * sizeof *f);
    for (int64_t i = 0; i < count; i++) f[i] = (float)value[i];
    free(value);
    return f;
}

static shared_case open_case(hid_t file, int k) {
    shared_case c = {.file = file, .k = k};
    c.S = (int64_t)attribute(file, k, ".", "S"), c.B = (int64_t)attribute(file, k, ".", "B");
    c.d = (int64_t)attribute(file, k, ".", "d"), c.eps = attribute(file, k, ".", "eps");
    int64_t n;
    double *x = load(file, k, "in/x", &n);
    c.x = narrow(x, n);
    double *dy = load(file, k, "in/dy", &n);
    c.dy = narrow(dy, n);
    double *gamma = load(file, k, "in/gamma", &n);
    c.gamma = narrow(gamma, n);
    double *mask = load(file, k, "in/mask", &n);
    c.mask = need((size_t)n);
    for (int64_t i = 0; i < n; i++) c.mask[i] = mask[i] != 0;
    free(mask);
    return c;
}

static void close_case(shared_case *c) {
    free(c->x), free(c->dy), free(c->gamma), free(c->mask);
}

/* Compares [count] values of iteration s with out/<name>, if the file contains it. */
static int compare(const shared_case *c, const char *name, int64_t s, const double *got,
                   int64_t count, double factor) {
    char path[64], label[128];
    snprintf(path, sizeof path, "out/%s", name);
    snprintf(label, sizeof label, "case%d %s iteration %d", c->k, name, (int)s);
    double *want = load(c->file, c->k, path, NULL);
    if (!want) return 0;
    double rtol = tolerance(c->file, c->k, path, s, "rtol");
    double atol = tolerance(c->file, c->k, path, s, "atol");
    for (int64_t i = 0; i < count; i++) want[s * count + i] *= factor;
    check_near_double(label, got, want + s * count, count, rtol, atol * factor);
    free(want);
    return 1;
}

enum { SHARED_WIDTH = 4096 };

/* Checks all values that follow from x, dy and the state before an iteration, computed as in the
 * recorder. */
static int check_iteration(const shared_case *c, int64_t s, sr_family family) {
    static double mean[SHARED_WIDTH], var[SHARED_WIDTH], square[SHARED_WIDTH], sum_g[SHARED_WIDTH];
    static double sum_gx[SHARED_WIDTH], sum_gg[SHARED_WIDTH], center[SHARED_WIDTH],
        scale[SHARED_WIDTH], gain[SHARED_WIDTH];
    const float *x = c->x + s * c->B * c->d, *dy = c->dy + s * c->B * c->d;
    const uint8_t *mask = c->mask + s * c->B;
    assert_true(c->d <= SHARED_WIDTH);
    const sr_tensor tx =
        SR_INIT(sr_tensor, .data = x, .outer = c->B, .channels = c->d, .inner = 1, .valid = mask);
    const sr_tensor tg =
        SR_INIT(sr_tensor, .data = dy, .outer = c->B, .channels = c->d, .inner = 1);
    int64_t n = sr_moments(&tx, mean, var, square);
    if (n == 0) return 0;
    bool sigma = family == SR_FAMILY_SIGMA;
    for (int64_t k = 0; k < c->d; k++) {
        center[k] = sigma ? mean[k] : 0;
        scale[k] = 1 / sqrt((sigma ? var[k] : square[k]) + c->eps);
        gain[k] = (double)c->gamma[k];
    }
    sr_gradient_sums(&tg, &tx, center, sum_g, sum_gx, sum_gg);
    for (int64_t k = 0; k < c->d; k++) sum_gx[k] *= scale[k];
    const char *names[3] = {sigma ? "state_run_mu" : NULL, sigma ? "state_run_sigma2" : NULL,
                            sigma ? NULL : "state_run_psi2"};
    double *running[3] = {0};
    for (int i = 0; i < 3; i++) {
        char path[64];
        if (!names[i]) continue;
        snprintf(path, sizeof path, "%s/%s", s ? "out" : "in", names[i]);
        running[i] = load(c->file, c->k, path, NULL);
    }
    int64_t before = s ? (s - 1) * c->d : 0;
    const double *v[SR_VECTOR_COUNT] = {[SR_mu_B] = mean,
                                        [SR_sigma2_B] = var,
                                        [SR_psi2_B] = square,
                                        [SR_gamma] = gain,
                                        [SR_sum_g] = sum_g,
                                        [SR_sum_gx] = sum_gx,
                                        [SR_mu] = running[0] ? running[0] + before : NULL,
                                        [SR_sigma2] = running[1] ? running[1] + before : NULL,
                                        [SR_psi2] = running[2] ? running[2] + before : NULL};
    double got[SR_SCALAR_COUNT], d = (double)c->d;
    clear(got);
    sr_derive_scalars(family, c->d, c->eps, n, v, got);
    int seen = compare(c, "rec_mu_B", s, mean, c->d, 1);
    seen += compare(c, "rec_sigma2_B", s, var, c->d, 1);
    seen += compare(c, "rec_psi2_B", s, square, c->d, 1);
    seen += compare(c, "dbeta", s, sum_g, c->d, 1);
    seen += compare(c, "dgamma", s, sum_gx, c->d, 1);
    seen += compare(c, "rec_dist_mu_pre", s, &got[SR_SCALAR_dist_mu], 1, 1);
    seen += compare(c, "rec_dist_sigma_pre", s, &got[SR_SCALAR_dist_sigma], 1, 1);
    seen += compare(c, "rec_dist_sigma2_pre", s, &got[SR_SCALAR_dist_sigma2], 1, 1);
    seen += compare(c, "rec_dist_psi_pre", s, &got[SR_SCALAR_dist_psi], 1, 1);
    seen += compare(c, "rec_dist_psi2_pre", s, &got[SR_SCALAR_dist_psi2], 1, 1);
    seen += compare(c, "rec_tid_mean_pre", s, &got[SR_SCALAR_tid_mean], 1, 1);
    seen += compare(c, "rec_tid_var_pre", s, &got[SR_SCALAR_tid_var], 1, 1);
    seen += compare(c, "rec_gnorm_mu", s, &got[SR_SCALAR_g_mu], 1, 1 / d);
    seen += compare(c, "rec_gnorm_sigma2_rms", s, &got[SR_SCALAR_g_sigma2], 1, 1 / d);
    seen += compare(c, "rec_gnorm_psi2_rms", s, &got[SR_SCALAR_g_psi2], 1, 1 / d);
    for (int i = 0; i < 3; i++) free(running[i]);
    return seen;
}

static void check_shared_file(const char *name, sr_family family) {
    char below[64];
    snprintf(below, sizeof below, "reference/vectors/%s.h5", name);
    const char *path = check_shared(below);
    if (!path) skip();
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(file >= 0);
    int cases = 0, seen = 0;
    for (;; cases++) {
        char group[32];
        snprintf(group, sizeof group, "case%d", cases);
        if (H5Lexists(file, group, H5P_DEFAULT) <= 0) break;
        shared_case c = open_case(file, cases);
        for (int64_t s = 0; s < c.S; s++) seen += check_iteration(&c, s, family);
        close_case(&c);
    }
    H5Fclose(file);
    printf("%s: %d cases, %d arrays compared\n", name, cases, seen);
    assert_true(cases > 5 && seen > 10 * cases);
}

static void test_shared_bn(void **state) {
    (void)state;
    check_shared_file("bn", SR_FAMILY_SIGMA);
}

static void test_shared_pnv(void **state) {
    (void)state;
    check_shared_file("pnv", SR_FAMILY_PSI);
}

/* PN: the files' nu and Gamma, as the norm layer passes them. */
static void test_shared_pn(void **state) {
    (void)state;
    const char *path = check_shared("reference/vectors/pn.h5");
    if (!path) skip();
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    int seen = 0;
    for (int k = 0;; k++) {
        char group[32];
        snprintf(group, sizeof group, "case%d", k);
        if (H5Lexists(file, group, H5P_DEFAULT) <= 0) break;
        shared_case c = open_case(file, k);
        double *nu0 = load(file, k, "in/state_nu", NULL), *nu = load(file, k, "out/state_nu", NULL);
        double *Gamma = load(file, k, "out/rec_Gamma", NULL);
        double *first = load(file, k, "in/state_run_psi2", NULL);
        double *later = load(file, k, "out/state_run_psi2", NULL);
        for (int64_t s = 0; s < c.S; s++) {
            double got[SR_SCALAR_COUNT], d = (double)c.d;
            const double *v[SR_VECTOR_COUNT] = {[SR_nu] = s ? nu + (s - 1) * c.d : nu0,
                                                [SR_Gamma_t] = Gamma + s * c.d,
                                                [SR_psi2] = s ? later + (s - 1) * c.d : first};
            clear(got);
            sr_derive_scalars(SR_FAMILY_PN, c.d, c.eps, 1, v, got);
            seen += compare(&c, "rec_gnorm_nu_rms", s, &got[SR_SCALAR_g_psi2], 1, 1 / d);
        }
        free(nu0), free(nu), free(Gamma), free(first), free(later);
        close_case(&c);
    }
    H5Fclose(file);
    printf("pn: %d values compared\n", seen);
    assert_true(seen > 20);
}

/* recorded.h5, kind tid: fixed running statistics against several batches. */
static void test_shared_recorded(void **state) {
    (void)state;
    const char *path = check_shared("reference/vectors/recorded.h5");
    if (!path) skip();
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    int seen = 0;
    for (int k = 0;; k++) {
        char group[32];
        snprintf(group, sizeof group, "case%d", k);
        if (H5Lexists(file, group, H5P_DEFAULT) <= 0) break;
        double *mu = load(file, k, "in/mu", NULL), *mu_B = load(file, k, "in/mu_B", NULL);
        if (mu && mu_B) {
            double *sigma2 = load(file, k, "in/sigma2", NULL),
                   *sigma2_B = load(file, k, "in/sigma2_B", NULL);
            shared_case c = {.file = file, .k = k, .d = (int64_t)attribute(file, k, ".", "d")};
            int64_t S = (int64_t)attribute(file, k, ".", "S");
            for (int64_t s = 0; s < S; s++) {
                double got[SR_SCALAR_COUNT];
                const double *v[SR_VECTOR_COUNT] = {[SR_mu_B] = mu_B + s * c.d,
                                                    [SR_mu] = mu,
                                                    [SR_sigma2_B] = sigma2_B + s * c.d,
                                                    [SR_sigma2] = sigma2};
                clear(got);
                sr_derive_scalars(SR_FAMILY_SIGMA, c.d, 1e-5, 1, v, got);
                seen += compare(&c, "dist_mu", s, &got[SR_SCALAR_dist_mu], 1, 1);
                seen += compare(&c, "dist_sigma", s, &got[SR_SCALAR_dist_sigma], 1, 1);
                seen += compare(&c, "dist_sigma2", s, &got[SR_SCALAR_dist_sigma2], 1, 1);
                seen += compare(&c, "tid_mean_step", s, &got[SR_SCALAR_tid_mean], 1, 1);
                seen += compare(&c, "tid_var_step", s, &got[SR_SCALAR_tid_var], 1, 1);
            }
            free(sigma2), free(sigma2_B);
        }
        free(mu), free(mu_B);
    }
    H5Fclose(file);
    printf("recorded: %d values compared\n", seen);
    assert_true(seen >= 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {

        cmocka_unit_test(test_sigma_by_hand), cmocka_unit_test(test_other_families_by_hand),
        cmocka_unit_test(test_shared_bn),     cmocka_unit_test(test_shared_pnv),
        cmocka_unit_test(test_shared_pn),     cmocka_unit_test(test_shared_recorded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
