/* test_checksum_table.c -- the checksum table of a final trailer. Compares every entry and offset
 * with plain arrays; then damaged values, and a run with many chunks, some damaged. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crc32.h"
#include "base/rng.h"
#include "journal/positional_io.h"
#include "journal/trailer.h"
#include "statrec/runfile.h"
#include "testing/check.h"
#include "testing/damage.h"

enum { PAGE = 256, MANY = 258 * PAGE + 3, AT = 40 };

typedef struct table {
    extent *x; /* [count] */
    unsigned char *bytes;
    size_t count;
    uint64_t end, copies;
    uint32_t checksum;
    int fd;
} table;

static void put_number(unsigned char *at, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) at[i] = (unsigned char)(value >> 8 * i);
}

/* Encodes t->x. */
static void table_write(table *t) {
    for (size_t i = 0; i < t->count; i++) {
        unsigned char *entry = t->bytes + i * TRAILER_ENTRY;
        put_number(entry, t->x[i].at, 7), entry[7] = t->x[i].kind;
        put_number(entry + 8, t->x[i].length, 4), put_number(entry + 12, t->x[i].checksum, 4);
    }
    const size_t size = t->count * TRAILER_ENTRY;
    t->checksum = crc32_add(0, t->bytes, size);
    assert_int_equal(pwrite(t->fd, t->bytes, size, AT), (ssize_t)size);
}

static table table_make(size_t count) {
    rng r = rng_create(count);
    char path[600];
    snprintf(path, sizeof path, "%s/table", check_temporary());
    table t = {.count = count, .fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600)};
    t.x = calloc(count + 1, sizeof *t.x), t.bytes = calloc(count + 1, TRAILER_ENTRY);
    assert_true(t.fd >= 0 && t.x && t.bytes);
    for (size_t i = 0; i < count; i++) {
        extent *x = &t.x[i];
        *x = (extent){.at = t.end + rng_below(&r, 3),
                      .length = 1 + (uint32_t)rng_below(&r, 9),
                      .checksum = (uint32_t)rng_next(&r),
                      .kind = (uint8_t)(1 + rng_below(&r, 3))};
        if (i == count / 2) x->at += (uint64_t)1 << 40;
        t.end = x->at + x->length;
        if (x->kind != EXTENT_VALUES) t.copies += x->length;
    }
    table_write(&t);
    return t;
}

static void table_free(table *t) {
    close(t->fd);
    free(t->x), free(t->bytes);
}

static bool table_open(const table *t, checksum_table *e) {
    uint64_t copies;
    bool memory = true;
    const bool ok =
        checksum_table_open(e, t->fd, AT, t->count, t->end, t->checksum, &copies, &memory);
    assert_true(memory);
    if (ok) assert_true(copies == t->copies);
    return ok;
}

static void expect_entry(const table *t, const checksum_table *e, size_t i) {
    const extent x = checksum_table_get(e, i);
    if (memcmp(&x, &t->x[i], sizeof x) != 0) fail_msg("entry %zu of %zu", i, t->count);
}

/* first: index of the first entry that ends after `at`. */
static void expect_first(const table *t, const checksum_table *e, uint64_t at, size_t first) {
    const size_t i = checksum_table_find(e, at);
    if (i != first) fail_msg("%zu of %zu, not %zu", i, t->count, first);
}

static void entries_and_places(void **state) {
    (void)state;
    static const size_t counts[] = {0, 1, 2, PAGE - 1, PAGE, PAGE + 1, 5 * PAGE, MANY};
    for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
        table t = table_make(counts[k]);
        checksum_table e;
        rng r = rng_create(1);
        assert_true(table_open(&t, &e));
        expect_first(&t, &e, 0, 0);
        expect_first(&t, &e, t.end, t.count);
        expect_first(&t, &e, UINT64_MAX, t.count);
        for (size_t i = 0; i < t.count; i++) {
            expect_entry(&t, &e, i);
            expect_first(&t, &e, t.x[i].at, i);
            expect_first(&t, &e, t.x[i].at + t.x[i].length - 1, i);
            expect_first(&t, &e, t.x[i].at + t.x[i].length, i + 1);
        }
        for (size_t i = 0; i < t.count; i++) expect_entry(&t, &e, rng_below(&r, t.count));
        for (size_t i = 0; i < t.count; i += 3) checksum_table_set_verified(&e, i);
        for (size_t i = 0; i < t.count; i++)
            assert_true(checksum_table_is_verified(&e, i) == (i % 3 == 0));
        checksum_table_free(&e);
        table_free(&t);
    }
}

