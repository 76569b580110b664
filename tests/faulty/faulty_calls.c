/* faulty_calls.c -- fault injection, linked into a separate statrec (BUILD/faulty/statrec). Counts
 * its system calls and its allocations; one of them fails or is the process's last.
 *
 *   STATREC_FAULT=WHAT:K   fault at the K-th one, from 1:
 *     kill    the process is killed before the system call
 *     torn    half of the call's bytes are written, then the process is killed
 *     fail    the call fails (EIO); later ones work again
 *     full    this and every later write fail (ENOSPC)
 *     alloc   the allocation fails
 *     read    this and later reads fail (EIO)
 *     locks   every lock of a file fails, with errno K
 *   STATREC_FAULT_FILES=.h5.part   only calls on files with this ending are counted and fail
 *   STATREC_FAULT_COUNT=FILE   writes "CALLS ALLOCATIONS" of a process that ends by itself
 *
 * Calls are those that change files, also from libraries: these definitions override the system's.
 * Only allocations from statrec's code count (the linker wraps its malloc, so that this works under
 * the address sanitizer too). */
#define _GNU_SOURCE 1 /* RTLD_NEXT, F_OFD_SETLK */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/types.h>
#include <unistd.h>

static enum { NONE, KILL, TORN, FAIL, FULL, ALLOC, LOCKS, READ } fault;
static long at;
static atomic_long calls, allocations;

/* requested fault */

__attribute__((constructor)) static void read_fault(void) {
    static const char *const names[] = {
        "", "kill:", "torn:", "fail:", "full:", "alloc:", "locks:", "read:"};
    const char *text = getenv("STATREC_FAULT");
    for (int i = 1; text && i <= READ; i++)
        if (strncmp(text, names[i], strlen(names[i])) == 0) {
            fault = i;
            at = strtol(text + strlen(names[i]), NULL, 10);
        }
}

__attribute__((destructor)) static void write_count(void) {
    const char *path = getenv("STATREC_FAULT_COUNT");
    const long c = calls, a = allocations;
    FILE *out = path ? fopen(path, "w") : NULL;
    if (!out) return;
    fprintf(out, "%ld %ld\n", c, a);
    fclose(out);
}

/* Whether calls on this file are counted. */
static bool concerns(const char *path) {
    const char *ending = getenv("STATREC_FAULT_FILES");
    const size_t length = strlen(path), tail = ending ? strlen(ending) : 0;
    return !ending || (length >= tail && strcmp(path + length - tail, ending) == 0);
}

