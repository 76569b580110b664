/* test_limits.c -- limits of a host's requests. Runs of any length stay within their size limit,
 * embeddings up to the maximum are accepted, impossible requests fail with one line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testing/check.h"
#include "testing/run_builder.h"
#include "testing/sample_run.h"

static sr_options defaults(void) {
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    return o;
}

/* -- a run without a known end --------------------------------------------------------------- */

enum { WIDE = 512 };

static void record(sr_recorder *r, int64_t first, int64_t last) {
    static double value[WIDE];
    const sr_step row = {.size = sizeof row};
    for (int64_t step = first; step <= last; step++) {
        sr_begin_step(r, step);
        for (int v = 0; v < SR_nu; v++)
            if (sr_wants_vectors(r)) sr_put_vector(r, 0, (sr_vector)v, value);
        check_ok(sr_end_step(r, &row), sr_failed(r));
    }
}

static sr_recorder *begin(const char *path, int64_t planned, int64_t limit) {
    sr_options o = defaults();
    o.planned_steps = planned, o.size_limit = limit, o.force = true;
    sr_recorder *r = run_create(path, o);
    sr_add_site(r, &SR_INIT(sr_site, .name = "a", .family = SR_FAMILY_SIGMA, .width = WIDE));
    return r;
}

/* Every quarter of the run has rows of vectors, and the file is within its limit. */
static void expect_covered(const char *path, int64_t steps, int64_t limit, int64_t least) {
    struct stat s;
    int64_t step[8192], quarter[4] = {0};
    sr_failure why = {0};
    check_ok(sr_run_check(path, &why), &why);
    assert_int_equal(stat(path, &s), 0);
    sr_runfile *f = sample_open(path);
    const int64_t rows = sr_run_get_info(f)->vectors;
    assert_int_equal(sr_run_get_info(f)->steps, steps);
    assert_true(rows <= 8192);
    check_ok(sr_run_vector_steps(f, 0, rows, step, &why), &why);
    sr_run_close(f);
    for (int64_t i = 0; i < rows; i++) quarter[(step[i] - 1) * 4 / steps]++;
    printf("%lld steps, %lld of %lld bytes, %lld rows of vectors: %lld %lld %lld %lld\n",
           (long long)steps, (long long)s.st_size, (long long)limit, (long long)rows,
           (long long)quarter[0], (long long)quarter[1], (long long)quarter[2],
           (long long)quarter[3]);
    assert_true((int64_t)s.st_size <= limit);
    for (int i = 0; i < 4; i++)
        if (quarter[i] < least) fail_msg("quarter %d has %lld rows", i, (long long)quarter[i]);
}

static void test_no_end(void **state) {
    (void)state;
    const char *path = sample_path("long.h5");
    for (int64_t steps = 1000; steps <= 100000; steps *= 10) {
        sr_recorder *r = begin(path, 0, 40000000);
        record(r, 1, steps);
        run_finish(r);
        expect_covered(path, steps, 40000000, 6);
    }
}

/* A resumed run keeps both runs' rows within the limit. */
static void test_no_end_resumed(void **state) {
    (void)state;
    const char *path = sample_path("long.h5"), *from = sample_path("first.h5");
    sr_recorder *r = begin(from, 0, 20000000);
    record(r, 1, 4000);
    run_finish(r);
    r = begin(path, 0, 20000000);
    check_ok(sr_copy_rows(r, from, -1, -1, NULL), sr_failed(r));
    record(r, 4001, 30000);
    run_finish(r);
    expect_covered(path, 30000, 20000000, 4);
}

/* Past its plan a run drops vectors that do not fit. The values of every step take a megabyte
 * here. */
static void test_past_the_plan(void **state) {
    (void)state;
    struct stat s;
    const char *path = sample_path("past.h5");
    sr_recorder *r = begin(path, 500, 20000000);
    record(r, 1, 5000);
    run_finish(r);
    assert_int_equal(stat(path, &s), 0);
    if (s.st_size <= 15000000 || s.st_size >= 23000000) /* including the values of every step */
        fail_msg("%lld bytes", (long long)s.st_size);
}

/* -- impossible requests ---------------------------------------------------------------------- */

static void test_as_many_steps_as_numbers(void **state) {
    (void)state;
    sr_failure why = {0};
    const int64_t many[] = {INT64_MAX, INT64_MAX - 1, INT64_MAX / 2, 1000000000000};
    for (int i = 0; i < 4; i++) {
        const char *path = sample_path("many.h5");
        sr_recorder *r = begin(path, many[i], 2000000000);
        assert_true(sr_projected_bytes(r) > 1000000000000);
        assert_true(sr_vectors_every(r) > 1000000);
        record(r, 1, 10);
        run_finish(r);
        check_ok(sr_run_check(path, &why), &why);
    }
    sr_options o = defaults();
    o.size_limit = -1;
    assert_null(sr_create(sample_path("never.h5"), &o, &why));
    check_failure(&why, SR_USAGE, "size_limit");
}

