/* Whole files, plain and gzip: what is read, and that every damage is named. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "data_files.h"
#include "text/file_bytes.h"

static void fill(unsigned char *bytes, size_t size) {
    uint64_t state = 1;
    for (size_t i = 0; i < size; i++) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        bytes[i] = i % 3 ? (unsigned char)(state >> 60) : 7;
    }
}

static void expect_bytes(const char *path, const void *want, size_t size) {
    file_bytes f;
    sr_failure why = {0};
    check_ok(file_read(path, &f, &why), &why);
    assert_int_equal(f.size, size);
    if (size) assert_memory_equal(f.byte, want, size);
    assert_int_equal(f.byte[size], 0);
    file_free(&f);
}

static void refuse(const char *path, sr_status status, const char *part) {
    file_bytes f;
    sr_failure why = {0};
    assert_int_equal(file_read(path, &f, &why), status);
    check_failure(&why, status, part);
    check_failure(&why, status, path);
    assert_null(f.byte);
}

static void reads_plain_and_gzip(void **state) {
    (void)state;
    const char *dir = make_folder();
    static const size_t sizes[] = {0, 1, 5, 4096, 70000};
    unsigned char bytes[70000];
    fill(bytes, sizeof bytes);
    for (int i = 0; i < 5; i++) {
        expect_bytes(write_bytes(dir, "a.bin", bytes, sizes[i]), bytes, sizes[i]);
        expect_bytes(write_bytes(dir, "a.bin.gz", bytes, sizes[i]), bytes, sizes[i]);
    }
}

static void reads_several_members(void **state) {
    (void)state;
    const char *dir = make_folder();
    size_t size, both;
    unsigned char *one = read_raw(write_text(dir, "one.gz", "first half, "), &size);
    unsigned char *two = read_raw(write_text(dir, "two.gz", "second half"), &both);
    memcpy(one + size, two, both);
    expect_bytes(write_raw(dir, "both.gz", one, size + both), "first half, second half", 23);
    one[size] = 'x';
    refuse(write_raw(dir, "both.gz", one, size + both), SR_FORMAT, "something else follows");
    free(one);
    free(two);
}

static void refuses_every_truncation(void **state) {
    (void)state;
    const char *dir = make_folder();
    unsigned char bytes[3000];
    size_t size;
    fill(bytes, sizeof bytes);
    unsigned char *packed = read_raw(write_bytes(dir, "a.gz", bytes, sizeof bytes), &size);
    for (size_t keep = 0; keep < size; keep++) {
        char part[64];
        snprintf(part, sizeof part, "byte %zu: ", keep);
        refuse(write_raw(dir, "b.gz", packed, keep), SR_FORMAT, part);
    }
    free(packed);
}

static void refuses_every_flipped_byte(void **state) {
    (void)state;
    const char *dir = make_folder();
    unsigned char bytes[600];
    size_t size;
    fill(bytes, sizeof bytes);
    unsigned char *packed = read_raw(write_bytes(dir, "a.gz", bytes, sizeof bytes), &size);
    for (size_t i = 0; i < size; i++) {
        if (i >= 3 && i < 10) continue; /* flags, time, system: no data */
        packed[i] ^= 0x41;
        refuse(write_raw(dir, "b.gz", packed, size), SR_FORMAT, "byte ");
        packed[i] ^= 0x41;
    }
    packed[size - 6] ^= 1;
    refuse(write_raw(dir, "b.gz", packed, size), SR_FORMAT, "incorrect data check");
    free(packed);
}

static void refuses_what_is_no_gzip(void **state) {
    (void)state;
    const char *dir = make_folder();
    refuse(write_raw(dir, "a.gz", "just text", 9), SR_FORMAT, "byte 0: not a gzip file");
    refuse(write_raw(dir, "a.gz", "", 0), SR_FORMAT, "byte 0: empty");
    char whole[300];
    snprintf(whole, sizeof whole, "%s: Is a directory", dir);
    refuse(dir, SR_IO, whole);
    refuse("/nonexistent/file", SR_IO, "No such file");
}

/* A pipe without a writer would wait for one, a device has no end. */
static void refuses_what_is_no_file(void **state) {
    (void)state;
    char path[FILE_PATH];
    snprintf(path, sizeof path, "%s/fifo", make_folder());
    assert_int_equal(mkfifo(path, 0600), 0);
    refuse(path, SR_IO, "not a regular file");
    refuse("/dev/zero", SR_IO, "not a regular file");
    expect_bytes("/dev/null", "", 0);
}

enum { MIB = 1 << 20, BOMB_MIB = 200 };

/* What deflate makes of zeros; as a rule a file of data holds no more than some 20 times its
   bytes. */
static void refuses_what_is_too_small(void **state) {
    (void)state;
    char path[FILE_PATH], *zeros = calloc(MIB, 1);
    snprintf(path, sizeof path, "%s/zeros.gz", make_folder());
    gzFile gz = gzopen(path, "wb9");
    assert_true(gz && zeros);
    for (int i = 0; i < BOMB_MIB; i++) assert_int_equal(gzwrite(gz, zeros, MIB), MIB);
    assert_int_equal(gzclose(gz), Z_OK);
    free(zeros);
    struct rlimit limit = {200 * (rlim_t)MIB, RLIM_INFINITY}, before;
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    limit.rlim_max = before.rlim_max;
#ifndef __SANITIZE_ADDRESS__ /* it keeps terabytes for itself */
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
#endif
    refuse(path, SR_FORMAT, "unpacks to over");
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
}

static void finds_plain_before_gzip(void **state) {
    (void)state;
    const char *dir = make_folder();
    char path[FILE_PATH], name[FILE_PATH + 1];
    bool found;
    sr_failure why = {0};
    check_ok(file_find(dir, "a", path, &found, &why), &why);
    assert_false(found);
    assert_string_equal(strrchr(path, '/'), "/a");
    write_text(dir, "a.gz", "x");
    check_ok(file_find(dir, "a", path, &found, &why), &why);
    assert_true(found);
    assert_string_equal(strrchr(path, '/'), "/a.gz");
    write_text(dir, "a", "x");
    check_ok(file_find(dir, "a", path, &found, &why), &why);
    assert_string_equal(strrchr(path, '/'), "/a");
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = 0;
    assert_int_equal(file_find(dir, name, path, &found, &why), SR_USAGE);
}

static void refuses_to_look_below_a_file(void **state) {
    (void)state;
    const char *path = write_text(make_folder(), "a", "x");
    char found_path[FILE_PATH];
    bool found;
    sr_failure why = {0};
    assert_int_equal(file_find(path, "b", found_path, &found, &why), SR_IO);
    check_failure(&why, SR_IO, "Not a directory");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_plain_and_gzip),
        cmocka_unit_test(reads_several_members),
        cmocka_unit_test(refuses_every_truncation),
        cmocka_unit_test(refuses_every_flipped_byte),
        cmocka_unit_test(refuses_what_is_no_gzip),
        cmocka_unit_test(refuses_what_is_no_file),
        cmocka_unit_test(refuses_what_is_too_small),
        cmocka_unit_test(finds_plain_before_gzip),
        cmocka_unit_test(refuses_to_look_below_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
