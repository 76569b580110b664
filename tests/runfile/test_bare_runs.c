/* test_bare_runs.c -- runs without sites, vectors, disk space or an ASCII reason. */
#define _GNU_SOURCE 1 /* RTLD_NEXT */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "copied_run.h"
#include "runfile/write/writer.h"
#include "testing/check.h"
#include "testing/run_builder.h"
#include "testing/sample_run.h"

static int refusal;          /* error of fallocate; 0: none */
static off_t asked, partial; /* bytes of its last call; bytes that it takes before it fails */
static uint64_t available;   /* blocks that fstatvfs reports; 0: the true number */

/* Overrides the system's function. */
int fstatvfs(int fd, struct statvfs *s) {
    static union {
        void *object;
        int (*call)(int, struct statvfs *);
    } original;
    if (!original.object) original.object = dlsym(RTLD_NEXT, "fstatvfs");
    const int failed = original.call(fd, s);
    if (available) s->f_bavail = available, s->f_frsize = 4096, s->f_blocks = 1 << 20;
    return failed;
}

/* Overrides the system's function. */
int fallocate(int fd, int mode, off_t at, off_t length) {
    static union {
        void *object;
        int (*call)(int, int, off_t, off_t);
    } original;
    if (!original.object) original.object = dlsym(RTLD_NEXT, "fallocate");
    asked = length;
    if (!refusal) return original.call(fd, mode, at, length);
    if (partial) original.call(fd, mode, at, partial);
    return errno = refusal, -1;
}

/* A final pass over a model without normalization stores no values. */
static void test_no_sites(void **state) {
    (void)state;
    sr_failure why = {0};
    double nothing[1] = {0}, *const final[SR_FINAL_COUNT] = {nothing, nothing};
    int64_t batches = 3;
    sr_options o = run_options();
    o.overhead = 0, o.spectra = o.final = o.running = true, o.pairs = 5;
    sr_recorder *r = run_create(sample_path("bare.h5"), o);
    run_put_step(r, 1);
    check_ok(sr_put_final(r, 7, (const double *const *) final), sr_failed(r));
    run_put_step(r, 2);
    run_finish(r);
    check_ok(sr_run_check(sample_path("bare.h5"), &why), &why);
    sr_runfile *f = sample_open(sample_path("bare.h5"));
    assert_int_equal(sr_run_get_info(f)->steps, 2);
    assert_int_equal(sr_run_get_info(f)->sites, 0);
    check_ok(sr_run_final(f, &batches, final, &why), &why);
    assert_int_equal(batches, -1);
    sr_run_close(f);
}

/* A run that is resumed without vectors keeps its steps but no old vectors. */
static void test_no_vectors(void **state) {
    (void)state;
    sr_failure why = {0};
    const char *path = sample_path("resumed.h5");
    int64_t tokens[12];
    float value[12];
    sr_options o = run_options();
    o.overhead = 0, o.vectors_every = 1;
    sr_recorder *r = sample_begin(path, &o);
    check_ok(sample_steps(r, 1, 10, 0), sr_failed(r));
    run_finish(r);
    o.vectors_every = 0, o.resume = true, o.force = false;
    r = sample_begin(path, &o);
    check_ok(sr_copy_rows(r, path, 8, -1, NULL), sr_failed(r));
    check_ok(sample_steps(r, 9, 12, 0), sr_failed(r));
    run_finish(r);
    check_ok(sr_run_check(path, &why), &why);
    sr_runfile *f = sample_open(path);
    assert_int_equal(sr_run_get_info(f)->steps, 12);
    assert_int_equal(sr_run_get_info(f)->vectors, 0);
    assert_null(sr_run_name(f, "vectors", 0));
    check_ok(sr_run_step_ints(f, "tokens", 0, 12, tokens, &why), &why);
    check_ok(sr_run_scalar(f, "row_grad_var", 3, 0, 12, value, &why), &why);
    for (int i = 0; i < 12; i++) {
        assert_int_equal(tokens[i], sample_row(i + 1).tokens);
        check_equals(value[i], i + 1);
    }
    sr_run_close(f);
}

