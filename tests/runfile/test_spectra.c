/* /spectra and /final: values are read back, copied and checked; mistakes are rejected. A file
 * without them reads as one without rows. */
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing/check.h"
#include "testing/run_builder.h"
#include "testing/sample_run.h"

static sr_recorder *create(const char *name) {
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    o.spectra = o.final = true;
    sr_recorder *r = sample_begin(sample_path(name), &o);
    check_ok(sr_set_embedding_method(r, "shared", "an example"), sr_failed(r));
    return r;
}

static double spectrum_of(int64_t step, int site, int which, int64_t k) {
    return (double)step + 100 * site + 1000 * which - 0.125 * (double)k;
}

/* Site 2 has no spectrum; site 1 has no gradient. */
static void put_spectra(sr_recorder *r, int64_t step) {
    double value[SR_SPECTRUM_COUNT][SAMPLE_WIDTH];
    sr_begin_step(r, step);
    for (int site = 0; site < SAMPLE_SITES; site++) {
        const double *put[SR_SPECTRUM_COUNT] = {value[0], site == 1 ? NULL : value[1]};
        for (int i = 0; i < SR_SPECTRUM_COUNT; i++)
            for (int64_t k = 0; k < sample_sites[site].width; k++)
                value[i][k] = spectrum_of(step, site, i, k);
        if (site != 2) sr_put_spectrum(r, site, 50 + site, put);
    }
    sr_step row = sample_row(step);
    check_ok(sr_end_step(r, &row), sr_failed(r));
}

static void put_final(sr_recorder *r) {
    const double mean[] = {0.5, NAN, 0.25, NAN}, var[] = {2, NAN, 4, NAN};
    const double *const value[SR_FINAL_COUNT] = {mean, var};
    check_ok(sr_put_final(r, 7, value), sr_failed(r));
}

/* Spectra at every third step of 1 .. last. */
static void write_run(const char *name, int64_t last) {
    sr_recorder *r = create(name);
    for (int64_t step = 1; step <= last; step++) {
        if (step % 3)
            check_ok(sample_step(r, step), sr_failed(r));
        else
            put_spectra(r, step);
    }
    put_final(r);
    run_finish(r);
}

static void check_spectra(sr_runfile *f, int64_t count) {
    sr_failure why = {0};
    assert_int_equal(sr_run_get_info(f)->spectra, count);
    for (int64_t i = 0; i < count; i++)
        for (int site = 0; site < SAMPLE_SITES; site++)
            for (int which = 0; which < SR_SPECTRUM_COUNT; which++) {
                double got[SAMPLE_WIDTH], want[SAMPLE_WIDTH];
                int64_t step, rows, width = sample_sites[site].width;
                check_ok(sr_run_spectrum(f, (sr_spectrum)which, site, i, &step, &rows, got, &why),
                         &why);
                bool put = site != 2 && !(site == 1 && which == 1);
                assert_int_equal(step, 3 * (i + 1));
                assert_int_equal(rows, site == 2 ? -1 : 50 + site);
                for (int64_t k = 0; k < width; k++)
                    want[k] = put ? spectrum_of(step, site, which, k) : NAN;
                check_near_double("spectrum", got, want, width, 0, 0);
            }
}

static void check_final(sr_runfile *f) {
    sr_failure why = {0};
    double mean[SAMPLE_SITES], var[SAMPLE_SITES], *const value[SR_FINAL_COUNT] = {mean, var};
    const double means[] = {0.5, NAN, 0.25, NAN}, vars[] = {2, NAN, 4, NAN};
    int64_t batches;
    check_ok(sr_run_final(f, &batches, value, &why), &why);
    assert_int_equal(batches, 7);
    check_near_double("tid_mean", mean, means, SAMPLE_SITES, 0, 0);
    check_near_double("tid_var", var, vars, SAMPLE_SITES, 0, 0);
}

