/* test_process_list.c -- runs programs and calls in parallel. All of them run, at most one per
 * processor, and none after a signal. The first failure in list order is returned; other failures
 * are kept apart. */
#define _GNU_SOURCE /* MAP_ANONYMOUS beside POSIX */
#include <dlfcn.h>
#include <errno.h>
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/program/tool.h"
#include "plot/plot_process.h"
#include "testing/check.h"

enum { JOBS = 9 };

static int *shared; /* [JOBS + 2]: of each call its argument + 1; how many run; the most that did */

static void wait_ms(long ms) {
    nanosleep(&(struct timespec){0, ms * 1000000}, NULL);
}

/* Job 3 and job 5 fail, the later one first. */
static int job(void *context) {
    const int i = (int)((int *)context - shared);
    const int now = __atomic_add_fetch(&shared[JOBS], 1, __ATOMIC_SEQ_CST);
    int most = shared[JOBS + 1];
    while (now > most && !__atomic_compare_exchange_n(&shared[JOBS + 1], &most, now, false,
                                                      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    }
    wait_ms(i == 3 ? 60 : 20);
    shared[i] = i + 1;
    __atomic_sub_fetch(&shared[JOBS], 1, __ATOMIC_SEQ_CST);
    return i == 3 || i == 5;
}

static void make_jobs(plot_process *p) {
    memset(shared, 0, (JOBS + 2) * sizeof *shared);
    for (int i = 0; i < JOBS; i++) p[i] = (plot_process){.call = job, .context = &shared[i]};
}

static void failures_are_kept_apart(void **state) {
    (void)state;
    plot_process p[JOBS];
    sr_failure each[JOBS] = {{0}}, why = {0};
    make_jobs(p);
    check_ok(plot_process_run_all(p, JOBS, each, &why), &why);
    for (int i = 0; i < JOBS; i++) {
        assert_int_equal(shared[i], i + 1);
        assert_int_equal(each[i].status, i == 3 || i == 5 ? SR_LIBRARY : SR_OK);
    }
    assert_int_equal(shared[JOBS], 0);
    assert_int_equal(shared[JOBS + 1], omp_get_num_procs() < JOBS ? omp_get_num_procs() : JOBS);
}

static void a_failure_ends_the_list(void **state) {
    (void)state;
    static char none[] = "no-such-program", seven[] = "exit 7";
    char *const missing[] = {none, NULL}, *const sh[] = {"sh", "-c", seven, NULL};
    char errors[2][4096];
    plot_process p[JOBS + 2];
    sr_failure why = {0};
    make_jobs(p + 2);
    for (int i = 0; i < 2; i++)
        snprintf(errors[i], sizeof errors[i], "%s/errors%d", check_temporary(), i);
    p[0] = (plot_process){.argv = missing, .errors = errors[0]};
    p[1] = (plot_process){.argv = sh, .errors = errors[1]};
    assert_int_equal(plot_process_run_all(p, JOBS + 2, NULL, &why), SR_IO);
    check_failure(&why, SR_IO, "cannot find the program no-such-program");
    assert_int_equal(shared[JOBS - 1], 0); /* the last job was not started */
    assert_int_equal(shared[JOBS], 0);     /* no process is still running */
}

static int nested_list(void *context) {
    plot_process p[JOBS];
    (void)context;
    make_jobs(p);
    sr_failure each[JOBS] = {{0}};
    return plot_process_run_all(p, JOBS, each, NULL) != SR_OK;
}

static void lists_in_a_list_have_one_lane(void **state) {
    (void)state;
    const plot_process p = {.call = nested_list};
    sr_failure why = {0};
    check_ok(plot_process_run(&p, &why), &why);
    assert_int_equal(shared[JOBS - 1], JOBS);
    assert_int_equal(shared[JOBS + 1], 1);
}

/* Prints its arguments; reports SIGTERM if it lacks the default handler. */
static int linked_main(int argc, char **argv) {
    struct sigaction term;
    for (int i = 0; i < argc; i++) printf("%s%c", argv[i], i + 1 < argc ? ' ' : '\n');
    if (sigaction(SIGTERM, NULL, &term) != 0 || term.sa_handler != SIG_DFL)
        fprintf(stderr, "SIGTERM is not what it is for a program\n");
    else
        fprintf(stderr, "fails as told\n");
    return fflush(stdout) != 0 || argc > 2;
}

static void note_nothing(int number) {
    (void)number;
}

static void check_line(const char *path, const char *want) {
    char line[256] = "";
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    assert_non_null(fgets(line, sizeof line, in));
    fclose(in);
    assert_string_equal(line, want);
}

static void a_linked_program_is_not_looked_for(void **state) {
    (void)state;
    static const plot_program programs[] = {{"no-such-program", linked_main}, {"echo", NULL}};
    char name[] = "no-such-program", word[] = "a", path[] = "/bin/echo", output[4096], errors[4096];
    char *const two[] = {name, word, NULL}, *const three[] = {name, word, word, NULL};
    char *const other[] = {path, word, NULL};
    sr_failure why = {0};
    snprintf(output, sizeof output, "%s/linked", check_temporary());
    snprintf(errors, sizeof errors, "%s/linked.stderr", check_temporary());
    plot_process p = {.argv = two, .output = output, .errors = errors};
    signal(SIGTERM, note_nothing);
    plot_process_link(programs, 2);
    check_ok(plot_process_run(&p, &why), &why);
    check_line(output, "no-such-program a\n");
    p.argv = three;
    assert_int_equal(plot_process_run(&p, &why), SR_LIBRARY);
    check_failure(&why, SR_LIBRARY, "fails as told");
    check_line(output, "no-such-program a a\n");
    p.argv = other; /* a path is not linked, whatever its last part */
    why = (sr_failure){0};
    check_ok(plot_process_run(&p, &why), &why);
    check_line(output, "a\n");
    plot_process_link(NULL, 0);
    signal(SIGTERM, SIG_DFL);
}

/* The parent of statplot may ignore SIGCHLD, and programs inherit that. */
static void ends_are_waited_for(void **state) {
    (void)state;
    plot_process p[JOBS];
    sr_failure each[JOBS] = {{0}}, why = {0};
    make_jobs(p);
    signal(SIGCHLD, SIG_IGN);
    check_ok(plot_process_run_all(p, JOBS, each, &why), &why);
    for (int i = 0; i < JOBS; i++)
        assert_int_equal(each[i].status, i == 3 || i == 5 ? SR_LIBRARY : SR_OK);
}

static void check_cannot(plot_process p, sr_status status, const char *part) {
    char errors[4096];
    sr_failure why = {0};
    snprintf(errors, sizeof errors, "%s/cannot.stderr", check_temporary());
    if (!p.errors) p.errors = errors;
    assert_int_equal(plot_process_run(&p, &why), status);
    check_failure(&why, status, part);
}

/* Failures in the child process, before its program starts. */
static void what_cannot_be_begun(void **state) {
    (void)state;
    static char program[] = "true", folder[] = "/", named[] = "/no/such/program", c[] = "-c";
    static char sh[] = "sh",
                odd[] = "echo '\"f\" line' >&2; echo '\"f\" line x' >&2; "
                        "printf 'a\\001b\\n\"f\" line 3: the reason\\nlater\\n' >&2; exit 1";
    static char killed[] = "kill -9 $$", slow[] = "sleep 9";
    char *const known[] = {program, NULL}, *const no_file[] = {folder, NULL},
                *const missing[] = {named, NULL}, *const script[] = {sh, c, odd, NULL},
                *const kills[] = {sh, c, killed, NULL}, *const sleeps[] = {sh, c, slow, NULL};
    check_cannot((plot_process){.argv = known, .output = "/no/such/folder/out"}, SR_LIBRARY,
                 "cannot start true");
    check_cannot((plot_process){.argv = known, .errors = "/no/such/folder/errors"}, SR_LIBRARY,
                 "cannot start true");
    check_cannot((plot_process){.argv = known, .directory = "/no/such/folder"}, SR_LIBRARY,
                 "cannot start true");
    check_cannot((plot_process){.argv = no_file}, SR_LIBRARY, "cannot start /");
    check_cannot((plot_process){.argv = missing}, SR_IO,
                 "cannot find the program /no/such/program");
    check_cannot((plot_process){.argv = script}, SR_LIBRARY, "\"f\" line 3: the reason");
    check_cannot((plot_process){.argv = kills}, SR_LIBRARY, "sh was killed by signal 9");
    check_cannot((plot_process){.argv = sleeps, .seconds = 0.05}, SR_LIBRARY,
                 "sh was not done after 0.05 seconds");
}

static bool no_processes;

pid_t fork(void) {
    static pid_t (*original)(void);
    if (!original) *(void **)&original = dlsym(RTLD_NEXT, "fork");
    return no_processes ? (errno = EAGAIN, -1) : original();
}

static void a_full_system(void **state) {
    (void)state;
    static char program[] = "true";
    char *const argv[] = {program, NULL};
    sr_failure why = {0};
    const plot_process p = {.argv = argv}, call = {.call = job, .context = shared};
    no_processes = true;
    assert_int_equal(plot_process_run(&p, &why), SR_IO);
    check_failure(&why, SR_IO, "cannot start true: Resource temporarily unavailable");
    why = (sr_failure){0};
    assert_int_equal(plot_process_run(&call, &why), SR_IO);
    check_failure(&why, SR_IO, "cannot start a process: Resource temporarily unavailable");
    no_processes = false;
}

/* A process started after a signal could not clean up: the handlers have run. This is the last
 * test, because a signal stays noted. */
static void nothing_begins_after_a_signal(void **state) {
    (void)state;
    plot_process p[JOBS];
    sr_failure why = {0};
    make_jobs(p);
    tool_catch_signals();
    raise(SIGTERM);
    assert_int_equal(plot_process_run_all(p, JOBS, NULL, &why), SR_STATE);
    check_failure(&why, SR_STATE, "interrupted");
    for (int i = 0; i < JOBS; i++) assert_int_equal(shared[i], 0);
}

int main(void) {
    const size_t size = (JOBS + 2) * sizeof *shared;
    shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failures_are_kept_apart),
        cmocka_unit_test(a_failure_ends_the_list),
        cmocka_unit_test(lists_in_a_list_have_one_lane),
        cmocka_unit_test(a_linked_program_is_not_looked_for),
        cmocka_unit_test(ends_are_waited_for),
        cmocka_unit_test(what_cannot_be_begun),
        cmocka_unit_test(a_full_system),
        cmocka_unit_test(nothing_begins_after_a_signal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
