/* Runs of Transformer-XL on a file of bytes (docs/models.md 4): the segments that fill the memory
 * in training and evaluation; when the memory is empty; a resumed run restores it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "small_run.h"
#include "testing/check.h"
#include "train/loaded_model.h"

enum { ARGS_MAX = 80 };

static char *path_of(const char *name) {
    static char path[8][600];
    static int used;
    char *p = path[used++ % 8];
    snprintf(p, 600, "%s/%s", check_temporary(), name);
    return p;
}

/* Training: two sequences of 17 bytes, so that 16 are inputs; validation one of them. */
static void write_bytes(void) {
    FILE *f = fopen(path_of("small"), "w");
    assert_non_null(f);
    assert_true(fputs("abcadbcabdcabbdca" /**/ "ddabcbadcbbadacdb" /**/ "cabdabcabddcbacba", f) >=
                0);
    assert_int_equal(fclose(f), 0);
}

/* Options of a run without dropout, then `more` (NULL ends). */
static void parse(train_config *c, const char *const *more) {
    const char *const base[] = {
        "statrec",           "train",       "--model",        "transformer_xl",
        "--preset",          "enwik8-mini", "--layers",       "2",
        "--embed-dim",       "8",           "--ffn-dim",      "10",
        "--heads",           "2",           "--head-dim",     "3",
        "--dropout",         "0",           "--data-dir",     check_temporary(),
        "--data-file",       "small",       "--valid-bytes",  "17",
        "--test-share",      "0",           "--batch-size",   "2",
        "--eval-batch-size", "1",           "--lr-scheduler", "fixed",
        "--max-steps",       "0",           "--threads",      "1",
        "--record",          "scalars",     "--force",        "-o",
        path_of("small.h5")};
    char *argv[ARGS_MAX];
    int argc = (int)(sizeof base / sizeof *base), positional;
    sr_failure why = {0};
    memcpy(argv, base, sizeof base);
    for (int i = 0; more[i]; i++) argv[argc++] = (char *)more[i];
    write_bytes();
    check_ok(train_config_parse(c, argc, argv, 2, &positional, &why), &why);
}

static sr_runfile *run(const char *const *more, train_result *r) {
    static train_config c;
    parse(&c, more);
    return small_train(&c, NULL, r);
}

/* Segments of 4 with memory over all earlier ones; and one segment of 16. Weights are constant. */
#define SEGMENTS                                                                                   \
    "--lr=0", "--epochs=2", "--tgt-len=4", "--mem-len=50", "--eval-tgt-len=4", "--eval-mem-len=50"
#define WHOLE                                                                                      \
    "--lr=0", "--epochs=2", "--tgt-len=16", "--mem-len=0", "--eval-tgt-len=16", "--eval-mem-len=0"

/* In each epoch the segments have the same loss as the unsplit sequences. Memory contains the
 * earlier segments in order and is empty at the start of an epoch. */
static void segments_in_order(void **state) {
    (void)state;
    train_result r;
    double loss[8], whole[2], forgetful[8];
    sr_runfile *f = run((const char *const[]){SEGMENTS, NULL}, &r);
    small_steps(f, "loss", 8, loss);
    sr_run_close(f);
    f = run((const char *const[]){WHOLE, NULL}, &r);
    small_steps(f, "loss", 2, whole);
    sr_run_close(f);
    f = run((const char *const[]){SEGMENTS, "--mem-len=0", NULL}, &r);
    small_steps(f, "loss", 8, forgetful);
    sr_run_close(f);
    for (int epoch = 0; epoch < 2; epoch++) {
        double mean = 0;
        for (int i = 0; i < 4; i++) mean += loss[4 * epoch + i] / 4;
        check_within(mean, whole[epoch], 1e-6);
    }
    assert_memory_equal(loss, loss + 4, 4 * sizeof *loss);
    check_equals(loss[0], forgetful[0]);
    check_apart(loss[1], forgetful[1], 1e-6);
}

/* Evaluation has its own memory, empty at the start whatever was trained. */
static void evaluation_in_order(void **state) {
    (void)state;
    train_result r;
    double valid[2], whole[2], forgetful[2], shorter[2];
    const char *const last[][9] = {{SEGMENTS, NULL},
                                   {WHOLE, NULL},
                                   {SEGMENTS, "--eval-mem-len=0", NULL},
                                   {SEGMENTS, "--mem-len=0", "--tgt-len=8", NULL}};
    double *const value[] = {valid, whole, forgetful, shorter};
    for (int i = 0; i < 4; i++) {
        sr_runfile *f = run(last[i], &r);
        small_evals(f, "valid_loss", 2, value[i]);
        check_equals(value[i][0], value[i][1]);
        sr_run_close(f);
    }
    check_within(valid[0], whole[0], 1e-6);
    check_apart(valid[0], forgetful[0], 1e-6);
    check_equals(valid[0], shorter[0]); /* however the training is cut */
}

