/* test_shard_stats.c -- merges the statistics of a batch's shards into batch statistics: each
 * scalar by its definition. */
#include <math.h>
#include <string.h>

#include "observe/shard_stats.h"
#include "testing/check.h"

enum { PARTS = 3 };

/* Shards of 1, 0 and 3 rows; a shard without rows has NaN scalars. */
static void make_parts(parcel part[PARTS], double a, double b) {
    static const double rows[PARTS] = {1, 0, 3};
    for (int i = 0; i < PARTS; i++) {
        part[i] = (parcel){.rows = rows[i], .samples = rows[i] + 1, .padded = 2 * rows[i]};
        for (int s = 0; s < NORM_SCALAR_COUNT; s++)
            part[i].scalar[s] = i == 0 ? a : i == 2 ? b : NAN;
    }
}

static void expect(const char *what, double got, double want) {
    if (!(fabs(got - want) < 1e-12 * fabs(want)))
        fail_msg("%s: %.17g, expected %.17g", what, got, want);
}

static void merged_by_definition(void **state) {
    (void)state;
    parcel part[PARTS];
    make_parts(part, 2, 5);
    const parcel all = shard_stats_merge(part, PARTS);
    expect("rows", all.rows, 4);
    expect("samples", all.samples, 6);
    expect("padded", all.padded, 8);
    const double mean = (1 * 2.0 + 3 * 5.0) / 4, rms = sqrt((1 * 4.0 + 3 * 25.0) / 4),
                 length = sqrt(4.0 + 25.0);
    expect("g_mu", all.scalar[NORM_SCALAR_g_mu], rms);
    expect("g_sigma2", all.scalar[NORM_SCALAR_g_sigma2], rms);
    expect("g_psi2", all.scalar[NORM_SCALAR_g_psi2], rms);
    expect("dx_norm", all.scalar[NORM_SCALAR_dx_norm], length);
    expect("direct_norm", all.scalar[NORM_SCALAR_direct_norm], length);
    expect("dx_norm_bn", all.scalar[NORM_SCALAR_dx_norm_bn], length);
    expect("direct_norm_bn", all.scalar[NORM_SCALAR_direct_norm_bn], length);
    expect("Gamma_max", all.scalar[NORM_SCALAR_Gamma_max], 5);
    expect("row_grad_mean", all.scalar[NORM_SCALAR_row_grad_mean], mean);
    expect("row_exact_var", all.scalar[NORM_SCALAR_row_exact_var], mean);
}

/* A value missing in one shard is missing for the batch. */
static void not_a_number_stays(void **state) {
    (void)state;
    parcel part[PARTS];
    make_parts(part, NAN, 5);
    const parcel all = shard_stats_merge(part, PARTS);
    for (int s = 0; s < NORM_SCALAR_COUNT; s++) assert_true(isnan(all.scalar[s]));
}

static void no_rows(void **state) {
    (void)state;
    parcel part[PARTS];
    make_parts(part, 2, 5);
    const parcel none = shard_stats_merge(&part[1], 1);
    assert_true(none.rows == 0);
    for (int s = 0; s < NORM_SCALAR_COUNT; s++) assert_true(isnan(none.scalar[s]));
}

static void positions_weigh_by_rows(void **state) {
    (void)state;
    static const double position[PARTS][2] = {{1, -2}, {100, 100}, {5, 6}};
    parcel part[PARTS];
    double mean[2];
    make_parts(part, 0, 0);
    for (int i = 0; i < PARTS; i++) part[i].position = position[i];
    shard_stats_merge_positions(part, PARTS, 2, mean);
    expect("position 0", mean[0], 4);
    expect("position 1", mean[1], 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merged_by_definition),
        cmocka_unit_test(not_a_number_stays),
        cmocka_unit_test(no_rows),
        cmocka_unit_test(positions_weigh_by_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
