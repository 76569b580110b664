/* test_loaded_model.c -- checkpoints without their run: the mean of several, recomputed running
 * statistics, the training-inference discrepancy, weights from other sources. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "small_run.h"
#include "testing/check.h"
#include "train/loaded_model.h"
#include "train/trainer.h"

static char *path_of(const char *name) {
    static char path[8][600];
    static int used;
    char *p = path[used++ % 8];
    snprintf(p, 600, "%s/%s", check_temporary(), name);
    return p;
}

static void train(const char *const *more) {
    train_result r;
    sr_runfile *f = small_run(more, NULL, &r);
    sr_run_close(f);
}

static loaded_model *open_trained(const char *name) {
    sr_failure why = {0};
    loaded_model *t = malloc(sizeof *t);
    assert_non_null(t);
    check_ok(loaded_model_open(t, path_of(name),
                               &(loaded_model_options){.data_dir = "", .threads = 1}, &why),
             &why);
    return t;
}

static void close_trained(loaded_model *t) {
    loaded_model_close(t);
    free(t);
}

static norm_site *site_of(const loaded_model *t, const char *name) {
    for (int i = 0; i < t->model->sites; i++)
        if (!strcmp(t->model->site[i]->name, name)) return t->model->site[i];
    fail_msg("no site %s", name);
    return NULL;
}

static double evaluate(loaded_model *t, data_split split, norm_mode mode) {
    task_sums sum;
    sr_failure why = {0};
    check_ok(loaded_model_open_data(t, &why), &why);
    check_ok(task_evaluate(t->task, &t->task_options, t->model, t->tape, t->data, split, mode, &sum,
                           &why),
             &why);
    return sum.loss / (double)sum.tokens;
}

#define RUN                                                                                        \
    "--norm", "bn", "--norm-at", "decoder.*=pnv", "--lr", "0.05", "--lr-scheduler", "fixed",       \
        "--warmup-updates", "0"

/* The checkpoint reproduces the run's last validation. */
static void same_as_run(void **state) {
    (void)state;
    const char *const args[] = {RUN, "--epochs", "3", "--checkpoint-every", "end", NULL};
    train_result r;
    small_write_pairs(8);
    sr_runfile *f = small_run(args, NULL, &r);
    sr_run_close(f);
    loaded_model *t = open_trained("small.h5");
    assert_int_equal(t->updates, r.updates);
    check_equals(evaluate(t, SPLIT_VALID, NORM_RUNNING), r.last.value[0]);
    close_trained(t);
}

/* Loss with batch statistics at site i alone; at every site: -1. */
static double loss_without_running(loaded_model *t, int i) {
    for (int k = 0; k < t->model->sites; k++) t->model->site[k]->never_running = i < 0 || k == i;
    const double loss = evaluate(t, SPLIT_VALID, NORM_RUNNING);
    for (int k = 0; k < t->model->sites; k++) t->model->site[k]->never_running = false;
    return loss;
}

/* Batch statistics first repair the loss at the site with spoilt running statistics; later sites
 * remove the shift again. Batch statistics at every site equal NORM_BATCH. */
static void spoilt_site_is_found(void **state) {
    (void)state;
    const char *const args[] = {RUN, "--epochs", "3", "--checkpoint-every", "end", NULL};
    train(args);
    loaded_model *t = open_trained("small.h5");
    const double of_batch = evaluate(t, SPLIT_VALID, NORM_BATCH);
    const double running = evaluate(t, SPLIT_VALID, NORM_RUNNING);
    check_equals(loss_without_running(t, -1), of_batch);
    check_differs(running, of_batch);
    norm_site *spoilt = site_of(t, "encoder.0.norm2");
    for (int64_t k = 0; k < spoilt->features; k++) spoilt->state[0][k] += k % 2 ? 9 : -9;
    const double bad = evaluate(t, SPLIT_VALID, NORM_RUNNING);
    check_above(bad, running + 0.1);
    assert_true(spoilt->depth > 0);
    for (int i = 0; i <= spoilt->depth; i++) {
        const double mended = (bad - loss_without_running(t, i)) / (bad - running);
        if (i == spoilt->depth ? mended < 0.5 : mended > 0.5)
            fail_msg("%s mends %g", t->model->site[i]->name, mended);
    }
    check_equals(evaluate(t, SPLIT_VALID, NORM_RUNNING), bad);
    close_trained(t);
}

