/* failing_malloc.c -- see failing_malloc.h. */
#include "failing_malloc.h"

#include <stdlib.h>

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__)

void *__libc_malloc(size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_calloc(size_t count, size_t size);
void __libc_free(void *p);

static bool watching;
static long made, failing = -1, live;

static bool refuses(void) {
    return watching && made++ == failing;
}

static void *counted(void *p) {
    if (watching && p) live++;
    return p;
}

void *malloc(size_t size) {
    return refuses() ? NULL : counted(__libc_malloc(size));
}

void *calloc(size_t count, size_t size) {
    return refuses() ? NULL : counted(__libc_calloc(count, size));
}

void *realloc(void *p, size_t size) {
    if (refuses()) return NULL;
    return p ? __libc_realloc(p, size) : counted(__libc_malloc(size));
}

void free(void *p) {
    if (watching && p) live--;
    __libc_free(p);
}

bool failing_malloc_there(void) {
    return true;
}

void failing_malloc_begin(long n) {
    failing = n, made = live = 0, watching = true;
}

long failing_malloc_end(void) {
    watching = false;
    return live;
}

#else

bool failing_malloc_there(void) {
    return false;
}

void failing_malloc_begin(long n) {
    (void)n;
}

long failing_malloc_end(void) {
    return 0;
}

#endif
