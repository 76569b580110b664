/* test_plot_table_cache.c -- an analysis with the same words is run once: its table and its failure
 * come again, another's never do, and what was no answer is asked again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plot/plot_command.h"
#include "plot/plot_curves.h"
#include "plot/plot_process.h"
#include "plot/template/plot_template.h"
#include "testing/check.h"

/* A program that notes each start in `starts`, refuses the word bad, and prints its words else. */
static char program[4096], directory[4096];
static int made;

static char *file_of(const char *name) {
    static char path[2][8300];
    static int i;
    snprintf(path[i = !i], sizeof path[0], "%s/%s", directory, name);
    return path[i];
}

static int new_directory(void **state) {
    char text[9000];
    (void)state;
    snprintf(directory, sizeof directory, "%s/%d", check_temporary(), made++);
    assert_int_equal(mkdir(directory, 0777), 0);
    snprintf(program, sizeof program, "%.4000s/program", directory);
    snprintf(
        text, sizeof text,
        "#!/bin/sh\necho start >>'%s/starts'\nfor w; do test $w != bad || { echo \"stat-x: bad "
        "$1\" >&2; echo 'stat-x: hint: do it' >&2; exit 1; }; done\necho \"$*\"\n",
        directory);
    check_write(program, text);
    assert_int_equal(chmod(program, 0755), 0);
    return 0;
}

static int starts(void) {
    int lines = 0;
    FILE *in = fopen(file_of("starts"), "r");
    for (int c; in && (c = getc(in)) != EOF;) lines += c == '\n';
    if (in) fclose(in);
    return lines;
}

static void check_text(const char *path, const char *expected) {
    char text[256] = "";
    FILE *in = fopen(path, "r");
    if (!in) fail_msg("%s is not there", path);
    text[fread(text, 1, sizeof text - 1, in)] = 0;
    fclose(in);
    assert_string_equal(text, expected);
}

/* Asks with two words, for a table of this name. */
static sr_failure ask(const char *first, const char *second, const char *table) {
    char *const argv[] = {program, (char *)first, (char *)second, NULL};
    char output[8300], errors[8400];
    sr_failure each = {0}, why = {0};
    snprintf(output, sizeof output, "%s/%s", directory, table);
    snprintf(errors, sizeof errors, "%s.stderr", output);
    const plot_process p = {.argv = argv, .output = output, .errors = errors};
    check_ok(plot_table_cache_run(directory, &p, 1, &each, &why), &why);
    return each;
}

static void the_same_words_run_once(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        ask("a", "bc", i ? "again" : "once");
        ask("ab", "c", i ? "other.again" : "other");
    }
    assert_int_equal(starts(), 2);
    check_text(file_of("again"), "a bc\n");
    check_text(file_of("other.again"), "ab c\n");
    unlink(file_of("once"));
    ask("a", "bc", "more");
    check_text(file_of("more"), "a bc\n");
    assert_int_equal(starts(), 2);
}

static void a_failure_comes_again(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        const sr_failure one = ask("x", "bad", "refused");
        check_failure(&one, SR_LIBRARY, "stat-x: bad x");
        assert_string_equal(one.hint, "do it");
    }
    assert_int_equal(starts(), 1);
}

/* The file of one question holds the answer of another: their hashes could be the same. */
static void words_are_compared(void **state) {
    char command[20000];
    (void)state;
    ask("first", "word", "a");
    snprintf(command, sizeof command, "cd '%s' && cp ask-* first", directory);
    assert_int_equal(system(command), 0);
    ask("other", "word", "b");
    snprintf(command, sizeof command, "cd '%s' && for i in ask-*; do cp first $i; done", directory);
    assert_int_equal(system(command), 0);
    ask("other", "word", "c");
    check_text(file_of("c"), "other word\n");
    ask("first", "word", "d");
    check_text(file_of("d"), "first word\n");
}

/* An answer that is cut short, and one whose table is gone, are none. */
static void damaged_answers_are_asked_again(void **state) {
    char command[20000];
    (void)state;
    static const char *const damage[] = {"for i in ask-*; do : >$i; done", "rm table-*"};
    static const char *const word[] = {"short", "gone"};
    for (int i = 0; i < 2; i++) {
        char text[32];
        ask("the", word[i], "a");
        snprintf(command, sizeof command, "cd '%s' && %s", directory, damage[i]);
        assert_int_equal(system(command), 0);
        ask("the", word[i], "b");
        snprintf(text, sizeof text, "the %s\n", word[i]);
        check_text(file_of("b"), text);
    }
    assert_int_equal(starts(), 4);
}

