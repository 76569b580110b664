/* test_observe_batch.c -- --observe batch on whole runs of generated pairs. The weights are the
 * same with and without it, on any number of threads. The run file has batch statistics at sites
 * that use none. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "statrec/runfile.h"
#include "testing/check.h"
#include "train/train.h"

enum { ARGS_MAX = 64, STEPS = 4, ENCODER = 3 };

static sr_status parse(train_config *c, const char *const *args, sr_failure *why) {
    char *argv[ARGS_MAX] = {"statrec", "train"};
    int argc = 2, positional;
    for (; args[argc - 2]; argc++) argv[argc] = (char *)args[argc - 2];
    return train_config_parse(c, argc, argv, 2, &positional, why);
}

/* Digest of a run; path: its file. */
static void run(const char *norm, const char *observe, const char *threads, char path[4096],
                char digest[32]) {
    static train_config c;
    sr_failure why = {0};
    train_events silent = {0};
    train_result result;
    snprintf(path, 4096, "%s/%s-%s.h5", check_temporary(), norm, observe);
    const char *const args[] = {"--model",
                                "transformer",
                                "--preset",
                                "mini",
                                "--embed-dim",
                                "16",
                                "--heads",
                                "2",
                                "--ffn-dim",
                                "16",
                                "--encoder-layers",
                                "1",
                                "--decoder-layers",
                                "1",
                                "--norm",
                                norm,
                                "--data",
                                "synth-pairs",
                                "--limit",
                                "400",
                                "--max-steps",
                                "4",
                                "--max-tokens",
                                "256",
                                "--warmup-updates",
                                "2",
                                "--observe",
                                observe,
                                "--threads",
                                threads,
                                "-o",
                                path,
                                "--force",
                                NULL};
    check_ok(parse(&c, args, &why), &why);
    check_ok(train_run(&c, "test", NULL, &silent, &result, &why), &why);
    memcpy(digest, result.digest, 32);
    assert_int_equal(strlen(digest), 16);
}

static void check_scalar(const sr_runfile *f, const char *name, int64_t site, bool there) {
    float value[STEPS];
    sr_failure why = {0};
    check_ok(sr_run_scalar(f, name, site, 0, STEPS, value, &why), &why);
    for (int i = 0; i < STEPS; i++)
        if (there ? !isfinite(value[i]) || !(value[i] > 0) : !isnan(value[i]))
            fail_msg("%s of %s: %g", name, sr_run_get_site(f, site)->name, (double)value[i]);
}

/* Theorem 1 in a training run: dx equals the closed form. */
static void check_theorem(const sr_runfile *f, int64_t site) {
    float measured[STEPS], exact[STEPS];
    sr_failure why = {0};
    check_ok(sr_run_scalar(f, "row_grad_var", site, 0, STEPS, measured, &why), &why);
    check_ok(sr_run_scalar(f, "row_exact_var", site, 0, STEPS, exact, &why), &why);
    for (int i = 0; i < STEPS; i++)
        if (!(fabs((double)measured[i] - (double)exact[i]) <= 1e-6 * (double)exact[i]))
            fail_msg("site %d: variance %.9g, exact %.9g", (int)site, (double)measured[i],
                     (double)exact[i]);
}

/* The run file of --observe batch: every batch scalar at every site. */
static void check_file(const char *path, const char *norm, const char *digest) {
    static const char *const all[] = {"dist_mu",   "dist_sigma", "dist_sigma2", "dist_psi",
                                      "dist_psi2", "tid_mean",   "tid_var",     "g_mu",
                                      "g_sigma2",  "g_psi2"};
    sr_failure why = {0};
    sr_runfile *f = sr_run_open(path, &why);
    if (!f) fail_msg("%s", why.text);
    assert_string_equal(sr_run_get_info(f)->weights_digest, digest);
    assert_string_equal(sr_run_get_site(f, 0)->norm, norm);
    for (int64_t i = 0; i < sr_run_get_info(f)->sites; i++) {
        const sr_run_site *s = sr_run_get_site(f, i);
        assert_int_equal(s->observed, 1);
        check_equals(s->alpha, 0.95);
        check_equals(s->eps, 1e-5);
        for (int k = 0; k < 10; k++) check_scalar(f, all[k], i, true);
        if (strcmp(s->norm, "ln")) continue;
        check_scalar(f, "row_grad_var", i, true);
        check_theorem(f, i);
    }
    sr_run_close(f);
}

/* Without the option the file has no batch statistics there. */
static void check_plain(const char *path) {
    sr_failure why = {0};
    sr_runfile *f = sr_run_open(path, &why);
    if (!f) fail_msg("%s", why.text);
    for (int64_t i = 0; i < sr_run_get_info(f)->sites; i++)
        assert_int_equal(sr_run_get_site(f, i)->observed, 0);
    check_scalar(f, "dist_mu", ENCODER, false); /* decoder.0.self is ln */
    sr_run_close(f);
}

static void same_weights(void **state) {
    (void)state;
    static const char *const norms[] = {"ln", "none", "bn", "pnv"};
    for (int i = 0; i < 4; i++) {
        char first[32], digest[32], plain[4096], observed[4096];
        run(norms[i], "none", "1", plain, first);
        check_plain(plain);
        for (int threads = 1; threads <= 2; threads++) {
            run(norms[i], "batch", threads == 1 ? "1" : "2", observed, digest);
            if (strcmp(first, digest))
                fail_msg("%s, %d threads: %s with --observe batch, %s without", norms[i], threads,
                         digest, first);
        }
        check_file(observed, norms[i], first);
    }
}

static void options(void **state) {
    (void)state;
    static train_config c;
    sr_failure why = {0};
    const char *const nothing[] = {"--observe", "batch", "--record", "none", NULL};
    assert_true(parse(&c, nothing, &why) != SR_OK);
    check_failure(&why, SR_USAGE, "--observe has no effect with --record none");
    why = (sr_failure){0};
    const char *const unknown[] = {"--observe", "rows", "-o", "x", NULL};
    assert_true(parse(&c, unknown, &why) != SR_OK);
    why = (sr_failure){0};
    const char *const plain[] = {"-o", "x", NULL};
    check_ok(parse(&c, plain, &why), &why);
    assert_string_equal(c.observe, "none");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_weights), cmocka_unit_test(options)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