/* /state has ASCII fields; each byte of another letter becomes a question mark. */
static void test_reason(void **state) {
    (void)state;
    sr_failure why = {0};
    const sr_finish end =
        SR_INIT(sr_finish, .status = "interrupted", .reason = "zu gro\xc3\x9f, 5 > 4");
    sr_recorder *r = run_create(sample_path("reason.h5"), run_options());
    run_put_step(r, 1);
    check_ok(sr_close(r, &end, &why), &why);
    sr_runfile *f = sample_open(sample_path("reason.h5"));
    assert_string_equal(sr_run_get_info(f)->reason, "zu gro??, 5 > 4");
    sr_run_close(f);
}

/* A full disk is reported before the first step, and no file of the run remains. A file system that
 * cannot reserve space is accepted. */
static void test_space(void **state) {
    (void)state;
    static const int full[] = {ENOSPC, EDQUOT}, unsupported[] = {EOPNOTSUPP, ENOSYS, EINTR};
    for (int i = 0; i < 2; i++) {
        sr_failure why = {0};
        sr_recorder *r = run_create(sample_path("full.h5"), run_options());
        refusal = full[i];
        assert_int_equal(sr_begin_step(r, 1), SR_IO);
        check_failure(sr_failed(r), SR_IO, strerror(full[i]));
        assert_int_equal(sr_close(r, &run_complete, &why), SR_IO);
        refusal = 0;
        assert_int_equal(access(sample_path("full.h5"), F_OK), -1);
    }
    for (int i = 0; i < 3; i++) {
        sr_recorder *r = run_create(sample_path("unsupported.h5"), run_options());
        refusal = unsupported[i];
        run_put_step(r, 1);
        refusal = 0;
        run_finish(r);
    }
}

static sr_recorder *wide_run(const char *name, int64_t size_limit, int width) {
    sr_options o = run_options();
    o.running = true, o.size_limit = size_limit;
    sr_recorder *r = run_create(sample_path(name), o);
    run_add_bn(r, "wide", width, 0, 1e-5);
    return r;
}

/* Rows of running statistics, 256 bytes a feature, come later; nothing beyond size_limit. */
static void test_reserved_bytes(void **state) {
    (void)state;
    enum { WIDTH = 50000 };
    for (int i = 0; i < 2; i++) {
        const int64_t limit = i == 0 ? 2000000000 : 300000;
        sr_recorder *r = wide_run("wide.h5", limit, WIDTH);
        check_ok(sr_begin_step(r, 1), sr_failed(r));
        assert_in_range(asked, i == 0 ? 8 * WIDTH : limit, i == 0 ? 16 * WIDTH : limit);
        run_end_step(r, 1);
        run_finish(r);
    }
}

/* Too little space is reported before fallocate; blocks of a failed call are released. */
static void test_little_space(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_recorder *r = wide_run("little.h5", 2000000000, 50000);
    available = 20, asked = 0;
    assert_int_equal(sr_begin_step(r, 1), SR_IO);
    check_failure(sr_failed(r), SR_IO, "bytes for its metadata: No space left on device");
    available = 0;
    assert_int_equal(asked, 0);
    assert_int_equal(sr_close(r, &run_complete, &why), SR_IO);

    struct stat s;
    r = wide_run("taken.h5", 2000000000, 50000);
    const int left = open(sample_path("taken.h5.part"), O_RDONLY); /* after the file is removed */
    assert_true(left >= 0);
    refusal = ENOSPC, partial = 4 << 20;
    assert_int_equal(sr_begin_step(r, 1), SR_IO);
    refusal = 0, partial = 0;
    assert_int_equal(fstat(left, &s), 0);
    assert_in_range(s.st_blocks, 0, 1 << 9);
    close(left);
    assert_int_equal(sr_close(r, &run_complete, &why), SR_IO);
}

/* The first failure ends writing and releases the file; a second failure has no effect. */
static void test_broken(void **state) {
    (void)state;
    run_writer w;
    sr_failure why = {0};
    const char *path = sample_path("broken.h5");
    check_ok(writer_create(&w, path, &why), &why);
    assert_int_equal(writer_keep(&w, SR_OK), SR_OK);
    assert_false(w.broken);
    assert_int_equal(writer_keep(&w, SR_IO), SR_IO);
    assert_int_equal(writer_keep(&w, SR_LIBRARY), SR_LIBRARY);
    assert_true(w.broken);
    writer_free(&w);
}

int main(void) {
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_sites),       cmocka_unit_test(test_no_vectors),
        cmocka_unit_test(test_reason),         cmocka_unit_test(test_space),
        cmocka_unit_test(test_reserved_bytes), cmocka_unit_test(test_little_space),
        cmocka_unit_test(test_broken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