static void a_missing_program_is_no_answer(void **state) {
    (void)state;
    char away[8300];
    snprintf(away, sizeof away, "%s/away", directory);
    assert_int_equal(rename(program, away), 0);
    const sr_failure one = ask("a", "b", "none");
    assert_int_equal(one.status, SR_IO);
    assert_int_equal(rename(away, program), 0);
    assert_int_equal(ask("a", "b", "there").status, SR_OK);
    check_text(file_of("there"), "a b\n");
}

static void alike_in_a_list_run_once(void **state) {
    (void)state;
    enum { LIST = 6 };
    static const char *const word[LIST] = {"a", "b", "a", "bad", "bad", "a"};
    char output[LIST][8300], errors[LIST][8400], *argv[LIST][3];
    plot_process p[LIST];
    sr_failure each[LIST] = {{0}}, why = {0};
    for (int i = 0; i < LIST; i++) {
        snprintf(output[i], sizeof output[i], "%s/%d", directory, i);
        snprintf(errors[i], sizeof errors[i], "%s/%d.stderr", directory, i);
        argv[i][0] = program, argv[i][1] = (char *)word[i], argv[i][2] = NULL;
        p[i] = (plot_process){.argv = argv[i], .output = output[i], .errors = errors[i]};
    }
    check_ok(plot_table_cache_run(directory, p, LIST, each, &why), &why);
    assert_int_equal(starts(), 3);
    for (int i = 0; i < LIST; i++)
        assert_int_equal(each[i].status, strcmp(word[i], "bad") == 0 ? SR_LIBRARY : SR_OK);
    check_text(output[1], "b\n");
    check_text(output[5], "a\n");
}

/* Twenty questions, by each of several processes with names of its own. */
static int ask_many(void *context) {
    char word[16], table[32], path[8300], text[64];
    for (int i = 0; i < 20; i++) {
        snprintf(word, sizeof word, "w%d", i);
        snprintf(table, sizeof table, "of%d.%d", *(int *)context, i);
        ask(word, "x", table);
        snprintf(path, sizeof path, "%s/%s", directory, table);
        snprintf(text, sizeof text, "w%d x\n", i);
        check_text(path, text);
    }
    return 0;
}

static void processes_share_answers(void **state) {
    (void)state;
    int number[4] = {0, 1, 2, 3};
    plot_process p[4];
    sr_failure why = {0};
    for (int i = 0; i < 4; i++) p[i] = (plot_process){.call = ask_many, .context = &number[i]};
    check_ok(plot_process_run_all(p, 4, NULL, &why), &why);
    assert_in_range(starts(), 20, 79);
    ask("w19", "x", "late");
    check_text(file_of("late"), "w19 x\n");
}

/* The analysis of all runs stands behind one that refuses the second run. */
static sr_status make_tables(const char *answers, sr_failure *why, int *failed) {
    static char run[] = "{run}", runs[] = "{runs}", good[] = "good", bad[] = "bad";
    const plot_run run_of[] = {{.path = good}, {.path = bad}};
    static plot_template t = {.tables = 2};
    plot_data data[2] = {{0}};
    t.table[0] = (plot_table){.name = "each", .word = {program, run}, .words = 2};
    t.table[1] = (plot_table){.name = "all", .word = {program, runs, runs}, .words = 3};
    plot_sources from = {
        .template = &t, .run = run_of, .runs = 2, .directory = directory, .answers = answers};
    const sr_status status = plot_tables_make(&from, data, why);
    *failed = from.failed_run;
    for (int i = 0; i < 2; i++) plot_data_free(&data[i]);
    return status;
}

static void all_runs_wait_for_a_refusal(void **state) {
    (void)state;
    sr_failure why = {0}, alone = {0};
    int failed = 0;
    assert_int_equal(make_tables(directory, &why, &failed), SR_LIBRARY);
    check_failure(&why, SR_LIBRARY, "stat-x: bad bad");
    assert_int_equal(failed, 2);
    assert_int_equal(starts(), 2);
    assert_int_equal(make_tables(NULL, &alone, &failed), SR_LIBRARY);
    check_failure(&alone, SR_LIBRARY, why.text);
    assert_int_equal(failed, 2);
    assert_int_equal(starts(), 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_same_words_run_once, new_directory),
        cmocka_unit_test_setup(a_failure_comes_again, new_directory),
        cmocka_unit_test_setup(words_are_compared, new_directory),
        cmocka_unit_test_setup(damaged_answers_are_asked_again, new_directory),
        cmocka_unit_test_setup(a_missing_program_is_no_answer, new_directory),
        cmocka_unit_test_setup(alike_in_a_list_run_once, new_directory),
        cmocka_unit_test_setup(processes_share_answers, new_directory),
        cmocka_unit_test_setup(all_runs_wait_for_a_refusal, new_directory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
