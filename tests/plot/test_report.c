/* test_report.c -- statplot report: what its page holds of one run and of many, what of a directory
 * it leaves alone, and what is left when it is interrupted. */
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "statplot_runs.h"
#include "testing/check.h"

static void test_report(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_run("statplot report cv.h5 nlp.h5 -o report");
    check_run("cd report; test -s fig2.svg && test -s layers.1.svg && test -s layers.2.svg");
    check_run("cd report; sed -n 's/.*<img src=.\\([^ ]*svg\\).*/\\1/p' index.html | xargs ls "
              ">/dev/null");
    check_run("cd report; test $(ls *.svg | wc -l) = $(grep -c '<img' index.html)");
    /* settings, tables and definitions of both runs; every file that the page names is there;
     * nothing comes from anywhere else */
    check_run("cd report; grep -q '<h3>nlp.h5: transformer, bn, iwslt14, seed 1' index.html");
    check_run(
        "cd report; for t in runs diagnosis.1 diagnosis.2 sites.1 sites.2; do test -s $t.tsv && "
        "grep -q \"href=.$t.tsv\" index.html || exit 1; done");
    check_run("cd report; grep -q '<td>late</td><td>dist_psi2</td>' index.html");
    check_run("cd report; grep -q '<dt>tid_var</dt>\\|<dt>median</dt>' index.html");
    check_run("cd report; test $(ls | grep -c stderr) = 0; ! grep -q 'https\\?:\\|<script' "
              "index.html");
    check_run("statplot report nlp.h5 nlp.h5 -o same && grep -q 'no difference shown' "
              "same/compare.tsv && grep -q 'no difference shown' same/index.html");
    check_run("statplot report cv.h5 nlp.h5 -o again && diff -r report again");
    check_run("statplot report ln.h5 -o bare");
    check_run("grep -q 'Not drawn: stat-distance: ln.h5 has no dist_mu' bare/index.html");
    check_run(
        "statplot report ho*.h5 -o hostile; grep -q 'tick`&quot;; system' hostile/index.html");
    check_fails("statplot report cv.h5", 2, "needs -o DIRECTORY");
    check_fails("statplot report missing.h5 -o none", 1, "missing.h5");
    assert_false(exists("none"));
    assert_false(exists("tick") || exists("dollar") || exists("quote"));
}

/* Of many runs the first ones get what is of one run, and lines; tables, and figures with a point
 * for each, hold all. */
static void test_report_of_many(void **state) {
    (void)state;
    check_run("for i in 1 2 3; do cp nlp.h5 many$i.h5; done; rm -rf many");
    check_run("statplot report many?.h5 --max-runs 1 -o many");
    check_run("cd many; test -s layers.1.svg && ! test -e layers.2.svg && test -s sites.1.tsv && "
              "! test -e sites.2.tsv && ! test -e diagnosis.2.tsv");
    check_run("cd many; test $(grep -c '2 more runs (--max-runs 1)' index.html) -ge 4");
    check_run("cd many; test $(grep -v '^#' runs.tsv | grep -c many) = 3");
    check_run("statplot report many?.h5 --max-runs 2 -o many && grep -q 'Left out: 1 more run "
              "(--max-runs "
              "2)' many/index.html && test -s many/layers.2.svg");
    check_run("statplot report many?.h5 --max-runs 2 --labels a1,a2,a3 -o many && cd many && "
              "grep -q '>a2<' curves.svg && ! grep -q '>a3<' curves.svg && "
              "grep -q '>a3<' tidgap.svg");
    check_fails("statplot report many1.h5 --max-runs 0 -o none", 2, "--max-runs");
    check_fails("statplot curves many1.h5 --max-runs 2", 2, "max-runs");
}

/* Somebody's page stays; the contents lead to every section; images and text have figures of their
   own. */
