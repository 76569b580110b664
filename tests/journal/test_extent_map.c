/* test_extent_map.c -- the kind of each byte range of a file, compared with a map of single bytes.
 * Then a journal: bytes written once and again, settled and finalized. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "journal/journal.h"
#include "journal/positional_io.h"
#include "testing/check.h"

/* -- the map --------------------------------------------------------------------------------- */

enum { BYTES = 512, ROUNDS = 400, PUTS = 120, GRID = 8 };

/* Extent number of each byte, 0: none; kind of each extent. Adjacent equal lengths are separate
 * extents here. */
typedef struct plain {
    int of[BYTES + 1], extents;
    extent_kind kind[PUTS + 1];
    unsigned char byte[BYTES];
} plain;

/* Values may overwrite several extents of values, or part of one. */
static bool is_several(const plain *p, int at, int end) {
    int last = 0;
    bool values = true, several = false;
    for (int i = at; i < end; i++) {
        values = values && p->of[i] && p->kind[p->of[i]] == EXTENT_VALUES;
        several = several || (last && p->of[i] != last);
        last = p->of[i];
    }
    return values && several;
}

static bool is_within(const plain *p, extent_kind kind, int at, int end) {
    const int own = p->of[at];
    for (int i = at; i < end; i++)
        if (p->of[i] != own) return false;
    return own && (kind == EXTENT_VALUES || p->kind[own] != EXTENT_VALUES);
}

static void plain_put(plain *p, extent_kind kind, int at, int end, const unsigned char *bytes) {
    memcpy(p->byte + at, bytes, (size_t)(end - at));
    if (is_within(p, kind, at, end)) return;
    const int left = at > 0 && p->of[at - 1] == p->of[at] ? p->of[at] : 0;
    for (int i = at; left && i < BYTES; i++)
        if (p->of[i] == left) p->of[i] = 0; /* its right part was never written alone */
    p->kind[++p->extents] = kind;
    for (int i = at; i < end; i++) p->of[i] = p->extents;
}

/* Checks extent k of a merged entry. */
static void expect_piece(const plain *p, const extent *e, uint64_t k) {
    const size_t at = (size_t)(e->at + k * e->length), end = at + e->length;
    assert_true(e->length > 0 && end <= BYTES);
    const int own = p->of[at];
    assert_true(own && p->kind[own] == e->kind && p->of[end] != own);
    assert_true(at == 0 || p->of[at - 1] != own);
    for (size_t i = at; i < end; i++) assert_int_equal(p->of[i], own);
    assert_true(!e->copy == (e->kind == EXTENT_VALUES));
    if (e->copy) assert_memory_equal(e->copy, p->byte + at, e->length);
}

static void expect_map(const plain *p, const extent_map *m) {
    uint64_t done = 0;
    int covered = 0;
    for (size_t i = 0; i < m->count; i++) {
        const extent *e = &m->e[i];
        assert_true(e->at >= done);
        assert_true(!e->more || e->kind == EXTENT_VALUES);
        for (uint64_t k = 0; k <= e->more; k++) expect_piece(p, e, k), covered += (int)e->length;
        done = e->at + e->length * ((uint64_t)e->more + 1);
        for (uint64_t at = e->at; at < done; at++) assert_int_equal(extent_map_find(m, at), i);
    }
    for (int i = 0; i < BYTES; i++) covered -= p->of[i] != 0;
    assert_int_equal(covered, 0);
}

/* Mostly chunks of values on a grid, which the map merges; otherwise random extents. */
static void put_something(plain *p, extent_map *m, rng *r) {
    unsigned char bytes[BYTES];
    const bool chunk = rng_below(r, 8) > 0;
    int at = (int)rng_below(r, BYTES - 4 * GRID), length = 1 + (int)rng_below(r, 4 * GRID);
    const extent_kind kind = chunk ? EXTENT_VALUES : (extent_kind)(1 + rng_below(r, 3));
    if (chunk) at = at / GRID * GRID, length = GRID;
    for (int i = 0; i < length; i++) bytes[i] = (unsigned char)rng_next(r);
    if (kind == EXTENT_VALUES && is_several(p, at, at + length)) return;
    plain_put(p, kind, at, at + length, bytes);
    assert_true(extent_map_put(m, kind, (uint64_t)at, (uint32_t)length, bytes));
}

