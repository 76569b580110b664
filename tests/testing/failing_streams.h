/* failing_streams.h -- calls of the C library that open or close streams fail with the system calls
 * (failing_calls.h). With FAILING_STREAMS a file opens, but reads and writes of it fail. */
#ifndef TESTS_FAILING_STREAMS_H
#define TESTS_FAILING_STREAMS_H

#include <stdio.h>

#include "testing/failing_calls.h"

#define FAILING_OPEN(type, name, parameters, arguments)                                            \
    type *name parameters {                                                                        \
        FAILING_REAL(type *, name, parameters);                                                    \
        if (!failing_now(FAILING_SYSTEM, __builtin_return_address(0)))                             \
            return original.call arguments;                                                        \
        return NULL;                                                                               \
    }

static FILE *failing_stays; /* not closed, only flushed; may be NULL */

/* Reads of a folder fail with EISDIR, writes to a full device with ENOSPC. A file opened for
 * writing exists and is empty. */
FILE *fopen(const char *path, const char *mode) {
    FAILING_REAL(FILE *, fopen, (const char *, const char *));
    const void *caller = __builtin_return_address(0);
    if (failing_now(FAILING_SYSTEM, caller)) return NULL;
    if (!failing_now(FAILING_STREAMS, caller)) return original.call(path, mode);
    if (mode[0] == 'r') return original.call("/", "r");
    FILE *empty = original.call(path, mode);
    return empty ? freopen("/dev/full", mode, empty) : NULL;
}

FAILING_OPEN(FILE, fdopen, (int a, const char *b), (a, b))
FAILING_OPEN(FILE, open_memstream, (char **a, size_t *b), (a, b))

/* The stream is closed, as after a write error. */
int fclose(FILE *file) {
    FAILING_REAL(int, fclose, (FILE *));
    const int result = file == failing_stays ? fflush(file) : original.call(file);
    return failing_now(FAILING_SYSTEM, __builtin_return_address(0)) ? EOF : result;
}

#endif