static void test_embeddings(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_options o = defaults();
    const char *path = sample_path("embeddings.h5");
    char name[32];
    sr_recorder *r = sample_begin(path, &o);
    for (int i = 1; i < SR_EMBEDDINGS_MAX; i++) {
        snprintf(name, sizeof name, "embedding of language %d", i);
        check_ok(sr_add_embedding(r, name, 2, 3), sr_failed(r));
    }
    check_ok(sample_steps(r, 1, 3, 1), sr_failed(r));
    run_finish(r);
    check_ok(sr_run_check(path, &why), &why);
    sr_runfile *f = sample_open(path);
    int count = 0;
    while (sr_run_name(f, "embeddings", count)) count++;
    assert_int_equal(count, SR_EMBEDDINGS_MAX);
    sr_run_close(f);
    o.force = true;
    r = sample_begin(path, &o);
    sr_status status = SR_OK;
    for (int i = 1; i <= SR_EMBEDDINGS_MAX && status == SR_OK; i++) {
        snprintf(name, sizeof name, "%d", i);
        status = sr_add_embedding(r, name, 2, 3);
    }
    check_failure(sr_failed(r), SR_USAGE, "embedding 1024: more than 1024");
    sr_abandon(r);
}

static void test_no_path(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_options o = defaults();
    sr_recorder *r = sample_begin(sample_path("copy.h5"), &o);
    assert_int_equal(sr_copy_rows(r, NULL, -1, -1, NULL), SR_USAGE);
    check_failure(sr_failed(r), SR_USAGE, "no path");
    sr_abandon(r);
    assert_null(sr_run_open(NULL, &why));
    check_failure(&why, SR_USAGE, "no path");
    assert_int_equal(sr_run_check(NULL, NULL), SR_USAGE);
    assert_int_equal(sr_run_recover(NULL, sample_path("x.h5"), false, -1, NULL, NULL), SR_USAGE);
    assert_int_equal(sr_run_recover(sample_path("x.h5"), NULL, false, -1, NULL, NULL), SR_USAGE);
}

/* Sizes whose products overflow int64, some of them to a small number. */
static void test_huge_tensors(void **state) {
    (void)state;
    const float x[8] = {0};
    const int64_t shape[][2] = {{INT64_MAX, 1},     {1, INT64_MAX},         {1LL << 32, 1LL << 32},
                                {1LL << 62, 1},     {1LL << 40, 1LL << 24}, {INT64_MAX / 5 + 1, 1},
                                {INT64_MAX / 8, 1}, {1LL << 31, 1LL << 31}};
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
        sr_options o = defaults();
        o.force = true;
        sr_recorder *r = sample_begin(sample_path("tensor.h5"), &o);
        sr_begin_step(r, 1);
        const sr_tensor t = SR_INIT(sr_tensor, x, SR_FLOAT32, shape[i][0], 5, shape[i][1], NULL, 0);
        assert_int_equal(sr_take_forward(r, 0, &t, NULL), SR_USAGE);
        check_failure(sr_failed(r), SR_USAGE, "sr_take_forward: tensor [");
        sr_abandon(r);
    }
}

/* sr_fail adds "out of memory" to the message, unless it is redundant. */
static void test_memory_says_so(void **state) {
    (void)state;
    sr_failure why = {0};
    assert_int_equal(sr_fail(&why, SR_MEMORY, "%s: %d sites", "run.h5", 3), SR_MEMORY);
    assert_string_equal(why.text, "run.h5: 3 sites: out of memory");
    why = (sr_failure){0};
    sr_fail(&why, SR_MEMORY, "no memory for %d rows", 3);
    assert_string_equal(why.text, "no memory for 3 rows");
    char all[2 * sizeof why.text];
    memset(all, 'x', sizeof all - 1), all[sizeof all - 1] = 0;
    why = (sr_failure){0};
    sr_fail(&why, SR_MEMORY, "%s", all);
    assert_int_equal(strlen(why.text), sizeof why.text - 1);
    assert_non_null(strstr(why.text, "x: out of memory"));
}

int main(void) {
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_end),        cmocka_unit_test(test_no_end_resumed),
        cmocka_unit_test(test_past_the_plan), cmocka_unit_test(test_as_many_steps_as_numbers),
        cmocka_unit_test(test_embeddings),    cmocka_unit_test(test_no_path),
        cmocka_unit_test(test_huge_tensors),  cmocka_unit_test(test_memory_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
