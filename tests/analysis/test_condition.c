/* stat-condition against numbers by hand and the shared reference. The spectra go through a run
 * file as a training run would write them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/svd.h"
#include "testing/check.h"
#include "testing/oracle_file.h"
#include "testing/programs.h"

/* A run of one site with one spectrum for X and for dL/dX. */
static void write_run(const char *name, int width, int64_t rows, const double *input,
                      const double *gradient) {
    sr_failure why = {0};
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    o.spectra = true, o.force = true;
    sr_recorder *r = sr_create(program_file(name), &o, &why);
    sr_site site = {.size = sizeof(sr_site),
                    .name = "stem",
                    .norm = "bn",
                    .kind = "conv",
                    .family = SR_FAMILY_SIGMA,
                    .width = width,
                    .eps = 1e-5,
                    .alpha = 0.9};
    sr_add_site(r, &site);
    sr_begin_step(r, 7);
    const double *const value[SR_SPECTRUM_COUNT] = {input, gradient};
    sr_put_spectrum(r, 0, rows, value);
    sr_step row = {.size = sizeof(sr_step), .update = 7, .tokens = 1};
    sr_end_step(r, &row);
    check_ok(sr_close(r, &(sr_finish){.size = sizeof(sr_finish), .status = "complete"}, &why),
             &why);
}

/* d 4, N 8: m of 0.2, 0.5, 0.7, 0.8 is 1, 2, 3, 4. */
static void by_hand(void **state) {
    (void)state;
    const double input[] = {4, 2, 1, 0}, gradient[] = {8, 4, 1, 1e-6};
    write_run("hand.h5", 4, 8, input, gradient);
    program_result r = program_run("stat-condition hand.h5 --p 0.2,0.5,0.7,0.8");
    assert_int_equal(r.status, 0);
    assert_int_equal(table_rows(r.out), 10);
    check_text(&r, 0, "statistic", "C_max");
    check_cell(&r, 0, "value", 4);
    check_cell(&r, 0, "step", 7);
    check_cell(&r, 0, "N", 8);
    check_cell(&r, 1, "value", 1);
    check_cell(&r, 2, "value", 2);
    check_cell(&r, 2, "m", 2);
    check_cell(&r, 3, "value", 4);
    check_text(&r, 4, "value", "inf");
    check_text(&r, 4, "resolved", "no"); /* rounding may have made it 0 */
    check_text(&r, 5, "tensor", "gradient");
    check_cell(&r, 8, "value", 8);
    check_text(&r, 8, "resolved", "yes");
    check_cell(&r, 9, "value", 8e6);
    check_text(&r, 9, "resolved", "no");
    program_free(&r);
    write_run("few.h5", 4, 3, input, gradient);
    r = program_run("stat-condition few.h5 --p 1 --of input");
    check_text(&r, 1, "value", "inf");
    check_text(&r, 1, "resolved", "yes"); /* 3 rows: an exact zero, not a rounding error */
    program_free(&r);
}

/* A spectrum with NaN or infinity has no resolved value. */
static void not_finite(void **state) {
    (void)state;
    const double input[] = {NAN, NAN}, gradient[] = {INFINITY, 1};
    write_run("nan.h5", 2, 8, input, gradient);
    program_result r = program_run("stat-condition nan.h5 --p 1");
    assert_int_equal(table_rows(r.out), 4);
    for (int i = 0; i < 4; i++) check_text(&r, i, "resolved", "no");
    check_text(&r, 1, "value", "nan");
    program_free(&r);
}

static void released(void **state) {
    (void)state;
    const double input[] = {4, 2, 1, 0}, gradient[] = {8, 4, 1, 1};
    write_run("hand.h5", 4, 8, input, gradient);
    program_result r = program_run("stat-condition hand.h5 --form released --p 0.5 --of input");
    assert_int_equal(table_rows(r.out), 2);
    check_cell(&r, 0, "value", 2); /* 16 / 8 */
    check_cell(&r, 1, "value", 4); /* (4 / 2)^2 */
    program_free(&r);
}

