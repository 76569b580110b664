/* test_headers.c -- alters one byte of the header of each group and dataset. No object counts as
 * absent, and the message names the damaged one. */
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

/* Makes a run with groups that most runs lack. */
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
    damage_store(path, bytes, damage_end(bytes)); /* without backup copies, as in older files */
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

/* Without one of these, no other object can be identified. */
static bool is_needed(const char *object) {
    static const char *const needed[] = {".", "sites", "sites/name", "sites/offset", "sites/width"};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        if (strcmp(object, needed[i]) == 0) return true;
    return false;
}

/* All rows but the damaged ones are recovered; rows are lost only with their steps. */
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

/* The check names the object; recover names it as left out and copies the rest. */
static void expect_told(const char *path, const char *object) {
    sr_failure why = {0};
    sr_recovery count = {.size = sizeof(sr_recovery)};
    told faults = {object, 0, 0}, lost = {object, 0, 0};
    if (sr_run_check_all(path, hear_fault, &faults, &why) != SR_FORMAT)
        fail_msg("%s: %s", object, why.text);
    const bool root = strcmp(object, ".") == 0; /* no sign that it was a run file */
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

/* HDF5 1.10 would report a wrong checksum, but leaks memory: it must not read such a header. In a
 * growing file it may, because HDF5 retries. */
static void expect_whole(int fd, haddr_t at, haddr_t end, bool whole) {
    unsigned char bytes[512];
    const ssize_t size = pread(fd, bytes, sizeof bytes, (off_t)at);
    assert_true(size > 0);
    if (h5_header_is_whole(NULL, fd, true, at, bytes, (size_t)size, end) != whole)
        fail_msg("the header at %lld is %swhole", (long long)at, whole ? "not " : "");
    assert_true(h5_header_is_whole(NULL, fd, false, at, bytes, (size_t)size, end));
}

/* Returns whether the header continues after the end of the file, which a growing file allows. */
static bool check_cut(int fd, haddr_t at, haddr_t end) {
    unsigned char bytes[512];
    const ssize_t size = pread(fd, bytes, sizeof bytes, (off_t)at);
    assert_true(h5_header_is_whole(NULL, fd, false, at, bytes, (size_t)size, end));
    return !h5_header_is_whole(NULL, fd, true, at, bytes, (size_t)size, end);
}

/* Returns the address of the first continuation chunk of a header; 0: none. */
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
    for (int i = 0; i < h.count; i++) /* the file ends before that chunk */
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

/* -- forged headers --------------------------------------------------------------------------- */

/* A file with a header at 0, and maybe further chunks. All checksums are right. */
typedef struct forged {
    unsigned char byte[65536];
    size_t size, end; /* size of the header's messages so far; of the file */
    int flags, fd;
} forged;

static void put_number(unsigned char *at, uint64_t n, int bytes) {
    for (int i = 0; i < bytes; i++) at[i] = (unsigned char)(n >> 8 * i);
}

static void put_sum(unsigned char *at, size_t size) {
    put_number(at + size, h5_checksum(at, size), 4);
}

/* flags & 3: the size of the messages has 1 << this bytes. */
static void forge(forged *f, int flags) {
    *f = (forged){.flags = flags, .size = 6 + ((size_t)1 << (flags & 3)), .end = 4096};
    memcpy(f->byte, "OHDR\2", 5);
    f->byte[5] = (unsigned char)flags;
}

static void add_message(forged *f, int type, int flags, size_t claimed, const void *content,
                        size_t size) {
    unsigned char *at = f->byte + f->size;
    const size_t head = f->flags & 4 ? 6 : 4;
    at[0] = (unsigned char)type, at[3] = (unsigned char)flags;
    put_number(at + 1, claimed, 2);
    memcpy(at + head, content, size);
    f->size += head + size;
}

static void add_chunk(forged *f, uint64_t at, uint64_t length) {
    unsigned char where[16];
    put_number(where, at, 8), put_number(where + 8, length, 8);
    add_message(f, 16, 0, sizeof where, where, sizeof where);
}

/* Checks whether a header is accepted in a finished file, and in a growing one. */
static void expect_forged(forged *f, const char *name, bool still, bool growing) {
    const int width = 1 << (f->flags & 3);
    const size_t start = 6 + (size_t)width;
    put_number(f->byte + 6, f->size - start, width);
    put_sum(f->byte, f->size);
    damage_store(sample_path("forged"), (const char *)f->byte, f->end);
    const int fd = open(sample_path("forged"), O_RDONLY);
    assert_true(fd >= 0);
    if (h5_header_is_whole(NULL, fd, true, 0, f->byte, 512, f->end) != still)
        fail_msg("%s: %s", name, still ? "refused" : "let through");
    if (h5_header_is_whole(NULL, fd, false, 0, f->byte, 512, f->end) != growing)
        fail_msg("%s, growing: %s", name, growing ? "refused" : "let through");
    close(fd);
}

static const unsigned char none[16], scalar[4] = {2}, cut[4] = {2, 1, 0, 1};

static void test_forged_messages(void **state) {
    (void)state;
    static forged f;
    for (int order = 0; order < 2; order++) { /* each message has its number */
        const int flags = 1 | order << 2;
        forge(&f, flags), add_message(&f, 1, 0, 4, scalar, 4);
        expect_forged(&f, "a scalar", true, true);
        forge(&f, flags), add_message(&f, 1, 0, 4, scalar, 4), add_message(&f, 1, 0, 4, cut, 4);
        expect_forged(&f, "a space without its length", false, false);
        forge(&f, flags), add_message(&f, 1, 2, 4, cut, 4); /* its content is an address */
        expect_forged(&f, "a shared space", true, true);
        forge(&f, flags), add_message(&f, 1, 0, 5, cut, 4); /* HDF5 reports it */
        expect_forged(&f, "a message longer than its header", true, true);
    }
}

static void test_forged_chunks(void **state) {
    (void)state;
    static forged f;
    static const struct {
        const char *name;
        uint64_t at, length;
    } wrong[] = {{"shorter than its frame", 1024, 7}, {"behind the end", 4097, 64},
                 {"beyond the end", 4090, 64},        {"anywhere", UINT64_MAX, 64},
                 {"endless", 1024, UINT64_MAX},       {"no chunk", 2048, 64}};
    forge(&f, 1), add_chunk(&f, 1024, 64);
    memcpy(f.byte + 1024, "OCHK", 4), put_sum(f.byte + 1024, 60);
    expect_forged(&f, "a chunk", true, true);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        forge(&f, 1), add_chunk(&f, wrong[i].at, wrong[i].length);
        expect_forged(&f, wrong[i].name, false, true);
    }
    forge(&f, 1), add_message(&f, 16, 0, 8, none, 8); /* HDF5 reports it */
    expect_forged(&f, "half an address", true, true);
}