static void test_report_page(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_run("mkdir -p theirs && echo '<html>mine' >theirs/index.html");
    check_fails("statplot report six.h5 -o theirs", 2,
                "theirs/index.html exists, and is no statrec");
    check_run("grep -qx '<html>mine' theirs/index.html && test $(ls theirs | wc -l) = 1");
    check_run(
        "statplot report six.h5 -o theirs --force && grep -q 'statrec report' theirs/index.html");
    check_run("statplot report cv.h5 nlp.h5 -o theirs");
    check_run(
        "cd theirs; sed -n 's/.*<li><a href=.#\\([^\"]*\\)\".*/\\1/p' index.html >ids; test $(wc "
        "-l <ids) "
        "= $(($(statrec list figures | wc -l) + 4)); while read -r id; do grep -q \"id=.$id.>\" "
        "index.html || exit 1; done <ids");
    check_run("cd theirs; grep -q 'cifar10, seed\\|resnet20' curves.svg && ! grep -q transformer "
              "curves.svg && "
              "grep -q transformer curves.2.svg && ! grep -q resnet20 curves.2.svg && "
              "grep -q '<h3>transformer, iwslt14</h3>' index.html && grep -q resnet20 fig2.svg && "
              "grep -q transformer fig2.svg");
    check_run("cd theirs; grep -q 'class=.narrow. src=.results.svg' index.html && "
              "! grep 'src=.fig2.svg' index.html | grep -q narrow");
}

/* The exit status of `statplot report` of all runs when Ctrl-C comes after so many milliseconds: to
 * each of its processes. */
static int interrupted(int milliseconds) {
    const struct timespec pause = {.tv_nsec = milliseconds * 1000000L};
    int state;
    const pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        _exit(program_run("export TMPDIR=ends; exec statplot report cv.h5 nlp.h5 six.h5 -o ended")
                  .status);
    }
    nanosleep(&pause, NULL);
    assert_int_equal(kill(-pid, SIGINT), 0);
    assert_int_equal(waitpid(pid, &state, 0), pid);
    return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
}

/* Page and tables of the report before are whole as long as there are no others; nothing stays
   behind. */
static void test_report_interrupted(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_run("mkdir ends && statplot report cv.h5 nlp.h5 six.h5 -o ended && cp -r ended before");
    for (int milliseconds = 40; milliseconds <= 240; milliseconds += 50) {
        assert_int_equal(interrupted(milliseconds), 130);
        check_run("test $(ls ends | wc -l) = 0 && diff -r ended before");
    }
}

/* Of a directory that an interrupted report made only what somebody else put there stays; and
 * `timeout` signals its program twice. */
static void test_report_leaves_no_directory(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_run("mkdir twice; export TMPDIR=twice\n"
              "for s in 0.05 0.15 0.3; do\n"
              "timeout -s INT $s statplot report cv.h5 nlp.h5 six.h5 -o half; test $? = 124 && ! "
              "test -e half && test $(ls twice | wc -l) = 0 || exit 1; done");
    check_run(
        "for s in 0.02 0.04 0.06 0.08 0.1; do mkdir half; TMPDIR=twice timeout -s INT $s statplot "
        "report cv.h5 nlp.h5 -o half; test $? = 124 && test -d half && rm -rf half || exit 1; "
        "done");
    check_run("export TMPDIR=twice; statplot report cv.h5 nlp.h5 six.h5 -o half & p=$!\n"
              "until test -e half/runs.tsv; do sleep 0.01; done; echo 1 >half/mine; kill -TERM $p; "
              "wait $p\n"
              "test $? = 143 && test \"$(ls half)\" = mine && test $(ls twice | wc -l) = 0");
}

int main(void) {
    /* whoever runs the tests may ignore signals, as nohup does, and programs inherit that */
    signal(SIGINT, SIG_DFL), signal(SIGTERM, SIG_DFL), signal(SIGHUP, SIG_DFL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_report),
        cmocka_unit_test(test_report_page),
        cmocka_unit_test(test_report_of_many),
        cmocka_unit_test(test_report_interrupted),
        cmocka_unit_test(test_report_leaves_no_directory),
    };
    return cmocka_run_group_tests(tests, statplot_runs, NULL);
}
