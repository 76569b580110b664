/* Analyses of runs too long for tables by hand, against plain loops over the file's values: sorted,
 * one site after the other. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "statrec/runfile.h"
#include "testing/check.h"
#include "testing/programs.h"

enum { ROWS = 777, SITES = 4, MOST = 300, SCALARS = 6, LONG = 5000 };

/* -- runs ------------------------------------------------------------------------------------ */

static uint32_t noise_state = 7;

static double noise(void) {
    noise_state = noise_state * 1664525u + 1013904223u;
    return (double)(noise_state >> 8) / 16777216.0;
}

static void put_noise(sr_recorder *r, int site, sr_vector which, int width, double low) {
    double value[MOST];
    for (int k = 0; k < width; k++) value[k] = low + 3 * noise();
    assert_int_equal(sr_put_vector(r, site, which, value), SR_OK);
}

/* Zero variance, infinity, NaN and a tiny number, each in some rows. */
static void put_odd(sr_recorder *r, int site, int width, int64_t step) {
    double batch[MOST], running[MOST];
    for (int k = 0; k < width; k++) batch[k] = noise(), running[k] = noise();
    batch[0] = running[0] = 0;
    if (step % 50 == 1) batch[1] = INFINITY;
    if (step % 50 == 2) running[1] = NAN;
    if (step % 50 == 3) batch[1] = 1e-38, running[1] = 1e-44;
    if (step % 50 == 4) batch[1] = INFINITY, running[1] = 0;
    assert_int_equal(sr_put_vector(r, site, SR_psi2_B, batch), SR_OK);
    assert_int_equal(sr_put_vector(r, site, SR_psi2, running), SR_OK);
}

static sr_recorder *begin(const char *path, const int *width, int64_t every) {
    sr_options o = run_options();
    o.vectors_every = every, o.flush_seconds = 1e9;
    sr_recorder *r = run_create(path, o);
    for (int i = 0; i < SITES; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        const sr_site site = {.size = sizeof(sr_site),
                              .name = name,
                              .norm = "bn",
                              .kind = "conv",
                              .family = SR_FAMILY_SIGMA,
                              .width = width[i],
                              .depth = i,
                              .eps = 1e-5,
                              .alpha = 0.9};
        assert_int_equal(sr_add_site(r, &site), i);
        assert_int_equal(sr_set_observed(r, i), SR_OK);
    }
    return r;
}

static void write_vectors(const char *path, const int *width, int64_t every) {
    sr_recorder *r = begin(path, width, every);
    for (int64_t step = 1; step <= ROWS * every; step++) {
        const sr_step row = {.size = sizeof(sr_step), step, 1, 1, 1, 1, 1};
        sr_begin_step(r, step);
        for (int i = 0; i < SITES; i++) {
            sr_put_rows(r, i, 10 + step % 7);
            put_noise(r, i, SR_mu_B, width[i], -1);
            put_noise(r, i, SR_mu, width[i], -1);
            put_noise(r, i, SR_sigma2_B, width[i], 0);
            put_noise(r, i, SR_sigma2, width[i], 1);
            put_noise(r, i, SR_gamma, width[i], 1);
            put_noise(r, i, SR_sum_g, width[i], -1);
            put_noise(r, i, SR_sum_gx, width[i], -1);
            put_odd(r, i, width[i], step);
        }
        assert_int_equal(sr_end_step(r, &row), SR_OK);
    }
    run_finish(r);
}

/* -- plain reference ------------------------------------------------------------------------- */

static double plain_distance(const float *a, const float *b, int64_t d, bool root) {
    double sum = 0;
    for (int64_t k = 0; k < d; k++) {
        const double x = (double)a[k], y = (double)b[k];
        const double delta = root ? sqrt(x) - sqrt(y) : x - y;
        sum += delta * delta;
    }
    return sqrt(sum) / (double)d;
}

