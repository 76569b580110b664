#define _XOPEN_SOURCE 700 /* sigaltstack */
#include "testing/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/program/install_files.h"
#include "base/program/tool.h"
#include "capture.h"

static char *arguments[8] = {0};
static tool program = {.name = "statrec train", .argc = 0, .argv = arguments};

static const tool *with_arguments(const char *const *words) {
    program.argc = 0;
    for (; *words; words++) arguments[program.argc++] = (char *)(uintptr_t)*words;
    arguments[program.argc] = NULL;
    return &program;
}

#define WITH(...) with_arguments((const char *const[]){__VA_ARGS__, NULL})

/* -- messages ---------------------------------------------------------------------------------- */

static int report(void *context) {
    return tool_report(&program, context);
}

static void report_prints_text_and_hint(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_fail(&why, SR_IO, "a.h5: No such file or directory");
    captured c = capture(report, &why, NULL);
    assert_int_equal(c.status, TOOL_FAILED);
    assert_string_equal(c.err, "statrec train: a.h5: No such file or directory\n");
    assert_string_equal(c.out, "");
    sr_hint(&why, "try %s", "b.h5");
    c = capture(report, &why, NULL);
    assert_string_equal(c.err, "statrec train: a.h5: No such file or directory\n"
                               "statrec train: hint: try b.h5\n");
}

static void report_gives_the_exit_status(void **state) {
    (void)state;
    for (int s = SR_USAGE; s <= SR_LIBRARY; s++) {
        sr_failure why = {0};
        sr_fail(&why, (sr_status)s, "x");
        assert_int_equal(capture(report, &why, NULL).status,
                         s == SR_USAGE ? TOOL_USAGE : TOOL_FAILED);
    }
    sr_failure empty = {.status = SR_MEMORY};
    assert_string_equal(capture(report, &empty, NULL).err, "statrec train: memory\n");
}

static void messages_are_one_line(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_fail(&why, SR_IO, "odd\nname\033[2J\x7f: caf\xc3\xa9");
    captured c = capture(report, &why, NULL);
    assert_string_equal(c.err, "statrec train: odd?name?[2J?: caf\xc3\xa9\n");
    why = (sr_failure){0};
    sr_fail(&why, SR_IO,
            "\x9b[2J \xc2\x9b \xc2\xa0 \xe2\x82\xac \xe2\x82 \xff\xf0\x9f\x98\x80 \xc3");
    c = capture(report, &why, NULL); /* control characters of eight bits, cut characters */
    assert_string_equal(c.err,
                        "statrec train: ?[2J ?? \xc2\xa0 \xe2\x82\xac ?? ?\xf0\x9f\x98\x80 ?\n");
}

static int error_and_warning(void *context) {
    (void)context;
    printf("table\n"); /* printed first although it is buffered */
    tool_warn(&program, "%d rows lost", 3);
    int status = tool_error(&program, 42, "bad %s", "thing");
    dup2(STDERR_FILENO, STDOUT_FILENO);
    return status;
}

static void error_and_warning_lines(void **state) {
    (void)state;
    captured c = capture(error_and_warning, NULL, NULL);
    assert_int_equal(c.status, 42);
    assert_string_equal(c.out, "table\n");
    assert_string_equal(c.err, "statrec train: warning: 3 rows lost\nstatrec train: bad thing\n");
}

/* -- standard output --------------------------------------------------------------------------- */

static int print_and_finish(void *context) {
    int *count = context;
    for (int i = 0; i < *count; i++) printf("%d\n", i);
    return tool_finish(&program, TOOL_DONE);
}

static void finish_keeps_the_status(void **state) {
    (void)state;
    int few = 3;
    captured c = capture(print_and_finish, &few, NULL);
    assert_int_equal(c.status, TOOL_DONE);
    assert_string_equal(c.out, "0\n1\n2\n");
    assert_string_equal(c.err, "");
}

static void full_disk_is_one_line(void **state) {
    (void)state;
    static int counts[] = {1, 100000}; /* seen at the end, and in the middle */
    for (int i = 0; i < 2; i++) {
        captured c = capture(print_and_finish, &counts[i], "/dev/full");
        assert_int_equal(c.status, TOOL_FAILED);
        assert_non_null(strstr(c.err, "statrec train: standard output: "));
        assert_ptr_equal(strchr(c.err, '\n'), c.err + strlen(c.err) - 1);
    }
    captured c = capture(print_and_finish, &counts[0], "/dev/full");
    assert_string_equal(c.err, "statrec train: standard output: No space left on device\n");
}

static int print_and_finish_as_usage(void *context) {
    (void)context;
    printf("x\n");
    return tool_finish(&program, TOOL_USAGE);
}

