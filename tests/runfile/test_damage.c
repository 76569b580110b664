/* test_damage.c -- truncated, altered and foreign files: one line, never a crash. HDF5's 1.10
 * format has a checksum on all metadata; raw values have none. */
#include <hdf5.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing/check.h"
#include "testing/damage.h"
#include "testing/sample_run.h"

static void test_truncated(void **state) {
    (void)state;
    size_t size;
    damage_make_run(sample_path("whole.h5"), 40);
    char *bytes = damage_load(sample_path("whole.h5"), &size);
    const char *path = sample_path("cut.h5");
    const size_t end = damage_end(bytes);
    int opened = 0;
    for (int i = 0; i < 64; i++) {
        size_t length = i < 24 ? (size_t)(i * 7) : end * (size_t)(i - 24) / 40;
        damage_store(path, bytes, length);
        opened += damage_exercise(path);
    }
    damage_store(path, bytes, end - 1);
    opened += damage_exercise(path);
    assert_int_equal(opened, 0); /* its superblock contains the file's length */
    damage_store(path, bytes,
                 size - 1); /* the run is complete, but the trailer that verifies it is cut off */
    assert_true(damage_exercise(path));
    sr_failure why = {0};
    assert_int_equal(sr_run_check(path, &why), SR_FORMAT);
    check_failure(&why, SR_FORMAT, "trailer");
    free(bytes);
}

/* HDF5 reads zeros past the end of such a file; no row reported as readable has one. */
static void check_rows_left(const char *path, bool cut) {
    sr_failure why = {0};
    sr_runfile *f = sr_run_open(path, &why);
    if (!f) fail_msg("%s", why.text);
    assert_int_equal(strstr(sr_run_get_info(f)->reason, "truncated to") != NULL, cut);
    sample_check(f, 1, 1);
    sr_run_close(f);
    assert_int_equal(sr_run_check(path, &why), SR_STATE);
    check_failure(&why, SR_STATE, cut ? "truncated to" : "steps readable");
}

static void expect_text(const char *path, const char *text) {
    sr_failure why = {0};
    assert_null(sr_run_open(path, &why));
    check_failure(&why, SR_FORMAT, text);
    why = (sr_failure){0};
    assert_int_equal(sr_run_check(path, &why), SR_FORMAT);
    check_failure(&why, SR_FORMAT, text);
}

/* Faults in the first bytes and the length are reported without HDF5's message. */
static void test_first_bytes(void **state) {
    (void)state;
    size_t size;
    char text[128];
    const char *path = sample_path("bytes.h5");
    damage_make_run(sample_path("whole.h5"), 40);
    char *bytes = damage_load(sample_path("whole.h5"), &size);
    size = damage_end(bytes); /* older files end here */
    damage_store(path, bytes, 0);
    expect_text(path, "bytes.h5: empty, not a run file");
    damage_store(path, bytes, 5);
    expect_text(path, "bytes.h5: truncated: its first 5 bytes only");
    damage_store(path, bytes, 47);
    expect_text(path, "bytes.h5: truncated: its first 47 bytes only");
    damage_store(path, bytes, size / 2);
    snprintf(text, sizeof text, "bytes.h5: truncated: %zu of at least %zu bytes", size / 2, size);
    expect_text(path, text);
    damage_store(path, bytes + 1, 3);
    expect_text(path, "not a run file (3 bytes without the signature of HDF5)");
    bytes[10] = 77;
    damage_store(path, bytes, size);
    expect_text(path, "bytes.h5: damaged: open: ");
    bytes[10] = 8, bytes[11] = 1; /* its writer has it open, but not yet for readers */
    damage_store(path, bytes, size);
    expect_text(path, "bytes.h5: nothing to read: its writer has not begun");
    free(bytes);
}

/* A killed writer's file may end anywhere: the remaining rows are read. */
static void test_truncated_unfinished(void **state) {
    (void)state;
    size_t size;
    sr_failure why = {0};
    fflush(NULL);
    const char *part = sample_path("run.h5.part");
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    o.flush_steps = 4, o.sync = SR_SYNC_CLOSE;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        sr_recorder *r = sample_create(sample_path("run.h5"), &o, NULL);
        sample_steps(r, 1, 40, 10);
        kill(getpid(), SIGKILL);
    }
    int status;
    waitpid(child, &status, 0);
    char *bytes = damage_load(part, &size);
    const char *path = sample_path("cut2.h5");
    int opened = 0;
    for (int i = 0; i <= 40; i++) {
        damage_store(path, bytes, size * (size_t)i / 40);
        bool opens = damage_exercise(path);
        if (opens) check_rows_left(path, size * (size_t)i / 40 < damage_end(bytes));
        opened += opens;
    }
    printf("unfinished and cut: %d of 41 opened\n", opened);
    assert_true(opened > 0);
    damage_store(path, bytes, size);
    sr_runfile *f = sr_run_open(path, &why);
    assert_non_null(f);
    assert_int_equal(sr_run_get_info(f)->steps, 40);
    sample_check(f, 1, 1);
    sr_run_close(f);
    free(bytes);
}

static void flip_bytes(const char *source, int rounds) {
    size_t size;
    char *bytes = damage_load(source, &size);
    const char *path = sample_path("flip.h5");
    int opened = 0;
    uint64_t random = 12345;
    for (int i = 0; i < rounds; i++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        size_t at = i < 48 ? (size_t)i : (size_t)(random >> 33) % size;
        char old = bytes[at];
        bytes[at] = (char)(old ^ (1 + (random >> 20) % 255));
        damage_store(path, bytes, size);
        opened += damage_exercise(path);
        bytes[at] = old;
    }
    printf("%s: %d of %d with one altered byte opened\n", source, opened, rounds);
    free(bytes);
}

static void test_flipped(void **state) {
    (void)state;
    flip_bytes(sample_path("whole.h5"), (int)check_places(120));
    flip_bytes(sample_path("run.h5.part"), (int)check_places(60));
}

/* HDF5 would print its errors on a damaged header when the host's process ends. The child reads
 * files with damaged headers, then HDF5 ends. */
static void read_damaged_headers(const char *said) {
    size_t size;
    const char *path = sample_path("child.h5");
    if (!freopen(said, "w", stderr)) _exit(2);
    char *bytes = damage_load(sample_path("whole.h5"), &size);
    size = damage_end(bytes); /* without backup copies */
    int damaged = 0;
    for (size_t at = 48; at + 64 < size; at++) {
        if (memcmp(bytes + at, "OHDR", 4) != 0 && memcmp(bytes + at, "OCHK", 4) != 0) continue;
        bytes[at + 30] ^= 16;
        damage_store(path, bytes, size);
        bytes[at + 30] ^= 16;
        sr_run_close(sr_run_open(path, NULL));
        at += 2000;
        damaged++;
    }
    _exit(H5close() >= 0 && damaged > 10 ? 0 : 1);
}

static void test_end_of_host(void **state) {
    (void)state;
    int status;
    size_t size;
    const char *said = sample_path("said");
    damage_make_run(sample_path("whole.h5"), 40);
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) read_damaged_headers(said);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    char *text = damage_load(said, &size);
    if (size > 0) fail_msg("%.*s", size < 200 ? (int)size : 200, text);
    free(text);
}

int main(void) {
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0); /* many small files */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_end_of_host), cmocka_unit_test(test_first_bytes),
        cmocka_unit_test(test_truncated),   cmocka_unit_test(test_truncated_unfinished),
        cmocka_unit_test(test_flipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
