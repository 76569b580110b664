/* test_npz_faults.c -- an archive of arrays is written and read while one allocation or one system
 * call fails. Successful calls give the same values. Failed ones give a reason other than damage,
 * and the old file stays. */
#define _GNU_SOURCE 1 /* RTLD_NEXT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zip.h>

#include "base/npz/npz.h"
#include "base/npz/npz_format.h"
#include "testing/check.h"
#include "testing/failing_malloc.h"
/* after failing_malloc.h, which then counts the allocations */
#include "testing/failing_calls.h"

enum { COUNT = 5000, SMALL = 3 };

static float large[COUNT], small[SMALL] = {1, 2, 3};
static char written[4096], deflated[4096];

static sr_status write_archive(const char *path, float first, sr_failure *why) {
    const npz_array a = {.type = NPZ_FLOAT32, .rank = 2, .dim = {2, COUNT / 2}, .data = large};
    const npz_array b = {.type = NPZ_FLOAT32, .rank = 1, .dim = {SMALL}, .data = small};
    small[0] = first;
    npz_writer *w = npz_create(path, true, why);
    if (!w) return why->status;
    sr_status status = npz_add(w, "large", &a, why);
    if (status == SR_OK) status = npz_add(w, "small", &b, why);
    if (status == SR_OK) return npz_write(w, why);
    npz_abandon(w);
    return status;
}

/* The same arrays as stored by NumPy's savez_compressed. */
static void write_deflated(const char *path) {
    int code = 0;
    static char bytes[NPY_HEADER_MAX + sizeof large];
    const npz_array a = {.type = NPZ_FLOAT32, .rank = 2, .dim = {2, COUNT / 2}, .data = large};
    const size_t header = npy_write_header(bytes, &a);
    memcpy(bytes + header, large, sizeof large);
    zip_t *zip = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, &code);
    assert_non_null(zip);
    zip_source_t *source = zip_source_buffer(zip, bytes, header + sizeof large, 0);
    assert_true(zip_file_add(zip, "large.npy", source, ZIP_FL_ENC_UTF_8) >= 0);
    assert_int_equal(zip_close(zip), 0);
}

/* Reads one array and compares it. */
static sr_status read_array(npz_reader *r, const char *name, const float *want, int64_t count,
                            sr_failure *why) {
    npz_array a;
    const sr_status status = npz_read(r, name, &a, why);
    if (status != SR_OK) return status;
    assert_int_equal(npz_count(&a), count);
    assert_memory_equal(a.data, want, (size_t)count * sizeof *want);
    free(a.data);
    return SR_OK;
}

static sr_status read_archive(const char *path, bool both, sr_failure *why) {
    npz_reader *r = npz_open(path, why);
    if (!r) return why->status;
    sr_status status = read_array(r, "large", large, COUNT, why);
    if (status == SR_OK && both) status = read_array(r, "small", small, SMALL, why);
    npz_close(r);
    return status;
}

static sr_status try_write(sr_failure *why) {
    return write_archive(written, 8, why);
}

static sr_status try_read(sr_failure *why) {
    return read_archive(written, true, why);
}

static sr_status try_deflated(sr_failure *why) {
    return read_archive(deflated, false, why);
}

/* After a failed write the old archive must be intact, without other files. */
static void expect_old(long k) {
    sr_failure why = {0};
    char command[9000];
    small[0] = 7;
    if (read_archive(written, true, &why) != SR_OK) fail_msg("after call %ld: %s", k, why.text);
    snprintf(command, sizeof command, "test $(ls '%s'* | wc -l) -eq 1", written);
    if (system(command) != 0) fail_msg("after call %ld: a part of the new file is left", k);
}

static void fail_each(sr_status (*deed)(sr_failure *), bool memory) {
    long k = 0;
    sr_failure first = {0};
    check_ok(write_archive(written, 7, &first), &first);
    check_ok(deed(&first), &first); /* the loader keeps allocations from the first call */
    for (bool reached = true; reached; k++) {
        sr_failure why = {0};
        check_ok(write_archive(written, 7, &why), &why);
        if (memory)
            failing_malloc_begin(k);
        else
            failing_begin(FAILING_SYSTEM, k + 1);
        const sr_status status = deed(&why);
        const long left = failing_malloc_end();
        reached = memory ? failing_malloc_reached() : failing_end();
        /* libzip 1.7.3 leaks one block if it has no memory to open an entry */
        const long theirs = deed != try_write && strstr(why.text, ": Malloc failure: ") != NULL;
        if (memory && (left < 0 || left > theirs))
            fail_msg("%ld: %ld blocks are left: %s", k, left, why.text);
        const sr_status wanted = memory ? SR_MEMORY : SR_IO;
        if (status != SR_OK && (status != wanted || strlen(why.text) < 10))
            fail_msg("%ld: %s: %s", k, sr_status_name(status), why.text);
        if (!reached) check_ok(status, &why);
        if (status != SR_OK) expect_old(k);
    }
    print_message("%ld\n", k - 1);
    assert_true(k > 5);
}

static void without_memory(void **state) {
    (void)state;
    if (!failing_malloc_there()) skip();
    fail_each(try_write, true);
    fail_each(try_read, true);
    fail_each(try_deflated, true);
}

static void without_the_system(void **state) {
    (void)state;
    fail_each(try_write, false);
    fail_each(try_read, false);
}

int main(void) {
    /* libzip calls mktime, and the C library keeps the name of the time zone until it changes */
    setenv("TZ", "UTC0", 1), tzset();
    for (int i = 0; i < COUNT; i++) large[i] = (float)(i % 100);
    snprintf(written, sizeof written, "%s/written.npz", check_temporary());
    snprintf(deflated, sizeof deflated, "%s/deflated.npz", check_temporary());
    write_deflated(deflated);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory),
        cmocka_unit_test(without_the_system),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
