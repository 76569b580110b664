/* test_headers.c -- one byte of the header of each group and of each dataset is altered: none is
 * taken for absent, and the line says what is damaged. */
#define _GNU_SOURCE /* memmem */
#include <fcntl.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hdf5/v1_10/h5_checks.h"
#include "testing/check.h"
#include "testing/damage.h"
#include "testing/run_builder.h"
#include "testing/sample_run.h"

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
    o.overhead = 0;
    o.spectra = true, o.final = true;
    sr_recorder *r = sample_begin(path, &o);
    check_ok(sample_steps(r, 1, 20, 10), sr_failed(r));
    run_finish(r);
    check_ok(sr_run_check(path, &why), &why);
    size_t size;
    char *bytes = damage_load(path, &size);
    damage_store(path, bytes, damage_end(bytes)); /* as older files: without second copies */
    free(bytes);
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

typedef struct told {
    const char *object;
    int count, of_object;
} told;

static void hear_lost(void *context, const char *dataset, int64_t rows, const char *reason) {
    told *t = context;
    assert_int_not_equal(rows, 0);
    if (!strstr(reason, ": ")) fail_msg("%s: %s", dataset, reason);
    t->count++;
    t->of_object += strncmp(dataset + 1, t->object, strlen(t->object)) == 0 ||
                    strstr(reason, t->object) != NULL;
}

static void hear_fault(void *context, const sr_failure *fault) {
    told *t = context;
    t->count++;
    t->of_object += strstr(fault->text, t->object) != NULL;
}

/* Without these nothing in the file can be told apart. */
static bool is_needed(const char *object) {
    static const char *const needed[] = {".", "sites", "sites/name", "sites/offset", "sites/width"};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        if (strcmp(object, needed[i]) == 0) return true;
    return false;
}

/* Each row but for what is damaged; rows are lost only with their steps. */
static void expect_rest(const char *object, const sr_recovery *count) {
    const bool steps = !strcmp(object, "steps") || !strcmp(object, "steps/step"),
               vectors = steps || !strcmp(object, "vectors") || !strcmp(object, "vectors/step"),
               evals = !strcmp(object, "evals") || !strcmp(object, "evals/step");
    if (strcmp(object, "step") == 0) return; /* another name of /steps/step */
    if (count->steps != (steps ? 0 : 20) || count->lost_steps != (steps ? 20 : 0) ||
        count->vectors != (vectors ? 0 : 20) || count->evals != (evals ? 0 : 2) ||
        count->lost_evals != (evals ? 2 : 0))
        fail_msg("%s: steps %d + %d lost, vectors %d + %d, evals %d + %d", object,
                 (int)count->steps, (int)count->lost_steps, (int)count->vectors,
                 (int)count->lost_vectors, (int)count->evals, (int)count->lost_evals);
}

/* The check names it, and recover says what it leaves out and takes the rest. */
static void expect_told(const char *path, const char *object) {
    sr_failure why = {0};
    sr_recovery count = {.size = sizeof(sr_recovery)};
    told faults = {object, 0, 0}, lost = {object, 0, 0};
    if (sr_run_check_all(path, hear_fault, &faults, &why) != SR_FORMAT)
        fail_msg("%s: %s", object, why.text);
    const bool root = strcmp(object, ".") == 0; /* nothing says that it was a run file */
    check_failure(&why, SR_FORMAT, root ? "not a run file" : "damaged: ");
    if (!root) check_failure(&why, SR_FORMAT, "checksum");
    if (faults.of_object == 0 && strchr(object, '/'))
        fail_msg("%s: not among %d faults", object, faults.count);
    why = (sr_failure){0};
    sr_status recovered = sr_run_recover_report(path, sample_path("copy.h5"), true, -1, &count,
                                                hear_lost, &lost, &why);
    if ((recovered == SR_OK) == is_needed(object)) fail_msg("%s: %s", object, why.text);
    if (is_needed(object)) return;
    const bool empty = strncmp(object, "final/tid", 9) == 0; /* the run made no such pass */
    if (!empty && (lost.count == 0 || (strchr(object, '/') && lost.of_object == 0)))
        fail_msg("%s: recovered, %d losses told, %d of it", object, lost.count, lost.of_object);
    expect_rest(object, &count);
    sr_runfile *f = sr_run_open(sample_path("copy.h5"), &why);
    if (!f) fail_msg("%s: %s", object, why.text);
    assert_true(empty || strstr(sr_run_get_info(f)->reason, "damaged dataset"));
    sr_run_close(f);
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

/* HDF5 1.10 would tell by itself, but loses memory where a sum is wrong: such a header never
 * reaches it. Of a file that is being written it does, since HDF5 looks again. */
static void expect_whole(int fd, haddr_t at, haddr_t end, bool whole) {
    unsigned char bytes[512];
    const ssize_t size = pread(fd, bytes, sizeof bytes, (off_t)at);
    assert_true(size > 0);
    if (h5_header_is_whole(NULL, fd, true, at, bytes, (size_t)size, end) != whole)
        fail_msg("the header at %lld is %swhole", (long long)at, whole ? "not " : "");
    assert_true(h5_header_is_whole(NULL, fd, false, at, bytes, (size_t)size, end));
}

/* Whether it goes on behind the end of the file; while that is written it may. */
static bool check_cut(int fd, haddr_t at, haddr_t end) {
    unsigned char bytes[512];
    const ssize_t size = pread(fd, bytes, sizeof bytes, (off_t)at);
    assert_true(h5_header_is_whole(NULL, fd, false, at, bytes, (size_t)size, end));
    return !h5_header_is_whole(NULL, fd, true, at, bytes, (size_t)size, end);
}

/* Place of the first chunk that goes on with a header; 0: none. */
static haddr_t find_chunk(const char *path) {
    size_t size;
    char *bytes = damage_load(path, &size);
    char *found = memmem(bytes, size, "OCHK", 4);
    const haddr_t at = found ? (haddr_t)(found - bytes) : 0;
    free(bytes);
    return at;
}

static void test_sums(void **state) {
    (void)state;
    static headers h;
    const char *path = sample_path("sums.h5");
    make_run(path);
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, keep_header, &h, H5O_INFO_BASIC) >= 0);
    H5Fclose(file);
    const int fd = open(path, O_RDWR);
    const haddr_t end = (haddr_t)lseek(fd, 0, SEEK_END), chunk = find_chunk(path);
    int beside = 0, cut = 0;
    for (int i = 0; i < h.count; i++) {
        expect_whole(fd, h.at[i], end, true);
        flip(fd, h.at[i] + 7);
        expect_whole(fd, h.at[i], end, false);
        flip(fd, h.at[i] + 7);
        expect_whole(fd, h.at[i], h.at[i] + 8, false); /* beyond the file's end */
    }
    assert_true(chunk > 0);
    for (int i = 0; i < h.count; i++) /* cut in front of that chunk */
        if (h.at[i] < chunk) cut += check_cut(fd, h.at[i], chunk);
    assert_true(cut > 0);
    flip(fd, chunk + 9);
    for (int i = 0; i < h.count; i++) {
        unsigned char bytes[512];
        const ssize_t size = pread(fd, bytes, sizeof bytes, (off_t)h.at[i]);
        beside += !h5_header_is_whole(NULL, fd, true, h.at[i], bytes, (size_t)size, end);
        assert_true(h5_header_is_whole(NULL, fd, false, h.at[i], bytes, (size_t)size, end));
    }
    close(fd);
    assert_true(beside > 0 && beside < h.count); /* the header that it belongs to */
}

int main(void) {
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each), cmocka_unit_test(test_sums)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
