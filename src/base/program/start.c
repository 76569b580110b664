/* start.c -- checks before any library starts: linked into each program, and run before the
 * constructors (.preinit_array). It runs on any processor, and calls nothing but the system.
 *
 * - A program that is compiled for another processor would die of an illegal instruction.
 * - Under a limit of memory, OpenBLAS would try for ever to take buffers for threads that statrec
 *   does not let it use. With OPENBLAS_NUM_THREADS=1 it takes none.
 */
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/program/cpu_check.h"

enum { VARIABLES = 4096, PATH = 4096 };

static const char setting[] = "OPENBLAS_NUM_THREADS=1";

/* NULL in a program without OpenBLAS. */
void openblas_set_num_threads(int count) __attribute__((weak));

CPU_CHECK_BASE static size_t length_of(const char *text) {
    size_t length = 0;
    while (text[length]) length++; /* unreached: on another processor, tests/cli/other_processor */
    return length;
}

CPU_CHECK_BASE static void say(const char *text) {
    if (write(STDERR_FILENO, text, length_of(text)) < 0) return;
}

CPU_CHECK_BASE static const char *name_of(const char *path) {
    const char *name = path;
    for (; *path; path++)                  /* unreached: on another processor */
        if (*path == '/') name = path + 1; /* unreached: on another processor */
    return name;
}

/* `count` characters: "NAME=". */
CPU_CHECK_BASE static bool begins(const char *text, const char *with, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (text[i] != with[i]) return false;
    return true;
}

CPU_CHECK_BASE static bool is_limited(void) {
    struct rlimit space, data;
    return (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY) ||
           (getrlimit(RLIMIT_DATA, &data) == 0 && data.rlim_cur != RLIM_INFINITY);
}

/* Starts the program again: the environment of this one is not the C library's yet. */
CPU_CHECK_BASE static void start_with_one_thread(char **argv, char **envp) {
    static char *environment[VARIABLES + 2];
    static char path[PATH];
    size_t count = 0;
    for (; *envp; envp++) {
        if (begins(*envp, setting, sizeof setting - 1) && !(*envp)[sizeof setting - 1]) return;
        if (begins(*envp, setting, sizeof setting - 2)) continue;
        if (count == VARIABLES) return;
        environment[count++] = *envp;
    }
    environment[count] = (char *)(size_t)setting;
    /* by its own path, or it would be called "exe" in lists of processes */
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length > 0) execve(path, argv, environment);
}

CPU_CHECK_BASE static void before_libraries(int argc, char **argv, char **envp) {
    const char *missing = cpu_check_program();
    if (missing) {                                    /* unreached: on another processor */
        say(argc > 0 ? name_of(argv[0]) : "statrec"); /* unreached: on another processor */
        say(": built for a processor with ");
        say(missing);
        say(", which this one has not: build with `make ARCH=native` here, or ARCH=x86-64-v2\n");
        _exit(1);
    }
    if (openblas_set_num_threads && is_limited()) start_with_one_thread(argv, envp);
}

typedef void start_function(int argc, char **argv, char **envp);
__attribute__((section(".preinit_array"), used)) static start_function *const start =
    before_libraries;
