/* test_shards.c -- batches in shards, in one process. Without batch statistics the run equals a run
 * with whole batches; with them each shard has its own. Recorded statistics cover the first shard
 * or all; attentions, activations and pairs cover the whole batch. */
#include <math.h>
#include <string.h>

#include "small_run.h"
#include "testing/check.h"

enum { STEPS = 4 };

#define RUN(...) ((const char *const[]){__VA_ARGS__, "--max-steps", "4", NULL})

static void losses(const char *const *more, double loss[STEPS]) {
    train_result result;
    sr_runfile *f = small_run(more, NULL, &result);
    assert_int_equal(result.steps, STEPS);
    small_steps(f, "loss", STEPS, loss);
    sr_run_close(f);
}

static void rows_alone_are_those_of_the_batch(void **state) {
    (void)state;
    double whole[STEPS], shared[STEPS];
    small_write_pairs(40);
    losses(RUN("--norm", "ln", "--dropout", "0.4"), whole);
    for (int s = 2; s <= 5; s++) {
        char shares[8];
        snprintf(shares, sizeof shares, "%d", s);
        losses(RUN("--norm", "ln", "--dropout", "0.4", "--shards", shares), shared);
        for (int i = 0; i < STEPS; i++) check_within(shared[i], whole[i], 1e-5 * whole[i]);
    }
}

static void batch_statistics_are_of_shares(void **state) {
    (void)state;
    double whole[STEPS], shared[STEPS], again[STEPS];
    small_write_pairs(40);
    losses(RUN("--norm", "bn"), whole);
    losses(RUN("--norm", "bn", "--shards", "2"), shared);
    losses(RUN("--norm", "bn", "--shards", "2", "--record-shards"), again);
    check_apart(shared[0], whole[0], 1e-4);
    assert_memory_equal(shared, again, sizeof shared);
}

static double first_loss(const char *lambda, const char *scale) {
    double loss[STEPS];
    losses(RUN("--norm", "rbn", "--rbn-lambda-mean", lambda, "--rbn-lambda-std", "0", "--rbn-scale",
               scale, "--shards", "2"),
           loss);
    return loss[0];
}

static double first_tokens(void) {
    train_result result;
    int64_t tokens;
    sr_runfile *f = small_run(RUN("--norm", "rbn", "--shards", "2"), NULL, &result);
    assert_int_equal(sr_run_step_ints(f, "tokens", 0, 1, &tokens, NULL), SR_OK);
    sr_run_close(f);
    return (double)tokens;
}

/* The penalty per token is the summed one times the tokens of the whole batch, not of a shard. */
static void penalty_counts_tokens_of_the_batch(void **state) {
    (void)state;
    small_write_pairs(40);
    const double plain = first_loss("0", "sum"), summed = first_loss("0.1", "sum") - plain,
                 relative = first_loss("0.1", "mean") - plain, tokens = first_tokens();
    assert_true(summed > 1e-3);
    if (!(fabs(relative - tokens * summed) < 1e-4 * relative))
        fail_msg("penalty %.9g, not %.9g tokens times %.9g", relative, tokens, summed);
}

enum { WIDTH = 128 }; /* at most */

/* Mean of a site in the first step; its features. */
static int64_t mean_of(const sr_runfile *f, const char *name, float mu_B[WIDTH]) {
    const int64_t site = sr_run_find_site(f, name);
    assert_true(site >= 0);
    const int64_t width = sr_run_get_site(f, site)->width;
    assert_true(width <= WIDTH);
    assert_int_equal(sr_run_vector(f, "mu_B", site, 0, 1, mu_B, NULL), SR_OK);
    return width;
}