/* Every value is the mean over the checkpoints. */
static void mean_of_three(void **state) {
    (void)state;
    const char *const args[] = {RUN,  "--epochs", "3", "--checkpoint-every",
                                "1e", "--keep",   "9", NULL};
    sr_failure why = {0};
    small_write_pairs(8);
    train(args);
    char *name[3] = {path_of("small-0000004.ckpt"), path_of("small-0000008.ckpt"),
                     path_of("small-0000012.ckpt")};
    loaded_model *all[3] = {open_trained("small-0000004.ckpt"), open_trained("small-0000008.ckpt"),
                            open_trained("small-0000012.ckpt")};
    loaded_model *mean = open_trained("small-0000012.ckpt");
    check_ok(loaded_model_average(mean, name, 3, &why), &why);
    bool differ = false;
    for (int i = 0; i < mean->model->params.count; i++)
        for (int64_t k = 0; k < mean->model->params.item[i]->t.count; k++) {
            double sum = 0;
            for (int c = 0; c < 3; c++) sum += (double)all[c]->model->params.item[i]->t.value[k];
            check_equals(mean->model->params.item[i]->t.value[k], (real)(sum / 3));
            differ |= all[0]->model->params.item[i]->t.value[k] != (real)(sum / 3);
        }
    assert_true(differ);
    for (int i = 0; i < mean->model->sites; i++) {
        const norm_site *s = mean->model->site[i];
        for (int v = 0; v < NORM_STATE_MAX && s->state[v]; v++)
            for (int64_t k = 0; k < s->state_count[v]; k++) {
                double sum = 0;
                for (int c = 0; c < 3; c++) sum += all[c]->model->site[i]->state[v][k];
                check_within_inclusive(s->state[v][k], sum / 3, 1e-15 * fabs(sum));
            }
    }
    for (int c = 0; c < 3; c++) close_trained(all[c]);
    close_trained(mean);
}

/* With one batch of training data, the recomputed running statistics are that batch's. Evaluation
 * then equals evaluation with batch statistics, and the discrepancy is zero. */
static void recomputed_from_one_batch(void **state) {
    (void)state;
    const char *const args[] = {RUN,   "--epochs",    "6",          "--max-tokens",
                                "64",  "--keep-best", "valid_loss", "--checkpoint-every",
                                "end", NULL};
    sr_failure why = {0};
    small_write_pairs(8);
    train(args);
    loaded_model *t = open_trained("small.h5");
    double mean[32], var[32];
    check_ok(loaded_model_open_data(t, &why), &why);
    assert_int_equal(data_batches(t->data, SPLIT_TRAIN), 1);
    check_ok(loaded_model_tid(t, 0, mean, var, &why), &why);
    check_above(mean[0], 0.01);
    check_above(var[0], 0.01); /* 6 passes are few for alpha 0.95 */
    const double before = evaluate(t, SPLIT_TRAIN, NORM_RUNNING);
    const double of_batch = evaluate(t, SPLIT_TRAIN, NORM_BATCH);
    const int64_t calls = site_of(t, "encoder.0.norm1")->calls;
    const double alpha = site_of(t, "encoder.0.norm1")->options.alpha;
    check_ok(loaded_model_recompute(t, 0, &why), &why);
    assert_int_equal(site_of(t, "encoder.0.norm1")->calls, calls);
    check_equals(site_of(t, "encoder.0.norm1")->options.alpha, alpha);
    check_apart(before, of_batch, 1e-3);
    check_within(evaluate(t, SPLIT_TRAIN, NORM_RUNNING), of_batch, 1e-5);
    check_ok(loaded_model_tid(t, 0, mean, var, &why), &why);
    check_below(mean[0], 1e-6);
    check_below(var[0], 1e-6);
    close_trained(t);
}

/* All batches have equal weight: with the batches in halves, the result is the mean of the
 * halves. */