static void plain_column(sr_runfile *f, int64_t site, const char *batch, const char *running,
                         bool root, double *result) {
    sr_failure why = {0};
    float a[MOST], b[MOST];
    for (int64_t i = 0; i < ROWS; i++) {
        check_ok(sr_run_vector(f, batch, site, i, 1, a, &why), &why);
        check_ok(sr_run_vector(f, running, site, i, 1, b, &why), &why);
        result[i] = plain_distance(a, b, sr_run_get_site(f, site)->width, root);
    }
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double plain_quantile(const double *sorted, int64_t n, double p) {
    const double h = (double)(n - 1) * p, k = floor(h);
    const int64_t low = (int64_t)k, high = low + 1 < n ? low + 1 : n - 1;
    return sorted[low] + (h - k) * (sorted[high] - sorted[low]);
}

/* value is sorted. */
static void check_summary(const program_result *r, int row, double *value, int64_t count) {
    int64_t n = 0;
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(value[i])) sum += value[i], value[n++] = value[i];
    qsort(value, (size_t)n, sizeof *value, ascending);
    const double want[] = {sum / (double)n,
                           plain_quantile(value, n, 0.01),
                           plain_quantile(value, n, 0.25),
                           plain_quantile(value, n, 0.5),
                           plain_quantile(value, n, 0.75),
                           plain_quantile(value, n, 0.99),
                           value[n - 1]};
    static const char *const column[] = {"mean", "q01", "q25", "median", "q75", "q99", "max"};
    for (int i = 0; i < 7; i++) {
        const double got = table_real(r->out, row, column[i]);
        check_near_double(column[i], &got, &want[i], 1, 5.1e-9, 1e-12);
    }
    check_cell(r, row, "steps", (double)count);
    check_cell(r, row, "nonfinite", (double)(count - n));
}

static void check_distances(const char *path) {
    static const struct {
        const char *name, *batch, *running;
        bool root;
    } stat[] = {{"dist_mu", "mu_B", "mu", false},
                {"dist_sigma", "sigma2_B", "sigma2", true},
                {"dist_sigma2", "sigma2_B", "sigma2", false},
                {"dist_psi", "psi2_B", "psi2", true},
                {"dist_psi2", "psi2_B", "psi2", false}};
    sr_failure why = {0};
    double value[ROWS];
    program_result r = program_run("stat-distance --burn-in 0 %s --from vectors", path);
    assert_int_equal(r.status, 0);
    assert_int_equal(table_rows(r.out), 5 * SITES);
    sr_runfile *f = sr_run_open(path, &why);
    assert_non_null(f);
    for (int row = 0; row < 5 * SITES; row++) {
        const int site = row / 5, i = row % 5;
        check_text(&r, row, "site", sr_run_get_site(f, site)->name);
        check_text(&r, row, "statistic", stat[i].name);
        plain_column(f, site, stat[i].batch, stat[i].running, stat[i].root, value);
        check_summary(&r, row, value, ROWS);
    }
    sr_run_close(f);
    program_free(&r);
}

/* -- tests ----------------------------------------------------------------------------------- */

static const int equal_widths[SITES] = {64, 64, 64, 64}; /* rows of a site are blocks of the file */
static const int mixed_widths[SITES] = {64, 192, 64, 128};
static const int odd_widths[SITES] = {5, 300, 1, 33};

static void test_distances(void **state) {
    (void)state;
    write_vectors(program_file("equal.h5"), equal_widths, 1);
    check_distances(program_file("equal.h5"));
    write_vectors(program_file("mixed.h5"), mixed_widths, 1);
    check_distances(program_file("mixed.h5"));
    write_vectors(program_file("odd.h5"), odd_widths, 1);
    check_distances(program_file("odd.h5"));
}

/* Rows of one site (whole blocks of the file) and of all sites, in turn. The reader opens the
 * dataset differently for each. */
static void test_whole_rows(void **state) {
    (void)state;
    enum { FEW = 40 };
    sr_failure why = {0};
    static float all[FEW * 4 * 64], one[FEW * 64];
    sr_runfile *f = sr_run_open(program_file("equal.h5"), &why);
    assert_non_null(f);
    for (int site = 0; site < SITES; site++) {
        check_ok(sr_run_vector(f, "mu_B", -1, 500 + site, FEW, all, &why), &why);
        check_ok(sr_run_vector(f, "mu_B", site, 500 + site, FEW, one, &why), &why);
        for (int i = 0; i < FEW; i++)
            assert_memory_equal(all + (i * SITES + site) * 64, one + i * 64, 64 * sizeof *one);
    }
    sr_run_close(f);
}

