/* test_trailer.c -- a journal counts only when it is whole: what a power failure may leave of one that
 * was not yet on the disk repairs nothing. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "journal/positional_io.h"
#include "journal/trailer.h"
#include "testing/check.h"
#include "testing/sample_run.h"

enum { FOOTER = 64 };

/* A run whose recorder went away after a flush: with a journal. */
static const char *growing(const char *name) {
    const char *path = sample_path(name);
    sr_recorder *r = sample_begin(path, NULL);
    assert_int_equal(sample_steps(r, 1, 6, 0), SR_OK);
    assert_int_equal(sr_flush(r), SR_OK);
    sr_abandon(r);
    static char part[1024];
    snprintf(part, sizeof part, "%s.part", path);
    return part;
}

static trailer loaded(const char *path) {
    trailer e;
    sr_failure why = {0};
    check_ok(trailer_load(&e, path, &why), &why);
    return e;
}

static void flip(const char *path, uint64_t at) {
    unsigned char byte = 0;
    const int fd = open(path, O_RDWR);
    assert_true(fd >= 0 && positional_io_read(fd, at, &byte, 1));
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
    assert_int_equal(close(fd), 0);
}

/* A byte of the copies, of the table or of the footer did not arrive. */
static void incomplete_journal(void **state) {
    (void)state;
    const char *part = growing("journal.h5");
    trailer e = loaded(part);
    assert_int_equal(e.kind, TRAILER_JOURNAL);
    assert_true(e.entries.count > 3);
    const uint64_t table = e.size - FOOTER - e.entries.count * TRAILER_ENTRY;
    const uint64_t place[] = {table - 1, table - 500, table + 3, e.size - FOOTER + 33};
    trailer_free(&e);
    for (size_t i = 0; i < sizeof place / sizeof *place; i++) {
        flip(part, place[i]);
        e = loaded(part);
        assert_int_equal(e.kind, TRAILER_NONE);
        assert_int_equal(e.map.count, 0);
        assert_false(e.damaged);
        trailer_free(&e);
        flip(part, place[i]);
    }
    e = loaded(part);
    assert_int_equal(e.kind, TRAILER_JOURNAL);
    trailer_free(&e);
    unlink(part);
}

/* The same byte of the file itself is what the journal is for. */
static void torn_write(void **state) {
    (void)state;
    const char *part = growing("torn.h5");
    flip(part, 9); /* of the superblock of HDF5 */
    trailer e = loaded(part);
    assert_int_equal(e.kind, TRAILER_JOURNAL);
    assert_int_equal(e.map.count, 1);
    assert_true(e.map.e[0].bad && e.map.e[0].changed);
    trailer_free(&e);
    unlink(part);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(incomplete_journal),
        cmocka_unit_test(torn_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
