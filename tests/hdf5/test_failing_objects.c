/* test_failing_objects.c -- writes and reads a file of every kind of object while one call fails:
 * an allocation, a system call or an HDF5 call. Each call fails once. Objects reported as written
 * can be read. An unreadable object is not reported as absent. */
#define _GNU_SOURCE 1 /* RTLD_NEXT */
#include "hdf5/h5.h"
#include "testing/failing_deeds.h"
#include "testing/sample_run.h"

enum { ROWS = 12, CHUNK = 4, COLUMNS = 3, TEXT = 8, NUMBERS = 100 };

static const int64_t whole = -5;

static double real_at(int64_t row, int column) {
    return (double)(10 * row + column);
}

/* -- writing --------------------------------------------------------------------------------- */

static const h5_shape
    growing = {.type = H5_FLOAT64, .rank = 2, .dims = {0, COLUMNS}, .chunk = {CHUNK, COLUMNS}},
    summed = {.type = H5_FLOAT64, .rank = 2, .dims = {ROWS, COLUMNS}, .summed = true},
    letters = {.type = H5_TEXT, .text = TEXT, .rank = 1, .dims = {2}},
    numbers = {.type = H5_UINT8, .rank = 1, .dims = {NUMBERS}}, one = {.type = H5_INT64};

static sr_status declare(h5_id file, h5_id *set, sr_failure *why) {
    static const h5_shape *const shape[] = {&growing, &summed, &letters, &numbers, &one};
    static const char *const path[] = {"/g/growing", "/g/summed", "/letters", "/numbers", "/one"};
    sr_status status = h5_add_group(file, "/g", why);
    for (int i = 0; i < 5 && status == SR_OK; i++)
        status = h5_add_dataset(file, path[i], shape[i], &set[i], why);
    if (status == SR_OK) status = h5_link(file, "/one", "/g/same", why);
    if (status == SR_OK)
        status = h5_put_attribute(file, "/g", "text", H5_TEXT, 9, -1, "some text", why);
    if (status == SR_OK)
        status = h5_put_attribute(file, "/one", "number", H5_INT64, 0, -1, &whole, why);
    return status;
}

