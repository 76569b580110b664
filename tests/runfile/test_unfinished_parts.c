/* test_unfinished_parts.c -- files whose writer never closed them, complete and truncated: rows of
 * /spectra, reasons, extents beyond the file. */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "copied_run.h"
#include "testing/check.h"
#include "testing/damage.h"
#include "testing/sample_run.h"

enum { STEPS = 48, SPECTRA = STEPS / COPIED_SPECTRA };

static const char *odd;

/* -- a closed file made into a killed writer's ----------------------------------------------- */

static void leave_open(size_t less) {
    damage_leave_open(odd, less);
}

static void write_at(hid_t file, const char *name, hsize_t at, int64_t value) {
    const hsize_t one = 1;
    const hid_t set = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(set),
                memory = H5Screate_simple(1, &one, NULL);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, &at, NULL, &one, NULL);
    assert_true(H5Dwrite(set, H5T_NATIVE_INT64, memory, space, H5P_DEFAULT, &value) >= 0);
    H5Sclose(memory), H5Sclose(space), H5Dclose(set);
}

static void extend(hid_t file, const char *name, hsize_t rows) {
    const hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
    assert_true(H5Dset_extent(set, &rows) >= 0);
    H5Dclose(set);
}

static void close_after(hid_t file) {
    assert_true(H5Fclose(file) >= 0);
}

/* -- spectra --------------------------------------------------------------------------------- */

/* Reads row i of a site, or fails. */
static bool check_spectrum(const sr_runfile *f, int64_t i, int site) {
    const int width = sample_sites[site].width;
    double value[SAMPLE_WIDTH];
    int64_t step, rows;
    sr_failure why = {0};
    if (sr_run_spectrum(f, SR_SPECTRUM_input, site, i, &step, &rows, value, &why) != SR_OK) {
        assert_non_null(strstr(why.text, "/spectra/"));
        return false;
    }
    assert_int_equal(step, COPIED_SPECTRA * (i + 1));
    assert_int_equal(rows, 10 + site);
    for (int k = 0; k < width; k++) check_equals(value[k], (double)(step + 100 + 10 * site - k));
    return true;
}

static int64_t count_spectra(void) {
    sr_runfile *f = sample_open(odd);
    const int64_t rows = sr_run_get_info(f)->spectra;
    for (int64_t i = 0; i < rows; i++)
        for (int site = 0; site < SAMPLE_SITES; site++) assert_true(check_spectrum(f, i, site));
    sr_run_close(f);
    return rows;
}

/* A row counts when its step is written and not newer than the steps. */
static void test_last_rows(void **state) {
    (void)state;
    close_after(damage_reopen(odd)), leave_open(0);
    assert_int_equal(count_spectra(), SPECTRA);
    hid_t file = damage_reopen(odd);
    write_at(file, "/spectra/step", 2, -1);
    close_after(file), leave_open(0);
    assert_int_equal(count_spectra(), 2);
    file = damage_reopen(odd);
    write_at(file, "/spectra/step", 3, STEPS + 1);
    close_after(file), leave_open(0);
    assert_int_equal(count_spectra(), 3);
}

/* Rows end at the end of the file; each remaining row is right. */
static void test_truncated(void **state) {
    (void)state;
    enum { CUTS = 40 };
    int met[SPECTRA + 1] = {0}, opened = 0;
    size_t size;
    close_after(damage_reopen(odd));
    char *bytes = damage_load(odd, &size);
    const size_t end = damage_end(bytes);
    free(bytes);
    for (size_t i = 1; i < CUTS; i++) { /* the last rows of spectra are close together */
        const size_t less = i < CUTS / 2 ? 500 * i : end / CUTS * (2 * i - CUTS);
        sr_failure why = {0};
        close_after(damage_reopen(odd)), leave_open(less + 1);
        sr_runfile *f = sr_run_open(odd, &why);
        if (!f) {
            check_failure(&why, SR_FORMAT, "nothing of the run is left");
            continue;
        }
        opened++;
        sample_check(f, 1, COPIED_VECTORS);
        sr_run_close(f);
        met[count_spectra()]++;
    }
    int numbers = 0;
    for (int i = 0; i <= SPECTRA; i++) numbers += met[i] > 0;
    printf("%d of %d cuts opened, %d numbers of rows left\n", opened, CUTS, numbers);
    assert_true(numbers >= 3);
}

/* -- texts and extents ----------------------------------------------------------------------- */

/* A reader reports the end of the file as reason, unless the writer gave one. */
static void test_reason(void **state) {
    (void)state;
    const hid_t file = damage_reopen(odd);
    close_after(file), leave_open(1);
    sr_runfile *f = sample_open(odd);
    assert_string_equal(sr_run_get_info(f)->reason, "by test");
    sr_run_close(f);
}

/* Damage in a truncated file may be truncation: no damaged part is used. */
static void test_damaged(void **state) {
    (void)state;
    sr_failure why = {0};
    const hid_t file = damage_reopen(odd);
    assert_true(H5Adelete(file, "model") >= 0);
    close_after(file), leave_open(1);
    assert_null(sr_run_open(odd, &why));
    check_failure(&why, SR_FORMAT, "bytes: nothing of the run is left");
}

/* Rows without bytes do not count, whatever the extents and the committed count are. */
static void test_claimed_rows(void **state) {
    (void)state;
    static const char *const column[] = {"step", "update", "tokens",    "epoch",
                                         "loss", "lr",     "grad_norm", "seconds"};
    enum { CLAIMED = 1 << 13 };
    const hid_t file = damage_reopen(odd);
    const hsize_t dims[2] = {CLAIMED, SAMPLE_SITES};
    for (size_t i = 0; i < sizeof column / sizeof *column; i++) {
        char name[32];
        snprintf(name, sizeof name, "/steps/%s", column[i]);
        extend(file, name, CLAIMED);
    }
    extend(file, "/steps/own too", CLAIMED);
#define EXTEND(scalar, definition)                                                                 \
    {                                                                                              \
        const hid_t set = H5Dopen2(file, "/scalars/" #scalar, H5P_DEFAULT);                        \
        assert_true(H5Dset_extent(set, dims) >= 0);                                                \
        H5Dclose(set);                                                                             \
    }
    SR_SCALARS(EXTEND)
#undef EXTEND
    const hid_t own = H5Dopen2(file, "/scalars/own", H5P_DEFAULT);
    assert_true(H5Dset_extent(own, dims) >= 0);
    H5Dclose(own);
    write_at(file, "/state/committed_steps", 0, CLAIMED);
    close_after(file), leave_open(1);
    sr_runfile *f = sample_open(odd);
    check_at_most((double)sr_run_get_info(f)->steps, 1024); /* a chunk */
    sr_run_close(f);
}

/* Flushed often, so that the last rows are at the end of the file. */
static int write_run(void **state) {
    (void)state;
    const run_shape shape = {1, STEPS, 77, "1", true};
    const sr_finish end = SR_INIT(sr_finish, .status = "complete", .reason = "by test");
    sr_failure why = {0};
    sr_options o = copied_options();
    int id[2];
    o.flush_steps = 4, o.started = 0;
    sr_recorder *r = sample_begin(sample_path("whole.h5"), &o);
    copied_declare(r, &shape, id);
    copied_put(r, &shape, id);
    check_ok(sr_close(r, &end, &why), &why);
    return 0;
}

int main(void) {
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    odd = sample_path("odd.h5");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_last_rows), cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_reason), cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_claimed_rows)};
    return cmocka_run_group_tests(tests, write_run, NULL);
}
