/* test_failing_diagnose.c -- statrec diagnose while one allocation or one read fails. It ends with
 * a reason, prints its usual output, or names the question that it could not answer and why. */
#define _GNU_SOURCE 1 /* RTLD_NEXT */
#include "testing/failing_programs.h"
#include "testing/full_run.h"

int statrec_main(int argc, char **argv);

static const char *const lines[] = {
    "statrec diagnose run.h5",
    "statrec diagnose --format json run.h5 other.h5",
    "statrec diagnose --healthy text run.h5",
    "statrec diagnose --harm run.h5 other.h5",
};

static int write_files(void **state) {
    (void)state;
    write_full_run(&(full_run){.path = program_file("run.h5"), .seed = 1});
    write_full_run(&(full_run){.path = program_file("other.h5"), .seed = 1, .norm = "rbn"});
    return 0;
}

/* Each call site once: code shared by the commands is not tested for each of them. */
static void fail_each(failing_kind kind, int depth, const char *only) {
    failing_once = true, failing_depth = depth, failing_only = only;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        fail_program(statrec_main, lines[i], kind);
}

static void test_allocations(void **state) {
    (void)state;
    fail_each(FAILING_ALLOCATIONS, 2, NULL);
}

/* The functions that read columns are some calls away. */
static void test_reads(void **state) {
    (void)state;
    fail_each(FAILING_HDF5, 7, "H5Dread");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allocations),
        cmocka_unit_test(test_reads),
    };
    return cmocka_run_group_tests(tests, write_files, NULL);
}
