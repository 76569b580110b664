/* test_failing_calls.c -- a run file is recorded and resumed while one call fails: an allocation, a
 * call of the system, a call of HDF5. What is left is right or is refused; what succeeds is what it
 * is without the failure. */
#define _GNU_SOURCE 1 /* RTLD_NEXT */
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>

#include "copied_run.h"
#include "testing/check.h"
#include "testing/failing_hdf5.h"
#include "testing/run_builder.h"
#include "testing/sample_run.h"

enum { STEPS = 16, RESUMED = 12, READINGS = 400, TOGETHER = 24 };

static const run_shape first_shape = {1, STEPS, 77, "1", true},
                       resumed_shape = {RESUMED + 1, STEPS, 77, "1", true};

/* Ends this process, a child of the test. */
__attribute__((format(printf, 2, 3))) static void complain(const char *after, const char *format,
                                                           ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", after);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    _exit(1);
}

static void expect_told(const char *after, const sr_failure *why) {
    if (strlen(why->text) < 10 || strchr(why->text, '\n'))
        complain(after, "%s without a reason: '%s'", sr_status_name(why->status), why->text);
}

/* -- reading everything ------------------------------------------------------------------------ */

/* A digest of the values of each reading; 0: refused. */
typedef struct readings {
    uint64_t digest[READINGS];
    int count, refused;
} readings;

static readings whole; /* without a failure */

static void add_reading(readings *r, sr_status status, sr_failure *why, const void *value,
                        size_t size) {
    uint64_t digest = 14695981039346656037ull;
    for (size_t i = 0; i < size; i++)
        digest = (digest ^ ((const unsigned char *)value)[i]) * 1099511628211ull;
    if (status != SR_OK) expect_told("a reading", why);
    if (r->count == READINGS) complain("readings", "too many");
    r->digest[r->count++] = status == SR_OK ? digest : 0;
    r->refused += status != SR_OK;
    *why = (sr_failure){0};
}

static void read_columns(const sr_runfile *f, readings *r, sr_failure *why) {
    static float value[STEPS * SAMPLE_WIDTH];
    static double real[STEPS];
    static int64_t whole_number[STEPS];
    const sr_run_info *info = sr_run_get_info(f);
    const int64_t steps = info->steps, vectors = info->vectors;
    const size_t width = sizeof *value * SAMPLE_WIDTH;
    sr_status status;
    status = sr_run_step_ints(f, "step", 0, steps, whole_number, why);
    add_reading(r, status, why, whole_number, (size_t)steps * sizeof *whole_number);
    status = sr_run_step_reals(f, "loss", 0, steps, real, why);
    add_reading(r, status, why, real, (size_t)steps * sizeof *real);
    status = sr_run_step_reals(f, "own too", 0, steps, real, why);
    add_reading(r, status, why, real, (size_t)steps * sizeof *real);
    for (int i = 0; i < SR_SCALAR_COUNT; i++) {
        status = sr_run_scalar(f, sr_scalar_name(i), i % SAMPLE_SITES, 0, steps, value, why);
        add_reading(r, status, why, value, (size_t)steps * sizeof *value);
    }
    for (int i = 0; i < SR_VECTOR_COUNT; i++) {
        status = sr_run_vector(f, sr_vector_name(i), -1, 0, vectors, value, why);
        add_reading(r, status, why, value, (size_t)vectors * width);
    }
    status = sr_run_eval(f, "valid_nll", 0, info->evals, real, why);
    add_reading(r, status, why, real, (size_t)info->evals * sizeof *real);
}