static void test_threads(void **state) {
    (void)state;
    program_result r = program_run(
        "for f in equal mixed odd; do for t in 1 2 3; do\n"
        "  OMP_NUM_THREADS=$t stat-distance $f.h5 --from vectors --per-step >$f.$t.tsv || exit 1\n"
        "  cmp $f.$t.tsv $f.1.tsv || exit 1\n"
        "done; test $(grep -vc '^#' $f.1.tsv) = %d || exit 1; done",
        SITES * ROWS + 1);
    if (r.status) fail_msg("%s%s", r.out, r.err);
    program_free(&r);
}

/* A step's rows are the same from /vectors, which has every third step, and from /scalars, which
 * has every step. n comes from /scalars/rows at another row index. */
static void test_spaced(void **state) {
    (void)state;
    write_vectors(program_file("spaced.h5"), mixed_widths, 3);
    program_result r = program_run(
        "stat-gradnorm spaced.h5 --per-step --from vectors | grep -v '^#' >v.tsv &&\n"
        "stat-gradnorm spaced.h5 --per-step | grep -v '^#' |\n"
        "  awk 'NR == 1 || $3 %% 3 == 0' >s.tsv && test $(grep -c . v.tsv) = %d &&\n"
        "paste v.tsv s.tsv | awk 'NR > 1 && ($2 != $11 || $3 != $12 || $5 !~ /[0-9]/ ||\n"
        "  ($5 - $14) ^ 2 > 1e-13 * $5 * $5 || ($6 - $15) ^ 2 > 1e-13 * $6 * $6) {\n"
        "  print; bad = 1} END {exit bad}'",
        SITES * ROWS + 1);
    if (r.status) fail_msg("exit %d: %.500s%s", r.status, r.out, r.err);
    program_free(&r);
}

/* Orders that mislead a pivot choice, ties, and few values. */
static double pattern(int which, int64_t i, int64_t n) {
    switch (which) {
    case 0:
        return noise();
    case 1:
        return (double)i;
    case 2:
        return (double)(n - i);
    case 3:
        return floor(3 * noise());
    case 4:
        return (double)(i < n / 2 ? i : n - i);
    default:
        return i % 7 ? 2.5 : NAN;
    }
}

static void check_quantiles(const char *path, int64_t n) {
    static const int widths[SITES] = {1, 1, 1, 1};
    static const sr_scalar scalar[SCALARS] = {SR_SCALAR_dist_mu,     SR_SCALAR_dist_sigma,
                                              SR_SCALAR_dist_sigma2, SR_SCALAR_tid_mean,
                                              SR_SCALAR_tid_var,     SR_SCALAR_g_mu};
    static double value[SCALARS][LONG];
    sr_recorder *r = begin(path, widths, 0);
    for (int64_t i = 0; i < n; i++) {
        const sr_step row = {.size = sizeof(sr_step), i + 1, 1, 1, 1, 1, 1};
        sr_begin_step(r, i + 1);
        for (int k = 0; k < SCALARS; k++) {
            value[k][i] = (double)(float)pattern(k, i, n);
            sr_put_scalar(r, 2, scalar[k], value[k][i]);
        }
        assert_int_equal(sr_end_step(r, &row), SR_OK);
    }
    run_finish(r);
    program_result p = program_run(
        "stat-scalar --burn-in 0 %s --stat dist_mu,dist_sigma,dist_sigma2,tid_mean,tid_var,g_mu",
        path);
    assert_int_equal(table_rows(p.out), n == 1 ? SCALARS - 1 : SCALARS); /* all NaN */
    for (int k = 0; k < table_rows(p.out); k++) check_summary(&p, k, value[k], n);
    program_free(&p);
}

static void test_quantiles(void **state) {
    (void)state;
    static const int64_t length[] = {1, 2, 3, 24, 25, 26, 999, 1000, LONG};
    for (size_t i = 0; i < sizeof length / sizeof length[0]; i++)
        check_quantiles(program_file("patterns.h5"), length[i]);
}

/* Each bucket has three rows: smallest, median, largest of each column. A spike of one step stays.
 * The host program gives no epochs. */