static void recomputed_as_mean(void **state) {
    (void)state;
    const char *const args[] = {RUN, "--epochs", "2", "--checkpoint-every", "end", NULL};
    sr_failure why = {0};
    double first[16], both[16], sigma2[16];
    small_write_pairs(4);
    train(args);
    loaded_model *t = open_trained("small.h5");
    const norm_site *s = site_of(t, "encoder.0.norm1");
    check_ok(loaded_model_open_data(t, &why), &why);
    assert_int_equal(data_batches(t->data, SPLIT_TRAIN), 2);
    check_ok(loaded_model_recompute(t, 1, &why), &why);
    memcpy(first, s->state[0], sizeof first), memcpy(sigma2, s->state[1], sizeof sigma2);
    check_ok(loaded_model_recompute(t, 2, &why), &why);
    memcpy(both, s->state[0], sizeof both);
    double mean[32], var[32];
    for (int k = 0; k < 16; k++) { /* the second batch's */
        s->state[0][k] = 2 * both[k] - first[k];
        s->state[1][k] = 1;
    }
    bool moved = false;
    for (int k = 0; k < 16; k++) moved |= fabs(both[k] - first[k]) > 1e-4;
    assert_true(moved);
    check_ok(loaded_model_tid(t, 1, mean, var, &why), &why);
    double far = 0, wide = 0;
    for (int k = 0; k < 16; k++) far += pow(2 * both[k] - 2 * first[k], 2);
    for (int k = 0; k < 16; k++) wide += pow(sqrt(sigma2[k]) - 1, 2);
    check_within(mean[0], sqrt(far) / 4, 1e-6); /* ||sqrt(1)||_2 of 16 is 4 */
    check_above(wide, 0.01);
    check_within(var[0], sqrt(wide) / 4, 1e-6);
    close_trained(t);
}

/* The same numbers after a round trip through a NumPy archive. */
static void through_npz(void **state) {
    (void)state;
    const char *const args[] = {RUN, "--epochs", "2", "--checkpoint-every", "end", NULL};
    sr_failure why = {0};
    small_write_pairs(4);
    train(args);
    loaded_model *t = open_trained("small.h5");
    const double loss = evaluate(t, SPLIT_VALID, NORM_RUNNING);
    check_ok(weights_write_npz(t->model, path_of("w.npz"), true, &why), &why);
    for (int i = 0; i < t->model->params.count; i++)
        memset(t->model->params.item[i]->t.value, 0,
               (size_t)t->model->params.item[i]->t.count * sizeof(real));
    for (int i = 0; i < t->model->sites; i++) t->model->site[i]->state[0][0] = 77;
    check_ok(weights_read(t->model, path_of("w.npz"), &why), &why);
    check_equals(evaluate(t, SPLIT_VALID, NORM_RUNNING), loss);
    close_trained(t);
}

/* -- the digest */

static void expect_another(model *m, unsigned char *byte) {
    char before[32], after[32];
    trainer_digest(m, before);
    *byte ^= 1;
    trainer_digest(m, after);
    assert_string_not_equal(before, after);
    *byte ^= 1;
    trainer_digest(m, after);
    assert_string_equal(before, after);
}

/* The digest changes if and only if a parameter changes. */
static void digest_of_parameters(void **state) {
    (void)state;
    const char *const args[] = {RUN, "--epochs", "1", "--checkpoint-every", "end", NULL};
    char before[32], after[32];
    small_write_pairs(4);
    train(args);
    loaded_model *t = open_trained("small.h5");
    trainer_parameters_digest(t->model, before);
    site_of(t, "encoder.0.norm1")->state[0][0] += 1;
    trainer_parameters_digest(t->model, after);
    assert_string_equal(before, after);
    t->model->params.item[0]->t.value[0] += 1;
    trainer_parameters_digest(t->model, after);
    assert_string_not_equal(before, after);
    close_trained(t);
}