static void read_rest(const sr_runfile *f, readings *r, sr_failure *why) {
    double value[SAMPLE_WIDTH], final[2][SAMPLE_SITES], *const both[] = {final[0], final[1]};
    float x[COPIED_PAIRS], y[COPIED_PAIRS];
    int32_t feature[COPIED_PAIRS];
    int64_t step, rows, batches;
    sr_run_embedding e = {.size = sizeof e};
    sr_status status = sr_run_get_embedding(f, "shared", &e, why);
    add_reading(r, status, why, &e, offsetof(sr_run_embedding, method)); /* may be "" */
    status = sr_run_singular_values(f, "shared", 0, &step, value, why);
    add_reading(r, status, why, value, SAMPLE_EMBEDDING * sizeof *value);
    for (int i = 0; i < SAMPLE_SITES; i++) {
        const size_t size = (size_t)sample_sites[i].width * sizeof *value;
        status = sr_run_spectrum(f, SR_SPECTRUM_input, i, 0, &step, &rows, value, why);
        add_reading(r, status, why, value, size);
        status = sr_run_pairs(f, i, x, y, feature, why);
        add_reading(r, status, why, x, sizeof x);
    }
    status = sr_run_final(f, &batches, both, why);
    add_reading(r, status, why, final, sizeof final);
    int64_t block[2];
    status = sr_run_vector_block(f, "mu_B", &block[0], &block[1], why);
    add_reading(r, status, why, block, sizeof block);
}

static void read_names(const sr_runfile *f, readings *r, sr_failure *why) {
    static const char *const groups[] = {"scalars", "vectors", "evals", "steps", "embeddings"};
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        const char *name;
        uint64_t sum = 0;
        for (int i = 0; (name = sr_run_name(f, groups[g], i)); i++) sum += strlen(name);
        add_reading(r, SR_OK, why, &sum, sizeof sum);
    }
    add_reading(r, SR_OK, why, sr_run_definition(f, "scalars/dist_mu"), 20);
}

static sr_status read_file(const char *path, readings *r, sr_failure *why) {
    sr_runfile *f = sr_run_open(path, why);
    if (!f) return why->status;
    /* without damage that was met while it was opened: all values are those of the file */
    const bool sound = !sr_run_damage(f, 0);
    read_columns(f, r, why);
    read_rest(f, r, why);
    if (sound) read_names(f, r, why);
    sr_run_close(f);
    return SR_OK;
}

/* -- what is done, and what it must leave ------------------------------------------------------- */

static const sr_finish complete = SR_INIT(sr_finish, .status = "complete", .reason = "by test");

static sr_recorder *begin(const char *path, bool resume, const run_shape *shape, int id[2],
                          sr_failure *why) {
    sr_options o = copied_options();
    o.force = !resume, o.resume = resume, o.flush_steps = 4, o.started = 0;
    sr_recorder *r = sample_create(path, &o, why);
    if (r) copied_declare(r, shape, id);
    return r;
}

static sr_status record(sr_failure *why) {
    const char *path = sample_path("x.h5");
    int id[2];
    sr_recorder *r = begin(path, false, &first_shape, id, why);
    if (!r) return why->status;
    copied_put(r, &first_shape, id);
    return sr_close(r, &complete, why);
}

static sr_status resume(sr_failure *why) {
    int id[2];
    sr_recorder *r = begin(sample_path("resumed.h5"), true, &resumed_shape, id, why);
    if (!r) return why->status;
    sr_copy_rows(r, sample_path("resumed.h5"), RESUMED, RESUMED, NULL);
    copied_put(r, &resumed_shape, id);
    return sr_close(r, &complete, why);
}

/* All rows, or whatever is left: none of them wrong. */
static void look_at(const char *name, const char *after, bool all) {
    sr_failure why = {0};
    readings r = {0};
    if (read_file(sample_path(name), &r, &why) != SR_OK) {
        if (all) complain(after, "%s: %s", name, why.text);
        return expect_told(after, &why);
    }
    sr_runfile *f = sample_open(sample_path(name));
    sample_check(f, 1, COPIED_VECTORS);
    const int64_t rows = sr_run_get_info(f)->steps;
    sr_run_close(f);
    if (all && (r.refused || rows != STEPS || sr_run_check(sample_path(name), &why) != SR_OK))
        complain(after, "%s: %d refused, %lld rows, %s", name, r.refused, (long long)rows,
                 why.text);
}

static void look_at_record(const char *after, sr_status status) {
    look_at("x.h5", after, status == SR_OK);
}

