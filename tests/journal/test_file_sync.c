/* test_file_sync.c -- errors of fsync. "Not supported", from a file system without a disk, is no
 * failure. Any other error is, and names the file or its folder. */
#include "journal/file_sync.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "journal/journal.h"
#include "testing/check.h"
#include "testing/sample_run.h"

static int answer; /* errno, or 0 */

int fsync(int fd) {
    (void)fd;
    return errno = answer, answer ? -1 : 0;
}

int fdatasync(int fd) {
    return fsync(fd);
}

static const struct {
    int answer;
    bool ok;
} answers[] = {{0, true}, {EINVAL, true}, {ENOSYS, true}, {EIO, false}, {ENOSPC, false}};
enum { ANSWERS = sizeof answers / sizeof *answers };

static void expect(bool ok, sr_status status, const sr_failure *why, const char *said) {
    if (ok) {
        check_ok(status, why);
        return;
    }
    check_failure(why, SR_IO, said);
    check_failure(why, SR_IO, strerror(answer));
}

static void test_paths(void **state) {
    (void)state;
    char here[1024];
    const char *path = sample_path("synced");
    assert_non_null(getcwd(here, sizeof here));
    check_write(path, "text\n");
    for (int i = 0; i < ANSWERS; i++) {
        sr_failure why[4] = {0};
        answer = answers[i].answer;
        expect(answers[i].ok, file_sync(path, &why[0]), &why[0], "synced: fsync: ");
        expect(answers[i].ok, file_sync_directory(path, &why[1]), &why[1], "synced: its folder ");
        expect(answers[i].ok, file_sync_directory("/x", &why[2]), &why[2], "/x: its folder /: f");
        expect(answers[i].ok, file_sync_directory("x", &why[3]), &why[3], here);
    }
    sr_failure why = {0};
    answer = 0;
    assert_int_equal(file_sync(sample_path("absent"), &why), SR_IO);
    check_failure(&why, SR_IO, "absent: open: No such file");
}

static void test_commits(void **state) {
    (void)state;
    for (int i = 0; i < ANSWERS; i++) {
        journal l;
        const int fd = open(sample_path("committed"), O_RDWR | O_CREAT | O_TRUNC, 0600);
        assert_true(fd >= 0);
        journal_init(&l, fd);
        answer = answers[i].answer;
        assert_true(journal_write(&l, true, 0, "metadata", 8));
        assert_true(journal_begin(&l, true) == answers[i].ok);
        journal_free(&l);
        assert_int_equal(close(fd), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_commits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
