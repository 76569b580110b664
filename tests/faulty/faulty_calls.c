/* faulty_calls.c -- what may go wrong under a program, on demand: linked into a statrec of its own
 * (BUILD/faulty/statrec), its calls of the system and its allocations are counted, and one of them
 * fails or is the process's last.
 *
 *   STATREC_FAULT=WHAT:K   what happens at the K-th one, from 1:
 *     kill    the process is killed in front of the call of the system
 *     torn    half of what the call writes is written, then the process is killed
 *     fail    the call fails (EIO); those behind it work again
 *     full    that one and every write behind it fail (ENOSPC)
 *     alloc   the allocation fails
 *   STATREC_FAULT_COUNT=FILE   "CALLS ALLOCATIONS" of a process that ends by itself
 *
 * Calls are those that change files, of libraries too: these definitions stand before the system's
 * own. Allocations are those of our own code (the linker wraps its malloc, so that this works under
 * the address sanitizer as well). */
#define _GNU_SOURCE 1 /* RTLD_NEXT */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static enum { NONE, KILL, TORN, FAIL, FULL, ALLOC } fault;
static long at;
static atomic_long calls, allocations;

/* -- what is asked for */

__attribute__((constructor)) static void read_fault(void) {
    static const char *const names[] = {"", "kill:", "torn:", "fail:", "full:", "alloc:"};
    const char *text = getenv("STATREC_FAULT");
    for (int i = 1; text && i <= ALLOC; i++)
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

/* Counts a call; true where it is to fail. */
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

/* Bytes to write of `size` before the end; -1: all, and it goes on. */
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

ssize_t write(int fd, const void *bytes, size_t size) {
    typedef ssize_t function(int, const void *, size_t);
    NEXT(function, "write");
    if (fd == STDOUT_FILENO || fd == STDERR_FILENO) return original.call(fd, bytes, size);
    if (call_fails(true)) return -1;
    const ssize_t half = torn_at(size);
    if (half < 0) return original.call(fd, bytes, size);
    if (original.call(fd, bytes, (size_t)half) >= 0) kill(getpid(), SIGKILL);
    return -1;
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t place) {
    typedef ssize_t function(int, const void *, size_t, off_t);
    NEXT(function, "pwrite");
    if (call_fails(true)) return -1;
    const ssize_t half = torn_at(size);
    if (half < 0) return original.call(fd, bytes, size, place);
    if (original.call(fd, bytes, (size_t)half, place) >= 0) kill(getpid(), SIGKILL);
    return -1;
}

int ftruncate(int fd, off_t size) {
    typedef int function(int, off_t);
    NEXT(function, "ftruncate");
    return call_fails(true) ? -1 : original.call(fd, size);
}

int fsync(int fd) {
    typedef int function(int);
    NEXT(function, "fsync");
    return call_fails(false) ? -1 : original.call(fd);
}

int fdatasync(int fd) {
    typedef int function(int);
    NEXT(function, "fdatasync");
    return call_fails(false) ? -1 : original.call(fd);
}

int rename(const char *from, const char *to) {
    typedef int function(const char *, const char *);
    NEXT(function, "rename");
    return call_fails(false) ? -1 : original.call(from, to);
}

int link(const char *from, const char *to) {
    typedef int function(const char *, const char *);
    NEXT(function, "link");
    return call_fails(false) ? -1 : original.call(from, to);
}

int unlink(const char *path) {
    typedef int function(const char *);
    NEXT(function, "unlink");
    return call_fails(false) ? -1 : original.call(path);
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
