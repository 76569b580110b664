/* test_failing_arrays.c -- writes and reads a file of arrays while one call fails: an allocation, a
 * system call or an HDF5 call. Each call fails once. The file is then complete or absent, and every
 * array read is as written. */
#define _GNU_SOURCE 1 /* RTLD_NEXT */
#include "hdf5/array_file.h"
#include "hdf5/dimension_scales.h"
#include "testing/failing_deeds.h"
#include "testing/sample_run.h"

enum { VALUES = 6 };

static const float real[VALUES] = {1, -2, 3.5f, 0, 1e30f, -1e-30f};
static const int64_t whole = -7;

/* npz_array is for readers, too. */
static npz_array array_of(npz_type type, int rank, const void *values) {
    union {
        const void *from;
        void *to;
    } u = {.from = values};
    return (npz_array){type, rank, {2, 3}, u.to};
}

static sr_status write_arrays(sr_failure *why) {
    const npz_array matrix = array_of(NPZ_FLOAT32, 2, real), one = array_of(NPZ_INT64, 0, &whole);
    array_writer *w = array_writer_create(sample_path("arrays.ckpt"), "arrays", 1, why);
    if (!w) return why->status;
    array_writer_put_text(w, "text", "some text", NULL);
    array_writer_add(w, "group/matrix", &matrix, NULL);
    array_writer_add(w, "group/one", &one, NULL);
    return array_writer_finish(w, why);
}

static sr_status read_all(array_reader *r, sr_failure *why) {
    float got[VALUES] = {0};
    int64_t number = 0, count = 0;
    char name[64] = "", *text = NULL;
    npz_array matrix = array_of(NPZ_FLOAT32, 2, got), one = array_of(NPZ_INT64, 0, &number);
    sr_status status = array_reader_text(r, "text", &text, why);
    if (status == SR_OK && strcmp(text, "some text") != 0) complain("read", "text '%s'", text);
    free(text);
    if (status == SR_OK) status = array_reader_fill(r, "group/matrix", &matrix, why);
    if (status == SR_OK) status = array_reader_fill(r, "group/one", &one, why);
    if (status == SR_OK) status = array_reader_count(r, "group", &count, why);
    if (status == SR_OK) status = array_reader_name(r, "group", 0, name, sizeof name, why);
    if (status != SR_OK) return status;
    if (memcmp(got, real, sizeof real) != 0 || number != whole) complain("read", "other values");
    if (count != 2 || strcmp(name, "matrix") != 0) complain("read", "%s of %d", name, (int)count);
    return SR_OK;
}

static sr_status read_arrays(sr_failure *why) {
    array_reader *r = array_reader_open(sample_path("arrays.ckpt"), "arrays", 1, why);
    if (!r) return why->status;
    const sr_status status = read_all(r, why);
    if (!array_reader_has(r, "group/one") || !array_reader_has_attribute(r, "text"))
        complain("read", "what is not read is taken for absent");
    array_reader_close(r);
    return status;
}

/* Arrays of more than one number have HDF5's checksum, which detects damage. */
static bool matrix_is_summed(void) {
    const hid_t file = H5Fopen(sample_path("arrays.ckpt"), H5F_ACC_RDONLY, H5P_DEFAULT),
                set = H5Dopen2(file, "/group/matrix", H5P_DEFAULT), how = H5Dget_create_plist(set);
    unsigned flags;
    size_t count = 0;
    const bool summed =
        H5Pget_nfilters(how) == 1 &&
        H5Pget_filter2(how, 0, &flags, &count, NULL, 0, NULL, NULL) == H5Z_FILTER_FLETCHER32;
    H5Pclose(how), H5Dclose(set), H5Fclose(file);
    return summed;
}

/* The file is complete or absent; no other file remains. */
static void look_at_arrays(const char *after, sr_status status) {
    sr_failure why = {0};
    const char *path = sample_path("arrays.ckpt");
    const bool there = access(path, F_OK) == 0;
    if (status == SR_OK && !there) complain(after, "no file");
    if (there && read_arrays(&why) != SR_OK) complain(after, "%s", why.text);
    if (there && !matrix_is_summed()) complain(after, "no checksum");
}

/* A read error is not damage, nor does it mean another file format. */
static void look_at_reading(const char *after, sr_status status) {
    if (failing_watched == FAILING_SYSTEM && status != SR_OK && status != SR_IO)
        complain(after, "no read error");
}

static void remove_arrays(void) {
    unlink(sample_path("arrays.ckpt")), unlink(sample_path("arrays.ckpt.part"));
}

/* -- scales ---------------------------------------------------------------------------------- */

static sr_status declare_scaled(h5_id file, sr_failure *why) {
    const scaled list[] = {{"/set", 2, "/rows", "/columns"}, {"/rows", 1, "/rows", NULL}};
    static const char *const path[] = {"/rows", "/columns", "/set"};
    sr_status status = SR_OK;
    for (int i = 0; i < 3 && status == SR_OK; i++) {
        h5_id set = 0;
        const h5_shape shape = {.type = H5_FLOAT64, .rank = i == 2 ? 2 : 1, .dims = {2, 2}};
        status = h5_add_dataset(file, path[i], &shape, &set, why);
        h5_close_dataset(set);
    }
    return status == SR_OK ? dimension_scales_write(file, list, 1, why) : status;
}

static sr_status write_scaled(sr_failure *why) {
    h5_id file;
    sr_status status = h5_create(sample_path("scaled.h5"), false, &file, why);
    if (status != SR_OK) return status;
    status = declare_scaled(file, why);
    if (status != SR_OK) h5_divert(file);
    const sr_status closed = h5_close(file, status == SR_OK ? why : NULL);
    return status == SR_OK ? closed : status;
}

static void remove_scaled(void) {
    unlink(sample_path("scaled.h5"));
}

/* -- each call ------------------------------------------------------------------------------- */

static void fail_all(const deed *d) {
    for (int kind = 0; kind < FAILING_KINDS; kind++) deed_fail_all(d, (failing_kind)kind);
}

static void test_writing(void **state) {
    (void)state;
    const deed writing = {"write",       write_arrays,  look_at_arrays,
                          remove_arrays, "arrays.ckpt", true};
    fail_all(&writing);
}

static void test_reading(void **state) {
    (void)state;
    const deed reading = {"read", read_arrays, look_at_reading, NULL, "arrays.ckpt", false};
    sr_failure why = {0};
    remove_arrays();
    check_ok(write_arrays(&why), &why);
    fail_all(&reading);
}

static void test_scales(void **state) {
    (void)state;
    const deed scaling = {"scales", write_scaled, NULL, remove_scaled, "scaled.h5", true};
    deed_fail_all(&scaling, FAILING_HDF5);
}

int main(void) {
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_writing),
        cmocka_unit_test(test_reading),
        cmocka_unit_test(test_scales),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
