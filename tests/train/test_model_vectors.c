/* test_model_vectors.c -- runs every shared vector file of layers, models, optimizers and metrics
 * through its checker, chosen by the file's attribute `name`; faulty files must fail. With files as
 * arguments: checks those, then prints "N passed, N failed, N skipped" (cases). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/gemm/gemm.h"
#include "model_vectors.h"
#include "testing/check.h"

static void shared_vectors(void **state) {
    (void)state;
    const char *directory = check_shared("reference/vectors/models");
    vector_tally sum = {0};
    if (!directory) skip();
    vectors_run_directory(directory, &sum);
    printf("%d passed, %d failed, %d skipped\n", sum.passed, sum.failed, sum.skipped);
    assert_int_equal(sum.failed, 0);
    assert_true(sum.passed > 0);
}

/* -- files of our own: a cosine from 0.8 to 0 over 4 updates, at u = 0 and 2 */

typedef struct spoilt {
    const char *name, *leave_out; /* root attribute name; a dataset or attribute that is missing */
    double wrong;                 /* added to the second result */
    const char *more;             /* another result */
    int passed, failed, skipped;  /* expected counts */
} spoilt;

static void put_number(hid_t at, const char *name, double value, const char *leave_out) {
    if (leave_out && !strcmp(name, leave_out)) return;
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t a = H5Acreate2(at, name, H5T_IEEE_F64LE, space, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(a >= 0 && H5Awrite(a, H5T_NATIVE_DOUBLE, &value) >= 0);
    H5Aclose(a);
    H5Sclose(space);
}

static void put_text(hid_t at, const char *name, const char *value) {
    hid_t space = H5Screate(H5S_SCALAR), type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, strlen(value));
    H5Tset_strpad(type, H5T_STR_NULLPAD);
    hid_t a = H5Acreate2(at, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(a >= 0 && H5Awrite(a, type, value) >= 0);
    H5Aclose(a);
    H5Tclose(type);
    H5Sclose(space);
}

static void put_pair(hid_t at, const char *path, const double value[2], const spoilt *s) {
    const hsize_t two = 2;
    if (s->leave_out && !strcmp(path, s->leave_out)) return;
    hid_t space = H5Screate_simple(1, &two, NULL);
    hid_t set = H5Dcreate2(at, path, H5T_IEEE_F64LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, value) >= 0);
    put_number(set, "rtol", 0, s->leave_out);
    put_number(set, "atol", 1e-9, s->leave_out);
    H5Dclose(set);
    H5Sclose(space);
}

