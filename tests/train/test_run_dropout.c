/* Dropout in a run: validation has none, and every step draws its own masks. With LN everywhere and
 * no learning nothing else could change a loss. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "statrec/runfile.h"
#include "testing/check.h"
#include "train/train.h"

enum { STEPS = 3 };

typedef struct losses {
    double train[STEPS], valid;
} losses;

static losses run(const char *dropout) {
    static train_config c;
    sr_failure why = {0};
    train_events silent = {0};
    train_result result;
    char path[4096];
    snprintf(path, sizeof path, "%s/run.h5", check_temporary());
    char *argv[] = {"statrec",
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
                    "--encoder-layers",
                    "1",
                    "--decoder-layers",
                    "1",
                    "--norm",
                    "ln",
                    "--data",
                    "synth-pairs",
                    "--limit",
                    "20",
                    "--max-tokens",
                    "2048",
                    "--lr",
                    "0",
                    "--warmup-init-lr",
                    "0",
                    "--epochs",
                    "3",
                    "--dropout",
                    (char *)dropout,
                    "-o",
                    path,
                    "--force"};
    int positional;
    losses l;
    check_ok(train_config_parse(&c, sizeof argv / sizeof *argv, argv, 2, &positional, &why), &why);
    check_ok(train_run(&c, "test", NULL, &silent, &result, &why), &why);
    assert_int_equal(result.steps, STEPS);
    sr_runfile *f = sr_run_open(path, &why);
    if (!f) fail_msg("%s", why.text);
    check_ok(sr_run_step_reals(f, "loss", 0, STEPS, l.train, &why), &why);
    l.valid = result.last.value[0];
    sr_run_close(f);
    return l;
}

static void masks(void **state) {
    (void)state;
    losses without = run("0"), with = run("0.5"), again = run("0.5");
    for (int i = 0; i < STEPS; i++) {
        check_within_inclusive(without.train[i], without.train[0], 1e-5 * without.train[0]);
        check_apart(with.train[i], without.train[i], 1e-4 * without.train[0]);
        check_equals(with.train[i], again.train[i]);
        for (int k = 0; k < i; k++)
            check_apart(with.train[i], with.train[k], 1e-4 * without.train[0]);
    }
    check_equals(with.valid, without.valid);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(masks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
