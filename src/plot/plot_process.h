/* plot_process.h -- running analyses and gnuplot without a shell. */
#ifndef PLOT_PLOT_PROCESS_H
#define PLOT_PLOT_PROCESS_H

#include <stdio.h>

#include "statrec/base.h"

typedef struct plot_process {
    char *const *argv;           /* argv[0]: found beside statplot, else on PATH */
    int (*call)(void *context);  /* in place of a program, with argv NULL: its exit status */
    void *context;               /* call leaves its results in files or in shared memory */
    const char *directory;       /* working directory, or NULL */
    const char *output, *errors; /* files that take stdout and stderr; NULL output: ours */
    double seconds;              /* limit before it is killed; 0: no limit */
} plot_process;

/* A program whose main() is part of ours: its process is forked and no more. Everything of it must
 * fit into a process that has opened runs (run_open) and started no threads. */
typedef struct plot_program {
    const char *name;
    int (*main)(int argc, char **argv);
} plot_program;

/* programs[count], borrowed, replace programs of the same names in every plot_process from now
   on. */
void plot_process_link(const plot_program *programs, int count);
/* SR_OK when the process exited with 0; else its first line on stderr is the failure's text. It
 * does not outlive us. */
sr_status plot_process_run(const plot_process *p, sr_failure *why);
/* All of p[count], as many at a time as there are processors. each NULL: none starts after a
 * failure; *why is the failure of the first in the list. Otherwise failures are stored in
 * each[count], whose rest is not touched, and only a signal to us ends the list. */
sr_status plot_process_run_all(const plot_process *p, int count, sr_failure *each, sr_failure *why);
/* The line of a program's errors with the error, without its newline, control bytes replaced.
 * gnuplot's `"FILE" line N: ...`, else the first that is not empty; "" without any. */
void plot_error_line(const char *path, char *line, size_t size);

#endif
