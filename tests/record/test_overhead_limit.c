/* test_overhead_limit.c -- the spacing of vectors adapts to the time that recording takes. After a
 * fork the file remains the parent's. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "testing/check.h"
#include "testing/run_builder.h"
#include "testing/sample_run.h"

enum { WIDTH = 3, MOST = 4000 };

static const sr_finish complete = SR_INIT(sr_finish, "complete");
static const sr_options defaults = SR_OPTIONS_DEFAULT;

/* -- spacing --------------------------------------------------------------------------------- */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static sr_recorder *create(const char *path, const sr_options *given) {
    sr_options o = *given;
    o.force = true;
    sr_recorder *r = run_create(path, o);
    sr_add_site(r, &SR_INIT(sr_site, .name = "s", .family = SR_FAMILY_SIGMA, .width = WIDTH));
    return r;
}

/* Records steps first .. last. Each takes `seconds` more of recording, or sleeps instead. */
static void put_steps(sr_recorder *r, int64_t first, int64_t last, double seconds, long sleep_us) {
    const double value[WIDTH] = {1, 2, 3};
    for (int64_t step = first; step <= last; step++) {
        sr_begin_step(r, step);
        sr_put_rows(r, 0, 5);
        sr_put_vector(r, 0, SR_mu_B, value), sr_put_vector(r, 0, SR_mu, value);
        sr_add_seconds(r, seconds);
        if (sleep_us) nanosleep(&(struct timespec){0, sleep_us * 1000}, NULL);
        check_ok(sr_end_step(r, &SR_INIT(sr_step, .update = step)), sr_failed(r));
    }
}

typedef struct columns {
    int64_t steps, vectors;
    double every[MOST], seconds[MOST], step[MOST];
    int64_t vector_step[MOST];
} columns;

/* Reads the columns and checks every run's properties: vectors at the steps that the spacing
 * divides, scalars at all. */
static void read_columns(const char *path, columns *c) {
    static float dist[MOST];
    sr_failure why = {0};
    sr_runfile *f = sr_run_open(path, &why);
    if (!f) fail_msg("%s", why.text);
    c->steps = sr_run_get_info(f)->steps, c->vectors = sr_run_get_info(f)->vectors;
    assert_true(c->steps <= MOST);
    check_ok(sr_run_step_reals(f, "step", 0, c->steps, c->step, &why), &why);
    check_ok(sr_run_step_reals(f, "vectors_every", 0, c->steps, c->every, &why), &why);
    check_ok(sr_run_step_reals(f, "recorder_seconds", 0, c->steps, c->seconds, &why), &why);
    check_ok(sr_run_scalar(f, "dist_mu", 0, 0, c->steps, dist, &why), &why);
    check_ok(sr_run_vector_steps(f, 0, c->vectors, c->vector_step, &why), &why);
    int64_t at = 0;
    for (int64_t i = 0; i < c->steps; i++) {
        check_equals(dist[i], 0);
        if ((int64_t)c->step[i] % (int64_t)c->every[i]) continue;
        assert_true(at < c->vectors);
        assert_int_equal(c->vector_step[at++], (int64_t)c->step[i]);
    }
    assert_int_equal(at, c->vectors);
    sr_run_close(f);
}

