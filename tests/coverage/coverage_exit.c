/* coverage_exit.c -- in a build for coverage a process that ends by _exit, as children of tests and of
 * statplot do, counts as well. This definition stands before the system's own.
 *
 * With GCOV_ERROR_FILE, which libgcov names and does not heed, its messages go there: of processes that cannot
 * write what they counted, as under a limit of file sizes. */
#define _GNU_SOURCE 1 /* syscall */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

void __gcov_dump(void); /* of libgcov: clang has no gcov.h */

/* Runs before the destructor of libgcov, whose priority is reserved. */
__attribute__((destructor)) static void divert_messages(void) {
    const char *file = getenv("GCOV_ERROR_FILE");
    if (file && !freopen(file, "a", stderr)) abort();
}

void _exit(int status) {
    divert_messages();
    __gcov_dump();
    syscall(SYS_exit_group, status);
    __builtin_unreachable();
}
