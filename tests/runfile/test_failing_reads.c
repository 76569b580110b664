/* test_failing_reads.c -- a run file is read and checked while one call fails: an allocation, a
 * system call or an HDF5 call. Each value equals the file's or fails; the check never accepts a
 * damaged file. */
#define _GNU_SOURCE 1 /* RTLD_NEXT */
#include "failing_readings.h"
#include "testing/damage.h"
#include "testing/failing_deeds.h"
#include "testing/sample_run.h"

static readings whole, growing; /* result without a failure */
static readings now;

static sr_status read_whole(sr_failure *why) {
    now = (readings){0};
    return readings_of(sample_path("whole.h5"), &now, why);
}

static sr_status read_growing(sr_failure *why) {
    now = (readings){0};
    return readings_of(sample_path("killed.h5"), &now, why);
}

static void look_at_whole(const char *after, sr_status status) {
    if (status == SR_OK) readings_compare(after, &now, &whole);
}

static void look_at_growing(const char *after, sr_status status) {
    if (status == SR_OK) readings_compare(after, &now, &growing);
}

static sr_status check(sr_failure *why) {
    return sr_run_check(sample_path("whole.h5"), why);
}

/* A damaged file is never accepted. SR_OK: its fault was found. */
static sr_status check_fault(const char *name, const char *fault, sr_failure *why) {
    sr_failure own = {0};
    if (sr_run_check(sample_path(name), &own) == SR_OK) complain("check", "%s: whole", name);
    if (strstr(own.text, fault)) return SR_OK;
    *why = own;
    return own.status;
}

static sr_status check_growing(sr_failure *why) {
    return check_fault("killed.h5", "unfinished, 16 steps readable", why);
}

static sr_status check_damaged(sr_failure *why) {
    return check_fault("damaged.h5", "damaged", why);
}

static const deed deeds[] = {
    {"read", read_whole, look_at_whole, NULL, "whole.h5", false},
    {"read what grows", read_growing, look_at_growing, NULL, "killed.h5", false},
    {"check", check, NULL, NULL, "whole.h5", false},
    {"check what grows", check_growing, NULL, NULL, "killed.h5", false},
    {"check what is damaged", check_damaged, NULL, NULL, "damaged.h5", false},
};

static void fail_all(failing_kind kind) {
    for (size_t i = 0; i < sizeof deeds / sizeof *deeds; i++) deed_fail_each(&deeds[i], kind);
}

static void test_allocations(void **state) {
    (void)state;
    fail_all(FAILING_ALLOCATIONS);
}

static void test_system(void **state) {
    (void)state;
    fail_all(FAILING_SYSTEM);
}

static void test_hdf5(void **state) {
    (void)state;
    fail_all(FAILING_HDF5);
}

static sr_status open_one(const char *name, sr_failure *why) {
    sr_runfile *f = sr_run_open(sample_path(name), why);
    if (!f) return why->status;
    sr_run_close(f);
    return SR_OK;
}

static sr_status open_whole(sr_failure *why) {
    return open_one("whole.h5", why);
}

static sr_status open_growing(sr_failure *why) {
    return open_one("killed.h5", why);
}

/* One call site serves all attributes and datasets, so each of its calls fails once. Wherever
 * reading a file stops, nothing more is read and all memory is freed. */
static void test_each_allocation(void **state) {
    (void)state;
    static const deed opening[] = {
        {"open", open_whole, NULL, NULL, "whole.h5", false},
        {"open what grows", open_growing, NULL, NULL, "killed.h5", false}};
    for (int i = 0; i < 2; i++) deed_fail_all(&opening[i], FAILING_ALLOCATIONS);
}

/* A failed read hides no dataset, although HDF5 keeps the part of the header that it has. */
static void test_each_read(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) deed_fail_all(&deeds[i], FAILING_SYSTEM);
}

/* Out of memory is not damage, wherever HDF5 meets it: opening fails. */
static void look_at_memory(const char *after, sr_status status) {
    if (failing_at && failing_made >= failing_at && status != SR_MEMORY)
        complain(after, "no lack of memory");
}

static void test_no_memory(void **state) {
    (void)state;
    static const deed opening[] = {
        {"open", open_whole, look_at_memory, NULL, "whole.h5", false},
        {"open what grows", open_growing, look_at_memory, NULL, "killed.h5", false}};
    static const char *const functions[] = {"H5Dopen2", "H5Aopen_by_name"};
    failing_gives = FAILING_MEMORY;
    for (int i = 0; i < 4; i++) {
        failing_only = functions[i / 2];
        deed_fail_all(&opening[i % 2], FAILING_HDF5);
    }
    failing_gives = FAILING_UNKNOWN, failing_only = NULL;
}

/* Alters a byte in the middle of the HDF5 data. */
static void make_damaged(void) {
    size_t size;
    char *bytes = damage_load(sample_path("whole.h5"), &size);
    bytes[damage_end(bytes) / 2] ^= 1;
    damage_store(sample_path("damaged.h5"), bytes, size);
    free(bytes);
}

static int make_files(void **state) {
    (void)state;
    sr_failure why = {0};
    copied_write("whole.h5", &readings_shape);
    sr_recorder *r = copied_begin("killed.h5", &readings_shape);
    check_ok(sr_flush(r), sr_failed(r));
    sr_abandon(r);
    make_damaged();
    check_ok(readings_of(sample_path("whole.h5"), &whole, &why), &why);
    assert_int_equal(whole.refused, 0);
    check_ok(readings_of(sample_path("killed.h5"), &growing, &why), &why);
    assert_int_equal(growing.refused, 0);
    return 0;
}

int main(void) {
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allocations), cmocka_unit_test(test_system),
        cmocka_unit_test(test_hdf5),        cmocka_unit_test(test_each_allocation),
        cmocka_unit_test(test_each_read),   cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, make_files, NULL);
}