static void an_earlier_failure_is_kept(void **state) {
    (void)state;
    assert_int_equal(capture(print_and_finish_as_usage, NULL, "/dev/full").status, TOOL_USAGE);
}

static void closed_output_matters_only_when_used(void **state) {
    (void)state;
    int none = 0, some = 2;
    captured c = capture(print_and_finish, &none, "");
    assert_int_equal(c.status, TOOL_DONE);
    assert_string_equal(c.err, "");
    c = capture(print_and_finish, &some, "");
    assert_int_equal(c.status, TOOL_FAILED);
    assert_string_equal(c.err, "statrec train: standard output: Bad file descriptor\n");
}

static int print_to_closed_pipe(void *context) {
    (void)context;
    int end[2];
    if (pipe(end) != 0) return 99;
    tool_catch_signals();
    dup2(end[1], STDOUT_FILENO);
    close(end[1]);
    close(end[0]);
    printf("lost\n");
    return tool_finish(&program, TOOL_DONE);
}

static void closed_pipe_is_one_line(void **state) {
    (void)state;
    captured c = capture(print_to_closed_pipe, NULL, NULL);
    assert_int_equal(c.status, TOOL_FAILED);
    assert_string_equal(c.err, "statrec train: standard output: Broken pipe\n");
}

/* -- the command line -------------------------------------------------------------------------- */

static void help_is_found(void **state) {
    (void)state;
    assert_true(tool_wants_help(WITH("p", "--help")));
    assert_true(tool_wants_help(WITH("p", "train", "-x", "-h")));
    assert_false(tool_wants_help(WITH("p")));
    assert_false(tool_wants_help(WITH("--help")));
    assert_false(tool_wants_help(WITH("p", "--", "--help")));
    assert_false(tool_wants_help(WITH("p", "help", "-help", "--helps")));
}

static void check_command(const tool *t, const char *want) {
    char *got = tool_command(t);
    assert_string_equal(got, want);
    free(got);
}

static void command_is_quoted_for_a_shell(void **state) {
    (void)state;
    check_command(WITH("./build/bin/statrec", "train", "--lr=0.1", "-o", "/tmp/a_b.h5"),
                  "statrec train --lr=0.1 -o /tmp/a_b.h5");
    check_command(WITH("p", "two words", "", "a'b", "$HOME", "a\"b"),
                  "p 'two words' '' 'a'\\''b' '$HOME' 'a\"b'");
    check_command(WITH("p", "''''", "*", "a;b", "~", "x\ny"),
                  "p ''\\'''\\'''\\'''\\''' '*' 'a;b' '~' 'x\ny'");
    check_command(WITH("/odd dir/my prog", "x"), "'my prog' x");
}

static void commands_survive_a_shell(void **state) {
    (void)state;
    check_command(WITH("printf", "%s|", "a b", "c'd", "`e`", "\\", "$f"),
                  "printf '%s|' 'a b' 'c'\\''d' '`e`' '\\' '$f'");
    char *command = tool_command(&program), got[64] = "";
    FILE *shell = popen(command, "r");
    assert_non_null(shell);
    assert_non_null(fgets(got, sizeof got, shell));
    pclose(shell);
    free(command);
    assert_string_equal(got, "a b|c'd|`e`|\\|$f|");
}

/* -- nearest name ------------------------------------------------------------------------------ */

