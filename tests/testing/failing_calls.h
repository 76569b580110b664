/* failing_calls.h -- the k-th call of a kind fails, once: an allocation, a system call, an HDF5
 * call (failing_hdf5.h). Overrides these functions in one file of a test program, with _GNU_SOURCE,
 * never in a library. Only calls from the program's own code count; the C library and HDF5 are
 * shared libraries.
 *
 * A program makes too many calls to fail each. Calls from one call site are alike: the tests fail
 * the first, the second and the last of each. */
#ifndef TESTS_FAILING_CALLS_H
#define TESTS_FAILING_CALLS_H

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

typedef enum {
    FAILING_ALLOCATIONS, /* none with failing_malloc.h or under the address sanitizer */
    FAILING_SYSTEM,
    FAILING_HDF5,
    FAILING_KINDS,
    FAILING_STREAMS = FAILING_KINDS /* with failing_streams.h */
} failing_kind;

enum { FAILING_PLACES = 2048 };

typedef struct failing_place {
    const void *caller;
    long first, second, last; /* 0: none */
} failing_place;

static bool failing_watches, failing_notes;
static failing_kind failing_watched;
static long failing_made, failing_at;
static size_t failing_offset; /* offset of the failed call in the program's code, for addr2line */
static failing_place failing_found[FAILING_PLACES];
static int failing_places;
/* Number of callers that identify a call site. With more than one, shared functions that read or
 * allocate have one call site for each of their callers. */
static int failing_depth = 1;

extern const char __executable_start, etext;

/* One address for the last failing_depth callers. */
static const void *failing_chain(const void *caller) {
    enum { FRAMES = 64 };
    void *frame[FRAMES];
    if (failing_depth == 1) return caller;
    const int count = backtrace(frame, FRAMES);
    uintptr_t chain = 0;
    int i = 0;
    while (i < count && frame[i] != caller) i++;
    for (int n = 0; n < failing_depth && i < count; n++, i++)
        chain = (chain ^ (uintptr_t)frame[i]) * 0x9e3779b97f4a7c15u;
    return (const void *)chain;
}

static void failing_note(const void *caller) {
    int i = 0;
    caller = failing_chain(caller);
    while (i < failing_places && failing_found[i].caller != caller) i++;
    if (i == FAILING_PLACES) abort();
    failing_place *p = &failing_found[i];
    if (i == failing_places) *p = (failing_place){.caller = caller}, failing_places++;
    if (p->first && !p->second) p->second = failing_made;
    if (!p->first) p->first = failing_made;
    p->last = failing_made;
}

static bool failing_is_own(const void *caller) {
    const char *at = caller;
    return at >= &__executable_start && at < &etext;
}

static bool failing_now(failing_kind kind, const void *caller) {
    if (!failing_watches || kind != failing_watched || !failing_is_own(caller)) return false;
    failing_made++;
    if (failing_notes) failing_note(caller);
    if (failing_made != failing_at) return false;
    failing_offset = (size_t)((const char *)caller - &__executable_start);
    errno = kind == FAILING_ALLOCATIONS ? ENOMEM : EIO;
    return true;
}

/* -- allocations */

#if !defined(TESTS_FAILING_MALLOC_H) && !defined(__SANITIZE_ADDRESS__)
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);

/* Blocks that the program's own code allocated since failing_begin. HDF5 keeps blocks for itself,
 * so its leaks cannot be detected. */
enum { FAILING_BLOCKS = 1 << 17 };
static void *failing_block[FAILING_BLOCKS]; /* open addressing */
static char failing_freed;                  /* its address marks a place that was used */

/* The slot of the block; without one, the first free slot for it. */
static void **failing_find(const void *block) {
    void **unused = NULL;
    for (size_t i = (uintptr_t)block / 16 * 0x9e3779b97f4a7c15u >> 47, tries = 0;; i++) {
        void **at = &failing_block[i % FAILING_BLOCKS];
        if (*at == block) return at;
        if (!unused && (!*at || *at == &failing_freed)) unused = at;
        if (!*at) return unused;
        if (++tries == FAILING_BLOCKS) abort();
    }
}

