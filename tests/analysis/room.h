/* room.h -- another room for columns than that of memory_limit.c, so that short ones are read as
 * those that do not fit into memory: for a test program that holds the main() of an analysis. */
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

/* The program's table, with room for so many bytes. words: NULL behind the last. */
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

/* As with room for all, to the last digit, and of so many rows at least. */
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