static void write_case(hid_t file, const spoilt *s) {
    hid_t group = H5Gcreate2(file, "case0", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    hid_t in = H5Gcreate2(group, "in", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    hid_t out = H5Gcreate2(group, "out", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    put_text(group, "kind", "cosine");
    put_number(group, "lr", 0.8, s->leave_out);
    put_number(group, "total", 4, NULL);
    put_pair(group, "in/u", (const double[]){0, 2}, s);
    put_pair(group, "out/lr", (const double[]){0.8, 0.4 + s->wrong}, s);
    if (s->more) put_pair(group, s->more, (const double[]){0, 0}, s);
    H5Gclose(out);
    H5Gclose(in);
    H5Gclose(group);
}

static void write_file(const char *path, const spoilt *s) {
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(file >= 0);
    put_text(file, "name", s->name);
    put_number(file, "layout_version", 1, s->leave_out);
    put_number(file, "cases", 1, s->leave_out);
    if (!s->leave_out || strcmp(s->leave_out, "case0")) write_case(file, s);
    H5Fclose(file);
}

static const char *file_path(void) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/made.h5", check_temporary());
    return path;
}

static void expect(const char *what, int passed, int failed, int skipped, int left_out) {
    vector_tally sum = {.quiet = true};
    vectors_run_directory(check_temporary(), &sum);
    if (sum.passed != passed || sum.failed != failed || sum.skipped != skipped ||
        sum.left_out != left_out)
        fail_msg("%s: %d passed, %d failed, %d skipped, %d left out", what, sum.passed, sum.failed,
                 sum.skipped, sum.left_out);
}

static void what_is_wrong_is_seen(void **state) {
    (void)state;
    static const spoilt row[] = {
        {.name = "lr", .passed = 1},
        {.name = "lr", .wrong = 0.9e-9, .passed = 1},
        {.name = "lr", .wrong = 1.2e-9, .failed = 1},
        {.name = "lr", .wrong = -1.2e-9, .failed = 1},
        {.name = "lr", .leave_out = "lr", .failed = 1},
        {.name = "lr", .leave_out = "in/u", .failed = 1},
        {.name = "lr", .leave_out = "out/lr", .failed = 1},
        {.name = "lr", .leave_out = "rtol", .failed = 1},
        {.name = "lr", .leave_out = "atol", .failed = 1},
        {.name = "lr", .leave_out = "case0", .failed = 1},
        {.name = "lr", .leave_out = "cases", .failed = 1},
        {.name = "lr", .leave_out = "layout_version", .failed = 1},
        {.name = "lr", .more = "out/another", .failed = 1},
        {.name = "nothing", .failed = 1},
        {.name = "uas", .failed = 1},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char what[128];
        write_file(file_path(), &row[i]);
        snprintf(what, sizeof what, "%s, %g off, without %s, with %s", row[i].name, row[i].wrong,
                 row[i].leave_out ? row[i].leave_out : "-", row[i].more ? row[i].more : "-");
        expect(what, row[i].passed, row[i].failed, row[i].skipped, 0);
    }
    unlink(file_path());
}

static void files_of_others(void **state) {
    (void)state;
    expect("no file", 0, 1, 0, 0);
    write_file(file_path(), &(spoilt){.name = "lr"});
    assert_int_equal(truncate(file_path(), 1500), 0);
    expect("truncated", 0, 1, 0, 0);
    FILE *f = fopen(file_path(), "w");
    assert_true(f && fputs("not HDF5\n", f) >= 0 && fclose(f) == 0);
    expect("foreign", 0, 1, 0, 0);
    hid_t file = H5Fcreate(file_path(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(file);
    expect("neither norm nor name", 0, 1, 0, 0);
    file = H5Fopen(file_path(), H5F_ACC_RDWR, H5P_DEFAULT);
    put_text(file, "norm", "bn");
    H5Fclose(file);
    expect("of normalizations", 0, 0, 0, 1);
    unlink(file_path());
}

/* out/text of case0 holds `want`; true when `got` agrees with it. */
static bool text_agrees(const char *want, const char *got) {
    const hsize_t size = strlen(want);
    hid_t file = H5Fcreate(file_path(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t group = H5Gcreate2(file, "case0", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    hid_t out = H5Gcreate2(group, "out", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Screate_simple(1, &size, NULL);
    hid_t set = H5Dcreate2(out, "text", H5T_STD_U8LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(set, H5T_NATIVE_UCHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT, want) >= 0);
    H5Dclose(set), H5Sclose(space), H5Gclose(out), H5Gclose(group);
    model_case c;
    assert_true(case_open(&c, file, "made.h5", 0));
    case_compare_text(&c, "text", got, (int64_t)strlen(got));
    assert_int_equal(c.compared, 1);
    case_close(&c);
    H5Fclose(file);
    unlink(file_path());
    return !c.broken;
}

static void texts_byte_for_byte(void **state) {
    (void)state;
    assert_true(text_agrees("a b\nc\xc3\xa4\n", "a b\nc\xc3\xa4\n"));
    assert_true(text_agrees("", ""));
    assert_false(text_agrees("a b\nc\n", "a b\nd\n"));
    assert_false(text_agrees("a b\nc\n", "a b\nc"));
    assert_false(text_agrees("a b\nc", "a b\nc\n"));
    assert_false(text_agrees("a", ""));
    assert_false(text_agrees("", "a"));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shared_vectors), cmocka_unit_test(what_is_wrong_is_seen),
        cmocka_unit_test(files_of_others), cmocka_unit_test(texts_byte_for_byte)};
    gemm_setup(2);
    if (argc < 2) return cmocka_run_group_tests(tests, NULL, NULL);
    vector_tally sum = {0};
    setvbuf(stdout, NULL, _IOLBF, 0); /* in order with the failures */
    for (int i = 1; i < argc; i++) vectors_run_file(argv[i], &sum);
    printf("%d passed, %d failed, %d skipped\n", sum.passed, sum.failed, sum.skipped);
    return sum.failed == 0 ? 0 : 1;
}
