/* failing_malloc.h -- the n-th allocation fails; unfreed blocks are counted. Overrides malloc and
 * related functions in one file of a test program, never in a library. Unavailable under a
 * sanitizer, which overrides them too. */
#ifndef TESTS_FAILING_MALLOC_H
#define TESTS_FAILING_MALLOC_H

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(SANITIZED)

void *__libc_malloc(size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *p);

/* volatile: a compiler that has malloc built in takes it that no call of it changes them. */
static volatile bool watching;
static volatile long made, failing = -1, live;

static bool refuses(void) {
    if (!watching) return false;
    const bool refused = made == failing;
    made = made + 1;
    if (refused) errno = ENOMEM;
    return refused;
}

static void *counted(void *p) {
    if (watching && p) live = live + 1;
    return p;
}

void *malloc(size_t size) {
    return refuses() ? NULL : counted(__libc_malloc(size));
}

void *calloc(size_t count, size_t size) {
    return refuses() ? NULL : counted(__libc_calloc(count, size));
}

void *aligned_alloc(size_t alignment, size_t size) {
    return refuses() ? NULL : counted(__libc_memalign(alignment, size));
}

void *realloc(void *p, size_t size) {
    if (refuses()) return NULL;
    return p ? __libc_realloc(p, size) : counted(__libc_malloc(size));
}

void free(void *p) {
    if (watching && p) live = live - 1;
    __libc_free(p);
}

/* From now on allocation n (from 0) fails, -1: none. */
static void failing_malloc_begin(long n) {
    failing = n, made = 0, live = 0, watching = true;
}

/* Stops; returns the number of unfreed allocations. */
static long failing_malloc_end(void) {
    watching = false;
    return live;
}

/* False: report it and skip. Valgrind's functions override these. */
static inline bool failing_malloc_there(void) {
    failing_malloc_begin(-1);
    void *volatile one = malloc(1);
    free(one);
    failing_malloc_end();
    return made > 0;
}

/* After failing_malloc_end: whether that allocation was reached. */
static inline bool failing_malloc_reached(void) {
    return made > failing;
}

#else

static inline bool failing_malloc_reached(void) {
    return false;
}

static bool failing_malloc_there(void) {
    return false;
}

static void failing_malloc_begin(long n) {
    (void)n;
}

static long failing_malloc_end(void) {
    return 0;
}

#endif

#endif