static void test_widens_and_narrows(void **state) {
    (void)state;
    static columns c;
    sr_failure why = {0};
    const char *path = sample_path("paced.h5");
    sr_options o = defaults;
    o.overhead = 0.5, o.flush_steps = 1000, o.flush_seconds = 1000;
    sr_recorder *r = create(path, &o);
    put_steps(r, 1, 32, 1000, 0);
    assert_int_equal(sr_vectors_every(r), 2); /* after 32 steps and four rows */
    put_steps(r, 33, 64, 1000, 0);
    assert_int_equal(sr_vectors_every(r), 4);
    put_steps(r, 65, 96, 1000, 0);
    assert_int_equal(sr_vectors_every(r), 8);
    put_steps(r, 97, 127, 1000, 0);
    assert_int_equal(sr_vectors_every(r), 8);
    put_steps(r, 128, 128, 1000, 0);
    assert_int_equal(sr_vectors_every(r), 16);
    put_steps(r, 129, 191, 1000, 0);
    assert_int_equal(sr_vectors_every(r), 16); /* the fourth row is in step 192 */
    put_steps(r, 192, 192, 1000, 0);
    assert_int_equal(sr_vectors_every(r), 32);
    put_steps(r, 193, 600, 0, 1000); /* recording now takes almost no time */
    assert_int_equal(sr_vectors_every(r), 1);
    run_finish(r);
    check_ok(sr_run_check(path, &why), &why);
    read_columns(path, &c);
    check_equals(c.every[31], 1);
    check_equals(c.every[32], 2);
    check_equals(c.every[127], 8);
    check_equals(c.every[128], 16);
    check_at_least(c.seconds[5], 1000);
    check_below(c.seconds[5], 1001);
    check_below(c.seconds[300], 1);
}

/* Records steps whose recording takes a fraction `share` of the elapsed time. */
static void put_share(sr_recorder *r, int64_t first, int64_t last, double share) {
    double before = now();
    for (int64_t step = first; step <= last; step++) {
        nanosleep(&(struct timespec){0, 200000}, NULL);
        const double here = now();
        put_steps(r, step, step, share * (here - before), 0);
        before = here;
    }
}

/* The spacing halves only below a quarter of the limit, and doubles above all of it. */
static void test_quarter(void **state) {
    (void)state;
    sr_options o = defaults;
    o.overhead = 1000, o.flush_seconds = 1000, o.flush_steps = 1000;
    sr_recorder *r = create(sample_path("quarter.h5"), &o);
    put_steps(r, 1, 32, 1e6, 0);
    assert_int_equal(sr_vectors_every(r), 2);
    put_share(r, 33, 64, 375);
    assert_int_equal(sr_vectors_every(r), 2);
    put_share(r, 65, 96, 700);
    assert_int_equal(sr_vectors_every(r), 2);
    put_share(r, 97, 128, 150);
    assert_int_equal(sr_vectors_every(r), 1);
    put_share(r, 129, 160, 1500);
    assert_int_equal(sr_vectors_every(r), 2);
    sr_abandon(r);
}

/* Vectors are never denser than the file's size limit allows, nor wider apart than 4096 steps. */
static void test_bounds(void **state) {
    (void)state;
    static columns c;
    const char *path = sample_path("paced.h5");
    sr_options o = defaults;
    o.overhead = 0.5, o.planned_steps = 3000;
    sr_recorder *r = create(path, &o);
    o.size_limit = sr_projected_bytes(r) - 200000;
    sr_abandon(r);
    r = create(path, &o);
    const int64_t least = sr_vectors_every(r);
    assert_true(least > 1 && least < 10);
    put_steps(r, 1, 32 * least, 1000, 0);
    assert_true(sr_vectors_every(r) >= 2 * least);
    for (int64_t step = 32 * least + 1; step <= 3000; step += 50)
        put_steps(r, step, step + 49 < 3000 ? step + 49 : 3000, 0, 300);
    assert_int_equal(sr_vectors_every(r), least);
    run_finish(r);
    read_columns(path, &c);
    for (int64_t i = 0; i < c.steps; i++) check_at_least(c.every[i], (double)least);
    r = create(path, &defaults);
    for (int64_t k = 1; k < 20; k++) put_steps(r, k * 65536, k * 65536, 0, 0);
    int64_t step = 20 * 65536;
    for (int k = 0; k < 2000; k++, step += 65536) put_steps(r, step, step, 1000, 0);
    assert_int_equal(sr_vectors_every(r), 4096);
    sr_abandon(r);
}

