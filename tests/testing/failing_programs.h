/* failing_programs.h -- runs the main() of a program as an operation (failing_deeds.h) while one of
 * its allocations or calls fails. It must end with status 1 or 2 and a line with the reason, or
 * print its usual output. Other output needs a warning with the file name or the reason of the
 * failure, because damaged parts that it does not need read as empty. Nothing stays open or
 * allocated. Include it once, with _GNU_SOURCE. */
#ifndef TESTS_FAILING_PROGRAMS_H
#define TESTS_FAILING_PROGRAMS_H

#include <omp.h>
#include <stdio.h>

#include "testing/failing_deeds.h"
#include "testing/failing_streams.h"
#include "testing/programs.h"

typedef int program_main(int argc, char **argv);

enum { PROGRAM_WORDS = 64, PROGRAM_OUTPUT = 1 << 20 };

static program_main *program_called;
static const char *program_line; /* words between single spaces, the program's name first */
static const char *program_names = ".h5"; /* a part of each file's name */
static char program_wants[PROGRAM_OUTPUT];
static bool program_known; /* program_wants contains its output */

static char *program_read(int from, char *text, size_t size) {
    const ssize_t length = pread(from, text, size - 1, 0);
    if (length < 0) complain(program_line, "its output cannot be read");
    text[length] = 0;
    return text;
}

/* The last line that it wrote to standard error, except hints. */
static void program_take_reason(int from, sr_failure *why) {
    char text[4096];
    program_read(from, text, sizeof text);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        if (!strstr(line, ": hint: "))
            snprintf(why->text, sizeof why->text, "%.*s", (int)sizeof why->text - 1, line);
}

/* Ends the test with the first line that differs, and the call site of the failed call. */
static void program_complain_of(const char *text, const sr_failure *why) {
    const char *line = text;
    for (size_t i = 0; text[i] && text[i] == program_wants[i]; i++)
        if (text[i] == '\n') line = text + i + 1;
    const char *wants = program_wants + (line - text);
    complain(program_line,
             "without a failure after a call at 0x%zx it prints '%.*s' for '%.*s'%s%s",
             failing_offset, (int)strcspn(line, "\n"), line, (int)strcspn(wants, "\n"), wants,
             why->text[0] ? "; says " : "", why->text);
}

static int program_warnings(const char *text) {
    int count = 0;
    while ((text = strstr(text, "warning"))) count++, text++;
    return count;
}

static void program_check_output(int from, const sr_failure *why) {
    static char text[PROGRAM_OUTPUT];
    program_read(from, text, sizeof text);
    if (!program_known) memcpy(program_wants, text, sizeof text);
    program_known = true;
    const bool warned = strstr(why->text, program_names) || strstr(text, "made to fail") ||
                        program_warnings(text) > program_warnings(program_wants);
    if (strcmp(text, program_wants) != 0 && (failing_watched == FAILING_ALLOCATIONS || !warned))
        program_complain_of(text, why);
}

/* Returns its exit status; writes its output into two files. */
static int program_call(int out, int err) {
    char words[4096], *word[PROGRAM_WORDS + 1] = {0};
    int count = 0;
    snprintf(words, sizeof words, "%s", program_line);
    for (char *w = strtok(words, " "); w && count < PROGRAM_WORDS; w = strtok(NULL, " "))
        word[count++] = w;
    fflush(NULL);
    const int was_out = dup(STDOUT_FILENO), was_err = dup(STDERR_FILENO);
    if (dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0) return -1;
    failing_stays = stdout; /* for the next call */
    const int status = program_called(count, word);
    fflush(NULL);
    if (dup2(was_out, STDOUT_FILENO) < 0 || dup2(was_err, STDERR_FILENO) < 0) return -1;
    close(was_out);
    close(was_err);
    return status;
}

static sr_status program_deed(sr_failure *why) {
    const bool watched = failing_watches;
    failing_watches = false;
    FILE *out = tmpfile(), *err = tmpfile();
    failing_watches = watched;
    if (!out || !err) complain(program_line, "no temporary file");
    const int status = program_call(fileno(out), fileno(err));
    failing_watches = false;
    program_take_reason(fileno(err), why);
    if (status < 0 || status > 2) complain(program_line, "exit status %d", status);
    if (status == 0) program_check_output(fileno(out), why);
    fclose(out);
    fclose(err);
    failing_watches = watched;
    why->status = status == 0 ? SR_OK : SR_IO;
    return why->status;
}

/* Fails each call site of the kind in this command line; files are in check_temporary(). */
static inline void fail_program(program_main *program, const char *line, failing_kind kind) {
    const deed d = {.name = line, .run = program_deed, .file = ""};
    assert_int_equal(chdir(check_temporary()), 0);
    omp_set_num_threads(1); /* a child has no threads of its parent's */
    program_called = program, program_line = line, program_known = false;
    deed_fail_each(&d, kind);
}

#endif
