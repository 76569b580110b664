/* Pairs of input and output in /final: values are read back, copied and checked. Mistakes are
 * rejected. The projected size includes them. */
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing/check.h"
#include "testing/run_builder.h"
#include "testing/sample_run.h"

enum { K = 5, BARE = 2 }; /* site BARE has no pairs */

static sr_recorder *create(const char *name) {
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0, o.force = o.final = true, o.pairs = K;
    sr_recorder *r = sample_begin(sample_path(name), &o);
    return r;
}

/* The last y is NaN: its gain is 0. */
static void pairs_of(int site, float *x, float *y, int32_t *feature) {
    for (int i = 0; i < K; i++) {
        const bool none = site == BARE;
        x[i] = none ? NAN : (float)(site + 0.125 * i);
        y[i] = none || i == K - 1 ? NAN : (float)(-site - 0.5 * i);
        feature[i] = none ? -1 : (int32_t)(i % sample_sites[site].width);
    }
}

static void put(sr_recorder *r, int sites, bool passed) {
    const double mean[] = {0.5, NAN, 0.25, NAN};
    const double *const value[SR_FINAL_COUNT] = {mean, mean};
    float x[K], y[K];
    int32_t feature[K];
    for (int site = 0; site < sites; site++) {
        pairs_of(site, x, y, feature);
        if (site != BARE) check_ok(sr_put_pairs(r, site, x, y, feature), sr_failed(r));
    }
    if (passed) check_ok(sr_put_final(r, 7, value), sr_failed(r));
}

static void write_run(const char *name) {
    sr_recorder *r = create(name);
    check_ok(sample_steps(r, 1, 3, 0), sr_failed(r));
    put(r, SAMPLE_SITES, true);
    run_finish(r);
}

/* lost: a site whose pairs could not be copied. */
static void check_pairs(const char *name, int lost) {
    sr_runfile *f = sample_open(sample_path(name));
    sr_failure why = {0};
    assert_int_equal(sr_run_get_info(f)->pairs, K);
    for (int site = 0; site < SAMPLE_SITES; site++) {
        float x[K], y[K], want_x[K], want_y[K];
        int32_t feature[K], want[K];
        pairs_of(site == lost ? BARE : site, want_x, want_y, want);
        check_ok(sr_run_pairs(f, site, x, y, feature, &why), &why);
        for (int i = 0; i < K; i++) {
            assert_int_equal(feature[i], want[i]);
            assert_true(x[i] == want_x[i] || (isnan(x[i]) && isnan(want_x[i])));
            assert_true(y[i] == want_y[i] || (isnan(y[i]) && isnan(want_y[i])));
        }
    }
    sr_run_close(f);
}

static void round_trip(void **state) {
    (void)state;
    sr_failure why = {0};
    float x[K], y[K];
    int32_t feature[K];
    write_run("trip.h5");
    check_pairs("trip.h5", -1);
    check_ok(sr_run_check(sample_path("trip.h5"), &why), &why);
    sr_runfile *f = sample_open(sample_path("trip.h5"));
    assert_string_equal(sr_run_definition(f, "final/pair_feature"),
                        "feature of the entry, from 0; -1: the site kept no pairs");
    assert_int_equal(sr_run_pairs(f, -1, x, y, feature, &why), SR_USAGE);
    why = (sr_failure){0};
    assert_int_equal(sr_run_pairs(f, SAMPLE_SITES, x, y, feature, &why), SR_USAGE);
    sr_run_close(f);
}

static void not_asked_for(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_options o = SR_OPTIONS_DEFAULT;
    float x[K], y[K];
    int32_t feature[K];
    o.overhead = 0, o.final = true;
    sr_recorder *r = sample_create(sample_path("none.h5"), &o, &why);
    check_ok(sample_steps(r, 1, 3, 0), sr_failed(r));
    run_finish(r);
    sr_runfile *f = sample_open(sample_path("none.h5"));
    assert_int_equal(sr_run_get_info(f)->pairs, 0);
    assert_int_equal(sr_run_pairs(f, 0, x, y, feature, &why), SR_USAGE);
    sr_run_close(f);
}

/* -- mistakes -------------------------------------------------------------------------------- */

static void refused(int32_t feature_of_second, float x_of_second, const char *part) {
    float x[K] = {1, x_of_second, 1, 1, 1}, y[K] = {NAN, NAN, 1, 1, 1};
    int32_t feature[K] = {0, feature_of_second, 0, 0, 0};
    sr_recorder *r = create("mistake.h5");
    assert_int_equal(sr_put_pairs(r, 0, x, y, feature), SR_USAGE);
    check_failure(sr_failed(r), SR_USAGE, part);
    sr_abandon(r);
}

