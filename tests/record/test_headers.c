/* test_headers.c -- one byte of the header of each group and of each dataset is altered: none is
 * taken for absent, and the line says what is damaged. */
#include <fcntl.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../check.h"
#include "sample_run.h"

enum { HEADERS = 256 };

typedef struct headers {
    char path[HEADERS][128];
    haddr_t at[HEADERS];
    int count, groups;
} headers;

/* With the groups that most runs lack. */
static void make_run(const char *path) {
    sr_failure why = {0};
    sr_options o = SR_OPTIONS_DEFAULT;
    o.spectra = true, o.final = true;
    sr_recorder *r = sample_create(path, &o, &why);
    assert_non_null(r);
    check_ok(sample_steps(r, 1, 20, 10), sr_failed(r));
    check_ok(sr_close(r, &(sr_finish){"complete", "", ""}, &why), &why);
    check_ok(sr_run_check(path, &why), &why);
}

static herr_t keep_header(hid_t file, const char *path, const H5O_info_t *info, void *context) {
    headers *h = context;
    (void)file;
    assert_true(h->count < HEADERS && strlen(path) < sizeof h->path[0]);
    snprintf(h->path[h->count], sizeof h->path[0], "%s", path);
    h->at[h->count++] = info->addr;
    h->groups += info->type == H5O_TYPE_GROUP;
    return 0;
}

static void flip(int fd, haddr_t at) {
    char byte;
    assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
    byte ^= 0x10;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
}

/* What recover leaves out it counts; only the final pass has no count. */
static void expect_told(const char *path, const char *object) {
    sr_failure why = {0};
    sr_recovery count;
    if (sr_run_check(path, &why) != SR_FORMAT) fail_msg("%s: %s", object, why.text);
    const bool root = strcmp(object, ".") == 0; /* nothing says that it was a run file */
    check_failure(&why, SR_FORMAT, root ? "not a run file" : "damaged: ");
    if (!root) check_failure(&why, SR_FORMAT, "checksum");
    if (sr_run_recover(path, sample_path("copy.h5"), true, -1, &count, NULL) == SR_OK &&
        strncmp(object, "final", 5) != 0)
        fail_msg("%s: recovered, %lld steps lost", object, (long long)count.lost_steps);
}

static void test_each(void **state) {
    (void)state;
    static headers h;
    char signature[4];
    const char *path = sample_path("all.h5");
    make_run(path);
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, keep_header, &h, H5O_INFO_BASIC) >= 0);
    H5Fclose(file);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    for (int i = 0; i < h.count; i++) {
        assert_int_equal(pread(fd, signature, 4, (off_t)h.at[i]), 4);
        assert_memory_equal(signature, "OHDR", 4);
        flip(fd, h.at[i] + 7);
        expect_told(path, h.path[i]);
        flip(fd, h.at[i] + 7);
    }
    close(fd);
    sr_failure why = {0};
    check_ok(sr_run_check(path, &why), &why);
    printf("%d damaged headers, %d of them of groups\n", h.count, h.groups);
    assert_true(h.groups >= 9 && h.count > 80);
}

int main(void) {
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