/* Two pairs of equal length per batch: the mean of both shards' means is the batch's mean. */
static void every_share_is_recorded(void **state) {
    (void)state;
    train_result result;
    float whole[WIDTH], first[WIDTH], second[WIDTH];
    small_write_pairs(40);
    sr_runfile *f = small_run(RUN("--norm", "bn", "--record", "all"), NULL, &result);
    const int64_t sites = sr_run_get_info(f)->sites, width = mean_of(f, "encoder.0.norm1", whole);
    assert_true(sr_run_find_site(f, "encoder.0.norm1@1") < 0);
    sr_run_close(f);
    f = small_run(RUN("--norm", "bn", "--shards", "2", "--record", "all", "--record-shards"), NULL,
                  &result);
    assert_int_equal(sr_run_get_info(f)->sites, 2 * sites);
    assert_string_equal(sr_run_get_info(f)->ranks, "the first shard of each batch (--shards); "
                                                   "attention, activations and pairs: all shards");
    mean_of(f, "encoder.0.norm1", first);
    mean_of(f, "encoder.0.norm1@1", second);
    for (int64_t k = 0; k < width; k++) {
        check_differs(first[k], second[k]);
        check_within(0.5 * (first[k] + second[k]), whole[k], 1e-5);
    }
    sr_run_close(f);
}

/* -- values of the whole batch ----------------------------------------------------------------- */

enum { TEXT = 2000, PAIRS = 600, WIDTH_OF_ALL = 16 };

/* `count` pairs of 2 to 9 words. */
static void write_uneven(int count) {
    char source[TEXT] = "", target[TEXT] = "";
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < 2 + i * 5 % 8; k++) strcat(source, k % 2 ? "a " : "b ");
        for (int k = 0; k < 2 + i * 3 % 7; k++) strcat(target, k % 3 ? "x " : "y ");
        strcat(source, "c\n");
        strcat(target, "z\n");
    }
    small_write(source, target, "b a c\n", "y x z\n");
}

static sr_runfile *run_in_shares(const char *norm, const char *shares) {
    train_result result;
    return small_run(RUN("--norm", norm, "--decoder-norm", "ln", "--dropout", "0.2", "--max-tokens",
                         "60", "--shards", shares, "--attention-stats", "--activations-every", "2",
                         "--final-tid", "--final-batches", "2", "--pairs", "600"),
                     NULL, &result);
}

/* Weights of the later steps differ by the rounding of sums of gradients. A median may leave its
 * bin, and entries are saturated by the lines of a few rows each. */
static bool agree(const char *name, int step, double a, double b) {
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    if (!strcmp(name, "saturated")) return fabs(a - b) < 0.05;
    const double tolerance = !strcmp(name, "x_median") ? 1e-2 : step == 0 ? 1e-6 : 1e-3;
    return fabs(a - b) <= tolerance * fabs(a);
}

static void compare_scalar(const sr_runfile *a, const sr_runfile *b, const char *name, int *found) {
    for (int64_t site = 0; site < sr_run_get_info(a)->sites; site++) {
        float x[STEPS], y[STEPS];
        assert_int_equal(sr_run_scalar(a, name, site, 0, STEPS, x, NULL), SR_OK);
        assert_int_equal(sr_run_scalar(b, name, site, 0, STEPS, y, NULL), SR_OK);
        for (int i = 0; i < STEPS; i++) {
            const double u = (double)x[i], v = (double)y[i];
            *found += !isnan(u);
            if (!agree(name, i, u, v))
                fail_msg("%s at site %d, step %d: %g of all, %g of shares", name, (int)site, i + 1,
                         u, v);
        }
    }
}

static void compare_pairs(const sr_runfile *a, const sr_runfile *b) {
    for (int64_t site = 0; site < sr_run_get_info(a)->sites; site++) {
        float x[2][PAIRS], y[2][PAIRS];
        int32_t feature[2][PAIRS];
        assert_int_equal(sr_run_pairs(a, site, x[0], y[0], feature[0], NULL), SR_OK);
        assert_int_equal(sr_run_pairs(b, site, x[1], y[1], feature[1], NULL), SR_OK);
        assert_memory_equal(feature[0], feature[1], sizeof feature[0]);
        for (int i = 0; i < PAIRS; i++) {
            assert_in_range(feature[0][i], 0, WIDTH_OF_ALL - 1);
            check_within((double)x[0][i], (double)x[1][i], 1e-3);
            check_within((double)y[0][i], (double)y[1][i], 1e-3);
        }
    }
}