static void *failing_keep(void *block, const void *caller) {
    if (failing_watches && block && failing_is_own(caller)) *failing_find(block) = block;
    return block;
}

static void failing_drop(const void *block) {
    void **at = block ? failing_find(block) : NULL;
    if (at && *at == block) *at = &failing_freed;
}

/* How many of these blocks are not freed. */
static inline int failing_left(void) {
    int count = 0;
    for (int i = 0; i < FAILING_BLOCKS; i++)
        count += failing_block[i] && failing_block[i] != &failing_freed;
    return count;
}

static void failing_forget(void) {
    memset(failing_block, 0, sizeof failing_block);
}

void free(void *block) {
    failing_drop(block);
    __libc_free(block);
}

void *malloc(size_t size) {
    const void *caller = __builtin_return_address(0);
    return failing_now(FAILING_ALLOCATIONS, caller) ? NULL
                                                    : failing_keep(__libc_malloc(size), caller);
}

void *calloc(size_t count, size_t size) {
    const void *caller = __builtin_return_address(0);
    return failing_now(FAILING_ALLOCATIONS, caller)
               ? NULL
               : failing_keep(__libc_calloc(count, size), caller);
}

void *aligned_alloc(size_t alignment, size_t size) {
    const void *caller = __builtin_return_address(0);
    return failing_now(FAILING_ALLOCATIONS, caller)
               ? NULL
               : failing_keep(__libc_memalign(alignment, size), caller);
}

void *realloc(void *old, size_t size) {
    const void *caller = __builtin_return_address(0);
    if (failing_now(FAILING_ALLOCATIONS, caller)) return NULL;
    void *block = __libc_realloc(old, size);
    if (block || !size) failing_drop(old);
    return failing_keep(block, caller);
}

char *strndup(const char *text, size_t most) {
    const void *caller = __builtin_return_address(0);
    if (failing_now(FAILING_ALLOCATIONS, caller)) return NULL;
    const size_t length = strnlen(text, most);
    char *copy = failing_keep(__libc_malloc(length + 1), caller);
    if (!copy) return NULL;
    copy[length] = 0;
    return memcpy(copy, text, length);
}

char *strdup(const char *text) {
    const void *caller = __builtin_return_address(0);
    if (failing_now(FAILING_ALLOCATIONS, caller)) return NULL;
    const size_t size = strlen(text) + 1;
    char *copy = failing_keep(__libc_malloc(size), caller);
    return copy ? memcpy(copy, text, size) : NULL;
}
#else
static inline int failing_left(void) {
    return 0;
}

static void failing_forget(void) {
}
#endif

/* -- which call fails */

/* From now on call k of this kind fails; 0: none, and their call sites are noted. */
static void failing_begin(failing_kind kind, long k) {
    failing_watched = kind, failing_made = 0, failing_at = k, failing_notes = k == 0;
    if (k == 0) failing_places = 0;
    failing_forget();
    failing_watches = true;
}

/* Whether that call was reached. */
static bool failing_end(void) {
    failing_watches = failing_notes = false;
    return failing_at > 0 && failing_made >= failing_at;
}

static int failing_order(const void *a, const void *b) {
    const long x = *(const long *)a, y = *(const long *)b;
    return x < y ? -1 : x > y;
}

/* Whether earlier lists had the call site, for operations that share much of their code. */
static bool failing_once;
static bool failing_is_known(const void *caller) {
    enum { KNOWN = 1 << 15 };
    static const void *known[FAILING_KINDS][KNOWN];
    static int count[FAILING_KINDS];
    for (int i = 0; i < count[failing_watched]; i++)
        if (known[failing_watched][i] == caller) return true;
    if (count[failing_watched] == KNOWN) abort();
    known[failing_watched][count[failing_watched]++] = caller;
    return false;
}

/* The calls to try, in their order, [3 * FAILING_PLACES]; how many. */
static inline int failing_list(long *call) {
    int count = 0, kept = 0;
    for (int i = 0; i < failing_places; i++) {
        const failing_place *p = &failing_found[i];
        if (failing_once && failing_is_known(p->caller)) continue;
        call[count++] = p->first;
        if (p->second) call[count++] = p->second;
        call[count++] = p->last;
    }
    qsort(call, (size_t)count, sizeof *call, failing_order);
    for (int i = 0; i < count; i++)
        if (kept == 0 || call[kept - 1] != call[i]) call[kept++] = call[i];
    return kept;
}

