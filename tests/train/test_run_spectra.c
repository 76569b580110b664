/* Spectra and the final pass of whole runs, compared with other recorded values. The squares of
 * singular values add up to a Frobenius norm; without learning, the final pass equals the next
 * step. Neither changes a weight. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "observe/spectra.h"
#include "statrec/runfile.h"
#include "testing/check.h"
#include "train/train.h"

enum { ARGS_MAX = 64, WIDTH_MAX = 512, SITES_MAX = 64 };

static const char *run_path(const char *name) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", check_temporary(), name);
    return path;
}

static train_result run(const char *const *args) {
    static train_config c;
    sr_failure why = {0};
    train_events silent = {0};
    train_result result;
    char *argv[ARGS_MAX] = {"statrec", "train"};
    int argc = 2, positional;
    for (; args[argc - 2]; argc++) argv[argc] = (char *)args[argc - 2];
    check_ok(train_config_parse(&c, argc, argv, 2, &positional, &why), &why);
    check_ok(train_run(&c, "test", NULL, &silent, &result, &why), &why);
    return result;
}

static sr_runfile *open_run(const char *name) {
    sr_failure why = {0};
    sr_runfile *f = sr_run_open(run_path(name), &why);
    if (!f) fail_msg("%s", why.text);
    return f;
}

#define PAIRS                                                                                      \
    "--model", "transformer", "--preset", "mini", "--data", "synth-pairs", "--limit", "400",       \
        "--max-tokens", "256", "--max-steps", "4", "--warmup-updates", "2"

/* Row of /vectors, or of /steps, that belongs to a step; both begin at 1 and have every step. */
static double squares(const double *value, int64_t count) {
    double sum = 0;
    for (int64_t k = 0; k < count; k++) sum += value[k] * value[k];
    return sum;
}

static double scalar_at(sr_runfile *f, const char *name, int64_t site, int64_t step) {
    float value;
    sr_failure why = {0};
    check_ok(sr_run_scalar(f, name, site, step - 1, 1, &value, &why), &why);
    return (double)value;
}

/* Squared singular values of X sum to n times the sum of psi2_B. Rows of dL/dX have mean 0 after
 * LN: its squared singular values sum to n d times the mean variance of the rows. */
static void check_site(sr_runfile *f, int64_t site, int64_t i) {
    const sr_run_site *s = sr_run_get_site(f, site);
    double input[WIDTH_MAX], gradient[WIDTH_MAX];
    float psi2[WIDTH_MAX];
    int64_t step, rows;
    sr_failure why = {0};
    check_ok(sr_run_spectrum(f, SR_SPECTRUM_input, site, i, &step, &rows, input, &why), &why);
    check_ok(sr_run_spectrum(f, SR_SPECTRUM_gradient, site, i, &step, &rows, gradient, &why), &why);
    assert_int_equal(step, 4 * i + 3); /* first pass of updates 2 and 4, two passes each */
    check_equals((double)rows, scalar_at(f, "rows", site, step));
    for (int64_t k = 1; k < s->width; k++) {
        check_at_most(input[k], input[k - 1]);
        check_at_most(gradient[k], gradient[k - 1]);
    }
    double want = 0;
    if (!strcmp(s->norm, "bn")) {
        check_ok(sr_run_vector(f, "psi2_B", site, step - 1, 1, psi2, &why), &why);
        for (int64_t k = 0; k < s->width; k++) want += (double)rows * (double)psi2[k];
        double got = squares(input, s->width);
        check_near_double("input", &got, &want, 1, 1e-5, 0);
    } else {
        want = (double)rows * (double)s->width * scalar_at(f, "row_grad_var", site, step);
        double got = squares(gradient, s->width);
        check_near_double("gradient", &got, &want, 1, 1e-4, 0);
    }
}

static void spectra(void **state) {
    (void)state;
    sr_failure why = {0};
    const char *const args[] = {PAIRS,
                                "--norm",
                                "bn",
                                "--spectra-every",
                                "2",
                                "--update-freq",
                                "2",
                                "--final-tid",
                                "--final-batches",
                                "2",
                                "-o",
                                run_path("a.h5"),
                                NULL};
    train_result with = run(args);
    const char *const plain[] = {PAIRS, "--norm",   "bn",   "--update-freq",
                                 "2",   "--record", "none", NULL};
    assert_string_equal(with.digest, run(plain).digest);
    check_ok(sr_run_check(run_path("a.h5"), &why), &why);
    sr_runfile *f = open_run("a.h5");
    assert_int_equal(sr_run_get_info(f)->spectra, 2);
    for (int64_t site = 0; site < sr_run_get_info(f)->sites; site++)
        for (int64_t i = 0; i < 2; i++) check_site(f, site, i);
    sr_run_close(f);
}

#define STILL_IMAGES                                                                               \
    "--data", "synth-images", "--limit", "64", "--batch-size", "64", "--lr", "0", "--norm-alpha",  \
        "0.5", "--no-augment", "--weight-decay", "0"
