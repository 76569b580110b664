/* test_npz_format.c -- invalid .npy headers, each with its reason; both versions; names of files
 * and entries; more arrays than a short archive can count. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

#include "base/npz/npz.h"
#include "base/npz/npz_format.h"
#include "testing/check.h"

/* Writes a header with this dictionary; returns its size in bytes. */
static size_t make_header(char *to, int version, const char *dictionary) {
    const size_t length = strlen(dictionary), start = version == 2 ? NPY_PREFIX + 2 : NPY_PREFIX;
    memcpy(to, "\x93NUMPY", 6);
    to[6] = (char)version, to[7] = 0;
    to[8] = (char)(length & 0xff), to[9] = (char)(length >> 8);
    if (version == 2) to[10] = to[11] = 0;
    memcpy(to + start, dictionary, length);
    return start + length;
}

static sr_status read_header(const char *bytes, size_t count, npz_array *a, sr_failure *why) {
    int64_t data;
    *a = (npz_array){0};
    return npy_read_header(bytes, (int64_t)count, "a.npy", a, &data, why);
}

static void headers(void **state) {
    (void)state;
    static const struct {
        const char *dictionary, *says;
    } row[] = {
        {"{'fortran_order': False, 'shape': (1,), }", "no number type"},
        {"{'descr' '<f4', 'fortran_order': False, 'shape': (1,), }", "no number type"},
        {"{'descr': <f4, 'fortran_order': False, 'shape': (1,), }", "no number type"},
        {"{'descr': '<f2', 'fortran_order': False, 'shape': (1,), }", "numbers of type '<f2'"},
        {"{'descr': '<f44444444444444444444444444444444444444', 'shape': (1,), }", "'<f4444"},
        {"{'descr': '<f4', 'fortran_order': False, }", "no shape"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': 1, }", "no shape"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "malformed shape"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (a,), }", "malformed shape"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, ", "malformed shape"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 1, 1), }",
         "more than"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807,), }",
         "shape is too large"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
         "shape is too large"},
        {"{'descr': '<f4', 'shape': (2, 3), }", "column-major"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", "column-major"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char bytes[400];
        npz_array a;
        sr_failure why = {0};
        const size_t count = make_header(bytes, 1, row[i].dictionary);
        if (read_header(bytes, count, &a, &why) != SR_FORMAT || !strstr(why.text, row[i].says))
            fail_msg("%s: %s", row[i].dictionary, why.text);
    }
}

/* Not a header: too short, other bytes, a future version, longer than the file. */
static void no_header(void **state) {
    (void)state;
    char bytes[400];
    npz_array a;
    const size_t count = make_header(bytes, 1, "{'descr': '<f4', 'shape': (1,), }");
    for (int i = 0; i < 4; i++) {
        char wrong[400];
        sr_failure why = {0};
        memcpy(wrong, bytes, count);
        if (i == 1) wrong[1] = 'n';
        if (i == 2) wrong[6] = 3;
        if (i == 3) wrong[8]++;
        assert_int_equal(read_header(wrong, i == 0 ? NPY_PREFIX : count, &a, &why), SR_FORMAT);
        check_failure(&why, SR_FORMAT, "no .npy header of version 1 or 2");
    }
}

/* The order of a vector, or of an empty array, does not matter. */
static void both_versions(void **state) {
    (void)state;
    for (int version = 1; version <= 2; version++)
        for (int k = 0; k < 2; k++) {
            char bytes[400];
            npz_array a;
            sr_failure why = {0};
            const size_t count = make_header(
                bytes, version,
                k ? "{'descr': '<i8', 'fortran_order': True, 'shape': (5,), }"
                  : "{ 'descr' :  '<f4', 'fortran_order' : False, 'shape' : ( 2 , 0 ) , }");
            check_ok(read_header(bytes, count, &a, &why), &why);
            assert_int_equal(a.type, k ? NPZ_INT64 : NPZ_FLOAT32);
            assert_int_equal(a.rank, k ? 1 : 2);
            assert_int_equal(npz_count(&a), k ? 5 : 0);
        }
}