/* The checkpoint reproduces the run's validation and its final pass from an empty memory. */
static void checkpoint_says_the_same(void **state) {
    (void)state;
    train_result r;
    sr_failure why = {0};
    int64_t batches;
    double tid[SR_FINAL_COUNT][4], mean[4], var[4], *value[SR_FINAL_COUNT];
    for (int i = 0; i < SR_FINAL_COUNT; i++) value[i] = tid[i];
    sr_runfile *f =
        run((const char *const[]){"--norm=bn", "--lr=0.01", "--epochs=3", "--tgt-len=4",
                                  "--eval-tgt-len=2", "--mem-len=50", "--eval-mem-len=9",
                                  "--final-tid", "--checkpoint-every=end", NULL},
            &r);
    check_ok(sr_run_final(f, &batches, value, &why), &why);
    sr_run_close(f);
    assert_int_equal(batches, 4);
    static loaded_model t;
    check_ok(loaded_model_open(&t, path_of("small.h5"),
                               &(loaded_model_options){.data_dir = "", .threads = 1}, &why),
             &why);
    check_ok(loaded_model_tid(&t, 0, mean, var, &why), &why);
    for (int i = 0; i < 4; i++) {
        check_above(mean[i], 0);
        check_within(mean[i], tid[SR_FINAL_tid_mean][i], 1e-9);
        check_within(var[i], tid[SR_FINAL_tid_var][i], 1e-9);
    }
    for (int again = 0; again < 2; again++) {
        task_sums sum;
        check_ok(task_evaluate(t.task, &t.task_options, t.model, t.tape, t.data, SPLIT_VALID,
                               NORM_RUNNING, &sum, &why),
                 &why);
        check_equals(sum.nll, r.last.sum.nll);
        assert_true(sum.count[0] == 16);
    }
    /* recomputed running statistics use the memory too: a model without memory has others */
    double mu[2][8];
    for (int without = 0; without < 2; without++) {
        if (without) t.model->memory_rows = 0;
        check_ok(loaded_model_recompute(&t, 0, &why), &why);
        memcpy(mu[without], t.model->site[0]->state[0], sizeof mu[0]);
    }
    assert_true(memcmp(mu[0], mu[1], sizeof mu[0]) != 0);
    loaded_model_close(&t);
}

typedef struct countdown {
    int passes, after;
} countdown;

static void hear_progress(void *context, const train_progress *p) {
    (void)p;
    ((countdown *)context)->passes++;
}

static bool stops(void *context) {
    const countdown *c = context;
    return c->passes >= c->after;
}

/* Stopped and resumed at every step in turn: the same weights at the end. */
static void goes_on(void **state) {
    (void)state;
    static train_config c;
    const char *const args[] = {"--lr=0.05",     "--epochs=3",       "--tgt-len=4",
                                "--mem-len=6",   "--eval-mem-len=3", "--eval-tgt-len=4",
                                "--dropout=0.1", "--norm=bn",        NULL};
    sr_failure why = {0};
    train_result whole, r;
    const train_events silent = {0};
    sr_run_close(run(args, &whole));
    for (int after = 1; after < 9; after++) {
        countdown left = {0, after};
        const train_events events = {.context = &left, .progress = hear_progress, .stop = stops};
        train_resume from;
        parse(&c, args);
        check_ok(train_run(&c, "first", NULL, &events, &r, &why), &why);
        assert_true(r.interrupted && r.updates == after);
        check_ok(train_resume_find(path_of("small.h5"), "", &from, &c, &why), &why);
        check_ok(train_run(&c, "resumed", &from, &silent, &r, &why), &why);
        train_resume_free(&from);
        assert_true(!r.interrupted && r.updates == 12);
        assert_string_equal(r.digest, whole.digest);
        check_equals(r.last.sum.nll, whole.last.sum.nll);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments_in_order),
        cmocka_unit_test(evaluation_in_order),
        cmocka_unit_test(checkpoint_says_the_same),
        cmocka_unit_test(goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