static void expect_refused(table *t) {
    checksum_table e;
    table_write(t);
    assert_false(table_open(t, &e));
    checksum_table_free(&e);
}

/* The checksum of the altered table is valid. */
static void impossible_tables(void **state) {
    (void)state;
    table t = table_make(2 * PAGE + 9);
    checksum_table e;
    extent *last = &t.x[t.count - 1], *second = &t.x[PAGE];
    const extent was = *last, border = *second;
    last->kind = 0, expect_refused(&t), *last = was;
    last->kind = EXTENT_METADATA + 1, expect_refused(&t), *last = was;
    last->length++, expect_refused(&t), *last = was;
    second->at = t.x[PAGE - 1].at + t.x[PAGE - 1].length - 1, expect_refused(&t), *second = border;
    table_write(&t);
    t.checksum ^= 1;
    assert_false(table_open(&t, &e));
    checksum_table_free(&e);
    t.checksum ^= 1;
    assert_true(table_open(&t, &e));
    checksum_table_free(&e);
    table_free(&t);
}

/* -- values ---------------------------------------------------------------------------------- */

enum { BASE = 4 << 20, LENGTH = 8 };

/* A pseudo-random byte for each offset. */
static unsigned char byte_of(uint64_t place) {
    return (unsigned char)((place * 2654435761u) >> 11);
}

/* Adjacent extents from BASE on, with their bytes in the file. One of ten is metadata, with another
 * checksum. */
static table table_of_values(void) {
    table t = table_make(MANY);
    unsigned char *bytes = malloc(LENGTH * MANY);
    assert_non_null(bytes);
    for (uint64_t i = 0; i < LENGTH * MANY; i++) bytes[i] = byte_of(BASE + i);
    assert_int_equal(pwrite(t.fd, bytes, LENGTH * MANY, BASE), LENGTH * MANY);
    t.copies = 0, t.end = BASE + LENGTH * MANY;
    for (size_t i = 0; i < MANY; i++) {
        const bool values = i % 10 != 7;
        const uint32_t checksum = crc32_add(0, bytes + i * LENGTH, LENGTH) ^ !values;
        t.x[i] = (extent){.at = BASE + i * LENGTH,
                          .length = LENGTH,
                          .checksum = checksum,
                          .kind = values ? EXTENT_VALUES : EXTENT_STEPS};
        t.copies += values ? 0 : LENGTH;
    }
    table_write(&t);
    free(bytes);
    return t;
}

/* Verifies extents first .. last and, unless `inner`, half of each neighbour; *bad: first damaged
 * offset. */
static bool agrees(trailer *e, const table *t, size_t first, size_t last, bool inner,
                   uint64_t *bad) {
    const uint64_t half = inner ? 0 : LENGTH / 2, at = BASE + first * LENGTH - half;
    const size_t size = (size_t)((last + 1 - first) * LENGTH + 2 * half);
    const extent *found;
    unsigned char *bytes = malloc(size);
    assert_non_null(bytes);
    assert_true(positional_io_read(t->fd, at, bytes, size));
    const bool ok = trailer_agrees(e, t->fd, at, bytes, size, &found);
    assert_true(ok == !found);
    *bad = found ? found->at : 0;
    free(bytes);
    return ok;
}

static void spoil(const table *t, uint64_t place) {
    const unsigned char other = byte_of(place) ^ 8;
    assert_int_equal(pwrite(t->fd, &other, 1, (off_t)place), 1);
}

static void values_against_their_checksums(void **state) {
    (void)state;
    static const size_t hit[] = {PAGE - 1, PAGE, 2 * PAGE + 3, 201 * PAGE + 5};
    table t = table_of_values();
    uint64_t bad;
    trailer e = {.kind = TRAILER_FINAL, .end = t.end};
    assert_true(table_open(&t, &e.entries));
    for (size_t i = 0; i < 4; i++) spoil(&t, BASE + hit[i] * LENGTH + 1);
    spoil(&t, BASE + (MANY - 1) * LENGTH);
    for (int again = 0; again < 2; again++) {
        assert_true(agrees(&e, &t, 2, PAGE - 3, false, &bad));
        assert_true(agrees(&e, &t, 200 * PAGE, 200 * PAGE + 7, true, &bad));
        assert_false(agrees(&e, &t, 1, PAGE - 2, false, &bad)); /* half of a bad extent */
        assert_true(bad == BASE + hit[0] * LENGTH);
        for (size_t i = 0; i < 4; i++) {
            assert_false(agrees(&e, &t, hit[i], hit[i], true, &bad));
            assert_true(bad == BASE + hit[i] * LENGTH);
        }
        assert_false(agrees(&e, &t, PAGE + 1, 3 * PAGE, true, &bad));
        assert_true(bad == BASE + hit[2] * LENGTH);
        assert_false(agrees(&e, &t, MANY - 9, MANY - 1, true, &bad));
        assert_true(bad == BASE + (MANY - 1) * (uint64_t)LENGTH);
    }
    assert_int_equal(e.map.count, 5);
    trailer_free(&e);
    table_free(&t);
}