static void long_names(void **state) {
    (void)state;
    char path[2 * PATH_MAX];
    npz_array a;
    sr_failure why = {0};
    memset(path, '/', sizeof path); /* many slashes are one: the folder exists */
    snprintf(path + sizeof path - 8, 8, "a.npz");
    assert_null(npz_create(path, true, &why));
    check_failure(&why, SR_USAGE, "File name too long");
    npz_abandon(NULL), npz_close(NULL);
    npz_writer *w = npz_create("relative.npz", true, &why); /* in the current directory */
    assert_non_null(w);
    npz_abandon(w);
    snprintf(path, sizeof path, "%s/names.npz", check_temporary());
    assert_non_null(w = npz_create(path, true, &why));
    check_ok(npz_add(w, "one", &(npz_array){.type = NPZ_UINT8, .data = path}, &why), &why);
    check_ok(npz_write(w, &why), &why);
    npz_reader *r = npz_open(path, &why);
    assert_non_null(r);
    assert_int_equal(npz_arrays(r), 1);
    assert_string_equal(npz_name(r, -1), "");
    assert_string_equal(npz_name(r, 0), "one");
    assert_string_equal(npz_name(r, 1), "");
    assert_int_equal(npz_read(r, "", &a, NULL), SR_USAGE);
    assert_int_equal(npz_shape(r, "none", &a, NULL), SR_IO);
    npz_close(r);
}

/* Entries of other programs that are not arrays have no name here. */
static void foreign_entries(void **state) {
    (void)state;
    char path[PATH_MAX], entry[2000];
    int code;
    sr_failure why = {0};
    memset(entry, 'x', sizeof entry);
    strcpy(entry + sizeof entry - 5, ".npy");
    const char *const names[] = {"readme.txt", ".npy", entry, "fine.npy"};
    snprintf(path, sizeof path, "%s/foreign.npz", check_temporary());
    zip_t *zip = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, &code);
    assert_non_null(zip);
    for (int i = 0; i < 4; i++) {
        zip_source_t *source = zip_source_buffer(zip, "nothing", 7, 0);
        assert_int_equal(zip_file_add(zip, names[i], source, ZIP_FL_ENC_UTF_8), i);
    }
    assert_int_equal(zip_close(zip), 0);
    npz_reader *r = npz_open(path, &why);
    assert_non_null(r);
    for (int i = 0; i < 4; i++) assert_string_equal(npz_name(r, i), i == 3 ? "fine" : "");
    npz_close(r);
}

/* The end record of a ZIP file counts at most 65,534 entries; more need a longer record. */
static void many_arrays(void **state) {
    (void)state;
    enum { COUNT = 65536 };
    char path[PATH_MAX], name[32];
    sr_failure why = {0};
    double number = 0;
    npz_array a = {.type = NPZ_FLOAT64, .data = &number};
    snprintf(path, sizeof path, "%s/many.npz", check_temporary());
    npz_writer *w = npz_create(path, true, &why);
    assert_non_null(w);
    for (int i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "n%d", i);
        number = i;
        check_ok(npz_add(w, name, &a, &why), &why);
    }
    check_ok(npz_write(w, &why), &why);
    npz_reader *r = npz_open(path, &why);
    if (!r) fail_msg("%s", why.text);
    assert_int_equal(npz_arrays(r), COUNT);
    check_ok(npz_read(r, "n65535", &a, &why), &why);
    assert_true(*(double *)a.data == 65535);
    free(a.data);
    npz_close(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers),       cmocka_unit_test(no_header),
        cmocka_unit_test(both_versions), cmocka_unit_test(long_names),
        cmocka_unit_test(many_arrays),   cmocka_unit_test(foreign_entries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