static bool concerns_open(int fd) {
    char name[64], path[4096];
    if (!getenv("STATREC_FAULT_FILES")) return true;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(name, path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    return concerns(path);
}

/* Counts a call; true if it must fail. */
static bool call_fails(bool writes) {
    const long now = ++calls;
    if (fault == KILL && now == at) kill(getpid(), SIGKILL);
    if (fault == FAIL && now == at) {
        errno = EIO;
        return true;
    }
    if (fault == FULL && writes && now >= at) {
        errno = ENOSPC;
        return true;
    }
    return false;
}

static bool lock_fails(void) {
    if (fault != LOCKS) return false;
    errno = (int)at;
    return true;
}

/* Bytes of `size` to write before the end; -1: all, and the process continues. */
static ssize_t torn_at(size_t size) {
    return fault == TORN && calls == at ? (ssize_t)(size / 2) : -1;
}

static void *next(const char *name) {
    void *symbol = dlsym(RTLD_NEXT, name);
    if (!symbol) abort();
    return symbol;
}

/* ISO C has no cast between a pointer to data and one to a function. */
#define NEXT(type, name)                                                                           \
    union {                                                                                        \
        void *symbol;                                                                              \
        type *call;                                                                                \
    } original = {.symbol = next(name)}

/* -- calls of the system */

static bool read_fails(int fd) {
    static atomic_long reads;
    if (fault != READ || !concerns_open(fd) || ++reads < at) return false;
    errno = EIO;
    return true;
}

ssize_t read(int fd, void *bytes, size_t size) {
    typedef ssize_t function(int, void *, size_t);
    NEXT(function, "read");
    return read_fails(fd) ? -1 : original.call(fd, bytes, size);
}

ssize_t pread(int fd, void *bytes, size_t size, off_t place) {
    typedef ssize_t function(int, void *, size_t, off_t);
    NEXT(function, "pread");
    return read_fails(fd) ? -1 : original.call(fd, bytes, size, place);
}

ssize_t write(int fd, const void *bytes, size_t size) {
    typedef ssize_t function(int, const void *, size_t);
    NEXT(function, "write");
    if (fd == STDOUT_FILENO || fd == STDERR_FILENO || !concerns_open(fd))
        return original.call(fd, bytes, size);
    if (call_fails(true)) return -1;
    const ssize_t half = torn_at(size);
    if (half < 0) return original.call(fd, bytes, size);
    if (original.call(fd, bytes, (size_t)half) >= 0) kill(getpid(), SIGKILL);
    return -1;
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t place) {
    typedef ssize_t function(int, const void *, size_t, off_t);
    NEXT(function, "pwrite");
    if (!concerns_open(fd)) return original.call(fd, bytes, size, place);
    if (call_fails(true)) return -1;
    const ssize_t half = torn_at(size);
    if (half < 0) return original.call(fd, bytes, size, place);
    if (original.call(fd, bytes, (size_t)half, place) >= 0) kill(getpid(), SIGKILL);
    return -1;
}

int ftruncate(int fd, off_t size) {
    typedef int function(int, off_t);
    NEXT(function, "ftruncate");
    return concerns_open(fd) && call_fails(true) ? -1 : original.call(fd, size);
}

int fsync(int fd) {
    typedef int function(int);
    NEXT(function, "fsync");
    return concerns_open(fd) && call_fails(false) ? -1 : original.call(fd);
}

int fdatasync(int fd) {
    typedef int function(int);
    NEXT(function, "fdatasync");
    return concerns_open(fd) && call_fails(false) ? -1 : original.call(fd);
}

int rename(const char *from, const char *to) {
    typedef int function(const char *, const char *);
    NEXT(function, "rename");
    return concerns(to) && call_fails(false) ? -1 : original.call(from, to);
}

int link(const char *from, const char *to) {
    typedef int function(const char *, const char *);
    NEXT(function, "link");
    return concerns(to) && call_fails(false) ? -1 : original.call(from, to);
}

int unlink(const char *path) {
    typedef int function(const char *);
    NEXT(function, "unlink");
    return concerns(path) && call_fails(false) ? -1 : original.call(path);
}

int flock(int fd, int operation) {
    typedef int function(int, int);
    NEXT(function, "flock");
    return lock_fails() ? -1 : original.call(fd, operation);
}

int fcntl(int fd, int command, ...) {
    typedef int function(int, int, void *);
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *); /* all kinds of it are passed alike */
    va_end(arguments);
    NEXT(function, "fcntl");
    const bool locks = command == F_OFD_SETLK || command == F_OFD_GETLK || command == F_SETLK ||
                       command == F_SETLKW || command == F_GETLK;
    return locks && lock_fails() ? -1 : original.call(fd, command, argument);
}

/* -- allocations: the linker's --wrap */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
char *__wrap_strdup(const char *text);

static bool refused(void) {
    if (++allocations != at || fault != ALLOC) return false;
    errno = ENOMEM;
    return true;
}

void *__wrap_malloc(size_t size) {
    return refused() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size) {
    return refused() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size) {
    return refused() ? NULL : __real_realloc(old, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size) {
    return refused() ? NULL : __real_aligned_alloc(alignment, size);
}

char *__wrap_strdup(const char *text) {
    return refused() ? NULL : __real_strdup(text);
}
