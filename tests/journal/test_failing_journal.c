/* test_failing_journal.c -- writes and finalizes a journal, reads and verifies its file, while one
 * allocation or system call fails. Each call fails once. The file then has the metadata of the last
 * commit or of the failed one, never of both. A damaged value never counts as valid. */
#define _GNU_SOURCE 1 /* RTLD_NEXT */
#define DEEDS_WITHOUT_HDF5
#include "journal/journal.h"
#include "journal/lock_file.h"
#include "journal/positional_io.h"
#include "testing/failing_deeds.h"
#include "testing/sample_run.h"

/* File layout: blocks of metadata with gaps, rows of values, their steps, many more steps and
 * values, a gap. */
enum { PIECE = 32, PIECES = 3, STEPS_AT = 256, ROWS_AT = 1024, ROW = 64, LARGE_AT = 2048 };
enum {
    VERSIONS = 3,
    COPIES = PIECES * PIECE + VERSIONS * ROW,
    ENTRIES = PIECES + 2 * VERSIONS + 2
};
/* Copies of all steps but 8 bytes fill a final trailer's buffer twice, so its table starts a write.
 * With LESS bytes, its footer starts one. */
enum { BUFFER = 1 << 18, LARGE = 2 * BUFFER - COPIES - 8 };
enum { LESS = LARGE - ENTRIES * TRAILER_ENTRY };
enum { FAR_AT = LARGE_AT + LARGE, END = FAR_AT + LARGE + 100 };

static int committed; /* version of the last commit that succeeded; -1: none yet */
static unsigned char large[LARGE];
static size_t steps_size = LARGE; /* bytes of the many steps */
/* Damaged files: two rows and metadata; two rows; a torn write. Their bytes without the trailer. */
enum { WHOLE, ROWS, TORN, FILES };
static char path[FILES][600];
static unsigned char content[FILES][END];

static uint64_t piece_at(int i) {
    return (uint64_t)i * 2 * PIECE;
}

static uint64_t row_at(int version) {
    return ROWS_AT + (uint64_t)version * ROW;
}

static sr_status told(const char *name, sr_failure *why) {
    const int error = errno;
    return sr_fail(why, error == ENOMEM ? SR_MEMORY : SR_IO, "%s: %s", name, strerror(error));
}

/* -- writing --------------------------------------------------------------------------------- */

static bool put_pieces(journal *l, int version) {
    unsigned char bytes[PIECE];
    bool ok = true;
    memset(bytes, version, PIECE);
    for (int i = 0; i < PIECES && ok; i++) ok = journal_write(l, true, piece_at(i), bytes, PIECE);
    return ok;
}

static bool put_steps(journal *l, uint64_t at, const void *bytes, size_t size) {
    l->hold = true;
    const bool ok = journal_write(l, false, at, bytes, size);
    l->hold = false;
    return ok;
}

/* The last version writes the first version's steps again, after they have settled. */
static bool put_version(journal *l, int version) {
    unsigned char row[ROW];
    memset(row, 100 + version, ROW);
    bool ok = put_pieces(l, version) && journal_write(l, false, row_at(version), row, ROW) &&
              put_steps(l, STEPS_AT + (uint64_t)version * ROW, row, ROW);
    if (ok && version == 2) ok = put_steps(l, LARGE_AT, large, steps_size);
    if (ok && version == VERSIONS)
        ok =
            put_steps(l, STEPS_AT + ROW, row, ROW) && journal_write(l, false, FAR_AT, large, LARGE);
    return ok;
}

static bool put_versions(journal *l, int last) {
    committed = -1;
    if (!put_pieces(l, 0)) return false;
    for (int version = 0; version <= last; version++) {
        if (version && !put_version(l, version)) return false;
        if (!(version ? journal_commit(l, 0) : journal_begin(l, true))) return false;
        committed = version;
    }
    return true;
}

static sr_status write_file(const char *name, int last, bool finalize, sr_failure *why) {
    journal l;
    const int fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    committed = -1;
    if (fd < 0) return told(name, why);
    journal_init(&l, fd);
    const bool ok = put_versions(&l, last) && (!finalize || journal_finalize(&l, END));
    const sr_status status = ok ? SR_OK : told(name, why);
    journal_free(&l);
    return close(fd) == 0 || status != SR_OK ? status : told(name, why);
}

static sr_status write_whole(sr_failure *why) {
    return write_file(sample_path("written"), VERSIONS, true, why);
}

