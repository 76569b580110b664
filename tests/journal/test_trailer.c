/* test_trailer.c -- a journal counts only when it is complete. The part of a journal that a power
 * failure leaves repairs nothing. A footer counts only when all its numbers are possible. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crc32.h"
#include "journal/positional_io.h"
#include "journal/trailer.h"
#include "testing/check.h"
#include "testing/sample_run.h"

enum { FOOTER = 64 };

/* A run with a journal: its recorder ended after a flush. */
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

/* A byte of the copies, of the table or of the footer was not written. */
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

/* The journal repairs the same byte of the file itself. */
static void torn_write(void **state) {
    (void)state;
    const char *part = growing("torn.h5");
    flip(part, 9); /* HDF5 superblock */
    trailer e = loaded(part);
    assert_int_equal(e.kind, TRAILER_JOURNAL);
    assert_int_equal(e.map.count, 1);
    assert_true(e.map.e[0].bad && e.map.e[0].changed);
    trailer_free(&e);
    unlink(part);
}

/* -- forged footers */

enum { CONTENT = 200, SLACK = 8, LENGTH_AT = 24, END_AT = 32 };

static void put_number(unsigned char *at, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) at[i] = (unsigned char)(value >> 8 * i);
}

/* A file of values with a final trailer of one entry. */
static void write_final(const char *path) {
    extent_map m = {0};
    unsigned char content[CONTENT];
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    memset(content, 7, CONTENT);
    assert_true(positional_io_write(fd, 0, content, CONTENT));
    assert_true(extent_map_put(&m, EXTENT_VALUES, 0, CONTENT - SLACK, content));
    assert_true(trailer_finalize(&m, fd, CONTENT));
    assert_int_equal(close(fd), 0);
    extent_map_free(&m);
}

/* Writes a number into the footer and updates its checksum. */
static void change_footer(const char *path, int at, uint64_t value, int bytes) {
    unsigned char footer[FOOTER];
    const int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    const uint64_t start = (uint64_t)lseek(fd, 0, SEEK_END) - FOOTER;
    assert_true(positional_io_read(fd, start, footer, FOOTER));
    put_number(footer + at, value, bytes);
    put_number(footer + 60, crc32_add(0, footer, 60), 4);
    assert_true(positional_io_write(fd, start, footer, FOOTER));
    assert_int_equal(close(fd), 0);
}

static void impossible_footers(void **state) {
    (void)state;
    enum { SIZE = CONTENT + TRAILER_ENTRY + FOOTER, OWN = SIZE - CONTENT };
    static const struct {
        int at, bytes;
        uint64_t value, end; /* end: of the HDF5 data; 0: unchanged */
    } change[] = {
        {16, 4, 2, 0}, /* another version */
        /* no length of a trailer, none with the table, one with copies that belong to no extent */
        {LENGTH_AT, 8, FOOTER - 1, 0},
        {LENGTH_AT, 8, SIZE + 1, 0},
        {LENGTH_AT, 8, UINT64_MAX, 0},
        {LENGTH_AT, 8, FOOTER, 0},
        {LENGTH_AT, 8, OWN + 1, CONTENT - SLACK},
        /* an end within the trailer, beyond the file, within an extent */
        {END_AT, 8, CONTENT + 1, 0},
        {END_AT, 8, UINT64_MAX, 0},
        {END_AT, 8, CONTENT - SLACK - 1, 0},
        /* entries */
        {40, 4, 2, 0},
        {40, 4, UINT32_MAX, 0},
    };
    const char *path = sample_path("footer");
    for (size_t i = 0; i < sizeof change / sizeof *change; i++) {
        write_final(path);
        if (change[i].end) change_footer(path, END_AT, change[i].end, 8);
        trailer e = loaded(path);
        assert_true(e.kind == TRAILER_FINAL && !e.damaged);
        trailer_free(&e);
        change_footer(path, change[i].at, change[i].value, change[i].bytes);
        e = loaded(path);
        if (e.kind != TRAILER_NONE || !e.damaged) fail_msg("footer %zu counts", i);
        trailer_free(&e);
    }
}

static void same_trailers(void **state) {
    (void)state;
    const trailer e = {.kind = TRAILER_FINAL, .size = 9, .end = 5, .gaps = 3, .checksum = 4};
    trailer other[5] = {e, e, e, e, e};
    other[0].dozes = true;
    other[1].size++, other[2].end++, other[3].gaps++, other[4].checksum++;
    for (int i = 0; i < 5; i++) assert_true(trailer_is_same(&e, &other[i]) == (i == 0));
}

/* Beyond 1 MiB of metadata a journal contains only changes since the last commit. */
static void much_metadata(void **state) {
    (void)state;
    enum { PART = 4096, PARTS = 512 };
    static unsigned char part[PART];
    for (int parts = PARTS / 2; parts <= PARTS; parts += PARTS / 2) {
        extent_map m = {0};
        size_t size;
        for (int i = 0; i < parts; i++) {
            memset(part, i, PART);
            assert_true(extent_map_put(&m, EXTENT_METADATA, (uint64_t)i * PART, PART, part));
        }
        extent_map_settle(&m);
        assert_true(extent_map_put(&m, EXTENT_METADATA, 7 * PART + 1, 1, part));
        unsigned char *bytes = trailer_build_journal(&m, (uint64_t)parts * PART, &size);
        assert_non_null(bytes);
        const size_t held = parts == PARTS ? 1 : (size_t)parts;
        assert_int_equal(size, held * (PART + TRAILER_ENTRY) + FOOTER);
        assert_int_equal(bytes[held == 1 ? 1 : 7 * PART + 1], part[0]);
        free(bytes);
        extent_map_free(&m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(impossible_footers), cmocka_unit_test(same_trailers),
        cmocka_unit_test(much_metadata),      cmocka_unit_test(incomplete_journal),
        cmocka_unit_test(torn_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
