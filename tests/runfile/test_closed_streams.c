/* test_closed_streams.c -- a host that has closed standard input, output or error. Its messages do
 * not go into a recorder's or reader's file. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing/check.h"
#include "testing/run_builder.h"
#include "testing/sample_run.h"

enum { STEPS = 12 };

static void spoil(void) {
    static const char text[] = "a message of the host\n";
    char byte;
    for (int fd = 0; fd <= STDERR_FILENO; fd++) {
        if (write(fd, text, sizeof text - 1) > 0) _exit(2);
        if (read(fd, &byte, 1) > 0) _exit(3);
    }
}

/* In a separate process: closes the descriptors of the mask, records, and reads. */
static void run_host(int closed, const char *path) {
    sr_failure why = {0};
    sr_options o = SR_OPTIONS_DEFAULT;
    o.flush_steps = 4, o.sync = SR_SYNC_NONE;
    const int full = open("/dev/full", O_WRONLY);
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if ((closed >> fd & 1 ? close(fd) : dup2(full, fd)) < 0) _exit(4);
    sr_recorder *r = sample_create(path, &o, &why);
    if (!r) _exit(5);
    for (int64_t step = 1; step <= STEPS; step++) {
        spoil();
        if (sample_step(r, step) != SR_OK) _exit(6);
    }
    spoil();
    if (sr_close(r, &(sr_finish){sizeof(sr_finish), "complete", "", ""}, &why) != SR_OK) _exit(7);
    sr_runfile *f = sr_run_open(path, &why);
    if (!f) _exit(8);
    spoil();
    sr_run_close(f);
    _exit(0);
}

static void test_host(void **state) {
    (void)state;
    for (int closed = 1; closed < 8; closed++) {
        char name[32];
        int status = 0;
        sr_failure why = {0};
        snprintf(name, sizeof name, "closed-%d.h5", closed);
        const char *path = sample_path(name);
        fflush(NULL);
        const pid_t child = fork();
        if (child == 0) run_host(closed, path);
        assert_int_equal(waitpid(child, &status, 0), child);
        if (status != 0) fail_msg("closed %d: exit %d", closed, status >> 8);
        check_ok(sr_run_check(path, &why), &why);
        sr_runfile *f = sample_open(path);
        assert_int_equal(sr_run_get_info(f)->steps, STEPS);
        sample_check(f, 1, 1);
        sr_run_close(f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_host)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
