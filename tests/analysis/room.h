/* room.h -- replaces the limit of memory_limit.c by one that a test sets. Short columns then take
 * the path of columns that do not fit into memory. For a test program that links the main() of an
 * analysis. */
#ifndef TESTS_ANALYSIS_ROOM_H
#define TESTS_ANALYSIS_ROOM_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/columns/column_summary.h"
#include "testing/check.h"
#include "testing/programs.h"

static int64_t room = 64 << 20;

int64_t column_memory_limit(void) {
    return room;
}

typedef int program_main(int argc, char **argv);

/* Writes the program's table to `path`, with a column memory limit of `bytes`. words: ends with
 * NULL. */
static inline void print_with_room(program_main *program, int64_t bytes, char **words,
                                   const char *path) {
    int count = 0;
    while (words[count]) count++;
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        room = bytes;
        _exit(freopen(path, "w", stdout) ? program(count, words) : 9);
    }
    int state;
    assert_int_equal(waitpid(child, &state, 0), child);
    assert_true(WIFEXITED(state) && WEXITSTATUS(state) == 0);
}

/* Expects the table that ample memory gives, to the last digit, with at least rows_least rows. */
static inline void expect_same_table(program_main *program, int64_t bytes, char **words,
                                     int rows_least) {
    print_with_room(program, 64 << 20, words, program_file("kept.tsv"));
    print_with_room(program, bytes, words, program_file("read.tsv"));
    program_result r = program_run("cmp kept.tsv read.tsv && grep -vc '^#' kept.tsv");
    if (r.status) fail_msg("%s%s, room %lld", r.out, r.err, (long long)bytes);
    if (atoi(r.out) < rows_least) fail_msg("%s of %d rows", r.out, rows_least);
    program_free(&r);
}

#endif
