/* Bookkeeping of a run: the update and epoch of each step, when it evaluates, what an evaluation
 * counts, and how the run ends. */
#include <math.h>
#include <string.h>

#include "small_run.h"
#include "testing/check.h"

enum { MOST = 16 };

/* All reports of the loop. */
typedef struct told {
    train_eval eval[MOST];
    train_progress progress[MOST];
    int evals, passes, stop_after; /* passes; 0: never */
} told;

static void hear_eval(void *context, const train_eval *e) {
    told *t = context;
    assert_true(t->evals < MOST);
    t->eval[t->evals++] = *e;
}

static void hear_progress(void *context, const train_progress *p) {
    told *t = context;
    assert_true(t->passes < MOST);
    t->progress[t->passes++] = *p;
}

static bool stop(void *context) {
    const told *t = context;
    return t->stop_after && t->passes >= t->stop_after;
}

static sr_runfile *run(told *t, const char *const *more, train_result *r) {
    train_events events = {
        .context = t, .eval = hear_eval, .progress = hear_progress, .stop = stop};
    return small_run(more, &events, r);
}

/* 3 batches per epoch, two micro-batches per update: the third batch is an update alone. */
static const double pass_epoch[6] = {1.0 / 3, 2.0 / 3, 1, 4.0 / 3, 5.0 / 3, 2};
static const int64_t pass_update[6] = {1, 1, 2, 3, 3, 4};
static const double eval_epoch[4] = {2.0 / 3, 1, 5.0 / 3, 2}, eval_step[4] = {2, 3, 5, 6};

static sr_runfile *run_two_epochs(told *t) {
    const char *const args[] = {"--epochs=2",
                                "--update-freq=2",
                                "--lr-scheduler=fixed",
                                "--lr=0.01",
                                "--warmup-updates=3",
                                "--warmup-init-lr=0.001",
                                "--validate-interval-updates=1",
                                NULL};
    train_result r;
    small_write_pairs(6);
    sr_runfile *f = run(t, args, &r);
    assert_int_equal(r.updates, 4);
    return f;
}

static void recorded_passes(void **state) {
    (void)state;
    told t = {.evals = 0};
    sr_runfile *f = run_two_epochs(&t);
    double got[6], loss[6];
    int64_t number[6];
    sr_failure why = {0};
    small_steps(f, "epoch", 6, got);
    check_near_double("epoch", got, pass_epoch, 6, 1e-12, 0);
    small_steps(f, "loss", 6, loss);
    check_ok(sr_run_step_ints(f, "update", 0, 6, number, &why), &why);
    assert_int_equal(t.passes, 6);
    for (int i = 0; i < 6; i++) {
        const train_progress *p = &t.progress[i];
        assert_int_equal(number[i], pass_update[i]);
        assert_int_equal(p->updates, 4);
        assert_int_equal(p->update, pass_update[i] - (i == 0 || i == 3)); /* done */
        assert_int_equal(p->tokens, 8);
        check_equals(p->loss, loss[i]);
        check_near_double("epoch of the progress", &p->epoch, &pass_epoch[i], 1, 1e-12, 0);
    }
    sr_run_close(f);
}

static void recorded_evaluations(void **state) {
    (void)state;
    const double lr[4] = {0.001, 0.004, 0.007, 0.01};
    told t = {.evals = 0};
    sr_runfile *f = run_two_epochs(&t);
    double got[4], loss[6];
    int64_t at = 0;
    small_evals(f, "epoch", 4, got);
    check_near_double("epoch of evaluations", got, eval_epoch, 4, 1e-12, 0);
    small_evals(f, "step", 4, got);
    check_near_double("step of evaluations", got, eval_step, 4, 0, 0);
    small_steps(f, "loss", 6, loss);
    assert_int_equal(t.evals, 4);
    for (int i = 0; i < 4; i++) {
        double sum = 0; /* over the steps since the last one, with equal token counts */
        const int64_t first = at;
        for (; at < t.eval[i].step; at++) sum += loss[at];
        sum /= (double)(at - first);
        check_near_double("train_loss told", &t.eval[i].train_loss, &sum, 1, 1e-9, 0);
        check_near_double("epoch told", &t.eval[i].epoch, &eval_epoch[i], 1, 1e-12, 0);
        check_near_double("lr told", &t.eval[i].lr, &lr[i], 1, 1e-12, 0);
        assert_int_equal(t.eval[i].update, i + 1);
        assert_int_equal(t.eval[i].step, (int64_t)eval_step[i]);
    }
    sr_run_close(f);
}

