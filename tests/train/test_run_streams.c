/* Random streams of a seed: dropout, weights and data are independent, each micro-batch has new
 * dropout masks; a skipped update does not count for Adam. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "small_run.h"
#include "testing/check.h"

enum { PASSES = 6 };

typedef struct losses {
    double pass[PASSES];
} losses;

/* Each of two epochs has the same batch three times, without learning: only masks and weights can
 * make a difference. */
static losses same_batches(const char *dropout, const char *kind, int64_t seed, int64_t weights) {
    const char *const args[] = {
        "--lr",  "0", "--warmup-init-lr", "0", "--epochs", "2", "--update-freq", "3", kind,
        dropout, NULL};
    static train_config c;
    train_result r;
    losses l;
    small_write("a b c\na b c\na b c\na b c\na b c\na b c\n",
                "x y z\nx y z\nx y z\nx y z\nx y z\nx y z\n", NULL, NULL);
    small_parse(&c, args);
    c.seed = seed;
    c.model.seed = (uint64_t)weights;
    sr_runfile *f = small_train(&c, NULL, &r);
    assert_int_equal(sr_run_get_info(f)->steps, PASSES);
    assert_int_equal((int64_t)sr_run_get_info(f)->seed, seed);
    small_steps(f, "loss", PASSES, l.pass);
    sr_run_close(f);
    return l;
}

static bool differ(double a, double b) {
    return fabs(a - b) > 1e-5 * fabs(a);
}

static void masks(void **state) {
    (void)state;
    static const char *const kinds[] = {"--dropout", "--attention-dropout", "--relu-dropout"};
    for (int k = 0; k < 3; k++) {
        losses without = same_batches("0", kinds[k], 1, 1),
               other = same_batches("0", kinds[k], 2, 1), one = same_batches("0.3", kinds[k], 1, 1),
               again = same_batches("0.3", kinds[k], 1, 1),
               two = same_batches("0.3", kinds[k], 2, 1);
        for (int i = 0; i < PASSES; i++) {
            check_equals(without.pass[i], without.pass[0]);
            check_equals(without.pass[i], other.pass[i]);
            check_equals(one.pass[i], again.pass[i]);
            assert_true(differ(one.pass[i], two.pass[i]));
            for (int j = 0; j < i; j++) assert_true(differ(one.pass[i], one.pass[j]));
        }
    }
}

static void weights(void **state) {
    (void)state;
    losses a = same_batches("0", "--dropout", 1, 1), b = same_batches("0", "--dropout", 1, 2);
    assert_true(differ(a.pass[0], b.pass[0]));
}

/* Every epoch has the same batches, in its own order drawn from the seed; --seed sets weights and
 * data. */
static void order(void **state) {
    (void)state;
    double loss[3][16];
    bool epochs_differ = false, seeds_differ = false;
    for (int run = 0; run < 3; run++) {
        const char *const args[] = {"--lr", "0",      "--warmup-init-lr",   "0", "--epochs",
                                    "2",    "--seed", run == 1 ? "2" : "1", NULL};
        static train_config c;
        train_result r;
        small_write_pairs(16);
        small_parse(&c, args);
        assert_int_equal(c.data.seed, run == 1 ? 2 : 1);
        assert_int_equal(c.model.seed, run == 1 ? 2 : 1);
        c.model.seed = 1;
        if (run == 2) strcpy(c.data.batching, "sorted");
        sr_runfile *f = small_train(&c, NULL, &r);
        small_steps(f, "loss", 16, loss[run]);
        sr_run_close(f);
        double sum[2] = {0, 0};
        for (int i = 0; i < 16; i++) sum[i / 8] += loss[run][i];
        check_within(sum[0], sum[1], 1e-5 * sum[0]);
    }
    for (int i = 0; i < 8; i++) {
        epochs_differ = epochs_differ || differ(loss[0][i], loss[0][8 + i]);
        seeds_differ = seeds_differ || differ(loss[0][i], loss[1][i]);
        assert_false(differ(loss[2][i], loss[2][8 + i])); /* sorted: always the same */
    }
    assert_true(epochs_differ && seeds_differ);
}

/* -- Adam's count */

enum { SIDE = 32, RECORD = 1 + 3 * SIDE * SIDE };

/* Two images: one half bytes 0, half 200; one 100 everywhere, which is exactly their mean, so
 * normalization gives zero. */
static void write_images(void) {
    static unsigned char byte[2 * RECORD];
    char path[4096];
    for (int i = 0; i < 3 * SIDE * SIDE; i++) {
        byte[1 + i] = i / 2 % 2 ? 200 : 0;
        byte[RECORD + 1 + i] = 100;
    }
    snprintf(path, sizeof path, "%s/data_batch_1.bin", check_temporary());
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(byte, 1, sizeof byte, f), sizeof byte);
    assert_int_equal(fclose(f), 0);
}

/* Gradient norms of four updates and the stem's gains before each. */
static void run_images(const char *seed, double norm[4], float gamma[4 * 16]) {
    char directory[4096], output[4096];
    snprintf(directory, sizeof directory, "--data-dir=%s", check_temporary());
    snprintf(output, sizeof output, "--output=%s/images.h5", check_temporary());
    const char *const args[] = {"--model=resnet20",
                                directory,
                                output,
                                "--force",
                                "--threads=1",
                                "--norm=bn",
                                "--norm-eps=0",
                                "--data=cifar10",
                                "--batch-size=1",
                                "--no-augment",
                                "--optimizer=adam",
                                "--lr-scheduler=fixed",
                                "--warmup-updates=0",
                                "--lr=0.01",
                                "--weight-decay=0",
                                "--epochs=2",
                                "--record=all",
                                "--record-sites=stem",
                                "--seed",
                                seed,
                                NULL};
    static train_config c;
    train_result r;
    sr_failure why = {0};
    int count = 0, positional;
    while (args[count]) count++;
    check_ok(train_config_parse(&c, count, (char **)args, 0, &positional, &why), &why);
    sr_runfile *f = small_train(&c, NULL, &r);
    small_steps(f, "grad_norm", 4, norm);
    check_ok(sr_run_vector(f, "gamma", 0, 0, 4, gamma, &why), &why);
    sr_run_close(f);
}

/* BN without eps divides zero by zero for the second image, so its updates are skipped. The first
 * applied update has t = 1: Adam moves every weight by lr, up or down. */
static void skipped_updates_do_not_count(void **state) {
    (void)state;
    static const char *const seeds[] = {"1", "2", "3", "4", "5", "6", "7", "8"};
    double norm[4] = {0};
    float gamma[4 * 16];
    write_images();
    for (int i = 0; i < 8 && !isnan(norm[0]); i++) run_images(seeds[i], norm, gamma);
    assert_true(isnan(norm[0]) && isfinite(norm[1])); /* one of the seeds starts with that image */
    for (int k = 0; k < 16; k++) {
        check_equals(gamma[k], 1);
        check_equals(gamma[16 + k], 1);
        check_within(fabs((double)gamma[32 + k] - 1), 0.01, 1e-6);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(masks), cmocka_unit_test(weights),
                                       cmocka_unit_test(order),
                                       cmocka_unit_test(skipped_updates_do_not_count)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
