/* test_array_file.c -- arrays round-trip; a failed write leaves no partial file; an altered byte is
 * reported. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "hdf5/array_file.h"
#include "hdf5/h5.h"
#include "testing/check.h"
#include "testing/damage.h"
#include "testing/sample_run.h"

#define FORMAT "array-test"

enum { VALUES = 24 };

static float real_values[VALUES];
static double wide[3] = {1.5, -0.0, 1e300};
static int64_t whole = -7;
static uint8_t bytes[5] = {0, 1, 127, 128, 255};

static const npz_array weight = {NPZ_FLOAT32, 4, {2, 3, 1, 4}, real_values},
                       slot = {NPZ_FLOAT64, 1, {3}, wide},
                       count = {.type = NPZ_INT64, .data = &whole},
                       text = {NPZ_UINT8, 1, {5}, bytes};

static sr_status write_sample(const char *path, sr_failure *why) {
    for (int i = 0; i < VALUES; i++) real_values[i] = (float)i / 3;
    array_writer *w = array_writer_create(path, FORMAT, 3, why);
    if (!w) return why->status;
    array_writer_put_text(w, "config", "norm = bn\n", NULL);
    array_writer_put_int(w, "steps", 1234567890123, NULL);
    array_writer_add(w, "parameters/stem.weight", &weight, NULL);
    array_writer_add(w, "optimizer/stem.weight.slot0", &slot, NULL);
    array_writer_add(w, "progress/updates", &count, NULL);
    array_writer_add(w, "dictionary/words", &text, NULL);
    return array_writer_finish(w, why);
}

static void check_array(const array_reader *r, const char *name, const npz_array *wanted,
                        size_t size) {
    sr_failure why = {0};
    npz_array shape, into = *wanted;
    const size_t total = (size_t)npz_count(wanted) * size;
    check_ok(array_reader_shape(r, name, &shape, &why), &why);
    assert_int_equal(shape.type, wanted->type);
    assert_int_equal(shape.rank, wanted->rank);
    for (int i = 0; i < shape.rank; i++) assert_int_equal(shape.dim[i], wanted->dim[i]);
    into.data = malloc(total);
    assert_non_null(into.data);
    check_ok(array_reader_fill(r, name, &into, &why), &why);
    assert_memory_equal(into.data, wanted->data, total);
    free(into.data);
}

static void test_round_trip(void **state) {
    (void)state;
    sr_failure why = {0};
    char *config, name[64];
    int64_t steps, members;
    const char *path = sample_path("trip.ckpt");
    check_ok(write_sample(path, &why), &why);
    array_reader *r = array_reader_open(path, FORMAT, 3, &why);
    assert_non_null(r);
    check_array(r, "parameters/stem.weight", &weight, sizeof(float));
    check_array(r, "optimizer/stem.weight.slot0", &slot, sizeof(double));
    check_array(r, "progress/updates", &count, sizeof(int64_t));
    check_array(r, "dictionary/words", &text, 1);
    check_ok(array_reader_text(r, "config", &config, &why), &why);
    assert_string_equal(config, "norm = bn\n");
    free(config);
    check_ok(array_reader_int(r, "steps", &steps, &why), &why);
    assert_true(steps == 1234567890123);
    assert_false(array_reader_has(r, "parameters/stem.bias"));
    check_ok(array_reader_count(r, "progress", &members, &why), &why);
    assert_int_equal(members, 1);
    check_ok(array_reader_name(r, "progress", 0, name, sizeof name, &why), &why);
    assert_string_equal(name, "updates");
    check_ok(array_reader_count(r, "running", &members, &why), &why);
    assert_int_equal(members, 0);
    array_reader_close(r);
}

/* Equal arrays give equal bytes, now and a second later. */
static void test_same_bytes(void **state) {
    (void)state;
    sr_failure why = {0};
    size_t first, second;
    check_ok(write_sample(sample_path("once.ckpt"), &why), &why);
    char *a = damage_load(sample_path("once.ckpt"), &first);
    sleep(1);
    check_ok(write_sample(sample_path("once.ckpt"), &why), &why);
    char *b = damage_load(sample_path("once.ckpt"), &second);
    assert_int_equal(first, second);
    assert_memory_equal(a, b, first);
    free(a), free(b);
}