/* Returns the metadata version that a reader of the trailer sees; -1: more than one. */
static int version_of(const trailer *e, const unsigned char *file) {
    unsigned char seen[PIECE], first[PIECE];
    for (int i = 0; i < PIECES; i++) {
        memcpy(seen, file + piece_at(i), PIECE);
        trailer_patch(e, piece_at(i), seen, PIECE);
        if (i == 0) memset(first, seen[0], PIECE);
        if (memcmp(seen, first, PIECE) != 0) return -1;
    }
    return first[0];
}

static trailer load(const char *name, unsigned char file[END]) {
    trailer e;
    sr_failure why = {0};
    const int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || !positional_io_read(fd, 0, file, END) || close(fd) != 0)
        complain(name, "%s", strerror(errno));
    if (trailer_load(&e, name, &why) != SR_OK) complain(name, "%s", why.text);
    return e;
}

static void look_at_written(const char *after, sr_status status) {
    static unsigned char file[END];
    bool gaps = false;
    sr_failure why = {0};
    if (committed < 0) return; /* no commit yet */
    trailer e = load(sample_path("written"), file);
    const int version = version_of(&e, file);
    if (version != committed && (status == SR_OK || version != committed + 1))
        complain(after, "version %d, %d committed", version, committed);
    if (status == SR_OK && (e.kind != TRAILER_FINAL || e.map.count > 0 ||
                            trailer_verify(&e, sample_path("written"), &gaps, &why) != SR_OK ||
                            !gaps || e.map.count > 0))
        complain(after, "no final trailer, or of other bytes: %s", why.text);
    trailer_free(&e);
}

static void test_writing(void **state) {
    (void)state;
    const deed writing = {"write", write_whole, look_at_written, NULL, "written", false};
    deed_fail_all(&writing, FAILING_ALLOCATIONS), deed_fail_all(&writing, FAILING_SYSTEM);
    steps_size = LESS;
    deed_fail_all(&writing, FAILING_SYSTEM);
    steps_size = LARGE;
}

/* Values become metadata in parts: a merged row of equal extents splits. */
static sr_status split(sr_failure *why) {
    enum { CHUNKS = 64 };
    extent_map m = {0};
    unsigned char bytes[ROW] = {0};
    bool ok = true;
    for (int i = 0; i < CHUNKS && ok; i++)
        ok = extent_map_put(&m, EXTENT_VALUES, row_at(i), ROW, bytes);
    for (int i = 1; i < CHUNKS && ok; i += 2)
        ok = extent_map_put(&m, EXTENT_METADATA, row_at(i), ROW, bytes);
    for (size_t i = 1; i < m.count; i++)
        if (m.e[i].at < m.e[i - 1].at + ROW * ((uint64_t)m.e[i - 1].more + 1))
            complain("split", "extents overlap");
    if (ok && m.count != CHUNKS) complain("split", "%zu extents", m.count);
    extent_map_free(&m);
    return ok ? SR_OK : sr_fail(why, SR_MEMORY, "a map: out of memory");
}

static void test_splitting(void **state) {
    (void)state;
    const deed splitting = {"split", split, NULL, NULL, "map", false};
    deed_fail_all(&splitting, FAILING_ALLOCATIONS);
}

/* -- reading --------------------------------------------------------------------------------- */

/* A torn write of metadata and of many steps: the journal repairs both or counts as absent. */
static sr_status load_torn(sr_failure *why) {
    static unsigned char steps[LARGE];
    trailer e;
    const unsigned char *torn = content[TORN];
    const sr_status status = trailer_load(&e, path[TORN], why);
    if (status == SR_OK && e.kind == TRAILER_JOURNAL) {
        memcpy(steps, torn + LARGE_AT, LARGE);
        trailer_patch(&e, LARGE_AT, steps, LARGE);
        if (e.map.count != 2 || version_of(&e, torn) != 2 || memcmp(steps, large, LARGE) != 0)
            complain("load", "%zu repaired, version %d", e.map.count, version_of(&e, torn));
    } else if (status == SR_OK && failing_at == 0) {
        complain("load", "no journal");
    }
    trailer_free(&e);
    return status;
}

/* Verifies a file with a final trailer. */
static sr_status verify(int file, sr_failure *why) {
    trailer e;
    const extent *bad;
    bool gaps;
    sr_status status = trailer_load(&e, path[file], why);
    if (status == SR_OK && e.kind == TRAILER_FINAL) {
        const unsigned char *row[] = {NULL, content[file] + row_at(1), content[file] + row_at(2)};
        const int fd = open(path[file], O_RDONLY | O_CLOEXEC);
        if (!trailer_agrees(&e, fd, row_at(1), row[1], ROW, &bad))
            complain("verify", "a row that is right is bad");
        if (trailer_agrees(&e, fd, row_at(2), row[2], ROW / 2, &bad) || bad->at != row_at(2))
            complain("verify", "a damaged row is right");
        if (fd >= 0) close(fd);
        status = trailer_verify(&e, path[file], &gaps, why);
        if (status == SR_OK && (!gaps || e.map.count != (file == WHOLE ? 3 : 2) ||
                                version_of(&e, content[file]) != VERSIONS))
            complain("verify", "%zu bad extents, gaps %d", e.map.count, gaps);
    } else if (status == SR_OK && failing_at == 0) {
        complain("verify", "no final trailer");
    }
    trailer_free(&e);
    return status;
}

