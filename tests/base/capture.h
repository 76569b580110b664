/* capture.h -- runs a function in a child process and keeps what it printed and how it ended. */
#ifndef TESTS_BASE_CAPTURE_H
#define TESTS_BASE_CAPTURE_H

enum { CAPTURE_SIZE = 16384 };

typedef struct captured {
    int status; /* exit status, or 128 + signal */
    char out[CAPTURE_SIZE], err[CAPTURE_SIZE];
} captured;

typedef int capture_fn(void *context);

/* The child's standard output goes to `stdout_path`, or is captured when that is NULL; "" closes
 * it. The child leaves with the returned value and flushes nothing by itself but stderr. */
captured capture(capture_fn *run, void *context, const char *stdout_path);

/* The same with standard error on a terminal `columns` wide; what arrives there goes to `err`. */
captured capture_terminal(capture_fn *run, void *context, int columns);

#endif