/* After every N-th update, every epoch or every 4 updates, and after the last update, once each. */
static void evaluations(void **state) {
    (void)state;
    static const struct {
        const char *interval, *epochs, *max_steps;
        int count, update[6];
    } row[] = {{"100", "1", "9", 3, {4, 8, 9}},  {"3", "1", "9", 5, {3, 4, 6, 8, 9}},
               {"2", "1", "8", 4, {2, 4, 6, 8}}, {"100", "1", "3", 1, {3}},
               {"100", "2", "14", 2, {8, 14}},   {"6", "2", "12", 3, {6, 8, 12}},
               {"100", "3", "8", 1, {8}}};
    small_write_pairs(8);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const char *const args[] = {"--validate-interval-updates",
                                    row[i].interval,
                                    "--validate-interval",
                                    row[i].epochs,
                                    "--max-steps",
                                    row[i].max_steps,
                                    NULL};
        told t = {.evals = 0};
        train_result r;
        sr_run_close(run(&t, args, &r));
        assert_int_equal(t.evals, row[i].count);
        for (int k = 0; k < t.evals; k++) assert_int_equal(t.eval[k].update, row[i].update[k]);
        assert_int_equal(r.last.update, row[i].update[t.evals - 1]);
    }
}

/* Spectra of the embedding: after every N-th update and once at the end. */
static void embedding(void **state) {
    (void)state;
    static const struct {
        const char *every, *update_freq, *max_steps;
        int count, step[6];
    } row[] = {{NULL, "1", "6", 1, {6}},   {"4", "1", "6", 2, {4, 6}},
               {"3", "1", "6", 2, {3, 6}}, {"1", "2", "4", 4, {2, 3, 5, 6}},
               {"9", "1", "2", 1, {2}},    {"2", "2", "3", 2, {3, 5}}};
    small_write_pairs(6);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const char *const args[] = {"--epochs",
                                    "2",
                                    "--update-freq",
                                    row[i].update_freq,
                                    "--max-steps",
                                    row[i].max_steps,
                                    row[i].every ? "--svd-every" : NULL,
                                    row[i].every,
                                    NULL};
        sr_run_embedding e = {.size = sizeof(sr_run_embedding)};
        sr_failure why = {0};
        train_result r;
        sr_runfile *f = small_run(args, NULL, &r);
        check_ok(sr_run_get_embedding(f, "tokens", &e, &why), &why);
        assert_int_equal(e.records, row[i].count);
        for (int k = 0; k < row[i].count; k++) {
            int64_t step;
            double value[16];
            check_ok(sr_run_singular_values(f, "tokens", k, &step, value, &why), &why);
            assert_int_equal(step, row[i].step[k]);
            check_above(value[0], value[15]);
            check_above(value[15], 0);
        }
        sr_run_close(f);
    }
}

/* Separate dictionaries: both spectra, each with its size, at the same steps. */
static void two_embeddings(void **state) {
    (void)state;
    const char *const args[] = {"--dictionary",
                                "separate",
                                "--vocab-size",
                                "8",
                                "--max-steps",
                                "2",
                                "--svd-every",
                                "1",
                                NULL};
    static const char *const names[] = {"tokens", "target_tokens"};
    sr_failure why = {0};
    train_result r;
    small_write("a b\n", "x\n", NULL, NULL);
    sr_runfile *f = small_run(args, NULL, &r);
    for (int i = 0; i < 2; i++) {
        sr_run_embedding e = {.size = sizeof(sr_run_embedding)};
        check_ok(sr_run_get_embedding(f, names[i], &e, &why), &why);
        assert_true(e.rows == 8 && e.cols == 16 && e.records == 2);
    }
    double value[2][8];
    for (int i = 0; i < 2; i++) {
        int64_t step;
        check_ok(sr_run_singular_values(f, names[i], 0, &step, value[i], &why), &why);
    }
    check_differs(value[0][0], value[1][0]);
    sr_run_close(f);
}