/* What was there stays until the new file is whole. */
static void look_at_resumed(const char *after, sr_status status) {
    look_at("resumed.h5", after, status == SR_OK);
}

typedef struct deed {
    const char *name;
    sr_status (*run)(sr_failure *why);
    void (*look)(const char *after, sr_status status);
} deed;

static const deed deeds[] = {
    {"record", record, look_at_record},
    {"resume", resume, look_at_resumed},
};

/* -- failing ------------------------------------------------------------------------------------ */

static void copy_bytes(const char *from, const char *to) {
    char command[1200];
    snprintf(command, sizeof command, "rm -f '%s'* '%s' && cp '%s' '%s'", sample_path("x.h5"), to,
             from, to);
    assert_int_equal(system(command), 0);
}

static void prepare(void) {
    copy_bytes(sample_path("whole.h5"), sample_path("resumed.h5"));
}

static const char *const kind_names[] = {"allocation", "call of the system", "call of HDF5"};

/* Names the files that are open beyond those of before. */
static void complain_of_open(const char *after, int more) {
    char command[64];
    snprintf(command, sizeof command, "ls -l /proc/%d/fd >&2", (int)getpid());
    if (system(command) == 0) complain(after, "%d files are open", more);
}

static void fail_one(const deed *d, failing_kind kind, long k) {
    char after[300];
    sr_failure why = {0};
    prepare();
    const int descriptors = check_descriptors();
    const ssize_t objects = H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL);
    failing_begin(kind, k);
    const sr_status status = d->run(&why);
    const bool reached = failing_end();
    snprintf(after, sizeof after, "%s, %s %ld at 0x%zx of the text: %s: %.60s", d->name,
             kind_names[kind], k, failing_offset, sr_status_name(status), why.text);
    if (status != SR_OK) expect_told(after, &why);
    if (!reached && status != SR_OK) complain(after, "not reached: %s", why.text);
    /* after a failed write HDF5 is not called again, so its file stays open */
    const bool closed = status == SR_OK;
    if (closed && check_descriptors() != descriptors)
        complain_of_open(after, check_descriptors() - descriptors);
    if (closed && H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL) != objects)
        complain(after, "HDF5 has objects open");
    d->look(after, status);
}

/* HDF5 keeps what it could not close, so each process has its part of the calls. */
static void fail_each(const deed *d, failing_kind kind) {
    static long call[3 * FAILING_PLACES];
    sr_failure why = {0};
    prepare();
    failing_begin(kind, 0);
    check_ok(d->run(&why), &why);
    failing_end();
    const int count = failing_list(call);
    for (int i = 0; i < count; i += TOGETHER) {
        int status;
        fflush(NULL);
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            for (int j = i; j < count && j < i + TOGETHER; j++) fail_one(d, kind, call[j]);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        if (status != 0)
            fail_msg("%s, after %s %ld: %d", d->name, kind_names[kind], call[i], status);
    }
    printf("%s: %d places, %d calls failed: %s\n", d->name, failing_places, count,
           kind_names[kind]);
}

static void fail_all(failing_kind kind) {
    for (size_t i = 0; i < sizeof deeds / sizeof *deeds; i++) fail_each(&deeds[i], kind);
}

static void test_allocations(void **state) {
    (void)state;
    fail_all(FAILING_ALLOCATIONS);
}

static void test_system(void **state) {
    (void)state;
    fail_all(FAILING_SYSTEM);
}

static void test_hdf5(void **state) {
    (void)state;
    fail_each(&deeds[0], FAILING_HDF5);
}

static int make_files(void **state) {
    (void)state;
    sr_failure why = {0};
    copied_write("whole.h5", &first_shape);
    check_ok(read_file(sample_path("whole.h5"), &whole, &why), &why);
    assert_int_equal(whole.refused, 0);
    return 0;
}

int main(void) {
    /* hundreds of files, each with an fsync: in memory where that is possible */
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allocations),
        cmocka_unit_test(test_system),
        cmocka_unit_test(test_hdf5),
    };
    return cmocka_run_group_tests(tests, make_files, NULL);
}