static void puts_anywhere(void **state) {
    (void)state;
    rng r = rng_create(1);
    int together = 0;
    for (int round = 0; round < ROUNDS; round++) {
        plain p = {0};
        extent_map m = {0};
        for (int i = 0; i < PUTS; i++) {
            put_something(&p, &m, &r);
            expect_map(&p, &m);
        }
        for (size_t i = 0; i < m.count; i++) together += m.e[i].more > 1;
        extent_map_free(&m);
    }
    assert_true(together > ROUNDS);
}

enum { CHUNKS = 100000 };

/* Chunks of equal length and gap make one entry. */
static void chunks_side_by_side(void **state) {
    (void)state;
    extent_map m = {0};
    for (uint64_t i = 0; i < CHUNKS; i++)
        assert_true(extent_map_put(&m, EXTENT_VALUES, 100 + 64 * i, 64, NULL));
    assert_int_equal(m.count, 1);
    assert_int_equal(m.e[0].more, CHUNKS - 1);
    const uint64_t end = 100 + 64 * (uint64_t)CHUNKS;
    assert_true(extent_map_put(&m, EXTENT_VALUES, end, 32, NULL));
    assert_true(extent_map_put(&m, EXTENT_VALUES, end + 33, 32, NULL));
    assert_true(extent_map_put(&m, EXTENT_VALUES, end + 65, 32, NULL));
    assert_int_equal(m.count, 3);
    assert_int_equal(m.e[2].more, 1);
    assert_true(extent_map_put(&m, EXTENT_VALUES, 100 + 64 * 7, 64, NULL));
    assert_int_equal(m.count, 3);
    assert_true(extent_map_put(&m, EXTENT_METADATA, 100, 0, NULL)); /* no bytes */
    assert_int_equal(m.count, 3);
    /* the number of chunks has 32 bits */
    m.e[2].more = UINT32_MAX - 1;
    const uint64_t far = m.e[2].at + 32 * (uint64_t)UINT32_MAX;
    assert_true(extent_map_put(&m, EXTENT_VALUES, far, 32, NULL));
    assert_int_equal(m.count, 4);
    assert_true(m.e[3].at == far && m.e[3].more == 0);
    extent_map_free(&m);
}

/* -- the journal ----------------------------------------------------------------------------- */

enum { HEAD = 100, CHUNK = 3000, PARTS = 40, LARGE = 300000, END = HEAD + PARTS * CHUNK + LARGE };

typedef struct written {
    char path[600];
    unsigned char byte[END];
    journal log;
} written;

static void put_bytes(written *w, bool structure, uint64_t at, size_t size, rng *r) {
    for (size_t i = 0; i < size; i++) w->byte[at + i] = (unsigned char)rng_next(r);
    assert_true(journal_write(&w->log, structure, at, w->byte + at, size));
}

static void put_held(written *w, uint64_t at, size_t size, rng *r) {
    w->log.hold = true;
    put_bytes(w, false, at, size, r);
    w->log.hold = false;
}

static uint64_t place(int part) {
    return HEAD + (uint64_t)part * CHUNK;
}