/* Memorized: q gives a, rarely b, then </s>. For the validation pairs q a and q b the model
 * predicts three of four targets. */
static void accuracy(void **state) {
    (void)state;
    const char *const args[] = {"--optimizer",
                                "adam",
                                "--lr-scheduler",
                                "fixed",
                                "--lr",
                                "0.01",
                                "--warmup-updates",
                                "0",
                                "--weight-decay",
                                "0",
                                "--epochs",
                                "150",
                                "--record",
                                "none",
                                NULL};
    told t = {.evals = 0};
    train_events events = {.context = &t};
    train_result r;
    static train_config c;
    sr_failure why = {0};
    small_write("q\nq\nq\nq\n", "a\nb\na\na\n", "q\nq\n", "a\nb\n");
    small_parse(&c, args);
    *c.output = 0;
    check_ok(train_run(&c, "test", NULL, &events, &r, &why), &why);
    assert_string_equal(r.last.task->metric[1].name, "nll");
    assert_string_equal(r.last.task->metric[3].name, "accuracy");
    assert_int_equal(r.last.sum.tokens, 4);
    assert_int_equal(r.last.sum.unknown, 0);
    check_equals(r.last.value[3], 75);
    small_write("q\nr\n", "a\nb\n", "r\nq\n", "b\na\n");
    check_ok(train_run(&c, "test", NULL, &events, &r, &why), &why);
    check_equals(r.last.value[3], 100);
    check_below(r.last.value[1], 0.2);
    check_below(r.last.value[1], r.last.value[0]);
    small_write("q\nr\n", "a\nb\n", "q r\nr\n", "unheard a\nso\n");
    check_ok(train_run(&c, "test", NULL, &events, &r, &why), &why);
    assert_int_equal(r.last.sum.tokens, 5);
    assert_int_equal(r.last.sum.unknown, 2);
}

/* A signal between steps: the update is finished, and the valid file is marked incomplete. */
static void interruption(void **state) {
    (void)state;
    for (int passes = 1; passes <= 5; passes += 2) {
        const char *const args[] = {"--epochs", "3", "--update-freq", "2", "--final-tid", "--norm",
                                    "bn",       NULL};
        told t = {.stop_after = passes};
        train_result r;
        sr_failure why = {0};
        int64_t batches;
        double value[SR_FINAL_COUNT][32], *final[SR_FINAL_COUNT];
        for (int i = 0; i < SR_FINAL_COUNT; i++) final[i] = value[i];
        small_write_pairs(6);
        sr_runfile *f = run(&t, args, &r);
        assert_true(r.interrupted);
        assert_int_equal(r.steps, passes == 1 ? 2 : passes); /* epochs of 3 passes, updates of 2 */
        assert_int_equal(sr_run_get_info(f)->steps, r.steps);
        assert_string_equal(sr_run_get_info(f)->status, "interrupted");
        assert_string_equal(sr_run_get_info(f)->reason, "signal");
        check_ok(sr_run_final(f, &batches, final, &why), &why);
        assert_true(batches <= 0);
        sr_run_close(f);
    }
}

/* Metrics that were not measured are NaN: BLEU by default, batch statistics of other splits. */
static void not_measured(void **state) {
    (void)state;
    const char *const args[] = {"--epochs=1", "--validate-batch", "--test", "--testpref=valid",
                                NULL};
    told t = {0};
    train_result r;
    small_write_pairs(6);
    sr_run_close(run(&t, args, &r));
    const int bleu = task_metrics(r.last.task);
    assert_true(isfinite(r.last.value[0]) && isfinite(r.last.batch_value[0]));
    assert_true(isfinite(r.test.value[0]) && isnan(r.test.batch_value[0]));
    assert_true(isnan(r.last.value[bleu]) && isnan(r.test.value[bleu]));
}

