/* test_failing_damage.c -- damaged, truncated and valid files are opened and checked while each
 * allocation and each dataset read fails in turn. Damage is reported if memory suffices. Out of
 * memory is not damage, and an unread value does not count as valid. */
#define _GNU_SOURCE 1 /* RTLD_NEXT */
#include "copied_run.h"
#include "journal/positional_io.h"
#include "testing/damage.h"
#include "testing/failing_deeds.h"
#include "testing/run_builder.h"
#include "testing/sample_run.h"

enum { STEPS = 12, CHUNK = 64 };

static sr_status open_one(const char *name, sr_failure *why) {
    sr_runfile *f = sr_run_open(sample_path(name), why);
    if (!f) return why->status;
    sr_run_close(f);
    return SR_OK;
}

static sr_status open_damaged(sr_failure *why) {
    return open_one("damaged.h5", why);
}

static sr_status open_cut(sr_failure *why) {
    return open_one("cut.h5", why);
}

/* Unread bytes do not count as changed bytes. */
static void expect_no_damage(void *context, const sr_failure *fault) {
    (void)context;
    if (strstr(fault->text, "not those that were written")) complain("check", "%s", fault->text);
}

static sr_status check_whole(sr_failure *why) {
    return sr_run_check_all(sample_path("whole.h5"), expect_no_damage, NULL, why);
}

static sr_status open_repaired(sr_failure *why) {
    return open_one("repaired.h5", why);
}

/* Chunks with one site's rows are read without a cache, from a dataset that is opened again. */
static sr_status read_chunks(sr_failure *why) {
    float value[CHUNK];
    sr_failure own = {0};
    sr_runfile *f = sr_run_open(sample_path("chunks.h5"), why);
    if (!f) return why->status;
    const sr_status status = sr_run_vector(f, "mu_B", 1, 0, 1, value, &own);
    for (int k = 0; k < CHUNK && status == SR_OK; k++)
        if (value[k] != (float)k + 1) complain("read", "%g at %d", (double)value[k], k);
    if (status != own.status) complain("read", "%d is not %d", status, own.status);
    *why = own;
    sr_run_close(f);
    return status;
}

/* SR_OK: the check found the fault. */
static sr_status check_fault(const char *name, const char *fault, sr_failure *why) {
    sr_failure own = {0};
    if (sr_run_check(sample_path(name), &own) == SR_OK) complain("check", "%s: whole", name);
    if (strstr(own.text, fault)) return SR_OK;
    *why = own;
    return own.status;
}

static sr_status check_damaged(sr_failure *why) {
    return check_fault("damaged.h5", "damaged.h5: ", why);
}

static sr_status check_open(sr_failure *why) {
    return check_fault("open.h5", "open.h5: ", why);
}

static void test_allocations(void **state) {
    (void)state;
    static const deed opening[] = {
        {"open what is damaged", open_damaged, NULL, NULL, "damaged.h5", false},
        {"open what is repaired", open_repaired, NULL, NULL, "repaired.h5", false},
        {"open what is truncated", open_cut, NULL, NULL, "cut.h5", false}};
    for (int i = 0; i < 3; i++) deed_fail_all(&opening[i], FAILING_ALLOCATIONS);
}

static void test_system(void **state) {
    (void)state;
    static const deed checking = {"check", check_whole, NULL, NULL, "whole.h5", false};
    deed_fail_each(&checking, FAILING_SYSTEM);
}

/* HDF5's call sites of read serve all datasets, so each read fails in turn. */
static void test_datasets(void **state) {
    (void)state;
    static const deed checking[] = {
        {"check", check_whole, NULL, NULL, "whole.h5", false},
        {"check what is damaged", check_damaged, NULL, NULL, "damaged.h5", false},
        {"check what is open", check_open, NULL, NULL, "open.h5", false}};
    failing_only = "H5Dread";
    for (int i = 0; i < 3; i++) deed_fail_all(&checking[i], FAILING_HDF5);
    failing_only = NULL;
}

static void test_chunks(void **state) {
    (void)state;
    static const deed reading = {"read chunks", read_chunks, NULL, NULL, "chunks.h5", false};
    failing_only = "H5Dopen2";
    deed_fail_all(&reading, FAILING_HDF5);
    failing_only = NULL;
}

static void look_at_memory(const char *after, sr_status status) {
    if (failing_at && failing_made >= failing_at && status != SR_MEMORY)
        complain(after, "no lack of memory");
}

static void test_no_memory(void **state) {
    (void)state;
    static const deed opening = {
        "open what is truncated", open_cut, look_at_memory, NULL, "cut.h5", false};
    static const char *const functions[] = {"H5Dopen2", "H5Dget_storage_size"};
    failing_gives = FAILING_MEMORY;
    for (int i = 0; i < 2; i++) {
        failing_only = functions[i];
        deed_fail_all(&opening, FAILING_HDF5);
    }
    failing_gives = FAILING_UNKNOWN, failing_only = NULL;
}

/* A file without a text attribute of the root, and with site numbers that no writer makes. */
static void make_damaged(void) {
    const double alpha[SAMPLE_SITES] = {2, 3, -1, 0.5};
    const hid_t file = damage_reopen(sample_path("damaged.h5")),
                set = H5Dopen2(file, "/sites/alpha", H5P_DEFAULT);
    assert_true(H5Adelete(file, "model") >= 0);
    assert_true(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, alpha) >= 0);
    H5Dclose(set);
    assert_true(H5Fclose(file) >= 0);
}

/* Superblock and root group header come from their backup copies. */
static void make_repaired(void) {
    enum { OFFSET_SIZE = 9, AT_ROOT = 36 };
    size_t size;
    char *bytes = damage_load(sample_path("whole.h5"), &size);
    const uint64_t root = positional_io_number((const unsigned char *)bytes + AT_ROOT, 8);
    bytes[OFFSET_SIZE] ^= 1, bytes[root + 20] ^= 1;
    damage_store(sample_path("repaired.h5"), bytes, size);
    free(bytes);
    sr_runfile *f = sample_open(sample_path("repaired.h5"));
    assert_non_null(sr_run_repaired(f, 1));
    sr_run_close(f);
}

static void make_chunks(void) {
    double value[CHUNK];
    sr_options o = run_options();
    o.overhead = 0, o.vectors_every = 1;
    sr_recorder *r = run_create(sample_path("chunks.h5"), o);
    run_add_bn(r, "a", CHUNK, 0, 0), run_add_bn(r, "b", CHUNK, 1, 0);
    sr_begin_step(r, 1);
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < CHUNK; k++) value[k] = i + k;
        sr_put_vector(r, i, SR_mu_B, value);
    }
    run_end_step(r, 1);
    run_finish(r);
}

static void make_open(const char *name, size_t less) {
    assert_true(H5Fclose(damage_reopen(sample_path(name))) >= 0);
    damage_leave_open(sample_path(name), less);
}

static int make_files(void **state) {
    (void)state;
    const run_shape shape = {1, STEPS, 77, "1", true};
    copied_write("whole.h5", &shape);
    make_damaged(), make_repaired(), make_chunks();
    make_open("cut.h5", 1), make_open("open.h5", 0);
    return 0;
}

int main(void) {
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allocations), cmocka_unit_test(test_system),
        cmocka_unit_test(test_datasets), cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests(tests, make_files, NULL);
}
