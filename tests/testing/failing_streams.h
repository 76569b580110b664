/* failing_streams.h -- calls of the C library that open, and what closes, fail with the calls of the
 * system (failing_calls.h). */
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

FAILING_OPEN(FILE, fopen, (const char *a, const char *b), (a, b))
FAILING_OPEN(FILE, fdopen, (int a, const char *b), (a, b))
FAILING_OPEN(FILE, open_memstream, (char **a, size_t *b), (a, b))

/* The stream is closed, as after a write error. */
int fclose(FILE *file) {
    FAILING_REAL(int, fclose, (FILE *));
    const int result = original.call(file);
    return failing_now(FAILING_SYSTEM, __builtin_return_address(0)) ? EOF : result;
}

#endif
