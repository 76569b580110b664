/* test_superblock.c -- a file's first bytes decide whether HDF5 may open it. Cases: foreign bytes,
 * versions, a writer's flags, an end beyond the file. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "journal/trailer.h"
#include "journal/writer_lock.h"
#include "runfile/read/file/read_growing.h"
#include "runfile/read/file/superblock.h"
#include "testing/check.h"
#include "testing/damage.h"
#include "testing/sample_run.h"

enum { SIZE = 64, VERSION = 8, OFFSET_SIZE = 9, FLAGS = 11, END = 28 };

static const char *path;

/* Stores a superblock of a file of SIZE bytes with one byte changed (at < 0: none). */
static void store(int at, unsigned char value, size_t size) {
    unsigned char head[SIZE] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n', 3, 8, 8};
    head[END] = SIZE;
    if (at >= 0) head[at] = value;
    damage_store(path, (const char *)head, size);
}

static void expect_refused(const char *part, const char *hint) {
    static const trailer none;
    bool unfinished;
    int64_t cut_at;
    sr_failure why = {0};
    assert_int_equal(superblock_check(path, &none, &unfinished, &cut_at, &why), SR_FORMAT);
    check_failure(&why, SR_FORMAT, part);
    if (!strstr(why.hint, hint)) fail_msg("hint '%s', not '%s'", why.hint, hint);
}

static void expect_opened(bool growing, int64_t cut) {
    static const trailer none;
    bool unfinished;
    int64_t cut_at;
    sr_failure why = {0};
    check_ok(superblock_check(path, &none, &unfinished, &cut_at, &why), &why);
    assert_int_equal(unfinished, growing);
    assert_int_equal(cut_at, cut);
}

static void test_other_bytes(void **state) {
    (void)state;
    static const struct {
        const char *bytes, *part, *hint;
    } row[] = {{"", "empty, not a run file", ""},
               {"x", "not a run file (1 bytes without the signature", ""},
               {"\x89HDx", "not a run file (4 bytes", ""},
               {"no signature at all", "not a run file (19 bytes", ""},
               {"# program stat-tid\n", "a table of statrec", "`# command`"},
               {"# pro", "a table of statrec", "`# command`"},
               {"# progress", "not a run file (10 bytes", ""},
               {"\x1f\x8b\x08", "gzip", ""}, /* a known kind */
               {"\x89HDF\r\n", "truncated: its first 6 bytes only", ""},
               {"\x89HDF\r\n\x1a\n\x03", "truncated: its first 9 bytes only", ""}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        damage_store(path, row[i].bytes, strlen(row[i].bytes));
        expect_refused(row[i].part, row[i].hint);
    }
}

static void test_states(void **state) {
    (void)state;
    store(-1, 0, SIZE), expect_opened(false, 0);
    store(FLAGS, 4 | 1, SIZE), expect_opened(true, 0);
    store(FLAGS, 4 | 1, SIZE - 8), expect_opened(true, SIZE - 8); /* a killed writer */
    store(FLAGS, 1, SIZE), expect_refused("its writer has not begun", "");
    store(-1, 0, SIZE - 8),
        expect_refused("truncated: 56 of at least 64 bytes", "copy the file again");
    store(END + 7, 0xff, SIZE), expect_refused("64 of at least 9223372036854775807 bytes", "copy");
}

/* HDF5 itself rejects unknown versions, with a reason. */
static void test_versions(void **state) {
    (void)state;
    store(VERSION, 2, SIZE - 8), expect_refused("truncated: 56", "");
    store(VERSION, 1, SIZE - 8), expect_opened(false, 0);
    store(VERSION, 4, SIZE - 8), expect_opened(false, 0);
    store(OFFSET_SIZE, 4, SIZE - 8), expect_opened(false, 0);
}

/* A running writer extends its file to the declared end. A reader waits for a stopped writer only
 * for a limited time. It then reads the file, which does not count as truncated. */
static void test_stopped_writer(void **state) {
    (void)state;
    static const trailer none;
    bool unfinished = false;
    int64_t cut_at = -1;
    sr_failure why = {0};
    store(FLAGS, 4 | 1, SIZE - 8);
    const int fd = open(path, O_RDONLY);
    assert_int_equal(writer_lock_acquire(fd), 0);
    check_ok(reader_check_live_bytes(path, &none, &unfinished, &cut_at, &why), &why);
    assert_true(unfinished);
    assert_int_equal(cut_at, 0);
    assert_int_equal(close(fd), 0); /* the writer died */
    check_ok(reader_check_live_bytes(path, &none, &unfinished, &cut_at, &why), &why);
    assert_int_equal(cut_at, SIZE - 8);
}

/* A missing file, and a folder. */
static void test_unreadable(void **state) {
    (void)state;
    static const trailer none;
    bool unfinished;
    int64_t cut_at;
    sr_failure why = {0}, other = {0};
    assert_int_equal(superblock_check(sample_path("none"), &none, &unfinished, &cut_at, &why),
                     SR_IO);
    check_failure(&why, SR_IO, "none: No such file");
    superblock_check(check_temporary(), &none, &unfinished, &cut_at, &other);
    check_failure(&other, SR_IO, "Is a directory");
}

int main(void) {
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    path = sample_path("x.h5");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_other_bytes), cmocka_unit_test(test_states),
        cmocka_unit_test(test_versions), cmocka_unit_test(test_stopped_writer),
        cmocka_unit_test(test_unreadable)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
