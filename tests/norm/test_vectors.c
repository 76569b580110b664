/* test_vectors.c -- every shared vector file of normalizations through norm_apply. With a directory
 * as argument: all its .h5 files with an attribute norm (tests/train/test_model_vectors.c takes the
 * others), closing with "N passed, N failed, N skipped" (cases); otherwise a test of the shared
 * directory. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../check.h"
#include "vectors.h"

typedef struct tally {
    int passed, failed, skipped; /* cases */
    int left_out;                /* files; -1: every file is ours */
} tally;

/* false: nothing here knows what the case is about. */
static bool compare_case(vector_case *c) {
    vector_setup s;
    if (!strcmp(c->norm, "recorded")) return vector_run_kind(c);
    if (!vector_setup_case(c, &s)) return false;
    if (!c->broken) vector_run(c, &s);
    return true;
}

static void run_case(hid_t file, const char *file_name, const char *name, tally *sum) {
    vector_case c;
    if (!vector_case_open(&c, file, file_name, name)) {
        fprintf(stderr, "%s %s: cannot be opened\n", file_name, name);
        sum->failed++;
        return;
    }
    if (!compare_case(&c)) {
        printf("skipped: %s: no method for '%s'\n", c.where, c.norm);
        sum->skipped++;
    } else if (!c.broken && !c.wrong && c.compared > 0) {
        sum->passed++;
    } else {
        if (!c.wrong) fprintf(stderr, "%s: incomplete\n", c.where);
        sum->failed++;
    }
    vector_case_close(&c);
}

/* A file of another kind, or one that cannot be read: the other program's. */
static bool is_left_out(hid_t file, tally *sum) {
    if (sum->left_out < 0 || (file >= 0 && H5Aexists(file, "norm") > 0)) return false;
    if (file >= 0) H5Fclose(file);
    sum->left_out++;
    return true;
}

static void run_file(const char *directory, const char *name, tally *sum) {
    char path[4096], group[64];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    H5G_info_t info = {0};
    tally before = *sum;
    if (is_left_out(file, sum)) return;
    if (file < 0 || H5Gget_info(file, &info) < 0) {
        fprintf(stderr, "%s: not a readable HDF5 file\n", path);
        sum->failed++;
    }
    for (hsize_t i = 0; file >= 0 && i < info.nlinks; i++)
        if (H5Lget_name_by_idx(file, ".", H5_INDEX_NAME, H5_ITER_INC, i, group, sizeof group,
                               H5P_DEFAULT) > 0)
            run_case(file, name, group, sum);
    if (file >= 0) H5Fclose(file);
    printf("%-28s %3d passed, %d failed, %d skipped\n", name, sum->passed - before.passed,
           sum->failed - before.failed, sum->skipped - before.skipped);
}

static int is_vector_file(const struct dirent *e) {
    size_t n = strlen(e->d_name);
    return n > 3 && !strcmp(e->d_name + n - 3, ".h5");
}

static bool run_directory(const char *directory, tally *sum) {
    struct dirent **list = NULL;
    int count = scandir(directory, &list, is_vector_file, alphasort);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    for (int i = 0; i < count; i++) {
        run_file(directory, list[i]->d_name, sum);
        free(list[i]);
    }
    free(list);
    return count > 0;
}

static void test_shared_vectors(void **state) {
    (void)state;
    const char *directory = check_shared("reference/vectors");
    tally sum = {.left_out = -1};
    if (!directory) skip();
    assert_true(run_directory(directory, &sum));
    printf("%d passed, %d failed, %d skipped\n", sum.passed, sum.failed, sum.skipped);
    assert_int_equal(sum.failed, 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shared_vectors)};
    if (argc < 2) return cmocka_run_group_tests(tests, NULL, NULL);
    tally sum = {0};
    setvbuf(stdout, NULL, _IOLBF, 0); /* in order with what is wrong */
    run_directory(argv[1], &sum);
    if (sum.left_out) printf("left out: %d files without attribute norm\n", sum.left_out);
    printf("%d passed, %d failed, %d skipped\n", sum.passed, sum.failed, sum.skipped);
    return sum.failed == 0 ? 0 : 1;
}
