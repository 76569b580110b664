/* test_report_folder.c -- the folder of statplot report. The earlier report stays until the new one
 * is complete, stale files are removed, other files stay. A killed call leaves no permanent
 * remains. */
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "statplot_runs.h"
#include "testing/check.h"

/* Starts `command` in a new process group and signals the group after some milliseconds. Returns
 * the wait status. */
static int interrupted(const char *command, int number, int milliseconds) {
    const struct timespec pause = {.tv_nsec = milliseconds * 1000000L};
    int state;
    const pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        _exit(program_run("%s", command).status);
    }
    nanosleep(&pause, NULL);
    assert_int_equal(kill(-pid, number), 0);
    assert_int_equal(waitpid(pid, &state, 0), pid);
    return state;
}

/* Interrupts a report of other runs: the earlier report keeps all its figures and tables. */
static void test_interrupted(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_run("mkdir ends && statplot report cv.h5 -o ended && cp -r ended before");
    for (int milliseconds = 40; milliseconds <= 640; milliseconds += 150) {
        const int end =
            interrupted("export TMPDIR=ends; exec statplot report nlp.h5 six.h5 -o ended", SIGINT,
                        milliseconds);
        assert_true(WIFEXITED(end));
        assert_int_equal(WEXITSTATUS(end), 130);
        check_run("test $(ls -A ends | wc -l) = 0 && diff -r ended before && "
                  "test $(ls -A | grep -c '^.ended') = 0");
    }
}

/* kill -9 leaves temporary folders and the earlier report. The next call removes the temporary
 * folders of reports and figures. */
static void test_killed(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_run("rm -rf ends killed before; mkdir ends && statplot report cv.h5 -o killed && cp -r "
              "killed before");
    for (int milliseconds = 90; milliseconds <= 490; milliseconds += 200) {
        interrupted("export TMPDIR=ends; exec statplot report nlp.h5 six.h5 -o killed", SIGKILL,
                    milliseconds);
        check_run("diff -r killed before");
    }
    check_run("test $(ls -A | grep -c '^.killed.part-') -ge 1 && test $(ls -A ends | wc -l) -ge 1");
    check_run("TMPDIR=ends statplot report nlp.h5 -o killed && test $(ls -A | grep -c '^.killed') "
              "= 0 && test $(ls -A ends | wc -l) = 0");
}

/* A running call keeps its folders. */
static void test_beside(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_run("rm -rf ends; mkdir ends; export TMPDIR=ends; statplot report cv.h5 nlp.h5 six.h5 "
              "-o beside & p=$!; for i in 1 2 3; do statplot report cv.h5 -o beside || exit 1; "
              "statplot curves cv.h5 -o beside.svg || exit 1; done; wait $p && "
              "test -s beside/index.html && test $(ls -A ends | wc -l) = 0");
}

/* Figures and tables that only the old page names are removed; a user's files stay. */
static void test_stale(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_run("statplot report cv.h5 nlp.h5 -o stale && test -s stale/layers.2.svg && "
              "mkdir stale/notes && echo mine >stale/notes/a && echo mine >stale/my.svg && chmod "
              "750 stale");
    check_run("statplot report six.h5 -o stale && ! test -e stale/layers.2.svg && "
              "! test -e stale/diagnosis.2.tsv && test $(cat stale/notes/a) = mine && "
              "test $(cat stale/my.svg) = mine && test $(stat -c %a stale) = 750");
    check_run("cd stale; for f in *.svg *.tsv; do test $f = my.svg || grep -q \"=.$f\\\"\" "
              "index.html || exit 1; done; test $(ls -A .. | grep -c '^.stale') = 0");
}

/* A user's page or file is not replaced without --force. */
static void test_theirs(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_run("mkdir -p theirs && echo '<html>mine' >theirs/index.html");
    check_fails("statplot report six.h5 -o theirs", 2,
                "theirs/index.html exists, and is no statrec");
    check_run("grep -qx '<html>mine' theirs/index.html && test $(ls -A theirs | wc -l) = 1");
    check_run(
        "statplot report six.h5 -o theirs --force && grep -q 'statrec report' theirs/index.html");
    check_run("mkdir drawn && echo mine >drawn/curves.svg");
    check_fails("statplot report six.h5 -o drawn", 2,
                "drawn/curves.svg exists, and no report wrote it");
    check_run("test \"$(ls -A drawn)\" = curves.svg && test $(ls -A | grep -c '^.drawn') = 0");
    check_run("statplot report six.h5 -o drawn --force && grep -q '<svg' drawn/curves.svg");
    check_run("echo mine >file");
    check_fails("statplot report six.h5 -o file", 1, "-o names a directory; file is a file");
    check_run("test $(cat file) = mine");
}

/* A link, the working folder and a folder in a read-only parent are filled in place. */
static void test_places(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_run("mkdir -p real && ln -s real link && statplot report six.h5 -o link && test -h link "
              "&& test -s real/index.html");
    check_run("cp cv.h5 six.h5 real && cd real && statplot report cv.h5 -o . && "
              "test -s index.html && test -s cv.h5 && test -s six.h5 && ! ls -A | grep -q part-");
    check_run("mkdir ends.places; cd real && statplot report six.h5 -o . && for f in *.svg *.tsv; "
              "do grep -q \"=.$f\\\"\" index.html || exit 1; done");
    check_run("statplot report six.h5 -o slash/ && test -s slash/index.html");
}

/* A report that fails leaves no files. `timeout` signals its program twice. */
static void test_nothing_left(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_run("mkdir twice; export TMPDIR=twice\n"
              "for s in 0.05 0.15 0.3; do\n"
              "timeout -s INT $s statplot report cv.h5 nlp.h5 six.h5 -o half; test $? = 124 && ! "
              "test -e half && test $(ls -A twice | wc -l) = 0 && test $(ls -A | grep -c "
              "'^.half') = 0 || exit 1; done");
    check_run("for s in 0.02 0.06 0.1; do mkdir half; TMPDIR=twice timeout -s INT $s statplot "
              "report cv.h5 nlp.h5 -o half; test $? = 124 && test -d half && rmdir half || exit 1; "
              "done");
}

int main(void) {
    /* the tests' parent may ignore signals, as nohup does, and programs inherit that */
    signal(SIGINT, SIG_DFL), signal(SIGTERM, SIG_DFL), signal(SIGHUP, SIG_DFL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interrupted),  cmocka_unit_test(test_killed),
        cmocka_unit_test(test_beside),       cmocka_unit_test(test_stale),
        cmocka_unit_test(test_theirs),       cmocka_unit_test(test_places),
        cmocka_unit_test(test_nothing_left),
    };
    return cmocka_run_group_tests(tests, statplot_runs, NULL);
}