static void mistakes(void **state) {
    (void)state;
    const float x[K] = {0};
    const int32_t feature[K] = {0};
    sr_failure why = {0};
    sr_options o = SR_OPTIONS_DEFAULT;
    refused((int32_t)sample_sites[0].width, 1, "a feature that the site does not have");
    refused(-2, 1, "a feature that the site does not have");
    refused(-1, NAN, "-1 at some of its pairs alone");
    sr_recorder *r = create("mistake.h5");
    assert_int_equal(sr_put_pairs(r, SAMPLE_SITES, x, x, feature), SR_USAGE);
    sr_abandon(r);
    r = create("mistake.h5");
    assert_int_equal(sr_put_pairs(r, 0, x, NULL, feature), SR_USAGE);
    sr_abandon(r);
    o.overhead = 0, o.force = o.final = true;
    r = sample_create(sample_path("mistake.h5"), &o, &why);
    assert_int_equal(sr_put_pairs(r, 0, x, x, feature), SR_STATE);
    check_failure(sr_failed(r), SR_STATE, "without sr_options.pairs");
    sr_abandon(r);
    o.final = false, o.pairs = 3;
    assert_null(sr_create(sample_path("mistake.h5"), &o, &why));
    check_failure(&why, SR_USAGE, "pairs 3 without final");
    why = (sr_failure){0};
    o.final = true, o.pairs = -3;
    assert_null(sr_create(sample_path("mistake.h5"), &o, &why));
    check_failure(&why, SR_USAGE, "pairs -3");
}

/* Three columns of four bytes, and their backup copy. */
static void projected(void **state) {
    (void)state;
    int64_t bytes[2];
    for (int i = 0; i < 2; i++) {
        sr_options o = SR_OPTIONS_DEFAULT;
        o.overhead = 0, o.force = o.final = true, o.planned_steps = 10, o.pairs = 1000 * i;
        sr_recorder *r = sample_begin(sample_path("size.h5"), &o);
        bytes[i] = sr_projected_bytes(r);
        sr_abandon(r);
    }
    assert_int_equal(bytes[1] - bytes[0], 2 * 12 * 1000 * SAMPLE_SITES);
}

/* -- faults that the check finds, and the remaining values ----------------------------------- */

static void write_at(hid_t file, const char *name, int64_t site, int64_t pair, double value) {
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(set);
    hid_t memory = H5Screate(H5S_SCALAR);
    hsize_t at[2] = {(hsize_t)site, (hsize_t)pair}, one[2] = {1, 1};
    H5Sselect_hyperslab(space, H5S_SELECT_SET, at, NULL, one, NULL);
    assert_true(H5Dwrite(set, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, &value) >= 0);
    H5Sclose(memory), H5Sclose(space), H5Dclose(set);
}

static void spoil(const char *path, const char *dataset, int64_t site, double value) {
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(file >= 0);
    if (site < 0)
        assert_true(H5Ldelete(file, dataset, H5P_DEFAULT) >= 0);
    else
        write_at(file, dataset, site, 1, value);
    assert_true(H5Fclose(file) >= 0);
}

typedef struct told {
    char text[SR_FAILURE_TEXT], dataset[64];
} told;

static void tell(void *context, const char *dataset, int64_t rows, const char *reason) {
    told *t = context;
    assert_int_equal(rows, -1);
    snprintf(t->text, sizeof t->text, "%s", reason);
    snprintf(t->dataset, sizeof t->dataset, "%s", dataset);
}

static void checked(void **state) {
    (void)state;
    static const struct {
        const char *dataset, *text, *lost; /* lost: what recover names, "": the features */
        int64_t site;
        double value;
    } faults[] = {
        {"/final/pair_feature", "a feature that the site does not have", "", 0, 1e6},
        {"/final/pair_feature", "a feature that the site does not have", "", 3, -2},
        {"/final/pair_feature", "-1 at some of its pairs alone", "", 1, -1},
        {"/final/pair_x", "-1 at pairs that have values", "", BARE, 1},
        {"/final/pair_y", "-1 at pairs that have values", "", BARE, 1},
        {"/final/pair_y", "no dataset /final/pair_y", "/final/pair_y", -1, 0},
    };
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        sr_failure why = {0};
        told lost = {"", ""};
        sr_recovery count = {.size = sizeof(sr_recovery)};
        const char *text = faults[i].text;
        write_run("spoilt.h5");
        spoil(sample_path("spoilt.h5"), faults[i].dataset, faults[i].site, faults[i].value);
        assert_int_equal(sr_run_check(sample_path("spoilt.h5"), &why), SR_FORMAT);
        check_failure(&why, SR_FORMAT, text);
        why = (sr_failure){0};
        check_ok(sr_run_recover_report(sample_path("spoilt.h5"), sample_path("mended.h5"), true, -1,
                                       &count, tell, &lost, &why),
                 &why);
        assert_non_null(strstr(lost.text, text));
        assert_string_equal(lost.dataset, *faults[i].lost ? faults[i].lost : "/final/pair_feature");
        if (faults[i].site >= 0) check_pairs("mended.h5", (int)faults[i].site);
        remove(sample_path("spoilt.h5"));
    }
}

static void recovered(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_recovery count = {.size = sizeof(sr_recovery)};
    write_run("whole.h5");
    check_ok(
        sr_run_recover(sample_path("whole.h5"), sample_path("copy.h5"), false, -1, &count, &why),
        &why);
    check_pairs("copy.h5", -1);
}

/* Without the final pass a file must not have pairs. */
static void without_pass(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_recorder *r = create("cut.h5");
    check_ok(sample_steps(r, 1, 3, 0), sr_failed(r));
    put(r, 1, false);
    run_finish(r);
    assert_int_equal(sr_run_check(sample_path("cut.h5"), &why), SR_FORMAT);
    check_failure(&why, SR_FORMAT, "/final/pair_feature: ");
    check_failure(&why, SR_FORMAT, "values without a pass");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),   cmocka_unit_test(not_asked_for),
        cmocka_unit_test(mistakes),     cmocka_unit_test(projected),
        cmocka_unit_test(checked),      cmocka_unit_test(recovered),
        cmocka_unit_test(without_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