static void round_trip(void **state) {
    (void)state;
    sr_failure why = {0};
    write_run("trip.h5", 10);
    sr_runfile *f = sample_open(sample_path("trip.h5"));
    check_spectra(f, 3);
    check_final(f);
    double value[SAMPLE_WIDTH];
    int64_t step, rows;
    assert_int_equal(sr_run_spectrum(f, SR_SPECTRUM_input, 0, 3, &step, &rows, value, &why),
                     SR_USAGE);
    why = (sr_failure){0};
    assert_int_equal(sr_run_spectrum(f, SR_SPECTRUM_input, 4, 0, &step, &rows, value, &why),
                     SR_USAGE);
    sr_run_close(f);
    why = (sr_failure){0};
    check_ok(sr_run_check(sample_path("trip.h5"), &why), &why);
}

static void recovered(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_recovery count = {.size = sizeof(sr_recovery)};
    write_run("whole.h5", 10);
    check_ok(
        sr_run_recover(sample_path("whole.h5"), sample_path("copy.h5"), false, -1, &count, &why),
        &why);
    sr_runfile *f = sample_open(sample_path("copy.h5"));
    check_spectra(f, 3);
    check_final(f);
    sr_run_embedding e = {.size = sizeof(sr_run_embedding)};
    check_ok(sr_run_get_embedding(f, "shared", &e, &why), &why);
    assert_string_equal(e.method, "an example");
    sr_run_close(f);
    check_ok(
        sr_run_recover(sample_path("whole.h5"), sample_path("part.h5"), false, 7, &count, &why),
        &why);
    f = sample_open(sample_path("part.h5"));
    check_spectra(f, 2);
    double memory[2][SAMPLE_SITES], *const value[SR_FINAL_COUNT] = {memory[0], memory[1]};
    int64_t batches;
    check_ok(sr_run_final(f, &batches, value, &why), &why);
    assert_int_equal(batches, -1); /* a part of the run without an end */
    sr_run_close(f);
}

/* A killed writer leaves the flushed rows. */
static void unfinished(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_recorder *r = create("dead.h5");
    for (int64_t step = 3; step <= 6; step += 3) put_spectra(r, step);
    check_ok(sr_flush(r), sr_failed(r));
    sr_abandon(r);
    sr_runfile *f = sample_open(sample_path("dead.h5"));
    check_spectra(f, 2);
    sr_run_close(f);
    assert_int_not_equal(sr_run_check(sample_path("dead.h5"), &why), SR_OK);
}

static void not_asked_for(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    sr_recorder *r = sample_create(sample_path("none.h5"), &o, &why);
    check_ok(sample_steps(r, 1, 3, 0), sr_failed(r));
    run_finish(r);
    sr_runfile *f = sample_open(sample_path("none.h5"));
    double memory[2][SAMPLE_SITES], *const value[SR_FINAL_COUNT] = {memory[0], memory[1]};
    int64_t batches;
    assert_int_equal(sr_run_get_info(f)->spectra, 0);
    check_ok(sr_run_final(f, &batches, value, &why), &why);
    assert_int_equal(batches, -1);
    sr_run_close(f);
}

static void mistakes(void **state) {
    (void)state;
    const double value[SAMPLE_WIDTH] = {0};
    const double *const put[SR_SPECTRUM_COUNT] = {value, value};
    sr_failure why = {0};
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    sr_recorder *r = sample_create(sample_path("mistake.h5"), &o, &why);
    sr_begin_step(r, 1);
    assert_int_equal(sr_put_spectrum(r, 0, 5, put), SR_STATE);
    check_failure(sr_failed(r), SR_STATE, "without sr_options.spectra");
    sr_abandon(r);
    r = create("mistake2.h5");
    assert_int_equal(sr_put_spectrum(r, 0, 5, put), SR_STATE); /* outside a step */
    sr_abandon(r);
    r = create("mistake3.h5");
    sr_begin_step(r, 1);
    assert_int_equal(sr_put_spectrum(r, 0, -1, put), SR_USAGE);
    sr_abandon(r);
    r = create("mistake5.h5");
    assert_int_equal(sr_set_embedding_method(r, "other", "x"), SR_USAGE);
    sr_abandon(r);
    r = create("mistake4.h5");
    assert_int_equal(sr_put_final(r, 3, NULL), SR_USAGE);
    sr_abandon(r);
}

