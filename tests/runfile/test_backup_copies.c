/* test_backup_copies.c -- backup copies of metadata and steps in the trailer. A file with damage in
 * one of the two is read as before and reports it. If both are damaged, their dataset is. Also
 * checks whether a file is the one that was opened. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "journal/positional_io.h"
#include "runfile/read/read_trailer.h"
#include "testing/check.h"
#include "testing/damage.h"
#include "testing/sample_run.h"

enum { STEPS = 12, FOOTER = 64, ENTRY = 16, VALUES = 1, EXTENTS = 4096 };

/* An extent with a backup copy. */
typedef struct copied {
    size_t at, copy, length;
} copied;

static char *whole;
static size_t whole_size;
static copied extent[EXTENTS];
static int extents;

static uint64_t number(size_t at, int bytes) {
    return positional_io_number((const unsigned char *)whole + at, bytes);
}

static void list_extents(void) {
    const size_t footer = whole_size - FOOTER, count = (size_t)number(footer + 40, 4);
    size_t copy = whole_size - (size_t)number(footer + 24, 8);
    for (size_t i = 0; i < count; i++) {
        const size_t entry = footer - (count - i) * ENTRY;
        const uint64_t at = number(entry, 8);
        const copied c = {(size_t)(at & UINT64_C(0xffffffffffffff)), copy,
                          (size_t)number(entry + 8, 4)};
        if (at >> 56 == VALUES) continue;
        assert_true(extents < EXTENTS && copy + c.length <= footer);
        extent[extents++] = c, copy += c.length;
    }
    assert_true(extents > 100);
}

/* Stores the file with a damaged byte in the middle of the extent, in its backup copy, or in
 * both. */
static void store_damaged(const copied *c, bool here, bool in_copy) {
    char *bytes = malloc(whole_size);
    assert_non_null(bytes);
    memcpy(bytes, whole, whole_size);
    if (here) bytes[c->at + c->length / 2] ^= 0x40;
    if (in_copy) bytes[c->copy + c->length / 2] ^= 0x40;
    damage_store(sample_path("odd.h5"), bytes, whole_size);
    free(bytes);
}

static bool tells(const sr_runfile *f, const char *text, bool repaired) {
    const char *damage;
    for (int i = 0; (damage = sr_run_damage(f, i)); i++)
        if (strstr(damage, text)) return repaired == (sr_run_repaired(f, 0) != NULL);
    return false;
}

static void test_one_of_two(void **state) {
    (void)state;
    for (int i = 0; i < extents; i += 5)
        for (int in_copy = 0; in_copy < 2; in_copy++) {
            store_damaged(&extent[i], !in_copy, in_copy);
            sr_runfile *f = sample_open(sample_path("odd.h5"));
            const char *says = in_copy ? ": its backup copy is damaged"
                                       : ": damaged, and read from its backup copy";
            if (!tells(f, says, true)) fail_msg("extent %d: %s", i, sr_run_damage(f, 0));
            assert_null(sr_run_damage(f, 1));
            assert_null(sr_run_repaired(f, 1));
            assert_null(sr_run_repaired(f, -1));
            assert_true(sr_run_has_checksums(f));
            sample_check(f, 1, 1);
            sr_run_close(f);
        }
}

/* Opening the file may need an extent that is damaged in both. */
static void test_both(void **state) {
    (void)state;
    int opened = 0;
    for (int i = 0; i < extents; i += 3) {
        sr_failure why = {0};
        store_damaged(&extent[i], true, true);
        sr_runfile *f = sr_run_open(sample_path("odd.h5"), &why);
        if (!f) {
            check_failure(&why, SR_FORMAT, "odd.h5: ");
            continue;
        }
        if (!tells(f, ": damaged, and its backup copy too", false))
            fail_msg("extent %d: %s", i, sr_run_damage(f, 0));
        opened++;
        sr_run_close(f);
        assert_int_equal(sr_run_check(sample_path("odd.h5"), &why), SR_FORMAT);
    }
    printf("%d of %d extents: %d files opened\n", (extents + 2) / 3, extents, opened);
    assert_true(opened > extents / 6);
}

/* -- identity of files ----------------------------------------------------------------------- */

static bool identify(const sr_runfile *f, uint64_t identity[READER_IDENTITY]) {
    memset(identity, 0, READER_IDENTITY * sizeof *identity);
    return reader_identify(f, identity);
}

static void test_identity(void **state) {
    (void)state;
    const char *path = sample_path("odd.h5");
    uint64_t first[READER_IDENTITY], second[READER_IDENTITY];
    damage_store(path, whole, whole_size);
    sr_runfile *f = sample_open(path), *same = sample_open(path);
    assert_true(identify(f, first) && identify(same, second));
    assert_memory_equal(first, second, sizeof first);
    assert_int_equal(first[0], whole_size);
    assert_int_equal(truncate(path, (off_t)whole_size + 1), 0);
    assert_false(identify(f, second)); /* its size differs */
    assert_int_equal(unlink(path), 0);
    assert_false(identify(f, second));
    sr_run_close(f), sr_run_close(same);
    store_damaged(&extent[extents / 2], true, false);
    f = sample_open(path);
    assert_false(identify(f, second)); /* repaired */
    sr_run_close(f);
    damage_store(path, whole, damage_end(whole));
    f = sample_open(path);
    assert_false(identify(f, second)); /* without a trailer */
    sr_run_close(f);
    damage_store(path, whole, whole_size);
    f = sample_open(path);
    f->damages = 1; /* numbers that no writer makes, below a valid trailer */
    assert_false(identify(f, second));
    f->damages = 0;
    assert_true(identify(f, second));
    sr_run_close(f);
}

static int load_run(void **state) {
    (void)state;
    damage_make_run(sample_path("whole.h5"), STEPS);
    whole = damage_load(sample_path("whole.h5"), &whole_size);
    list_extents();
    return 0;
}

static int unload_run(void **state) {
    (void)state;
    free(whole);
    return 0;
}

int main(void) {
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_of_two),
                                       cmocka_unit_test(test_both),
                                       cmocka_unit_test(test_identity)};
    return cmocka_run_group_tests(tests, load_run, unload_run);
}
