/* test_objects.c -- objects of a file that statrec did not write. Each is opened unchanged, or
 * rejected with a reason that names it. */
#include <hdf5.h>
#include <string.h>
#include <unistd.h>

#include "hdf5/dimension_scales.h"
#include "testing/check.h"
#include "testing/sample_run.h"

#define LONG "a-group-with-a-name-of-36-characters"

static hid_t file; /* being made */

static hid_t group_at(const char *path) {
    const hid_t links = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(links, 1);
    const hid_t group = H5Gcreate2(file, path, links, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(group >= 0);
    H5Pclose(links);
    return group;
}

/* Adds a dataset of bytes: contiguous, or in chunks of one value with a checksum each. */
static void add_bytes(hid_t at, const char *name, int rank, const hsize_t *dims, bool summed,
                      bool written) {
    static unsigned char zeros[8192];
    const hsize_t one[5] = {1, 1, 1, 1, 1};
    const hid_t space = H5Screate_simple(rank, dims, NULL), how = H5Pcreate(H5P_DATASET_CREATE);
    if (summed) assert_true(H5Pset_chunk(how, rank, one) >= 0 && H5Pset_fletcher32(how) >= 0);
    const hid_t set = H5Dcreate2(at, name, H5T_STD_U8LE, space, H5P_DEFAULT, how, H5P_DEFAULT);
    assert_true(set >= 0);
    if (written)
        assert_true(H5Dwrite(set, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, zeros) >= 0);
    H5Dclose(set), H5Pclose(how), H5Sclose(space);
}

static void add_size(hid_t at, const char *name, hsize_t size) {
    add_bytes(at, name, 1, &size, false, true);
}

/* In chunks of one value, all unwritten; the number of rows is unlimited. */
static void add_growing(const char *name, int rank, const hsize_t *dims) {
    hsize_t one[3] = {1, 1, 1}, most[3] = {H5S_UNLIMITED};
    for (int i = 1; i < rank; i++) most[i] = dims[i];
    const hid_t space = H5Screate_simple(rank, dims, most), how = H5Pcreate(H5P_DATASET_CREATE);
    assert_true(H5Pset_chunk(how, rank, one) >= 0);
    const hid_t set = H5Dcreate2(file, name, H5T_STD_U8LE, space, H5P_DEFAULT, how, H5P_DEFAULT);
    assert_true(set >= 0);
    H5Dclose(set), H5Pclose(how), H5Sclose(space);
}

/* Two values in a chunk of `size` bytes. Its filter mask marks the checksum as skipped. */
static void add_skipped(const char *name, hsize_t size) {
    const hsize_t two = 2, zero = 0;
    const hid_t space = H5Screate_simple(1, &two, NULL), how = H5Pcreate(H5P_DATASET_CREATE);
    assert_true(H5Pset_chunk(how, 1, &two) >= 0 && H5Pset_fletcher32(how) >= 0);
    const hid_t set = H5Dcreate2(file, name, H5T_STD_U8LE, space, H5P_DEFAULT, how, H5P_DEFAULT);
    assert_true(H5Dwrite_chunk(set, H5P_DEFAULT, 1, &zero, size, "ab") >= 0);
    H5Dclose(set), H5Pclose(how), H5Sclose(space);
}

/* -- one file with all objects --------------------------------------------------------------- */

enum { GROUPS = 20 }; /* more than stay open */

static void make_objects(void) {
    const hsize_t two[] = {(hsize_t)1 << 40, (hsize_t)1 << 40}, five[] = {1, 1, 1, 1, 1},
                  three[] = {(hsize_t)1 << 40, (hsize_t)1 << 40, 2}, some = 100, many = 1 << 30,
                  sums = 4097, ten = 10;
    file = H5Fcreate(sample_path("objects.h5"), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(file >= 0);
    add_bytes(file, "five", 5, five, false, true);
    add_bytes(file, "overflow", 2, two, false, false);
    add_bytes(file, "unwritten", 1, &some, false, false);
    add_bytes(file, "large", 1, &many, false, false);
    add_bytes(file, "sums", 1, &sums, true, true);
    add_bytes(file, "overflow3", 3, three, false, false);
    add_growing("chunks", 3, three);
    add_growing("grows", 1, &ten);
    add_skipped("skipped", 2), add_skipped("skipped short", 1);
    assert_true(H5Lcreate_soft("/five", file, "soft", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    add_size(file, LONG, 3);
    for (int i = 0; i < GROUPS; i++) {
        const hid_t group = group_at(h5_path_of("/group%02d", i).text);
        add_size(group, "x", (hsize_t)i + 1);
        H5Gclose(group);
    }
    const hid_t longer = group_at("/ab"), shorter = group_at("/a"), deep = group_at("/" LONG "2/b");
    add_size(longer, "x", 40), add_size(shorter, "x", 50), add_size(deep, "x", 60);
    H5Gclose(longer), H5Gclose(shorter), H5Gclose(deep);
    assert_true(H5Fclose(file) >= 0);
}

typedef struct object {
    const char *path;
    int64_t size;     /* 0: rejected */
    const char *says; /* NULL: absent */
} object;

static const object objects[] = {
    {"/five", 0, "/five: refused: of more dimensions than a run file has"},
    {"/overflow", 0, "/overflow: refused: larger than its stored bytes"},
    {"/unwritten", 0, "/unwritten: refused: larger than its stored bytes"},
    {"/large", 0, "/large: refused: larger than its stored bytes"},
    {"/sums", 0, "/sums: refused: in more chunks with sums than a file has"},
    {"/overflow3", 0, "/overflow3: refused: larger than its stored bytes"},
    {"/chunks", 0, "/chunks: refused: in chunks larger than the file has bytes for"},
    {"/skipped", 2, NULL},
    {"/skipped short", 0, "refused: a chunk is not as long as its values"},
    {"/soft", 0, "/soft: refused: a soft link"},
    {"/grows", 10, NULL},
    {"/" LONG "/b/x", 0, "not a group"},
    {"/" LONG "2/b/x", 60, NULL},
    {"/" LONG "2/c/x", 0, NULL},
    {"/missing/b/c/x", 0, NULL},
    {"/missing", 0, NULL},
    {"/ab/x", 40, NULL},
    {"/a/x", 50, NULL}, /* the path of the group before is a prefix of its path */
    {"/a/y", 0, NULL},
};

static h5_id open_file(const char *name) {
    h5_id opened;
    sr_failure why = {0};
    check_ok(h5_open(sample_path(name), H5_CLOSED, NULL, &opened, &why), &why);
    return opened;
}

static void expect_size(h5_id opened, const char *path, int64_t size) {
    h5_id set;
    h5_shape shape;
    sr_failure why = {0};
    check_ok(h5_open_dataset(opened, path, -1, &set, &shape, NULL, &why), &why);
    assert_true(shape.rank == 1 && shape.type == H5_UINT8);
    if (shape.dims[0] != size) fail_msg("%s: %lld values", path, (long long)shape.dims[0]);
    h5_close_dataset(set);
}

static void test_objects(void **state) {
    (void)state;
    const h5_id opened = open_file("objects.h5");
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++) {
        const object *o = &objects[i];
        h5_id set;
        h5_shape shape;
        bool there;
        sr_failure why = {0};
        if (o->size) {
            expect_size(opened, o->path, o->size);
            continue;
        }
        assert_int_equal(h5_open_dataset(opened, o->path, -1, &set, &shape, &there, &why),
                         SR_FORMAT);
        if (there != (o->says != NULL)) fail_msg("%s: there %d", o->path, there);
        if (o->says) check_failure(&why, SR_FORMAT, o->says);
    }
    check_ok(h5_close(opened, NULL), NULL);
}

static void test_many_groups(void **state) {
    (void)state;
    const h5_id opened = open_file("objects.h5");
    for (int again = 0; again < 2; again++)
        for (int i = 0; i < GROUPS; i++)
            expect_size(opened, h5_path_of("/group%02d/x", i).text, i + 1);
    check_ok(h5_close(opened, NULL), NULL);
}

/* -- names ----------------------------------------------------------------------------------- */

static void test_attributes(void **state) {
    (void)state;
    int64_t value;
    sr_failure why = {0};
    const h5_id opened = open_file("objects.h5");
    assert_false(h5_has_attribute(opened, "/", "format"));
    assert_false(h5_has_attribute(opened, "/missing", "format"));
    assert_true(h5_has_attribute(opened, "/soft", "format")); /* not followed, thus not absent */
    assert_true(h5_has(opened, "/soft"));
    assert_int_equal(h5_get_attribute(opened, "/a", "two\nlines", H5_INT64, NULL, &value, &why),
                     SR_FORMAT);
    check_failure(&why, SR_FORMAT, "/a attribute two");
    const char *reason = strstr(why.text, "damaged: ");
    assert_true(reason && !strchr(reason, '\n') && strstr(reason, "two lines"));
    check_ok(h5_close(opened, NULL), NULL);
}

static int64_t address_of(const char *path) {
    H5O_info_t info;
    const hid_t opened = H5Fopen(sample_path("objects.h5"), H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(H5Oget_info_by_name2(opened, path, &info, H5O_INFO_BASIC, H5P_DEFAULT) >= 0);
    assert_true(H5Fclose(opened) >= 0);
    return (int64_t)info.addr;
}

static void test_names(void **state) {
    (void)state;
    static const char *const path[] = {"/", "/five", "/a", "/group07/x"};
    char name[H5_PATH_SIZE];
    for (int i = 0; i < 4; i++) {
        const int64_t at = address_of(path[i]);
        const h5_id opened = open_file("objects.h5");
        assert_true(h5_name_of(opened, at, 1, name));
        assert_string_equal(name, path[i]);
        assert_false(h5_name_of(opened, at + 1, 1, name));
        check_ok(h5_close(opened, NULL), NULL);
    }
}

/* A name that is longer than any path of ours ends the search. */
static void test_long_name(void **state) {
    (void)state;
    char name[700], found[H5_PATH_SIZE];
    memset(name, 'n', sizeof name);
    name[0] = '/', name[sizeof name - 1] = 0;
    file = H5Fcreate(sample_path("long.h5"), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    H5Gclose(group_at(name));
    assert_true(H5Fclose(file) >= 0);
    const h5_id opened = open_file("long.h5");
    assert_false(h5_name_of(opened, 1 << 20, 1, found));
    check_ok(h5_close(opened, NULL), NULL);
}

/* Declared rows need no stored bytes; a caller that allocates all of them checks first. */
static void test_stored(void **state) {
    (void)state;
    h5_id set;
    h5_shape shape;
    sr_failure why = {0};
    const h5_id opened = open_file("objects.h5");
    check_ok(h5_open_dataset(opened, "/grows", -1, &set, &shape, NULL, &why), &why);
    assert_false(shape.stored);
    assert_int_equal(h5_check_stored(opened, set, "/grows", &shape, &why), SR_FORMAT);
    check_failure(&why, SR_FORMAT, "/grows: refused: larger than its stored bytes");
    h5_close_dataset(set);
    why = (sr_failure){0};
    check_ok(h5_open_dataset(opened, "/a/x", -1, &set, &shape, NULL, &why), &why);
    assert_true(shape.stored);
    check_ok(h5_check_stored(opened, set, "/a/x", &shape, &why), &why);
    h5_close_dataset(set);
    check_ok(h5_close(opened, NULL), NULL);
}

/* Chunks of two rows, in file order: an end within the file cuts off complete chunks. */
static void test_whole_rows(void **state) {
    (void)state;
    enum { ROWS = 20, WIDE = 4096 };
    static uint8_t rows[ROWS][WIDE];
    const hsize_t dims[2] = {ROWS, WIDE}, chunk[2] = {2, WIDE}, most[2] = {H5S_UNLIMITED, WIDE};
    file = H5Fcreate(sample_path("rows.h5"), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t space = H5Screate_simple(2, dims, most), how = H5Pcreate(H5P_DATASET_CREATE);
    assert_true(H5Pset_chunk(how, 2, chunk) >= 0);
    const hid_t made = H5Dcreate2(file, "x", H5T_STD_U8LE, space, H5P_DEFAULT, how, H5P_DEFAULT);
    assert_true(H5Dwrite(made, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, rows) >= 0);
    haddr_t at;
    hsize_t first[2], bytes;
    h5_id set;
    h5_shape shape;
    sr_failure why = {0};
    assert_true(H5Dget_chunk_info(made, space, 6, first, NULL, &at, &bytes) >= 0);
    H5Dclose(made), H5Pclose(how), H5Sclose(space);
    assert_true(H5Fclose(file) >= 0);
    const h5_id opened = open_file("rows.h5");
    check_ok(h5_open_dataset(opened, "/x", -1, &set, &shape, NULL, &why), &why);
    assert_int_equal(h5_whole_rows(set, ROWS, (int64_t)(at + bytes)), 14);
    assert_int_equal(h5_whole_rows(set, ROWS, (int64_t)(at + bytes) - 1), 12);
    assert_int_equal(h5_whole_rows(set, 5, (int64_t)(at + bytes)), 5);
    assert_int_equal(h5_whole_rows(set, ROWS, 1), 0);
    assert_int_equal(h5_whole_rows(set, 0, 1), 0);
    assert_int_equal(h5_whole_rows(set, ROWS, 1 << 24), ROWS);
    h5_close_dataset(set);
    check_ok(h5_close(opened, NULL), NULL);
}

/* No object to name: the message has the action and a reason. */
static void test_no_object(void **state) {
    (void)state;
    h5_id set;
    sr_failure why = {0};
    const h5_shape other = {.type = H5_OTHER, .rank = 1, .dims = {3}};
    assert_int_equal(h5_extend(0, 3, &why), SR_LIBRARY);
    assert_int_equal(strncmp(why.text, "extend: ", 8), 0);
    assert_int_equal(h5_descriptor(0), -1);
    assert_int_equal(h5_file_bytes(0), 0);
    why = (sr_failure){0};
    unlink(sample_path("other.h5"));
    check_ok(h5_create(sample_path("other.h5"), false, &file, &why), &why);
    assert_int_equal(h5_add_dataset(file, "/x", &other, &set, &why), SR_LIBRARY);
    assert_int_equal(set, 0);
    check_ok(h5_close(file, NULL), NULL);
}

/* No HDF5 call, not even with an invalid dataset. */
static void test_no_rows(void **state) {
    (void)state;
    const h5_rows none[] = {{.count = 0, .columns = 1, .stride = 1}, {.count = 1, .stride = 1}};
    for (int i = 0; i < 2; i++)
        assert_int_equal(h5_read_rows(0, &none[i], H5_UINT8, NULL, NULL), SR_OK);
}

static void test_scales(void **state) {
    (void)state;
    static const scaled none[SCALED_MAX + 1];
    sr_failure why = {0};
    assert_int_equal(dimension_scales_write(0, none, SCALED_MAX + 1, &why), SR_USAGE);
}

static int make_files(void **state) {
    (void)state;
    make_objects();
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_objects),    cmocka_unit_test(test_many_groups),
        cmocka_unit_test(test_attributes), cmocka_unit_test(test_names),
        cmocka_unit_test(test_long_name),  cmocka_unit_test(test_no_rows),
        cmocka_unit_test(test_scales),     cmocka_unit_test(test_stored),
        cmocka_unit_test(test_whole_rows), cmocka_unit_test(test_no_object),
    };
    return cmocka_run_group_tests(tests, make_files, NULL);
}