/* -- faults that the check finds ------------------------------------------------------------- */

/* Overwrites one element, at row i and `column`. column < 0: the i-th of a dataset of rank 1. i <
 * 0: the only one. */
static void write_at(hid_t file, const char *name, int64_t i, int64_t column, double value) {
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(set);
    hid_t memory = H5Screate(H5S_SCALAR);
    hsize_t at[2] = {(hsize_t)i, (hsize_t)column}, one[2] = {1, 1};
    if (i >= 0) H5Sselect_hyperslab(space, H5S_SELECT_SET, at, NULL, one, NULL);
    assert_true(H5Dwrite(set, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, &value) >= 0);
    H5Sclose(memory), H5Sclose(space), H5Dclose(set);
}

static void lengthen(hid_t file, const char *name, hsize_t columns) {
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
    hsize_t dims[2] = {4, columns};
    assert_true(H5Dset_extent(set, dims) >= 0);
    H5Dclose(set);
}

/* One fault; text: the check's message. */
typedef struct fault {
    const char *dataset, *text;
    int64_t row, column;
    double value;
} fault;

enum { DELETE = -2, LENGTHEN = -3 };

static void spoil(const char *path, const fault *x) {
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(file >= 0);
    if (x->row == DELETE)
        assert_true(H5Ldelete(file, x->dataset, H5P_DEFAULT) >= 0);
    else if (x->row == LENGTHEN)
        lengthen(file, x->dataset, (hsize_t)x->column);
    else
        write_at(file, x->dataset, x->row, x->column, x->value);
    assert_true(H5Fclose(file) >= 0);
}

static void checked(void **state) {
    (void)state;
    const fault faults[] = {
        {"/spectra/step", "/spectra/step: not increasing, or not among", 2, -1, 99},
        {"/spectra/step", "/spectra/step: not increasing, or not among", 1, -1, 3},
        {"/spectra/step", "no dataset /spectra/step", DELETE, 0, 0},
        {"/spectra/rows", "no dataset /spectra/rows", DELETE, 0, 0},
        {"/spectra/rows", "/spectra/rows: incomplete rows", LENGTHEN, SAMPLE_SITES, 0},
        {"/spectra/rows", "/spectra/rows: a count below -1", 0, 3, -4},
        {"/spectra/rows", "/spectra/input: values of a site that was not measured", 1, 0, -1},
        {"/spectra/input", "/spectra/input: singular values that do not descend", 0, 2, 1e6},
        {"/spectra/gradient", "/spectra/gradient: singular values that do not descend", 2, 4, -1},
        {"/final/batches", "/final/batches: -3", -1, 0, -3},
        {"/final/batches", "/final/tid_mean: values without a pass", -1, 0, -1},
        {"/final/batches", "no dataset /final/batches", DELETE, 0, 0},
        {"/final/tid_var", "no dataset /final/tid_var", DELETE, 0, 0},
        {"/final/tid_var", "/final/tid_var: a negative value", 2, -1, -0.5},
        {"/embeddings/shared/step", "/embeddings/shared: steps or singular values", 1, -1, 2},
        {"/embeddings/shared/singular_values", "/embeddings/shared: steps or", 0, 2, 1e6},
    };
    const char *path = sample_path("spoilt.h5");
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        sr_failure why = {0};
        const double singular[] = {3, 2, 1};
        sr_recorder *r = create("spoilt.h5");
        for (int64_t step = 3; step <= 9; step += 3) {
            put_spectra(r, step);
            check_ok(sr_put_singular_values(r, "shared", step, singular), sr_failed(r));
        }
        put_final(r);
        run_finish(r);
        check_ok(sr_run_check(path, &why), &why);
        spoil(path, &faults[i]);
        assert_int_equal(sr_run_check(path, &why), SR_FORMAT);
        check_failure(&why, SR_FORMAT, faults[i].text);
        remove(path);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),    cmocka_unit_test(recovered), cmocka_unit_test(unfinished),
        cmocka_unit_test(not_asked_for), cmocka_unit_test(mistakes),  cmocka_unit_test(checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
