/* test_host_keys.c -- configurations of other programs than `statrec train`: a key with the name of
 * an option is a setting like any other. */
#include <stdio.h>
#include <string.h>

#include "analysis/runs/run_identity.h"
#include "testing/check.h"
#include "testing/programs.h"

static void write_run(const char *path, const char *program, uint64_t seed, const char *config) {
    sr_options o = run_options();
    o.program = program, o.config = config, o.seed = seed;
    sr_recorder *r = run_create(program_file(path), o);
    run_add_bn(r, "a", 1, 1, 1e-5);
    sr_add_metric(r, "valid_loss", "nats per image", "loss", SR_BETTER_LESS);
    for (int step = 1; step <= 3; step++) {
        sr_begin_step(r, step);
        run_end_step(r, step);
    }
    run_put_eval(r, 3, 3, "valid_loss", 1.5);
    run_finish(r);
}

/* Two seeds whose configurations differ in one key. */
static void check_group(const char *program, const char *one, const char *other, bool group) {
    write_run("one.h5", program, 1, one);
    write_run("other.h5", program, 2, other);
    program_result r = program_run("stat-gap one.h5 other.h5 --metric valid_loss");
    assert_int_equal(r.status, 0);
    if ((strstr(r.out, "# group: 2 runs") != NULL) != group) fail_msg("%s: %s", program, r.out);
    check_cell(&r, 1, "task", 1);
    program_free(&r);
}

static void keys_are_settings(void **state) {
    (void)state;
    static const char *const lines[][2] = {
        {"lr = 1\npairs = 1000\n", "lr = 1\npairs = 5000\n"},
        {"lr = 1\nlayer-scale = 0.1\n", "lr = 1\nlayer-scale = 0.0001\n"},
        {"lr = 1\nthreads = 1\n", "lr = 1\nthreads = 2\n"},
        {"lr = 1\nobserve = a\n", "lr = 1\nobserve = b\n"},
        {"lr = 1\nsource = a\n", "lr = 1\nsource = b\n"},
        {"lr = 1\nnorm = 0.5\n", "lr = 1\nnorm = 0.25\n"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        check_group("train.py", lines[i][0], lines[i][1], false);
    check_group("train.py", "lr = 1\ntarget = a\n", "lr = 1\ntarget = b\n", false);
    check_group("train.py", "lr = 1\nseed = 1\n", "lr = 1\nseed = 2\n", true);
    check_group("statrec train", "lr = 1\npairs = 1000\n", "lr = 1\npairs = 5000\n", true);
    check_group("statrec study", "lr = 1\npairs = 1000\n", "lr = 1\npairs = 5000\n", true);
}

static void expect_identity(const char *config, const char *norm, const char *settings) {
    sr_failure why = {0};
    char text[256];
    run_identity id, plain;
    write_run("plain.h5", "train.py", 1, "lr = 1\n");
    write_run("keys.h5", "train.py", 1, config);
    sr_runfile *f = sr_run_open(program_file("keys.h5"), &why),
               *other = sr_run_open(program_file("plain.h5"), &why);
    check_ok(why.status, &why);
    run_identify(&id, f, "keys.h5");
    run_identify(&plain, other, "plain.h5");
    const run_identity *const runs[] = {&id, &plain};
    run_settings(&id, runs, 2, text, sizeof text);
    assert_string_equal(id.norm, norm);
    assert_string_equal(id.placement, "");
    assert_string_equal(id.decoder, "");
    assert_string_equal(text, settings);
    sr_run_close(f);
    sr_run_close(other);
}

/* `norm` is the normalization if its sites have it. */
static void norm_of_the_sites(void **state) {
    (void)state;
    expect_identity("lr = 1\nnorm = 0.5\n", "bn", "norm=0.5");
    expect_identity("lr = 1\nnorm = bn\n", "bn", "");
    expect_identity("lr = 1\nplacement = cpu\ndecoder-norm = x\n", "bn",
                    "placement=cpu decoder-norm=x");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_settings),
        cmocka_unit_test(norm_of_the_sites),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