/* -- the system */

#define FAILING_TEXT(name) #name
/* The overridden definition. ISO C has no cast between a pointer to data and one to a function. */
#define FAILING_REAL(type, name, parameters)                                                       \
    typedef type failing_function parameters;                                                      \
    static union {                                                                                 \
        void *symbol;                                                                              \
        failing_function *call;                                                                    \
    } original;                                                                                    \
    if (!original.symbol && !(original.symbol = dlsym(RTLD_NEXT, FAILING_TEXT(name)))) abort()

#define FAILING_CALL(type, name, parameters, arguments)                                            \
    type name parameters {                                                                         \
        FAILING_REAL(type, name, parameters);                                                      \
        if (!failing_now(FAILING_SYSTEM, __builtin_return_address(0)))                             \
            return original.call arguments;                                                        \
        return -1;                                                                                 \
    }

FAILING_CALL(int, access, (const char *a, int b), (a, b))
FAILING_CALL(int, fstat, (int a, struct stat *b), (a, b))
FAILING_CALL(int, stat, (const char *a, struct stat *b), (a, b))
FAILING_CALL(int, lstat, (const char *a, struct stat *b), (a, b))
FAILING_CALL(int, ftruncate, (int a, off_t b), (a, b))
FAILING_CALL(int, fsync, (int a), (a))
FAILING_CALL(int, fdatasync, (int a), (a))
FAILING_CALL(int, rename, (const char *a, const char *b), (a, b))
FAILING_CALL(int, link, (const char *a, const char *b), (a, b))
FAILING_CALL(int, unlink, (const char *a), (a))
FAILING_CALL(int, flock, (int a, int b), (a, b))
FAILING_CALL(ssize_t, read, (int a, void *b, size_t c), (a, b, c))
FAILING_CALL(ssize_t, pread, (int a, void *b, size_t c, off_t d), (a, b, c, d))
FAILING_CALL(ssize_t, pwrite, (int a, const void *b, size_t c, off_t d), (a, b, c, d))

DIR *opendir(const char *path) {
    FAILING_REAL(DIR *, opendir, (const char *));
    return failing_now(FAILING_SYSTEM, __builtin_return_address(0)) ? NULL : original.call(path);
}

struct dirent *readdir(DIR *directory) {
    FAILING_REAL(struct dirent *, readdir, (DIR *));
    return failing_now(FAILING_SYSTEM, __builtin_return_address(0)) ? NULL
                                                                    : original.call(directory);
}

int scandir(const char *path, struct dirent ***names, int (*filter)(const struct dirent *),
            int (*order)(const struct dirent **, const struct dirent **)) {
    FAILING_REAL(int, scandir,
                 (const char *, struct dirent ***, int (*)(const struct dirent *),
                  int (*)(const struct dirent **, const struct dirent **)));
    if (failing_now(FAILING_SYSTEM, __builtin_return_address(0))) return -1;
    return original.call(path, names, filter, order);
}

int open(const char *path, int flags, ...) {
    FAILING_REAL(int, open, (const char *, int, ...));
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    if (!failing_now(FAILING_SYSTEM, __builtin_return_address(0)))
        return original.call(path, flags, mode);
    return -1;
}

int fcntl(int fd, int command, ...) {
    FAILING_REAL(int, fcntl, (int, int, ...));
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *); /* all kinds of it are passed alike */
    va_end(arguments);
    if (!failing_now(FAILING_SYSTEM, __builtin_return_address(0)))
        return original.call(fd, command, argument);
    return -1;
}

/* The descriptor is closed, as after a write error on a network file system. */
int close(int fd) {
    FAILING_REAL(int, close, (int));
    const int result = original.call(fd);
    if (!failing_now(FAILING_SYSTEM, __builtin_return_address(0))) return result;
    return -1;
}

#endif