static void nearest_names(void **state) {
    (void)state;
    static const char *const names[] = {"bn",          "ln",    "pnv",       "resnet20",
                                        "transformer", "train", "max-tokens"};
    static const char *const pairs[][2] = {
        {"resnet20", "resnet20"},
        {"resnet", "resnet20"},
        {"resent20", "resnet20"},
        {"ResNet20", "resnet20"},
        {"resnet-20", "resnet20"},
        {"trian", "train"},
        {"traain", "train"},
        {"rain", "train"},
        {"max_tokens", "max-tokens"},
        {"maxtoken", "max-tokens"},
        {"transformr", "transformer"},
        {"pv", "pnv"},
        {"pn", "bn"},
        {"BN", "bn"},
        {"LN", "ln"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        const char *nearest = tool_nearest(pairs[i][0], names, 7);
        assert_non_null(nearest);
        assert_string_equal(nearest, pairs[i][1]);
    }
    static const char *const far[] = {"", "x", "xx", "xyz", "resn", "cifar", "resnet20----", "tr"};
    for (size_t i = 0; i < sizeof far / sizeof far[0]; i++)
        assert_null(tool_nearest(far[i], names, 7));
    assert_null(tool_nearest("bn", names, 0));
}

/* Words from papers and other programs, with spellings far from ours. */
static void same_meaning(void **state) {
    (void)state;
    static const char *const norms[] = {"none", "pn", "bn", "ln"},
                             *const options[] = {"lr", "norm", "max-steps", "batch-size"},
                             *const figures[] = {"fig3", "fig2", "curves"};
    assert_string_equal(tool_nearest("batchnorm", norms, 4), "bn");
    assert_string_equal(tool_nearest("Batch_Norm", norms, 4), "bn");
    assert_string_equal(tool_nearest("LayerNorm", norms, 4), "ln");
    assert_string_equal(tool_nearest("power-norm", norms, 4), "pn");
    assert_string_equal(tool_nearest("learning-rate", options, 4), "lr");
    assert_string_equal(tool_nearest("learning_rate", options, 4), "lr");
    assert_string_equal(tool_nearest("steps", options, 4), "max-steps");
    assert_string_equal(tool_nearest("figure2", figures, 3), "fig2");
    /* only names proposed in this context; the row above has another name for the same word */
    assert_null(tool_nearest("batchnorm", options, 4));
    assert_string_equal(tool_nearest("batch", options, 4), "batch-size");
}

static void nearest_of_long_names(void **state) {
    (void)state;
    char longer[200];
    memset(longer, 'a', sizeof longer);
    longer[sizeof longer - 1] = 0;
    const char *names[] = {longer, "aaa"};
    assert_null(tool_nearest(longer, names, 2));
    assert_string_equal(tool_nearest("aa", names, 2), "aaa");
    longer[63] = 0;
    assert_ptr_equal(tool_nearest(longer, names, 2), longer);
}

/* -- signals ----------------------------------------------------------------------------------- */

/* The caller of the tests may ignore some signals, as nohup does. */
static void catch_signals(void) {
    signal(SIGINT, SIG_DFL), signal(SIGTERM, SIG_DFL), signal(SIGHUP, SIG_DFL);
    tool_catch_signals();
}

static int first_signal(void *context) {
    catch_signals();
    if (tool_signal() != 0) return 99;
    raise(*(int *)context);
    return tool_signal();
}

static int second_signal(void *context) {
    catch_signals();
    raise(SIGINT);
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    raise(*(int *)context);
    return 99;
}

/* As `timeout` sends it. */
static int signal_twice(void *context) {
    catch_signals();
    raise(*(int *)context);
    raise(SIGTERM);
    raise(*(int *)context);
    return tool_signal();
}

static int ignored_signal(void *context) {
    signal(*(int *)context, SIG_IGN); /* as under nohup */
    tool_catch_signals();
    raise(*(int *)context);
    return tool_signal() ? 99 : 0;
}

static void signals_set_a_flag_then_kill(void **state) {
    (void)state;
    static int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(capture(first_signal, &numbers[i], NULL).status, numbers[i]);
        assert_int_equal(capture(second_signal, &numbers[i], NULL).status, 128 + numbers[i]);
        assert_int_equal(capture(signal_twice, &numbers[i], NULL).status, numbers[i]);
        assert_int_equal(capture(ignored_signal, &numbers[i], NULL).status, 0);
    }
}

static int write_beyond_the_limit(void *context) {
    (void)context;
    tool_catch_signals();
    raise(SIGXFSZ);
    raise(SIGPIPE);
    return tool_signal();
}

static void write_errors_do_not_kill(void **state) {
    (void)state;
    assert_int_equal(capture(write_beyond_the_limit, NULL, NULL).status, 0);
}

/* Not every library survives a signal frame on its stack; see tool.c. */
static int look_at_signal_stack(void *context) {
    (void)context;
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    stack_t stack;
    catch_signals();
    if (sigaltstack(NULL, &stack) != 0 || stack.ss_flags & SS_DISABLE) return 1;
    if (stack.ss_size < 16 * 1024) return 2;
    for (int i = 0; i < 3; i++) {
        struct sigaction action;
        if (sigaction(numbers[i], NULL, &action) != 0 || !(action.sa_flags & SA_ONSTACK)) return 3;
    }
    return 0;
}

static void handlers_have_their_own_stack(void **state) {
    (void)state;
    assert_int_equal(capture(look_at_signal_stack, NULL, NULL).status, 0);
}

/* -- threads ----------------------------------------------------------------------------------- */

enum { BEGUN_AGAIN = 7, RETURNED = 8 };