/* A fixed spacing: no columns and no change. */
static void test_not_paced(void **state) {
    (void)state;
    sr_failure why = {0};
    const char *path = sample_path("unpaced.h5");
    for (int i = 0; i < 4; i++) {
        sr_options o = defaults;
        if (i == 0) o.overhead = 0;
        if (i == 1) o.vectors_every = 3;
        if (i == 2) o.vectors = false;
        if (i == 3) o.vectors_every = 0;
        sr_recorder *r = create(path, &o);
        const int64_t every = sr_vectors_every(r);
        put_steps(r, 1, 300, 1000, 0);
        assert_int_equal(sr_vectors_every(r), every);
        run_finish(r);
        sr_runfile *f = sr_run_open(path, &why);
        assert_null(sr_run_get_declared(f, 0));
        assert_int_equal(sr_run_get_info(f)->vectors, i == 0 ? 300 : i == 1 ? 100 : 0);
        sr_run_close(f);
    }
    for (int i = 0; i < 2; i++) {
        sr_options o = defaults;
        o.force = true, o.overhead = i ? NAN : -0.5;
        assert_null(sr_create(path, &o, &why));
        check_failure(&why, SR_USAGE, "overhead");
        why = (sr_failure){0};
    }
}

/* The rows contain all recording time: flushes too, except the last one. */
static void test_seconds(void **state) {
    (void)state;
    static columns c;
    const char *path = sample_path("seconds.h5");
    sr_options o = defaults;
    o.flush_steps = 4;
    const double began = now();
    sr_recorder *r = create(path, &o);
    check_equals(sr_own_seconds(r), 0);
    check_equals(sr_own_seconds(NULL), 0);
    sr_add_seconds(NULL, 1), sr_add_seconds(r, -1), sr_add_seconds(r, NAN);
    check_equals(sr_own_seconds(r), 0);
    put_steps(r, 1, 202, 0, 50);
    const double own = sr_own_seconds(r);
    check_above(own, 0);
    check_below(own, now() - began);
    run_finish(r);
    read_columns(path, &c);
    double sum = 0;
    for (int64_t i = 0; i < c.steps; i++) {
        check_above(c.seconds[i], 0);
        sum += c.seconds[i];
    }
    printf("own %g s, in rows %g s\n", own, sum);
    check_at_most(sum, own);
    check_above(sum, 0.9 * own);
}

/* Flush time counts, on whichever step it falls. */
static void test_flushes_count(void **state) {
    (void)state;
    const char *path = sample_path("flushes.h5");
    sr_options o = defaults;
    o.overhead = 0.5, o.flush_seconds = 1000;
    sr_recorder *r = create(path, &o);
    put_steps(r, 1, 32, 0, 500);
    assert_int_equal(sr_vectors_every(r), 1); /* declaring the file is not included */
    sr_add_seconds(r, 1000);                  /* as a flush after the last step */
    put_steps(r, 33, 64, 0, 500);
    assert_int_equal(sr_vectors_every(r), 2);
    sr_abandon(r);
}

/* -- fork ------------------------------------------------------------------------------------ */

typedef void child_fn(sr_recorder *r, int which);

/* Calls that a child process may try: each is rejected with one line, and the first failure is
 * kept. */
static void try_all(sr_recorder *r, int which) {
    const double values[SAMPLE_EMBEDDING] = {3, 2, 1}, vector[8] = {0};
    const sr_forward sums = SR_INIT(sr_forward, 1, 0, 0, vector, vector, vector);
    sr_status status = SR_OK;
    if (which == 0) status = sr_begin_step(r, 1000);
    if (which == 1) status = sr_flush(r);
    if (which == 2) status = sr_put_singular_values(r, "shared", 1000, values);
    if (which == 3) status = sr_begin_eval(r, 1000, 0);
    if (which == 4) status = sr_put_rows(r, 0, 5);
    if (which == 5) status = sr_put_vector(r, 0, SR_mu_B, vector);
    if (which == 6) status = sr_put_forward(r, 0, &sums);
    if (which == 7) status = sr_end_step(r, &SR_INIT(sr_step, .update = 1));
    if (which == 8) status = sr_put_final(r, 0, NULL);
    if (which == 9) status = sr_put_step_scalar(r, SR_SCALAR_COUNT, 1);
    if (which == 10) status = sr_copy_rows(r, "nothing", -1, -1, NULL);
    if (which == 11)
        status = sr_declare_scalar(r, "x", "", "", SR_PER_STEP) == -1 ? SR_STATE : SR_OK;
    const sr_failure *why = sr_failed(r);
    if (status != SR_STATE || !why || !strstr(why->text, "belongs to process") ||
        strchr(why->text, '\n'))
        _exit(30 + which);
}

