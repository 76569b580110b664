/* small_run.c -- see small_run.h. */
#include "small_run.h"

#include <stdio.h>
#include <string.h>

#include "testing/check.h"

enum { ARGS_MAX = 80, TEXT = 4096 };

static const char *path_of(const char *name) {
    static char path[4][TEXT];
    static int used;
    char *p = path[used++ % 4];
    snprintf(p, TEXT, "%s/%s", check_temporary(), name);
    return p;
}

static void write_file(const char *name, const char *text) {
    FILE *f = fopen(path_of(name), "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0 && fclose(f) == 0);
}

static bool validates;

void small_write(const char *train_source, const char *train_target, const char *valid_source,
                 const char *valid_target) {
    write_file("train.de", train_source);
    write_file("train.en", train_target);
    validates = valid_source != NULL;
    if (!validates) return;
    write_file("valid.de", valid_source);
    write_file("valid.en", valid_target);
}

void small_write_pairs(int count) {
    char source[TEXT], target[TEXT];
    int s = 0, t = 0;
    for (int i = 0; i < count; i++) {
        s += snprintf(source + s, TEXT - (size_t)s, "s%d a b\n", i);
        t += snprintf(target + t, TEXT - (size_t)t, "x t%d y\n", i);
        assert_true(s < TEXT && t < TEXT);
    }
    small_write(source, target, "s0 a b\n", "x t0 y\n");
}

void small_parse(train_config *c, const char *const *more) {
    const char *const base[] = {"statrec",
                                "train",
                                "--model",
                                "transformer",
                                "--preset",
                                "mini",
                                "--embed-dim",
                                "16",
                                "--ffn-dim",
                                "16",
                                "--heads",
                                "2",
                                "--encoder-layers=1",
                                "--decoder-layers=1",
                                "--dropout",
                                "0",
                                "--data",
                                "parallel",
                                "--data-dir",
                                check_temporary(),
                                "--max-tokens",
                                "8",
                                "--record",
                                "scalars",
                                "--threads",
                                "1",
                                "--force",
                                validates ? "--validpref=valid" : "--validpref=",
                                "-o",
                                path_of("small.h5")};
    char *argv[ARGS_MAX];
    int argc = (int)(sizeof base / sizeof *base), positional;
    sr_failure why = {0};
    memcpy(argv, base, sizeof base);
    for (int i = 0; more[i]; i++) argv[argc++] = (char *)more[i];
    check_ok(train_config_parse(c, argc, argv, 2, &positional, &why), &why);
    assert_int_equal(positional, 0);
}

sr_runfile *small_train(const train_config *c, const train_events *events, train_result *result) {
    const train_events silent = {0};
    sr_failure why = {0};
    check_ok(train_run(c, "test", NULL, events ? events : &silent, result, &why), &why);
    sr_runfile *f = sr_run_open(c->output, &why);
    if (!f) fail_msg("%s", why.text);
    return f;
}

sr_runfile *small_run(const char *const *more, const train_events *events, train_result *result) {
    static train_config c;
    small_parse(&c, more);
    return small_train(&c, events, result);
}

void small_steps(const sr_runfile *f, const char *name, int64_t count, double *value) {
    sr_failure why = {0};
    check_ok(sr_run_step_reals(f, name, 0, count, value, &why), &why);
}

void small_evals(const sr_runfile *f, const char *name, int64_t count, double *value) {
    sr_failure why = {0};
    assert_int_equal(sr_run_get_info(f)->evals, count);
    check_ok(sr_run_eval(f, name, 0, count, value, &why), &why);
}
