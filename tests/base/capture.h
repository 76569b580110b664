/* capture.h -- runs a function in a child process; returns its output and how it ended. */
#ifndef TESTS_BASE_CAPTURE_H
#define TESTS_BASE_CAPTURE_H

enum { CAPTURE_SIZE = 16384 };

typedef struct captured {
    int status; /* exit status, or 128 + signal */
    char out[CAPTURE_SIZE], err[CAPTURE_SIZE];
} captured;

typedef int capture_fn(void *context);

/* The child's standard output goes to `stdout_path`; NULL captures it, "" closes it. The child
 * exits with the returned value. It flushes stderr only. */
captured capture(capture_fn *run, void *context, const char *stdout_path);

/* The same with standard error on a terminal `columns` wide, captured in `err`. */
captured capture_terminal(capture_fn *run, void *context, int columns);

#endif