static sr_status fill(const h5_id *set, sr_failure *why) {
    double real[ROWS][COLUMNS];
    uint8_t zeros[NUMBERS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        real[i / COLUMNS][i % COLUMNS] = real_at(i / COLUMNS, i % COLUMNS);
    memset(zeros, 1, sizeof zeros);
    sr_status status = h5_read_all(set[3], H5_UINT8, 0, zeros, why); /* never written */
    for (int i = 0; i < NUMBERS && status == SR_OK; i++)
        if (zeros[i]) complain("write", "number %d is %d", i, zeros[i]);
    if (status == SR_OK) status = h5_write_all(set[1], H5_FLOAT64, 0, real, why);
    if (status == SR_OK) status = h5_write_all(set[2], H5_TEXT, TEXT, "first\0\0\0second\0\0", why);
    if (status == SR_OK) status = h5_write_all(set[4], H5_INT64, 0, &whole, why);
    return status;
}

static sr_status grow(h5_id set, sr_failure *why) {
    double real[ROWS][COLUMNS];
    sr_status status = h5_extend(set, ROWS, why);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        real[i / COLUMNS][i % COLUMNS] = real_at(i / COLUMNS, i % COLUMNS);
    const h5_rows rows = {0, ROWS, 0, COLUMNS, COLUMNS};
    return status == SR_OK ? h5_write_rows(set, &rows, H5_FLOAT64, real, why) : status;
}

/* Writes as a recorder does: declares first, then uses a journal. */
static sr_status write_parts(h5_id file, h5_id *set, bool logged, sr_failure *why) {
    sr_status status = declare(file, set, why);
    if (status == SR_OK) status = fill(set, why);
    if (status == SR_OK) status = h5_begin_journal(file, false, why);
    if (status == SR_OK && logged) status = h5_start_swmr(file, why);
    if (status == SR_OK) status = h5_make_direct(&set[4], why);
    h5_hold(file, true);
    if (status == SR_OK) status = h5_write_all(set[4], H5_INT64, 0, &whole, why);
    h5_hold(file, false);
    if (status == SR_OK) status = grow(set[0], why);
    if (status == SR_OK) status = h5_flush(file, why);
    if (status == SR_OK) status = h5_commit(file, why);
    h5_finalize(file, false);
    return status;
}

static sr_status write_objects(bool logged, sr_failure *why) {
    h5_id file, set[5] = {0};
    sr_status status = h5_create(sample_path("made.h5"), logged, &file, why);
    if (status != SR_OK) return h5_close(file, NULL), status;
    status = write_parts(file, set, logged, why);
    if (status != SR_OK) h5_divert(file);
    for (int i = 0; i < 5; i++) h5_close_dataset(set[i]);
    const sr_status closed = h5_close(file, status == SR_OK ? why : NULL);
    return status == SR_OK ? closed : status;
}

static sr_status write_logged(sr_failure *why) {
    return write_objects(true, why);
}

static sr_status write_plain(sr_failure *why) {
    return write_objects(false, why);
}

static void remove_made(void) {
    unlink(sample_path("made.h5"));
}

/* -- reading --------------------------------------------------------------------------------- */

static const char *read_name; /* file name */

static sr_status read_rows(h5_id file, const char *path, int64_t cache, sr_failure *why) {
    double real[ROWS][COLUMNS] = {{0}};
    int64_t chunk[2];
    h5_id set;
    h5_shape shape;
    bool there;
    const h5_rows rows = {0, ROWS, 0, COLUMNS, COLUMNS};
    sr_status status = h5_open_dataset(file, path, cache, &set, &shape, &there, why);
    if (!there) complain("read", "%s is taken for absent", path);
    if (status == SR_OK) status = h5_check_stored(file, set, path, &shape, why);
    if (status == SR_OK && h5_stored_bytes(set, why) < 0) status = why->status;
    if (status == SR_OK) status = h5_read_rows(set, &rows, H5_FLOAT64, real, why);
    if (status == SR_OK) h5_get_chunk(set, chunk);
    h5_close_dataset(set);
    for (int i = 0; i < ROWS * COLUMNS && status == SR_OK; i++)
        if ((int)real[i / COLUMNS][i % COLUMNS] != (int)real_at(i / COLUMNS, i % COLUMNS))
            complain("read", "%s: value %d is %g", path, i, real[i / COLUMNS][i % COLUMNS]);
    return status;
}

static sr_status read_letters(h5_id file, sr_failure *why) {
    char text[2][TEXT] = {"", ""};
    h5_id set;
    h5_shape shape;
    sr_status status = h5_open_dataset(file, "/letters", -1, &set, &shape, NULL, why);
    if (status == SR_OK) status = h5_read_all(set, H5_TEXT, TEXT, text, why);
    h5_close_dataset(set);
    if (status == SR_OK && (strcmp(text[0], "first") != 0 || strcmp(text[1], "second") != 0))
        complain("read", "'%.8s' and '%.8s'", text[0], text[1]);
    return status;
}

static sr_status read_attributes(h5_id file, sr_failure *why) {
    void *text = NULL;
    int64_t number = 0;
    sr_status status = h5_get_attribute(file, "/g", "text", H5_TEXT, &text, NULL, why);
    if (status == SR_OK && strcmp(text, "some text") != 0) complain("read", "'%s'", (char *)text);
    free(text);
    if (status == SR_OK)
        status = h5_get_attribute(file, "/one", "number", H5_INT64, NULL, &number, why);
    if (status == SR_OK && number != whole) complain("read", "number %lld", (long long)number);
    return status;
}

static sr_status read_members(h5_id file, sr_failure *why) {
    static const char *const names[] = {"growing", "same", "summed"};
    int64_t count = 0;
    char name[64] = "";
    sr_status status = h5_count_members(file, "/g", &count, why);
    if (status == SR_OK && count != 3) complain("read", "%d members", (int)count);
    for (int i = 0; i < 3 && status == SR_OK; i++) {
        status = h5_member(file, "/g", i, name, sizeof name, why);
        if (status == SR_OK && strcmp(name, names[i]) != 0) complain("read", "member %s", name);
    }
    return status;
}

/* These functions cannot return a failure: checks the value that each promises instead. */
static void ask(h5_id file) {
    char name[H5_PATH_SIZE];
    const int64_t end = h5_end_of(file), bytes = h5_file_bytes(file);
    if (!h5_has(file, "/g/same")) complain("ask", "/g/same is taken for absent");
    if (!h5_has_attribute(file, "/g", "text")) complain("ask", "text is taken for absent");
    if (h5_has_attribute(file, "/missing", "text") && failing_at == 0) complain("ask", "/missing");
    if (end && bytes && (end > bytes || end < 100))
        complain("ask", "ends at %lld of %lld", (long long)end, (long long)bytes);
    if (h5_name_of(file, 1, 1, name)) complain("ask", "%s", name);
    if (h5_descriptor(file) < -1) complain("ask", "descriptor");
}

static sr_status read_parts(h5_id file, sr_failure *why) {
    sr_status status = read_rows(file, "/g/growing", -1, why);
    if (status == SR_OK) status = read_rows(file, "/g/growing", 0, why);
    if (status == SR_OK) status = read_rows(file, "/g/summed", -1, why);
    if (status == SR_OK) status = read_letters(file, why);
    if (status == SR_OK) status = read_attributes(file, why);
    if (status == SR_OK) status = read_members(file, why);
    ask(file);
    return status;
}

static sr_status read_objects(sr_failure *why) {
    h5_id file;
    sr_status status = h5_open(sample_path(read_name), H5_CLOSED, NULL, &file, why);
    if (status == SR_OK) status = read_parts(file, why);
    const sr_status closed = h5_close(file, status == SR_OK ? why : NULL);
    return status == SR_OK ? closed : status;
}

/* After a write without failure every object can be read. */
static void look_at_made(const char *after, sr_status status) {
    sr_failure why = {0};
    read_name = "made.h5";
    if (status == SR_OK && read_objects(&why) != SR_OK) complain(after, "%s", why.text);
}

/* -- each call ------------------------------------------------------------------------------- */

static void test_writing(void **state) {
    (void)state;
    const deed logged = {"write with a journal",
                         write_logged,
                         look_at_made,
                         remove_made,
                         "made.h5",
                         true},
               plain = {"write", write_plain, look_at_made, remove_made, "made.h5", true};
    for (int kind = 0; kind < FAILING_KINDS; kind++) {
        deed_fail_all(&logged, (failing_kind)kind);
        deed_fail_all(&plain, (failing_kind)kind);
    }
}

static const deed reading = {"read", read_objects, NULL, NULL, "whole.h5", false};

static void test_reading(void **state) {
    (void)state;
    read_name = "whole.h5";
    for (int kind = 0; kind < FAILING_KINDS; kind++) deed_fail_all(&reading, (failing_kind)kind);
}

/* HDF5's out-of-memory errors are not reported as damage, nor other errors as out of memory. */
static sr_status read_without_memory(sr_failure *why) {
    const sr_status status = read_objects(why);
    const bool right = failing_gives == FAILING_MEMORY ? status == SR_MEMORY : status != SR_MEMORY;
    if (failing_at && status != SR_OK && !right) complain("reasons", "%s", why->text);
    return status;
}

static void test_reasons(void **state) {
    (void)state;
    static const char *const functions[] = {"H5Fopen", "H5Dopen2", "H5Aopen_by_name",
                                            "H5Dread", "H5Aread",  "H5Dget_storage_size"};
    const deed asking = {"reasons", read_without_memory, NULL, NULL, "whole.h5", false};
    read_name = "whole.h5";
    for (int i = 0; i < 12; i++) {
        failing_only = functions[i / 2];
        failing_gives = i % 2 ? FAILING_SPACE : FAILING_MEMORY;
        deed_fail_all(&asking, FAILING_HDF5);
    }
    failing_only = NULL, failing_gives = FAILING_UNKNOWN;
}

static int make_whole(void **state) {
    (void)state;
    sr_failure why = {0};
    check_ok(write_plain(&why), &why);
    return rename(sample_path("made.h5"), sample_path("whole.h5"));
}

int main(void) {
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_writing),
        cmocka_unit_test(test_reading),
        cmocka_unit_test(test_reasons),
    };
    return cmocka_run_group_tests(tests, make_whole, NULL);
}
