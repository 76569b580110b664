/* test_long_runs.c -- memory for writing, opening and checking a run does not grow with its
 * rows. */
#define _DEFAULT_SOURCE /* wait4 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "statrec/record.h"
#include "statrec/runfile.h"
#include "testing/check.h"

/* In the shorter run all caches and buffers already have their full size. A process's heap varies
 * by some hundred kilobytes: little per additional row. */
enum { SHORT = 400000, LONG = 1200000 };

typedef bool work(const char *path, int64_t rows);

/* Returns the peak memory in bytes of a process that runs `does`. */
static double memory_of(work *does, const char *path, int64_t rows) {
    struct rusage used;
    int state = 0;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(does(path, rows) ? 0 : 1);
    assert_int_equal(wait4(child, &state, 0, &used), child);
    assert_true(WIFEXITED(state) && WEXITSTATUS(state) == 0);
    return 1024.0 * (double)used.ru_maxrss;
}

static void path_of(int64_t rows, char path[600]) {
    snprintf(path, 600, "%s/long%lld.h5", check_temporary(), (long long)rows);
}

/* Bytes per row. */
static double memory_of_a_row(work *does) {
    double memory[2];
    char path[600];
    for (int i = 0; i < 2; i++) {
        const int64_t rows = i ? LONG : SHORT;
        path_of(rows, path);
        memory[i] = memory_of(does, path, rows);
    }
    return (memory[1] - memory[0]) / (LONG - SHORT);
}

static void expect_little(work *does, const char *what) {
    const double each = memory_of_a_row(does);
    printf("%s: %.2f bytes of a row\n", what, each);
    if (each > 2) fail_msg("%s: %.2f bytes of a row", what, each);
}

/* -- tasks ----------------------------------------------------------------------------------- */

/* Writes a row of /vectors at every step; the only site has no vectors. */
static bool write_run(const char *path, int64_t rows) {
    sr_options o = SR_OPTIONS_DEFAULT;
    sr_failure why = {0};
    o.force = true, o.overhead = 0, o.scalars = false, o.vectors_every = 1;
    o.flush_steps = 63, o.sync = SR_SYNC_NONE;
    sr_recorder *r = sr_create(path, &o, &why);
    const sr_site s = {.size = sizeof s, .name = "norm", .norm = "bn", .width = 1};
    if (!r || sr_add_site(r, &s) < 0) return false;
    for (int64_t step = 1; step <= rows; step++) {
        const sr_step row = {.size = sizeof row, .update = step, .loss = 1};
        sr_begin_step(r, step);
        sr_put_rows(r, 0, 8);
        if (sr_end_step(r, &row) != SR_OK) return false;
    }
    const sr_finish f = {.size = sizeof f, .status = "complete"};
    return sr_close(r, &f, &why) == SR_OK;
}

static bool open_run(const char *path, int64_t rows) {
    sr_failure why = {0};
    sr_runfile *f = sr_run_open(path, &why);
    const bool ok = f && sr_run_get_info(f)->steps == rows && sr_run_get_info(f)->vectors == rows;
    sr_run_close(f);
    return ok;
}

static bool check_run(const char *path, int64_t rows) {
    sr_failure why = {0};
    return rows > 0 && sr_run_check(path, &why) == SR_OK;
}

static bool recover_run(const char *path, int64_t rows) {
    char to[600];
    sr_failure why = {0};
    sr_recovery count = {.size = sizeof count};
    snprintf(to, sizeof to, "%s/again.h5", check_temporary());
    return sr_run_recover(path, to, true, -1, &count, &why) == SR_OK && count.steps == rows;
}

/* -- tests ----------------------------------------------------------------------------------- */

static void memory_of_long_runs(void **state) {
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* the sanitizer keeps freed memory */
#endif
    expect_little(write_run, "writing");
    expect_little(open_run, "opening");
    expect_little(check_run, "checking");
    expect_little(recover_run, "recovering");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(memory_of_long_runs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