/* Every other part contains steps, which settle two commits later; one part is large. */
static written *write_some(rng *r) {
    written *w = calloc(1, sizeof *w);
    assert_non_null(w);
    snprintf(w->path, sizeof w->path, "%s/log", check_temporary());
    const int fd = open(w->path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    journal_init(&w->log, fd);
    put_bytes(w, true, 0, HEAD, r);
    assert_true(journal_begin(&w->log, false));
    put_held(w, place(PARTS), LARGE, r);
    for (int i = 0; i < PARTS; i++) {
        if (i % 2)
            put_bytes(w, false, place(i), CHUNK, r);
        else
            put_held(w, place(i), CHUNK, r);
        if (i % 4 == 3) assert_true(journal_commit(&w->log, END));
    }
    assert_true(journal_commit(&w->log, END) && journal_commit(&w->log, END));
    return w;
}

static size_t bytes_of_copies(const extent_map *m) {
    size_t bytes = 0;
    for (size_t i = 0; i < m->count; i++) bytes += m->e[i].copy ? m->e[i].length : 0;
    return bytes;
}

static void expect_sealed(written *w, size_t bad) {
    trailer e;
    sr_failure why = {0};
    bool gaps;
    static unsigned char there[END];
    assert_true(journal_finalize(&w->log, END));
    assert_true(positional_io_read(w->log.fd, 0, there, END));
    assert_memory_equal(there, w->byte, END);
    check_ok(trailer_load(&e, w->path, &why), &why);
    assert_true(e.kind == TRAILER_FINAL && !e.damaged && e.end == END);
    assert_int_equal(e.entries.count, 1 + PARTS + 1);
    assert_int_equal(e.map.count, bad);
    check_ok(trailer_verify(&e, w->path, &gaps, &why), &why);
    assert_true(gaps);
    assert_int_equal(e.map.count, bad);
    trailer_free(&e);
}

static void discard(written *w) {
    close(w->log.fd);
    journal_free(&w->log);
    free(w);
}

static void spoil(const written *w, uint64_t at) {
    const unsigned char other = w->byte[at] ^ 1;
    assert_int_equal(pwrite(w->log.fd, &other, 1, (off_t)at), 1);
}

/* Settled bytes have no copy in memory and one in the file. */
static void steps_settle(void **state) {
    (void)state;
    rng r = rng_create(2);
    written *w = write_some(&r);
    assert_int_equal(bytes_of_copies(&w->log.map), HEAD);
    for (int i = 0; i < 2; i++) {
        put_held(w, place(8), CHUNK, &r); /* the same bytes, a part, values, several extents */
        put_held(w, place(10) + 5, 100, &r);
        put_bytes(w, false, place(12) + 7, 50, &r);
        put_held(w, place(14) + 1, CHUNK - 1, &r);
        assert_int_equal(bytes_of_copies(&w->log.map), HEAD + 4 * CHUNK);
        assert_true(
            journal_commit(&w->log, END)); /* the next flush writes these bytes a second time */
        assert_int_equal(bytes_of_copies(&w->log.map), HEAD + 4 * CHUNK);
        assert_true(journal_commit(&w->log, END));
        assert_int_equal(bytes_of_copies(&w->log.map), HEAD);
    }
    put_held(w, place(20) + 9, 20, &r);
    expect_sealed(w, 0);
    discard(w);
}

/* Readers use the backup copy of steps when the first copy is damaged. */
static void copies_of_settled_steps(void **state) {
    (void)state;
    rng r = rng_create(3);
    written *w = write_some(&r);
    unsigned char bytes[CHUNK];
    trailer e;
    sr_failure why = {0};
    expect_sealed(w, 0);
    spoil(w, place(6) + 17), spoil(w, place(PARTS) + LARGE - 1);
    check_ok(trailer_load(&e, w->path, &why), &why);
    assert_int_equal(e.map.count, 2);
    for (int i = 0; i < 2; i++) assert_true(e.map.e[i].bad && e.map.e[i].changed);
    assert_true(positional_io_read(w->log.fd, place(6), bytes, CHUNK));
    trailer_patch(&e, place(6), bytes, CHUNK);
    assert_memory_equal(bytes, w->byte + place(6), CHUNK);
    trailer_free(&e);
    discard(w);
}

/* Damage of settled steps before finalizing is still reported afterwards. */
static void steps_spoilt_before_the_seal(void **state) {
    (void)state;
    rng r = rng_create(4);
    written *w = write_some(&r);
    spoil(w, place(6) + 17);
    w->byte[place(6) + 17] ^= 1;
    expect_sealed(w, 1);
    discard(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(puts_anywhere),
        cmocka_unit_test(chunks_side_by_side),
        cmocka_unit_test(steps_settle),
        cmocka_unit_test(copies_of_settled_steps),
        cmocka_unit_test(steps_spoilt_before_the_seal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