static sr_status verify_whole(sr_failure *why) {
    return verify(WHOLE, why);
}

static sr_status verify_rows(sr_failure *why) {
    return verify(ROWS, why);
}

static void test_reading(void **state) {
    (void)state;
    const deed reading[] = {{"load", load_torn, NULL, NULL, "torn", false},
                            {"verify", verify_whole, NULL, NULL, "whole", false},
                            {"verify rows", verify_rows, NULL, NULL, "rows", false}};
    for (int i = 0; i < FILES; i++) {
        deed_fail_all(&reading[i], FAILING_ALLOCATIONS);
        deed_fail_all(&reading[i], FAILING_SYSTEM);
    }
}

/* -- the lock file --------------------------------------------------------------------------- */

static sr_status lock(sr_failure *why) {
    lock_file l;
    sr_status status = lock_file_create(&l, sample_path("run"), ENOLCK, false, why);
    if (status != SR_OK) return status;
    lock_file_beat(&l);
    status = lock_file_rename(&l, sample_path("run too"), why);
    lock_file_release(&l);
    return status;
}

/* A failed call leaves no lock held. */
static void look_at_lock(const char *after, sr_status status) {
    if (status == SR_OK) return;
    if (lock_file_is_held(sample_path("run")) || lock_file_is_held(sample_path("run too")))
        complain(after, "the lock is held");
}

/* A lock counts as held when the system does not answer. */
static sr_status meet_lock(sr_failure *why) {
    lock_file l;
    if (failing_watched == FAILING_SYSTEM && !lock_file_is_held(sample_path("met")))
        complain("meet", "a lock that a process holds does not count");
    const sr_status status = lock_file_create(&l, sample_path("met"), ENOLCK, false, why);
    if (status == SR_OK) complain("meet", "a second lock");
    return status == SR_EXISTS && strstr(why->text, "another run") ? SR_OK : status;
}

static void put_lock(void) {
    check_write(sample_path("met.lock"), "elsewhere 1 pid:[1]\n");
}

static void remove_locks(void) {
    unlink(sample_path("run.lock")), unlink(sample_path("run too.lock"));
}

static void test_lock(void **state) {
    (void)state;
    const deed locking = {"lock", lock, look_at_lock, remove_locks, "run", false};
    const deed meeting = {"meet", meet_lock, NULL, put_lock, "met", false};
    deed_fail_all(&locking, FAILING_ALLOCATIONS), deed_fail_all(&locking, FAILING_SYSTEM);
    deed_fail_all(&meeting, FAILING_ALLOCATIONS), deed_fail_all(&meeting, FAILING_SYSTEM);
}

/* -- the files ------------------------------------------------------------------------------- */

static void spoil(int file, uint64_t at) {
    const int fd = open(path[file], O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(positional_io_read(fd, 0, content[file], END));
    content[file][at] ^= 1;
    assert_int_equal(pwrite(fd, content[file] + at, 1, (off_t)at), 1);
    assert_int_equal(close(fd), 0);
}

static int make_files(void **state) {
    (void)state;
    static const char *const name[FILES] = {"whole", "rows", "torn"};
    sr_failure why = {0};
    for (int i = 0; i < LARGE; i++) large[i] = (unsigned char)(i * 2654435761u >> 11);
    for (int i = 0; i < FILES; i++) {
        snprintf(path[i], sizeof path[i], "%s", sample_path(name[i]));
        check_ok(write_file(path[i], i == TORN ? 2 : VERSIONS, i != TORN, &why), &why);
        if (i != TORN) spoil(i, row_at(2) + ROW - 1), spoil(i, row_at(3));
    }
    spoil(WHOLE, piece_at(0) + 5);
    spoil(TORN, piece_at(1)), spoil(TORN, LARGE_AT + LARGE / 2);
    return 0;
}

int main(void) {
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_writing),
        cmocka_unit_test(test_splitting),
        cmocka_unit_test(test_reading),
        cmocka_unit_test(test_lock),
    };
    return cmocka_run_group_tests(tests, make_files, NULL);
}