#define STILL_PAIRS                                                                                \
    "--model", "transformer", "--preset", "mini", "--embed-dim", "16", "--ffn-dim", "16",          \
        "--heads", "2", "--encoder-layers", "1", "--decoder-layers", "1", "--data", "synth-pairs", \
        "--limit", "60", "--max-tokens", "4096", "--lr", "0", "--warmup-init-lr", "0",             \
        "--dropout", "0", "--attention-dropout", "0", "--relu-dropout", "0"
#define OBSERVED "--observe", "batch"

/* A run of `epochs` epochs; these options follow args. */
static void run_epochs(const char *const *args, const char *epochs, const char *name) {
    const char *all[ARGS_MAX];
    int count = 0;
    for (; args[count]; count++) all[count] = args[count];
    const char *const rest[] = {"--epochs", epochs,         "--force", "--final-tid",
                                "-o",       run_path(name), NULL};
    for (int i = 0; i < 7; i++) all[count++] = rest[i];
    run(all);
}

/* With one batch per epoch and no learning every step has the same statistics. The final pass after
 * two steps equals the third step without its update. */
static void check_still(const char *const *args, int64_t sites) {
    sr_failure why = {0};
    run_epochs(args, "2", "two.h5");
    run_epochs(args, "3", "three.h5");
    double mean[SITES_MAX], var[SITES_MAX], *const value[SR_FINAL_COUNT] = {mean, var};
    int64_t batches;
    sr_runfile *f = open_run("two.h5"), *g = open_run("three.h5");
    check_ok(sr_run_final(f, &batches, value, &why), &why);
    assert_int_equal(batches, 1);
    assert_int_equal(sr_run_get_info(f)->steps, 2);
    assert_int_equal(sr_run_get_info(f)->sites, sites);
    for (int64_t i = 0; i < sites; i++) {
        double want[2] = {scalar_at(g, "tid_mean", i, 3), scalar_at(g, "tid_var", i, 3)};
        check_near_double("tid_mean", &mean[i], &want[0], 1, 1e-5, 0);
        check_near_double("tid_var", &var[i], &want[1], 1, 1e-5, 0);
        check_above(want[0], 0);
        check_differs(want[0], scalar_at(g, "tid_mean", i, 2));
    }
    sr_run_close(f);
    sr_run_close(g);
}

static void final_pass(void **state) {
    (void)state;
    check_still((const char *const[]){STILL_IMAGES, "--norm", "bn", NULL}, 19);
}

/* Padded rows do not count; after a layer scale, the scaled input is observed. */
static void final_pass_of_observed(void **state) {
    (void)state;
    static const char *const norms[] = {"ln", "none", "pnv", "bn", "adanorm+ls", "pn+ls"};
    for (int i = 0; i < 6; i++)
        check_still((const char *const[]){STILL_PAIRS, OBSERVED, "--norm", norms[i], NULL}, 7);
}

/* Sites whose method has no running mean have no TID unless they are observed. */
static void final_pass_without_running(void **state) {
    (void)state;
    sr_failure why = {0};
    const char *const args[] = {
        PAIRS, "--norm", "bn", "--final-tid", "--final-batches", "3", "-o", run_path("c.h5"), NULL};
    run(args);
    double mean[SITES_MAX], var[SITES_MAX], *const value[SR_FINAL_COUNT] = {mean, var};
    int64_t batches;
    sr_runfile *f = open_run("c.h5");
    check_ok(sr_run_final(f, &batches, value, &why), &why);
    assert_int_equal(batches, 3);
    for (int64_t i = 0; i < sr_run_get_info(f)->sites; i++) {
        bool bn = !strcmp(sr_run_get_site(f, i)->norm, "bn");
        assert_true(bn ? mean[i] > 0 && var[i] > 0 : isnan(mean[i]) && isnan(var[i]));
    }
    sr_run_close(f);
}

/* diag(3, 2) and a padded row that must not be read; a NaN among the valid rows. */
static void rows_of_a_site(void **state) {
    (void)state;
    real x[] = {3, 0, NAN, NAN, 0, 2};
    const int32_t index[] = {0, 2};
    const norm_rows valid = {.rows = 3, .valid = 2, .index = index}, all = {.rows = 3, .valid = 3};
    const double want[] = {3, 2};
    double got[2];
    sr_failure why = {0};
    check_ok(spectrum_of_rows(&valid, x, 2, got, &why), &why);
    check_near_double("valid rows", got, want, 2, 1e-14, 0);
    check_ok(spectrum_of_rows(&all, x, 2, got, &why), &why);
    assert_true(isnan(got[0]) && isnan(got[1]));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_a_site),
        cmocka_unit_test(spectra),
        cmocka_unit_test(final_pass),
        cmocka_unit_test(final_pass_of_observed),
        cmocka_unit_test(final_pass_without_running),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
