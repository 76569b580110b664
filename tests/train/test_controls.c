/* test_controls.c -- the control runs of a comparison, from the option to the run file: --batching,
 * --max-tokens-of, --count-padding, --init; and the running position. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "statrec/runfile.h"
#include "testing/check.h"
#include "train/train.h"

enum { ARGS_MAX = 64, STEPS = 5, WIDTH = 16 };

/* Runs a small Transformer, or with `images` a ResNet20, with these two more arguments. */
static sr_runfile *run(bool images, const char *key, const char *value, train_result *result) {
    static char path[4096];
    static train_config c;
    snprintf(path, sizeof path, "%s/control.h5", check_temporary());
    const char *const text[] = {"--model", "transformer",  "--preset", "mini",   "--embed-dim",
                                "16",      "--ffn-dim",    "16",       "--norm", "bn",
                                "--data",  "synth-pairs",  "--limit",  "600",    "--max-tokens",
                                "256",     "--norm-alpha", "0.75"},
                      *const pictures[] = {"--data", "synth-images", "--limit",
                                           "64",     "--batch-size", "16"};
    const char *const *base = images ? pictures : text;
    const int count =
        images ? (int)(sizeof pictures / sizeof *pictures) : (int)(sizeof text / sizeof *text);
    char *argv[ARGS_MAX] = {"statrec", "train", "-o", path, "--force", "--max-steps", "5"};
    int argc = 7, positional;
    for (int i = 0; i < count; i++) argv[argc++] = (char *)base[i];
    if (key) argv[argc++] = (char *)key;
    if (value) argv[argc++] = (char *)value;
    sr_failure why = {0};
    train_events silent = {0};
    check_ok(train_config_parse(&c, argc, argv, 2, &positional, &why), &why);
    check_ok(train_run(&c, "test", NULL, &silent, result, &why), &why);
    sr_runfile *f = sr_run_open(path, &why);
    if (!f) fail_msg("%s", why.text);
    return f;
}

/* Means over the steps of rows and padded at the first site. */
typedef struct fill {
    double rows, most, padded;
} fill;

static fill fill_of(const sr_runfile *f) {
    float rows[STEPS], padded[STEPS];
    sr_failure why = {0};
    fill x = {0};
    check_ok(sr_run_scalar(f, "rows", 0, 0, STEPS, rows, &why), &why);
    check_ok(sr_run_scalar(f, "padded", 0, 0, STEPS, padded, &why), &why);
    for (int i = 0; i < STEPS; i++) {
        x.rows += (double)rows[i] / STEPS;
        x.padded += (double)padded[i] / STEPS;
        x.most = fmax(x.most, (double)rows[i]);
    }
    return x;
}

static fill text_run(const char *key, const char *value) {
    static train_result r;
    sr_runfile *f = run(false, key, value, &r);
    fill x = fill_of(f);
    sr_run_close(f);
    return x;
}

/* Pairs drawn at random need padding; a limit on words alone lets a batch have as many as
   before. */
static void batching_and_budget(void **state) {
    (void)state;
    const fill bucketed = text_run(NULL, NULL), sorted = text_run("--batching", "sorted"),
               random = text_run("--batching", "random"),
               valid = text_run("--batching=random", "--max-tokens-of=valid");
    check_above(random.padded, 3 * bucketed.padded + 10);
    check_below(random.rows, 0.9 * bucketed.rows);
    check_differs(sorted.rows, bucketed.rows); /* the shortest sentences come first */
    check_above(valid.rows, 1.5 * random.rows);
    check_at_most(valid.most, 256);
}

static void padding_counts(void **state) {
    (void)state;
    const fill without = text_run("--batching", "random");
    const char *const args[] = {"--batching=random", "--count-padding"};
    const fill with = text_run(args[0], args[1]);
    check_above(without.padded, 0);
    check_equals(with.padded, 0);
    check_within(with.rows - without.rows, without.padded, 1e-3);
}

/* running <- alpha running + (1 - alpha) position_B, from 0, at the first site of the encoder. */
static void running_position(void **state) {
    (void)state;
    train_result r;
    sr_runfile *f = run(false, NULL, NULL, &r);
    float own[STEPS * WIDTH], running[STEPS * WIDTH];
    double want[WIDTH] = {0};
    sr_failure why = {0};
    check_ok(sr_run_vector(f, "position_B", 0, 0, STEPS, own, &why), &why);
    check_ok(sr_run_vector(f, "position", 0, 0, STEPS, running, &why), &why);
    for (int step = 0; step < STEPS; step++)
        for (int k = 0; k < WIDTH; k++) {
            const int at = step * WIDTH + k;
            if (!(fabs((double)running[at] - want[k]) < 1e-6))
                fail_msg("step %d, feature %d: %g, not %g", step, k, (double)running[at], want[k]);
            want[k] = 0.75 * want[k] + 0.25 * (double)own[at];
        }
    check_ok(sr_run_vector(f, "position_B", 1, 0, 1, own, &why), &why);
    assert_true(isnan(own[0])); /* not at the second site */
    sr_run_close(f);
}

static void other_weights_to_begin_with(void **state) {
    (void)state;
    train_result he, pytorch;
    sr_run_close(run(true, "--init", "he", &he));
    sr_run_close(run(true, "--init", "pytorch", &pytorch));
    assert_string_not_equal(he.digest, pytorch.digest);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batching_and_budget), cmocka_unit_test(padding_counts),
        cmocka_unit_test(running_position), cmocka_unit_test(other_weights_to_begin_with)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