/* The first and the last byte of every parameter and running value count. */
static void digest_of_everything(void **state) {
    (void)state;
    const char *const args[] = {RUN, "--epochs", "1", "--checkpoint-every", "end", NULL};
    small_write_pairs(4);
    train(args);
    loaded_model *t = open_trained("small.h5");
    model *m = t->model;
    for (int i = 0; i < m->params.count; i++) {
        const tensor *p = &m->params.item[i]->t;
        expect_another(m, (unsigned char *)p->value);
        expect_another(m, (unsigned char *)(p->value + p->count) - 1);
    }
    for (int i = 0; i < m->sites; i++)
        for (int k = 0; k < NORM_STATE_MAX && m->site[i]->state[k]; k++) {
            double *v = m->site[i]->state[k];
            expect_another(m, (unsigned char *)v);
            expect_another(m, (unsigned char *)(v + m->site[i]->state_count[k]) - 1);
        }
    close_trained(t);
}

/* -- archives */

static void add_array(npz_writer *w, const char *name, int rank, const int64_t *dim) {
    sr_failure why = {0};
    npz_array a = {.type = NPZ_FLOAT64, .rank = rank};
    for (int i = 0; i < rank; i++) a.dim[i] = dim[i];
    a.data = calloc((size_t)npz_count(&a) + 1, sizeof(double));
    check_ok(npz_add(w, name, &a, &why), &why);
    free(a.data);
}

/* The name occurs before the array and in the central directory of the archive. */
static void rename_array(const char *path, const char *from, const char *to) {
    static char all[1 << 20];
    const size_t length = strlen(from);
    int places = 0;
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    const size_t size = fread(all, 1, sizeof all, f);
    assert_in_range(size, length, sizeof all - 1);
    for (size_t i = 0; i + length <= size; i++)
        if (!memcmp(all + i, from, length)) memcpy(all + i, to, length), places++;
    assert_int_equal(places, 2);
    rewind(f);
    assert_int_equal(fwrite(all, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

/* An archive that lacks a parameter, has another shape, a foreign array, or a duplicate. */
static void refused_archives(void **state) {
    (void)state;
    const char *const args[] = {RUN, "--epochs", "1", "--checkpoint-every", "end", NULL};
    static const char *const says[] = {"has no array", "its shape differs", "bogus is no parameter",
                                       "has an array of the model twice"};
    char twin[PARAM_NAME];
    small_write_pairs(4);
    train(args);
    loaded_model *t = open_trained("small.h5");
    const params *p = &t->model->params;
    sr_failure missing = {0};
    weights_read(t->model, "none", &missing);
    check_failure(&missing, SR_IO, "none: ");
    for (int wrong = 0; wrong < 4; wrong++) {
        sr_failure why = {0};
        npz_writer *w = npz_create(path_of("wrong.npz"), true, &why);
        assert_non_null(w);
        for (int i = 0; i < p->count; i++) {
            int64_t dim[4];
            for (int k = 0; k < 4; k++) dim[k] = p->item[i]->t.dim[k];
            if (i == 3 && wrong == 0) continue;
            if (i == 3 && wrong == 1) dim[0]++;
            add_array(w, p->item[i]->name, p->item[i]->t.rank, dim);
        }
        if (wrong == 2) add_array(w, "bogus", 1, (int64_t[]){2});
        snprintf(twin, sizeof twin, "%s", p->item[0]->name);
        twin[strlen(twin) - 1]++;
        if (wrong == 3) add_array(w, twin, 1, (int64_t[]){2});
        check_ok(npz_write(w, &why), &why);
        if (wrong == 3) rename_array(path_of("wrong.npz"), twin, p->item[0]->name);
        assert_int_equal(weights_read(t->model, path_of("wrong.npz"), &why), SR_FORMAT);
        check_failure(&why, SR_FORMAT, says[wrong]);
    }
    close_trained(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_as_run),          cmocka_unit_test(spoilt_site_is_found),
        cmocka_unit_test(mean_of_three),        cmocka_unit_test(recomputed_from_one_batch),
        cmocka_unit_test(recomputed_as_mean),   cmocka_unit_test(through_npz),
        cmocka_unit_test(digest_of_everything), cmocka_unit_test(digest_of_parameters),
        cmocka_unit_test(refused_archives)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