static void expect_refused(const char *path, const char *format, int64_t newest, const char *says) {
    sr_failure why = {0};
    assert_null(array_reader_open(path, format, newest, &why));
    if (!strstr(why.text, says)) fail_msg("'%s' does not say '%s'", why.text, says);
}

static void test_refused(void **state) {
    (void)state;
    sr_failure why = {0};
    const char *path = sample_path("refused.ckpt");
    check_ok(write_sample(path, &why), &why);
    expect_refused(path, "another", 3, "not a another file");
    expect_refused(path, FORMAT, 2, "version 3, not 1 to 2");
    expect_refused(sample_path("nowhere.ckpt"), FORMAT, 3, "No such file");
    expect_refused(check_temporary(), FORMAT, 3, "not a regular file");
    damage_store(path, "norm = bn\n", 10);
    expect_refused(path, FORMAT, 3, "not an HDF5 file");
    damage_store(path, "", 0);
    expect_refused(path, FORMAT, 3, "not an HDF5 file");
}

static void test_other_shape(void **state) {
    (void)state;
    sr_failure why = {0};
    const char *path = sample_path("shape.ckpt");
    float into[VALUES];
    check_ok(write_sample(path, &why), &why);
    array_reader *r = array_reader_open(path, FORMAT, 3, &why);
    assert_non_null(r);
    const npz_array turned = {NPZ_FLOAT32, 4, {3, 2, 1, 4}, into};
    assert_int_equal(array_reader_fill(r, "parameters/stem.weight", &turned, &why), SR_FORMAT);
    check_failure(&why, SR_FORMAT, "parameters/stem.weight is 2 x 3 x 1 x 4, not 3 x 2 x 1 x 4");
    why = (sr_failure){0};
    const npz_array wider = {NPZ_FLOAT64, 4, {2, 3, 1, 4}, into};
    assert_int_equal(array_reader_fill(r, "parameters/stem.weight", &wider, &why), SR_FORMAT);
    check_failure(&why, SR_FORMAT, "of another type");
    array_reader_close(r);
}

/* True when every value of the sample can be read and is right. */
static bool reads_whole(const char *path) {
    float values[VALUES];
    double reals[3];
    int64_t updates = 0, steps = 0;
    uint8_t letters[5];
    char *config = NULL;
    const npz_array into[] = {{NPZ_FLOAT32, 4, {2, 3, 1, 4}, values},
                              {NPZ_FLOAT64, 1, {3}, reals},
                              {.type = NPZ_INT64, .data = &updates},
                              {NPZ_UINT8, 1, {5}, letters}};
    array_reader *r = array_reader_open(path, FORMAT, 3, NULL);
    const bool read =
        r && array_reader_fill(r, "parameters/stem.weight", &into[0], NULL) == SR_OK &&
        array_reader_fill(r, "optimizer/stem.weight.slot0", &into[1], NULL) == SR_OK &&
        array_reader_fill(r, "progress/updates", &into[2], NULL) == SR_OK &&
        array_reader_fill(r, "dictionary/words", &into[3], NULL) == SR_OK &&
        array_reader_text(r, "config", &config, NULL) == SR_OK &&
        array_reader_int(r, "steps", &steps, NULL) == SR_OK;
    array_reader_close(r);
    if (read) {
        assert_memory_equal(values, real_values, sizeof values);
        assert_memory_equal(reals, wide, sizeof reals);
        assert_memory_equal(letters, bytes, sizeof letters);
        assert_true(updates == whole && steps == 1234567890123);
        assert_string_equal(config, "norm = bn\n");
    }
    free(config);
    return read;
}

/* A change of any byte makes reading fail or has no effect: never a wrong number. */
static void test_changed_bytes(void **state) {
    (void)state;
    sr_failure why = {0};
    size_t size;
    int seen = 0;
    const char *path = sample_path("changed.ckpt");
    check_ok(write_sample(path, &why), &why);
    char *good = damage_load(path, &size), *bad = malloc(size);
    assert_non_null(bad);
    for (size_t i = 0; i < size; i += 3) {
        memcpy(bad, good, size);
        bad[i] = (char)(bad[i] ^ 0x10);
        damage_store(path, bad, size);
        seen += !reads_whole(path);
    }
    assert_true(seen > 100);
    for (size_t cut = 0; cut < size; cut += 97) {
        damage_store(path, good, cut);
        assert_false(reads_whole(path));
    }
    free(good), free(bad);
}

