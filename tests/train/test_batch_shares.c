/* test_batch_shares.c -- batches in shares, in one process: without batch statistics the run is that of whole
 * batches, with them each share has its own; what is recorded is the first share's, or all of them. */
#include <math.h>
#include <string.h>

#include "../check.h"
#include "small_run.h"

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
        losses(RUN("--norm", "ln", "--dropout", "0.4", "--shares", shares), shared);
        for (int i = 0; i < STEPS; i++) assert_true(fabs(shared[i] - whole[i]) < 1e-5 * whole[i]);
    }
}

static void batch_statistics_are_of_shares(void **state) {
    (void)state;
    double whole[STEPS], shared[STEPS], again[STEPS];
    small_write_pairs(40);
    losses(RUN("--norm", "bn"), whole);
    losses(RUN("--norm", "bn", "--shares", "2"), shared);
    losses(RUN("--norm", "bn", "--shares", "2", "--record-ranks"), again);
    assert_true(fabs(shared[0] - whole[0]) > 1e-4);
    assert_memory_equal(shared, again, sizeof shared);
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

/* Two pairs of one length in a batch: the mean of both shares' means is that of the batch. */
static void every_share_is_recorded(void **state) {
    (void)state;
    train_result result;
    float whole[WIDTH], first[WIDTH], second[WIDTH];
    small_write_pairs(40);
    sr_runfile *f = small_run(RUN("--norm", "bn", "--record", "all"), NULL, &result);
    const int64_t sites = sr_run_get_info(f)->sites, width = mean_of(f, "encoder.0.norm1", whole);
    assert_true(sr_run_find_site(f, "encoder.0.norm1@1") < 0);
    sr_run_close(f);
    f = small_run(RUN("--norm", "bn", "--shares", "2", "--record", "all", "--record-ranks"), NULL,
                  &result);
    assert_int_equal(sr_run_get_info(f)->sites, 2 * sites);
    assert_string_equal(sr_run_get_info(f)->ranks, "the first share of each batch (--shares)");
    mean_of(f, "encoder.0.norm1", first);
    mean_of(f, "encoder.0.norm1@1", second);
    for (int64_t k = 0; k < width; k++) {
        assert_true(first[k] != second[k]);
        assert_true(fabs(0.5 * (first[k] + second[k]) - whole[k]) < 1e-5);
    }
    sr_run_close(f);
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
    refuse(RUN("--shares", "2", "--sync-norm"), "2 shares need 2 ranks, there are 1");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_alone_are_those_of_the_batch),
                                       cmocka_unit_test(batch_statistics_are_of_shares),
                                       cmocka_unit_test(every_share_is_recorded),
                                       cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