/* Runs in a child: how it ends with these settings; NULL: not set. */
static int wait_with(const char *policy, const char *spins, const char *preload, const char *word) {
    int status;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        policy ? setenv("OMP_WAIT_POLICY", policy, 1) : unsetenv("OMP_WAIT_POLICY");
        spins ? setenv("GOMP_SPINCOUNT", spins, 1) : unsetenv("GOMP_SPINCOUNT");
        if (preload) setenv("LD_PRELOAD", preload, 1);
        tool_wait_briefly(WITH("test_tool", word));
        _exit(RETURNED);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* The program restarts once, with the setting that the OpenMP library reads at start. */
static void waits_are_set_before_the_threads(void **state) {
    (void)state;
    static char longest[1 << 18];
    memset(longest, 'a', sizeof longest - 1);
    assert_int_equal(wait_with(NULL, NULL, NULL, "again"), BEGUN_AGAIN);
    assert_int_equal(wait_with("active", NULL, NULL, "again"), RETURNED);
    assert_int_equal(wait_with(NULL, "5", NULL, "again"), RETURNED);
    assert_int_equal(wait_with(NULL, NULL, "/usr/libexec/vgpreload_core.so", "again"), RETURNED);
    /* without a way to restart, it continues */
    assert_int_equal(wait_with(NULL, NULL, NULL, longest), RETURNED);
    assert_int_equal(wait_with(NULL, NULL, "other.so", longest), RETURNED);
}

/* -- installed files --------------------------------------------------------------------------- */

static void files_of_another_kind(void **state) {
    (void)state;
    char path[4096];
    sr_failure why = {0};
    snprintf(path, sizeof path, "%s/large", check_temporary());
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_int_equal(ftruncate(fileno(out), (16 << 20) + 1), 0);
    fclose(out);
    assert_int_equal(install_files_check_file(path, &why), SR_FORMAT);
    check_failure(&why, SR_FORMAT, "16777217 bytes, of which 16777216 at most are read");
    assert_int_equal(truncate(path, 16 << 20), 0);
    why = (sr_failure){0};
    check_ok(install_files_check_file(path, &why), &why);
    assert_int_equal(install_files_check_file("/dev/null", &why), SR_IO);
    check_failure(&why, SR_IO, "/dev/null: not a regular file");
    why = (sr_failure){0};
    assert_int_equal(install_files_check_file(check_temporary(), &why), SR_IO);
    check_failure(&why, SR_IO, "Is a directory");
    why = (sr_failure){0};
    assert_int_equal(install_files_check_file("/no/such/file", &why), SR_IO);
    check_failure(&why, SR_IO, "/no/such/file: No such file");
}

static void folders_in_their_order(void **state) {
    (void)state;
    char path[INSTALL_FILES_PATH], file[2 * INSTALL_FILES_PATH];
    sr_failure why = {0};
    setenv("TEST_FOLDER", "/mine", 1);
    assert_string_equal(install_files_directory("TEST_FOLDER", "plots", 0, path), "/mine");
    const char *first = install_files_directory("TEST_FOLDER", "plots", 1, path);
    assert_non_null(strstr(first, "/../plots"));
    setenv("TEST_FOLDER", "", 1); /* as if it were not set */
    first = install_files_directory("TEST_FOLDER", "plots", 0, path);
    assert_non_null(strstr(first, "/../plots"));
    unsetenv("TEST_FOLDER");
    int count = 0;
    while (install_files_directory("TEST_FOLDER", "plots", count, path)) count++;
    assert_int_equal(count, 6);
    assert_int_equal(install_files_find("TEST_FOLDER", "plots", "no.such", file, &why), SR_IO);
    check_failure(&why, SR_IO, "cannot find plots/no.such");
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "again") == 0)
        return strcmp(getenv("GOMP_SPINCOUNT"), "100000") == 0 ? BEGUN_AGAIN : 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(report_prints_text_and_hint),
        cmocka_unit_test(report_gives_the_exit_status),
        cmocka_unit_test(messages_are_one_line),
        cmocka_unit_test(error_and_warning_lines),
        cmocka_unit_test(finish_keeps_the_status),
        cmocka_unit_test(full_disk_is_one_line),
        cmocka_unit_test(an_earlier_failure_is_kept),
        cmocka_unit_test(closed_output_matters_only_when_used),
        cmocka_unit_test(closed_pipe_is_one_line),
        cmocka_unit_test(help_is_found),
        cmocka_unit_test(command_is_quoted_for_a_shell),
        cmocka_unit_test(commands_survive_a_shell),
        cmocka_unit_test(nearest_names),
        cmocka_unit_test(same_meaning),
        cmocka_unit_test(nearest_of_long_names),
        cmocka_unit_test(signals_set_a_flag_then_kill),
        cmocka_unit_test(write_errors_do_not_kill),
        cmocka_unit_test(handlers_have_their_own_stack),
        cmocka_unit_test(waits_are_set_before_the_threads),
        cmocka_unit_test(files_of_another_kind),
        cmocka_unit_test(folders_in_their_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