static void child_closes(sr_recorder *r, int which) {
    sr_failure why = {0};
    try_all(r, which);
    _exit(sr_close(r, &complete, &why) == SR_STATE && strstr(why.text, "belongs") ? 0 : 1);
}

static void child_abandons(sr_recorder *r, int which) {
    (void)which;
    sr_abandon(r);
    exit(0);
}

static void child_exits(sr_recorder *r, int which) {
    (void)r, (void)which;
    exit(0);
}

/* An evaluation that started before the fork. */
static void child_ends_eval(sr_recorder *r, int which) {
    const sr_status status = which ? sr_put_metric(r, "valid_nll", 1) : sr_end_eval(r);
    if (status != SR_STATE) _exit(1);
    exit(0);
}

static void with_child(child_fn *child, sr_recorder *r, int which) {
    int status;
    fflush(NULL);
    const pid_t id = fork();
    assert_true(id >= 0);
    if (id == 0) child(r, which);
    assert_int_equal(waitpid(id, &status, 0), id);
    assert_int_equal(status, 0);
}

static char *bytes_of(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    struct stat s;
    assert_true(f && fstat(fileno(f), &s) == 0);
    char *bytes = malloc((size_t)s.st_size + 1);
    *size = fread(bytes, 1, (size_t)s.st_size, f);
    fclose(f);
    return bytes;
}

/* check_temporary is not used: a child that exits would remove it. */
static void test_fork(void **state) {
    (void)state;
    char folder[] = "/tmp/statrec-fork-XXXXXX", path[64], part[64];
    sr_failure why = {0};
    sr_options o = defaults;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/run.h5", folder);
    snprintf(part, sizeof part, "%s/run.h5.part", folder);
    o.overhead = 0, o.vectors_every = 1;
    sr_recorder *r = sample_create(path, &o, &why);
    with_child(child_exits, r, 0), with_child(child_abandons, r, 0);
    check_ok(sample_steps(r, 1, 40, 5), sr_failed(r));
    check_ok(sr_flush(r), sr_failed(r));
    check_ok(sample_steps(r, 41, 50, 5), sr_failed(r)); /* these wait in memory */
    size_t before, after;
    char *was = bytes_of(part, &before);
    for (int which = 0; which < 12; which++) with_child(child_closes, r, which);
    with_child(child_abandons, r, 0), with_child(child_exits, r, 0);
    sr_begin_eval(r, 50, 25);
    with_child(child_ends_eval, r, 0), with_child(child_ends_eval, r, 1);
    sr_put_metric(r, "valid_nll", 50), sr_put_metric(r, "span f1", 50.2);
    check_ok(sr_end_eval(r), sr_failed(r));
    char *is = bytes_of(part, &after);
    assert_int_equal(after, before);
    assert_memory_equal(is, was, before);
    free(is), free(was);
    sr_begin_step(r, 51); /* within a step */
    for (int which = 4; which < 8; which++) with_child(child_closes, r, which);
    sr_abandon(NULL);
    const int64_t rows = 51;
    for (int i = 0; i < SAMPLE_SITES; i++) sr_put_rows(r, i, rows);
    check_ok(sr_end_step(r, &SR_INIT(sr_step, .update = 26)), sr_failed(r));
    run_finish(r);
    check_ok(sr_run_check(path, &why), &why);
    sr_runfile *f = sr_run_open(path, &why);
    assert_true(f && sr_run_get_info(f)->steps == 51 && sr_run_get_info(f)->evals == 11);
    sr_run_close(f);
    unlink(path), unlink(part), rmdir(folder);
}

int main(void) {
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fork), /* first: no temporary file exists that a child may remove */
        cmocka_unit_test(test_widens_and_narrows),
        cmocka_unit_test(test_quarter),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_not_paced),
        cmocka_unit_test(test_seconds),
        cmocka_unit_test(test_flushes_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