/* ceil(0.7 * 10) is 7 although 0.7 * 10 is more than 7 in double. */
static void part_of_ten(void **state) {
    (void)state;
    const double input[] = {10, 9, 8, 7, 6, 5, 4, 3, 2, 1};
    write_run("ten.h5", 10, 20, input, input);
    program_result r = program_run("stat-condition ten.h5 --p 0.7,0.71,1 --of input");
    check_cell(&r, 1, "m", 7);
    check_cell(&r, 1, "value", 2.5);
    check_cell(&r, 2, "m", 8);
    check_cell(&r, 3, "m", 10);
    program_free(&r);
}

static void refusals(void **state) {
    (void)state;
    const double input[] = {4, 2, 1, 0};
    write_run("hand.h5", 4, 8, input, input);
    write_ln_run(program_file("ln.h5"));
    static const struct {
        const char *command, *part;
        int status;
    } bad[] = {{"stat-condition hand.h5 --p 0", "--p: '0'", 2},
               {"stat-condition hand.h5 --p 0.5,x", "--p: '0.5,x'", 2},
               {"stat-condition hand.h5 --p 1.5", "--p: '1.5'", 2},
               {"stat-condition hand.h5 --site nowhere", "'nowhere' matches no site", 2},
               {"stat-condition ln.h5", "no spectra", 1}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        program_result r = program_run("%s", bad[i].command);
        assert_int_equal(r.status, bad[i].status);
        assert_string_equal(r.out, "");
        assert_non_null(strstr(r.err, bad[i].part));
        program_free(&r);
    }
    program_result r = program_run("stat-condition ln.h5 hand.h5");
    assert_int_equal(r.status, 0);
    assert_non_null(strstr(r.out, "# note: ln.h5: no spectra"));
    program_free(&r);
}

/* -- the shared reference -------------------------------------------------------------------- */

static oracle_file *open_reference(void) {
    const char *shared = getenv("STATREC_SHARED");
    char path[4096];
    snprintf(path, sizeof path, "%s/reference/vectors/recorded.h5", shared ? shared : "../shared");
    return access(path, R_OK) == 0 ? oracle_open(path) : NULL;
}

static void check_case(const oracle_file *f, int k) {
    int64_t dim[4] = {0}, count;
    double *x = oracle_read(f, k, "in/X", dim, &count);
    assert_non_null(x);
    const int64_t n = dim[0], d = dim[1];
    float *a = malloc((size_t)count * sizeof *a);
    double *sigma = malloc((size_t)d * sizeof *sigma), value[8];
    for (int64_t i = 0; i < count; i++) a[i] = (float)x[i];
    sr_failure why = {0};
    check_ok(svd_gram_singular_values(a, NULL, n, d, sigma, &why), &why);
    write_run("case.h5", (int)d, n, sigma, sigma);
    int64_t parts;
    double *p = oracle_read(f, k, "in/p", NULL, &parts);
    assert_true(p && parts > 0 && parts <= 8);
    char list[256] = "";
    for (int64_t i = 0; i < parts; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%.17g", i ? "," : "", p[i]);
    program_result r = program_run("stat-condition case.h5 --of input --p %s", list);
    for (int64_t i = 0; i < parts; i++) value[i] = table_real(r.out, (int)i + 1, "value");
    assert_true(oracle_check(f, k, "C_p", value, parts, NULL, 1));
    value[0] = table_real(r.out, 0, "value");
    assert_true(oracle_check(f, k, "C_max", value, 1, NULL, 1));
    program_free(&r);
    r = program_run("stat-condition case.h5 --of input --form released");
    static const char *const names[] = {"cov_c_max", "cov_c_20", "cov_c_50", "cov_c_80"};
    for (int i = 0; i < 4; i++) {
        value[0] = table_real(r.out, i, "value");
        assert_true(oracle_check(f, k, names[i], value, 1, NULL, 1));
    }
    program_free(&r);
    free(p);
    free(x), free(a), free(sigma);
}

static void reference(void **state) {
    (void)state;
    oracle_file *f = open_reference();
    if (!f) {
        print_message("skipped: no reference vectors under $STATREC_SHARED\n");
        skip();
    }
    int checked = 0;
    for (int k = 0; k < oracle_cases(f); k++)
        if (!strcmp(oracle_text(f, k, "kind"), "condition")) check_case(f, k), checked++;
    oracle_close(f);
    assert_true(checked > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),     cmocka_unit_test(not_finite), cmocka_unit_test(released),
        cmocka_unit_test(part_of_ten), cmocka_unit_test(refusals),   cmocka_unit_test(reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