static void test_curve_parts(void **state) {
    (void)state;
    static const int widths[SITES] = {1, 1, 1, 1};
    sr_recorder *r = begin(program_file("curve.h5"), widths, 0);
    for (int64_t step = 1; step <= LONG; step++) {
        const double loss = step == 3456 ? 1e6 : (double)(step % 100);
        const sr_step row = {
            .size = sizeof(sr_step), step, 8, NAN, loss, step % 2 ? NAN : 0.5, NAN};
        sr_begin_step(r, step);
        assert_int_equal(sr_end_step(r, &row), SR_OK);
    }
    run_finish(r);
    program_result p = program_run("stat-curve curve.h5 --buckets 10");
    assert_int_equal(p.status, 0);
    assert_int_equal(table_rows(p.out), 30);
    check_cell(&p, 0, "step", 1);
    check_cell(&p, 0, "loss", 0);
    check_cell(&p, 1, "step", 250.5);
    check_cell(&p, 1, "percent", 5.01);
    check_cell(&p, 1, "loss", 49.5);
    check_cell(&p, 2, "loss", 99);
    check_cell(&p, 1, "lr", 0.5);
    check_cell(&p, 19, "tokens", 8);
    check_cell(&p, 20, "loss", 1e6); /* steps 3001 to 3500 */
    check_cell(&p, 23, "loss", 99);
    check_cell(&p, 29, "step", LONG);
    check_text(&p, 29, "grad_norm", "nan");
    program_free(&p);
    p = program_run("stat-curve curve.h5 --buckets 2 --phase 1001:2000"); /* halves of the steps */
    assert_int_equal(table_rows(p.out), 6);
    check_cell(&p, 0, "step", 1001);
    check_cell(&p, 2, "step", 1500);
    check_cell(&p, 3, "step", 1501);
    check_cell(&p, 5, "step", 2000);
    program_free(&p);
    p = program_run("stat-curve curve.h5 --buckets 2000 | grep -vc '^#'");
    assert_string_equal(p.out, "5001\n");
    program_free(&p);
}

/* Sites read together have the same buckets as each site alone. */
static void test_site_parts(void **state) {
    (void)state;
    program_result r = program_run(
        "for from in scalars vectors; do\n"
        "  stat-distance odd.h5 --from $from --per-step --buckets 20 | grep -v '^#' >all.tsv\n"
        "  head -1 all.tsv >one.tsv; for s in s0 s1 s2 s3; do\n"
        "    stat-distance odd.h5 --from $from --per-step --buckets 20 --site $s |\n"
        "      grep -v '^#' | tail -n +2 >>one.tsv\n"
        "  done; cmp all.tsv one.tsv || exit 1; test $(grep -c . all.tsv) = 241 || exit 1\n"
        "  stat-distance odd.h5 --from $from --per-step --site s3 --stat mu | grep -v '^#' |\n"
        "    awk 'NR > 1 {p = int(($3 - 1) / 776 * 20); p = p < 20 ? p : 19;\n"
        "      if (!(p in high) || $5 > high[p]) high[p] = $5}\n"
        "      END {for (p = 0; p < 20; p++) print high[p]}' >want.tsv\n"
        "  grep '\ts3\t' all.tsv | awk 'NR %% 3 == 0 {print $5}' | cmp - want.tsv || exit 1\n"
        "done");
    if (r.status) fail_msg("exit %d: %.500s%s", r.status, r.out, r.err);
    program_free(&r);
}

/* Steps that begin within a block of the file, read in several chunks. */
static void test_phase(void **state) {
    (void)state;
    program_result r = program_run(
        "stat-distance odd.h5 --from vectors --per-step | grep -v '^#' >all.tsv\n"
        "stat-distance odd.h5 --from vectors --per-step --phase 100:770 | grep -v '^#' >some.tsv\n"
        "awk 'NR == 1 || ($3 >= 100 && $3 <= 770)' all.tsv | cmp - some.tsv &&\n"
        "test $(grep -c . some.tsv) = 2685");
    if (r.status) fail_msg("exit %d: %.500s%s", r.status, r.out, r.err);
    program_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distances),  cmocka_unit_test(test_whole_rows),
        cmocka_unit_test(test_threads),    cmocka_unit_test(test_spaced),
        cmocka_unit_test(test_quantiles),  cmocka_unit_test(test_curve_parts),
        cmocka_unit_test(test_site_parts), cmocka_unit_test(test_phase),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
