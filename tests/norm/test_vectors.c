/* test_vectors.c -- runs every shared vector file of normalizations through norm_apply. With files
 * as arguments: runs those with an attribute norm (tests/train/test_model_vectors.c runs the
 * others). It then ends with "N passed, N failed, N skipped" (cases). Without arguments: tests the
 * shared directory. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing/check.h"
#include "vectors.h"

typedef struct tally {
    int passed, failed, skipped; /* cases */
    int left_out;                /* files */
} tally;

/* Returns false for an unsupported case. */
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

/* Prints a line for a file with attribute norm. Another or unreadable file belongs to the other
 * program. */
static void run_file(const char *path, tally *sum) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const tally before = *sum;
    H5G_info_t info = {0};
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (file < 0 || H5Aexists(file, "norm") <= 0) {
        if (file >= 0) H5Fclose(file);
        sum->left_out++;
        return;
    }
    if (H5Gget_info(file, &info) < 0 || info.nlinks == 0) {
        fprintf(stderr, "%s: no cases\n", path);
        sum->failed++;
    }
    for (hsize_t i = 0; i < info.nlinks; i++) {
        char group[64] = "?"; /* one without a name cannot be opened */
        H5Lget_name_by_idx(file, ".", H5_INDEX_NAME, H5_ITER_INC, i, group, sizeof group,
                           H5P_DEFAULT);
        run_case(file, name, group, sum);
    }
    H5Fclose(file);
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
    for (int i = 0; i < count; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", directory, list[i]->d_name);
        run_file(path, sum);
        free(list[i]);
    }
    free(list);
    return count > 0;
}

static void test_shared_vectors(void **state) {
    (void)state;
    const char *directory = check_shared("reference/vectors");
    tally sum = {0};
    if (!directory) skip();
    assert_true(run_directory(directory, &sum));
    printf("%d passed, %d failed, %d skipped\n", sum.passed, sum.failed, sum.skipped);
    assert_int_equal(sum.failed, 0);
    assert_int_equal(sum.left_out, 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shared_vectors)};
    if (argc < 2) return cmocka_run_group_tests(tests, NULL, NULL);
    tally sum = {0};
    setvbuf(stdout, NULL, _IOLBF, 0); /* keeps the order of output and errors */
    for (int i = 1; i < argc; i++) run_file(argv[i], &sum);
    printf("%d passed, %d failed, %d skipped\n", sum.passed, sum.failed, sum.skipped);
    return sum.failed == 0 ? 0 : 1;
}
