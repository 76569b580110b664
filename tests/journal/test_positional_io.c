/* test_positional_io.c -- all bytes are transferred although each system call moves few bytes or is
 * interrupted. */
#define _GNU_SOURCE /* syscall */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "journal/positional_io.h"
#include "testing/check.h"
#include "testing/sample_run.h"

enum { SIZE = 100, AT = 7, ONCE = 3 };

static int calls;

/* Overrides the C library's function. */
ssize_t pread(int fd, void *to, size_t size, off_t at) {
    if (++calls % 4 == 0) return errno = EINTR, -1;
    return syscall(SYS_pread64, fd, to, size < ONCE ? size : ONCE, at);
}

ssize_t pwrite(int fd, const void *from, size_t size, off_t at) {
    if (++calls % 4 == 0) return errno = EINTR, -1;
    return syscall(SYS_pwrite64, fd, from, size < ONCE ? size : ONCE, at);
}

static void few_at_once(void **state) {
    (void)state;
    unsigned char put[SIZE], got[AT + SIZE + 5], want[AT + SIZE + 5] = {0};
    const int fd = open(sample_path("bytes"), O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    for (int i = 0; i < SIZE; i++) put[i] = want[AT + i] = (unsigned char)(i + 1);
    assert_true(positional_io_write(fd, AT, put, SIZE));
    assert_int_equal(lseek(fd, 0, SEEK_END), AT + SIZE);
    memset(got, 0xff, sizeof got);
    assert_true(positional_io_read(fd, 0, got, sizeof got)); /* zeros beyond the end */
    assert_memory_equal(got, want, sizeof got);
    assert_int_equal(close(fd), 0);
    assert_false(positional_io_read(fd, 0, got, 1));
    assert_false(positional_io_write(fd, 0, got, 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(few_at_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