/* A chunk that is its own next one, or that many messages name: the check ends. */
static void test_forged_loops(void **state) {
    (void)state;
    static forged f;
    unsigned char *chunk = f.byte + 4096;
    forge(&f, 1), add_chunk(&f, 4096, 32), f.end = 32768;
    memcpy(chunk, "OCHK\20\20", 6), put_number(chunk + 8, 4096, 8), put_number(chunk + 16, 32, 8);
    put_sum(chunk, 28);
    expect_forged(&f, "its own next one", true, true);
    forge(&f, 1), f.end = 8192; /* together they are larger than the file */
    for (int i = 0; i < 3; i++) add_chunk(&f, 4096, 4096);
    memcpy(f.byte + 4096, "OCHK", 4), put_sum(f.byte + 4096, 4092);
    expect_forged(&f, "the same one again", false, true);
}

/* The prefix of a header that declares more bytes than any file has. */
static void test_forged_sizes(void **state) {
    (void)state;
    unsigned char head[512] = "OHDR\2\3";
    memset(head + 6, 0xff, 8);
    assert_false(h5_header_is_whole(NULL, -1, true, 0, head, sizeof head, 4096));
    assert_true(h5_header_is_whole(NULL, -1, false, 0, head, sizeof head, 4096));
    put_number(head + 6, 2, 8), put_sum(head, 16); /* valid, but beyond the end of the file */
    assert_true(h5_header_is_whole(NULL, -1, true, 4000, head, sizeof head, 4096));
    assert_false(h5_header_is_whole(NULL, -1, true, 4097, head, sizeof head, 4096));
    assert_true(h5_header_is_whole(NULL, -1, false, 4097, head, sizeof head, 4096));
    put_number(head + 6, 600, 8); /* more than was read; the rest is unreadable: HDF5 reports it */
    assert_true(h5_header_is_whole(NULL, -1, true, 0, head, sizeof head, 4096));
}

int main(void) {
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each),
                                       cmocka_unit_test(test_sums),
                                       cmocka_unit_test(test_forged_messages),
                                       cmocka_unit_test(test_forged_chunks),
                                       cmocka_unit_test(test_forged_loops),
                                       cmocka_unit_test(test_forged_sizes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