/* More bad extents than the list's first capacity: it moves while it grows. The first is named. */
static void many_bad_values_at_once(void **state) {
    (void)state;
    table t = table_of_values();
    uint64_t bad;
    trailer e = {.kind = TRAILER_FINAL, .end = t.end};
    assert_true(table_open(&t, &e.entries));
    for (size_t i = 0; i < 20 * PAGE; i++) spoil(&t, BASE + i * LENGTH);
    assert_false(agrees(&e, &t, 0, 20 * PAGE, true, &bad));
    assert_true(bad == BASE);
    assert_int_equal(e.map.count, 20 * PAGE / 10 * 9);
    for (size_t i = 0; i < e.map.count; i++) assert_true(e.map.e[i].reported == (i == 0));
    trailer_free(&e);
    table_free(&t);
}

/* -- a run ----------------------------------------------------------------------------------- */

enum { STEPS = 6000, HIT = 5, FOOTER = 64 };

typedef struct told {
    int lines;
    char of[HIT + 1][SR_FAILURE_TEXT];
} told;

static void keep_line(void *context, const sr_failure *fault) {
    told *t = context;
    if (t->lines < HIT + 1) snprintf(t->of[t->lines], sizeof t->of[0], "%s", fault->text);
    t->lines++;
}

/* Extents of values, spread over the table. */
static int choose(const unsigned char *entries, size_t count, size_t hit[HIT]) {
    static const size_t from[HIT] = {PAGE - 1, PAGE, PAGE + 100, 2 * PAGE - 3, 2 * PAGE};
    int found = 0;
    for (int k = 0; k < HIT; k++) {
        size_t i = from[k];
        if (found && i <= hit[found - 1]) i = hit[found - 1] + 1;
        while (i < count && entries[i * TRAILER_ENTRY + 7] != EXTENT_VALUES) i++;
        if (i < count) hit[found++] = i;
    }
    return found;
}

/* Reads and the file check both report each damaged chunk, and no other. */
static void damaged_chunks(void **state) {
    (void)state;
    char path[600];
    size_t size, hit[HIT];
    snprintf(path, sizeof path, "%s/pages.h5", check_temporary());
    damage_make_run(path, STEPS);
    char *bytes = damage_load(path, &size);
    const unsigned char *footer = (unsigned char *)bytes + size - FOOTER;
    const size_t count = positional_io_number(footer + 40, 4);
    assert_true(count > 3 * PAGE);
    const unsigned char *entries = footer - count * TRAILER_ENTRY;
    assert_int_equal(choose(entries, count, hit), HIT);
    told t = {0};
    sr_failure why = {0};
    check_ok(sr_run_check_all(path, keep_line, &t, &why), &why);
    assert_int_equal(t.lines, 0);
    for (int k = 0; k < HIT; k++)
        bytes[positional_io_number(entries + hit[k] * TRAILER_ENTRY, 7)] ^= 4;
    damage_store(path, bytes, size);
    assert_int_equal(sr_run_check_all(path, keep_line, &t, &why), SR_FORMAT);
    assert_int_equal(t.lines, HIT);
    for (int k = 0; k < HIT; k++) {
        char place[64];
        int lines = 0;
        snprintf(place, sizeof place, "ytes %llu to ",
                 (unsigned long long)positional_io_number(entries + hit[k] * TRAILER_ENTRY, 7));
        for (int i = 0; i < HIT; i++) lines += strstr(t.of[i], place) != NULL;
        if (lines != 1) fail_msg("%s: %d lines, as %s", place, lines, t.of[0]);
    }
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_and_places),
        cmocka_unit_test(impossible_tables),
        cmocka_unit_test(values_against_their_checksums),
        cmocka_unit_test(many_bad_values_at_once),
        cmocka_unit_test(damaged_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