#define STILL                                                                                      \
    "--lr=0", "--lr-scheduler=fixed", "--warmup-updates=0", "--epochs=2",                          \
        "--validate-interval-updates=2"

/* --validate-train N: evaluates the first N batches of epoch 0 as training steps see them, without
 * dropout, at every evaluation and for every norm. With constant weights the losses equal those
 * steps' losses. */
static void training_batches(void **state) {
    (void)state;
    small_write("a b c d\nb c d e\na a a b\nb d e e\nd a c e\ne e e e\nc b a a\nd c b b\n",
                "x y z v\nu x x x\nz z u u\nu v z z\nx x u v\ny y y y\nz z z z\nv u v u\n", "a b\n",
                "x y\n");
    for (int i = 0; i < 4; i++) {
        const char *norm = i % 2 ? "bn" : "ln", *dropout = i < 2 ? "0" : "0.3";
        const char *const still[] = {STILL, "--norm", norm, NULL};
        const char *const args[] = {STILL,   "--norm",
                                    norm,    "--dropout",
                                    dropout, "--attention-dropout",
                                    dropout, "--validate-train=3",
                                    NULL};
        train_result r;
        double loss[3], tokens = 0, sum = 0, evals[8];
        int64_t of_step[3];
        sr_failure why = {0};
        sr_runfile *f = small_run(still, NULL, &r);
        small_steps(f, "loss", 3, loss);
        check_ok(sr_run_step_ints(f, "tokens", 0, 3, of_step, &why), &why);
        for (int k = 0; k < 3; k++)
            sum += loss[k] * (double)of_step[k], tokens += (double)of_step[k];
        sr_run_close(f);
        f = small_run(args, NULL, &r);
        small_evals(f, "train_loss_batch", 8, evals);
        for (int k = 0; k < 8; k++)
            check_near_double("train_loss_batch", &evals[k], &(double){sum / tokens}, 1, 1e-6, 0);
        sr_run_close(f);
    }
}

/* N above the number of batches means all of them. Weights, running values and rows are the same as
 * without the option. */
static void training_batches_change_nothing(void **state) {
    (void)state;
    small_write_pairs(12);
    static const char *const norms[] = {"ln", "bn", "pn+ls", "un", "repbn"};
    for (int i = 0; i < 5; i++) {
        const char *const plain[] = {"--norm",
                                     norms[i],
                                     "--dropout",
                                     "0.2",
                                     "--epochs",
                                     "3",
                                     "--validate-interval-updates=1",
                                     NULL};
        const char *const args[] = {"--norm",
                                    norms[i],
                                    "--dropout",
                                    "0.2",
                                    "--epochs",
                                    "3",
                                    "--validate-interval-updates=1",
                                    "--validate-train=1000",
                                    NULL};
        train_result r, with;
        double loss[18], again[18];
        sr_runfile *f = small_run(plain, NULL, &r);
        small_steps(f, "loss", 18, loss);
        sr_run_close(f);
        f = small_run(args, NULL, &with);
        small_steps(f, "loss", 18, again);
        assert_memory_equal(loss, again, sizeof loss);
        assert_string_equal(r.digest, with.digest);
        assert_true(isnan(r.last.train_value[0]) && isfinite(with.last.train_value[0]));
        assert_string_equal(sr_run_find_metric(f, "train_nll_batch")->definition,
                            "training negative log-likelihood without smoothing, statistics of "
                            "each training batch, the same batches each time, without dropout");
        sr_run_close(f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_batches), cmocka_unit_test(training_batches_change_nothing),
        cmocka_unit_test(recorded_passes),  cmocka_unit_test(recorded_evaluations),
        cmocka_unit_test(evaluations),      cmocka_unit_test(embedding),
        cmocka_unit_test(two_embeddings),   cmocka_unit_test(accuracy),
        cmocka_unit_test(interruption),     cmocka_unit_test(not_measured)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