/* A full disk gives an error, leaves no partial file and keeps the earlier file. */
static void test_full_disk(void **state) {
    (void)state;
    sr_failure why = {0};
    struct rlimit old, limit;
    char path[256], part[256];
    snprintf(path, sizeof path, "%s", sample_path("full.ckpt"));
    snprintf(part, sizeof part, "%s", sample_path("full.ckpt.part"));
    check_ok(write_sample(path, &why), &why);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    for (rlim_t most = 0; most <= 4096; most += 512) {
        limit = (struct rlimit){most, old.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        why = (sr_failure){0};
        sr_status status = write_sample(path, &why);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        assert_int_not_equal(status, SR_OK);
        assert_int_equal(access(part, F_OK), -1);
        assert_true(reads_whole(path));
    }
}

/* A killed writer leaves PATH.part; the next writer replaces it. */
static void test_abandoned(void **state) {
    (void)state;
    sr_failure why = {0};
    char path[256], part[256];
    snprintf(path, sizeof path, "%s", sample_path("left.ckpt"));
    snprintf(part, sizeof part, "%s", sample_path("left.ckpt.part"));
    damage_store(part, "half", 4);
    check_ok(write_sample(path, &why), &why);
    assert_int_equal(access(part, F_OK), -1);
    array_writer *w = array_writer_create(path, FORMAT, 3, &why);
    assert_non_null(w);
    const npz_array empty = {.type = NPZ_FLOAT32, .rank = 1};
    array_writer_add(w, "parameters/stem.weight", &weight, NULL);
    assert_int_equal(array_writer_add(w, "empty", &empty, NULL), SR_USAGE);
    assert_int_equal(array_writer_finish(w, &why), SR_USAGE);
    assert_int_equal(access(part, F_OK), -1);
    assert_true(reads_whole(path));
}

/* -- arrays that cannot be stored, files that are no array files ------------------------------ */

static void expect_not_stored(const char *name, const npz_array *a) {
    sr_failure why = {0};
    const char *path = sample_path("not_stored.ckpt");
    array_writer *w = array_writer_create(path, FORMAT, 3, &why);
    assert_non_null(w);
    assert_int_equal(array_writer_add(w, name, a, &why), SR_USAGE);
    check_failure(&why, SR_USAGE, "cannot be stored");
    /* the first failure stays */
    assert_int_equal(array_writer_add(w, "slot", &slot, NULL), SR_USAGE);
    assert_int_equal(array_writer_put_int(w, "steps", 1, NULL), SR_USAGE);
    assert_int_equal(array_writer_finish(w, NULL), SR_USAGE);
    assert_int_equal(access(path, F_OK), -1);
}

static void test_not_stored(void **state) {
    (void)state;
    char name[300];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = 0;
    const npz_array texts = {.type = NPZ_TEXT64, .data = wide},
                    none = {NPZ_FLOAT32, 2, {3, 0}, real_values},
                    negative = {NPZ_FLOAT32, 1, {-1}, real_values};
    expect_not_stored("texts", &texts);
    expect_not_stored("none", &none);
    expect_not_stored("negative", &negative);
    expect_not_stored(name, &slot);
}

static void test_long_path(void **state) {
    (void)state;
    enum { LONG = 4096 };
    static char path[LONG];
    sr_failure why = {0};
    memset(path, 'p', LONG - 1);
    assert_null(array_writer_create(path, FORMAT, 3, &why));
    check_failure(&why, SR_USAGE, "ppp...: the path is too long");
    path[LONG - sizeof ".part"] = 0; /* too long for the operating system alone */
    why = (sr_failure){0};
    assert_null(array_writer_create(path, FORMAT, 3, &why));
    check_failure(&why, SR_IO, strerror(ENAMETOOLONG));
}

/* A file of texts, and one with a type that no array has. */
static void write_others(const char *path, int64_t version) {
    const h5_shape number = {.type = H5_UINT64, .rank = 1, .dims = {3}},
                   letters = {.type = H5_TEXT, .text = 8, .rank = 1, .dims = {3}};
    h5_id file, set;
    sr_failure why = {0};
    unlink(path);
    check_ok(h5_create(path, false, &file, &why), &why);
    check_ok(h5_add_dataset(file, "/number", &number, &set, &why), &why);
    h5_close_dataset(set);
    check_ok(h5_add_dataset(file, "/letters", &letters, &set, &why), &why);
    h5_close_dataset(set);
    const size_t size = strlen(FORMAT);
    check_ok(h5_put_attribute(file, "/", "format", H5_TEXT, size, -1, FORMAT, &why), &why);
    check_ok(h5_put_attribute(file, "/", "format_version", H5_INT64, 0, -1, &version, &why), &why);
    check_ok(h5_close(file, &why), &why);
}

static void test_other_arrays(void **state) {
    (void)state;
    const char *path = sample_path("others.ckpt");
    npz_array found, into = slot;
    sr_failure why = {0};
    write_others(path, 0);
    expect_refused(path, FORMAT, 3, "version 0, not 1 to 3");
    write_others(path, 1);
    array_reader *r = array_reader_open(path, FORMAT, 3, &why);
    assert_non_null(r);
    assert_int_equal(array_reader_shape(r, "number", &found, &why), SR_FORMAT);
    check_failure(&why, SR_FORMAT, "others.ckpt: number: unknown type or rank");
    why = (sr_failure){0};
    assert_int_equal(array_reader_shape(r, "letters", &found, &why), SR_FORMAT);
    check_failure(&why, SR_FORMAT, "letters: unknown type or rank");
    array_reader_close(r);
    why = (sr_failure){0};
    check_ok(write_sample(path, &why), &why);
    r = array_reader_open(path, FORMAT, 3, &why);
    assert_non_null(r);
    assert_int_equal(array_reader_fill(r, "progress/updates", &into, &why), SR_FORMAT);
    check_failure(&why, SR_FORMAT, "progress/updates is one value of another type, not 3");
    array_reader_close(r);
}

/* A chunk has at most 8 Mi values, unless a single row has more. */
static void test_large(void **state) {
    (void)state;
    enum { MANY = 9 << 20 };
    static uint8_t values[2 * MANY];
    const npz_array column = {NPZ_UINT8, 1, {MANY}, values},
                    rows = {NPZ_UINT8, 2, {2, MANY}, values};
    const char *path = sample_path("large.ckpt");
    int64_t chunk[2];
    h5_id file, set;
    h5_shape shape;
    sr_failure why = {0};
    for (size_t i = 0; i < 2 * MANY; i++) values[i] = (uint8_t)(i >> 8 ^ i);
    array_writer *w = array_writer_create(path, FORMAT, 3, &why);
    assert_non_null(w);
    array_writer_add(w, "column", &column, NULL);
    array_writer_add(w, "rows", &rows, NULL);
    check_ok(array_writer_finish(w, &why), &why);
    array_reader *r = array_reader_open(path, FORMAT, 3, &why);
    assert_non_null(r);
    check_array(r, "column", &column, 1);
    check_array(r, "rows", &rows, 1);
    array_reader_close(r);
    check_ok(h5_open(path, H5_CLOSED, NULL, &file, &why), &why);
    for (int i = 0; i < 2; i++) {
        check_ok(h5_open_dataset(file, i ? "/rows" : "/column", -1, &set, &shape, NULL, &why),
                 &why);
        h5_get_chunk(set, chunk);
        assert_int_equal(chunk[0], i ? 1 : 8 << 20);
        assert_int_equal(chunk[1], i ? MANY : 0);
        h5_close_dataset(set);
    }
    check_ok(h5_close(file, &why), &why);
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_not_stored),    cmocka_unit_test(test_long_path),
        cmocka_unit_test(test_other_arrays),  cmocka_unit_test(test_large),
        cmocka_unit_test(test_round_trip),    cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_refused),       cmocka_unit_test(test_other_shape),
        cmocka_unit_test(test_changed_bytes), cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_abandoned)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