/* Without batch statistics, shards record the same values as whole batches. */
static void whole_batches_are_recorded(void **state) {
    (void)state;
    static const char *const shares[] = {"2", "4"};
    write_uneven(60);
    sr_runfile *whole = run_in_shares("ln", "1");
    assert_string_equal(sr_run_get_info(whole)->ranks, "");
    for (int k = 0; k < 2; k++) {
        sr_runfile *shared = run_in_shares("ln", shares[k]);
        int found = 0, count = 0;
        for (const sr_run_declared *d; (d = sr_run_get_declared(whole, count)); count++)
            compare_scalar(whole, shared, d->name, &found);
        /* five numbers of 7 sites twice, two of 2 heads and of both of 3 attentions in every
           step */
        assert_int_equal(found, 5 * 7 * 2 + 2 * 3 * 3 * STEPS);
        compare_pairs(whole, shared);
        sr_run_close(shared);
    }
    sr_run_close(whole);
}

/* With statistics per shard, the recorded entries are the same as for whole batches; their outputs
 * differ. */
static void pairs_behind_batch_statistics(void **state) {
    (void)state;
    float x[2][PAIRS], y[2][PAIRS];
    int32_t feature[2][PAIRS];
    int other = 0;
    write_uneven(60);
    for (int k = 0; k < 2; k++) {
        sr_runfile *f = run_in_shares("bn", k ? "4" : "1");
        assert_int_equal(sr_run_pairs(f, 0, x[k], y[k], feature[k], NULL), SR_OK);
        sr_run_close(f);
    }
    assert_memory_equal(feature[0], feature[1], sizeof feature[0]);
    for (int i = 0; i < PAIRS; i++) {
        check_within((double)x[0][i], (double)x[1][i], 0.5);
        other += fabs((double)(y[0][i] - y[1][i])) > 0.01;
    }
    assert_true(other > PAIRS / 2);
}

static void refuse(const char *const *more, const char *text) {
    const train_events silent = {0};
    train_config c;
    train_result result;
    sr_failure why = {0};
    small_parse(&c, more);
    assert_int_equal(train_run(&c, "test", NULL, &silent, &result, &why), SR_USAGE);
    if (!strstr(why.text, text)) fail_msg("%s", why.text);
}

static void refused(void **state) {
    (void)state;
    small_write_pairs(10);
    refuse(RUN("--shards", "2", "--sync-norm"), "--sync-norm: 2 shards need 2 ranks, there are 1");
}

/* True when `names`, separated by commas, has the name. */
static bool has_name(const char *names, const char *name) {
    char list[256], word[64];
    snprintf(list, sizeof list, ", %s,", names);
    snprintf(word, sizeof word, " %s,", name);
    return strstr(list, word) != NULL;
}

/* --sync-norm rejects each method over a batch that does not synchronize, and hints at all that
   do. */
static void methods_that_synchronize(void **state) {
    (void)state;
    static const char use[] = "use one of ";
    int rejected = 0;
    small_write_pairs(10);
    for (int i = 0; norm_at(i); i++) {
        const norm_method *m = norm_at(i);
        const train_events silent = {0};
        train_config c;
        train_result result;
        sr_failure why = {0};
        if (m->synchronises || strcmp(m->axis, "batch") != 0) continue;
        small_parse(&c, RUN("--norm", m->name, "--sync-norm"));
        assert_int_equal(train_run(&c, "test", NULL, &silent, &result, &why), SR_USAGE);
        if (!strstr(why.text, m->name)) fail_msg("%s", why.text);
        assert_memory_equal(why.hint, use, strlen(use));
        for (int k = 0; norm_at(k); k++)
            if (has_name(why.hint + strlen(use), norm_at(k)->name) != norm_at(k)->synchronises)
                fail_msg("%s: %s", norm_at(k)->name, why.hint);
        rejected++;
    }
    assert_true(rejected > 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_alone_are_those_of_the_batch),
                                       cmocka_unit_test(batch_statistics_are_of_shares),
                                       cmocka_unit_test(penalty_counts_tokens_of_the_batch),
                                       cmocka_unit_test(every_share_is_recorded),
                                       cmocka_unit_test(whole_batches_are_recorded),
                                       cmocka_unit_test(pairs_behind_batch_statistics),
                                       cmocka_unit_test(refused),
                                       cmocka_unit_test(methods_that_synchronize)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
