/* test_growing.c -- readers of a growing file see only complete rows. Every reader finds the file
 * while it is renamed at the end. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "testing/check.h"
#include "testing/sample_run.h"

static const sr_finish complete = {sizeof(sr_finish), "complete", "", ""};

static void wait_us(long us) {
    nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000}, NULL);
}

static void put_spectra(sr_recorder *r, int64_t step) {
    double value[SAMPLE_WIDTH];
    const double *const both[SR_SPECTRUM_COUNT] = {value, value};
    for (int i = 0; i < SAMPLE_SITES; i++) {
        for (int k = 0; k < sample_sites[i].width; k++) value[k] = (double)(step + 100 - k);
        sr_put_spectrum(r, i, 10, both);
    }
}

/* Each step has spectra, an evaluation and singular values, so that every dataset grows. */
static sr_status whole_step(sr_recorder *r, int64_t step) {
    const double singular[SAMPLE_EMBEDDING] = {3, 2, 1};
    const sr_step row = sample_row(step);
    sr_begin_step(r, step);
    for (int i = 0; i < SAMPLE_SITES; i++) sr_put_rows(r, i, sample_rows(step, i));
    put_spectra(r, step);
    sr_end_step(r, &row);
    sample_put_eval(r, step);
    return sr_put_singular_values(r, "shared", step, singular);
}

static pid_t start(const char *path, int64_t steps, long pause_us) {
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0, o.vectors_every = 1, o.flush_steps = 3, o.spectra = true;
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child > 0) return child;
    sr_recorder *r = sample_create(path, &o, NULL);
    for (int64_t i = 1; i <= steps && whole_step(r, i) == SR_OK; i++)
        if (pause_us) wait_us(pause_us);
    _exit(sr_close(r, &complete, NULL) == SR_OK ? 0 : 1);
}

static void wait_for(const char *path) {
    for (int i = 0; i < 2000 && access(path, F_OK) != 0; i++) wait_us(1000);
}

/* Waits until the writer has started: on a busy machine the file is empty for a while. */
static void wait_for_rows(const char *path) {
    wait_for(path);
    for (int i = 0; i < 2000; i++) {
        sr_runfile *f = sr_run_open(path, NULL);
        sr_run_close(f);
        if (f) return;
        wait_us(10000);
    }
}

static void tell(void *context, const sr_failure *fault) {
    int *faults = context;
    if (fault->status == SR_STATE) return; /* unfinished */
    fprintf(stderr, "look: %s\n", fault->text);
    ++*faults;
}

/* Repeats runs until enough looks were made, also on a busy machine. */
static void test_check(void **state) {
    enum { RUNS = 6, MOST_RUNS = 200, LOOKS = 20 };
    (void)state;
    const char *path = sample_path("growing.h5"), *part = sample_path("growing.h5.part");
    int looks = 0, faults = 0;
    for (int run = 0; run < RUNS || (looks <= LOOKS && run < MOST_RUNS); run++) {
        int status = 0;
        unlink(path);
        const pid_t child = start(path, 200, 1000);
        wait_for_rows(part);
        for (; waitpid(child, &status, WNOHANG) == 0; looks++)
            sr_run_check_all(path, tell, &faults, NULL);
        assert_int_equal(status, 0);
        sr_failure why = {0};
        check_ok(sr_run_check(path, &why), &why);
    }
    printf("%d looks, %d faults\n", looks, faults);
    assert_true(looks > LOOKS);
    assert_int_equal(faults, 0);
}

/* The file has one of its two names at every moment. */
static void test_rename(void **state) {
    enum { RUNS = 60, MOST_RUNS = 600, LOOKS = 200 };
    (void)state;
    const char *path = sample_path("renamed.h5"), *part = sample_path("renamed.h5.part");
    int looks = 0, missed = 0;
    for (int run = 0; run < RUNS || (looks <= LOOKS && run < MOST_RUNS); run++) {
        int status = 0;
        unlink(path), unlink(part);
        const pid_t child = start(path, 3, 0);
        wait_for(part);
        while (waitpid(child, &status, WNOHANG) == 0) {
            sr_failure why = {0};
            sr_runfile *f = sr_run_open(looks++ % 2 ? path : part, &why);
            const bool begun = !strstr(why.text, "has not begun") && !strstr(why.text, "empty") &&
                               !strstr(why.text, "truncated") && !strstr(why.text, "signature");
            if (!f && begun) missed++, fprintf(stderr, "look: %s\n", why.text);
            sr_run_close(f);
        }
        assert_int_equal(status, 0);
        sr_failure why = {0};
        sr_runfile *f = sr_run_open(part, &why); /* it has been renamed permanently */
        assert_non_null(f);
        assert_string_equal(sr_run_get_info(f)->status, "complete");
        assert_string_equal(sr_run_get_info(f)->path, path);
        sr_run_close(f);
    }
    printf("%d looks, %d missed\n", looks, missed);
    assert_true(looks > LOOKS);
    assert_int_equal(missed, 0);
}

int main(void) {
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_rename),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
