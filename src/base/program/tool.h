/* tool.h -- the frame of every main(): errors, signals, checked output.
 *
 * Exit status: 0 done, 1 failed, 2 usage, 128+n after signal n; 3: a run diverged; 4: a diagnosis
 * found what --fail-on names.
 */
#ifndef BASE_PROGRAM_TOOL_H
#define BASE_PROGRAM_TOOL_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

#include "statrec/base.h"

enum { TOOL_DONE = 0, TOOL_FAILED = 1, TOOL_USAGE = 2, TOOL_DIVERGED = 3, TOOL_FOUND = 4 };

typedef struct tool {
    const char *name; /* "statrec train": begins every message */
    int argc;
    char **argv;
} tool;

/* The first call of main(). Descriptors 0 to 2 that the caller closed become /dev/null, so that no
 * file gets their numbers; writing to them fails. HDF5 loads no code for filters of a file,
 * whatever HDF5_PLUGIN_PATH is. `ulimit -f` is a write error. */
void tool_begin(void);

/* Prints `name: text` and `name: hint: ...` to stderr; returns 2 for SR_USAGE, else 1. */
int tool_report(const tool *t, const sr_failure *why);

/* Prints `name: hint: text` to stderr. */
void tool_hint(const tool *t, const char *text);

/* Reports a message of the tool like tool_report. Returns `exit_status`. */
int tool_error(const tool *t, int exit_status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void tool_warn(const tool *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Flushes and closes stdout; a full disk or closed pipe becomes one line and TOOL_FAILED. Call as
 * the last thing: `return tool_finish(&t, status);` */
int tool_finish(const tool *t, int exit_status);

/* True when --help or -h is among the arguments, before any "--". */
bool tool_wants_help(const tool *t);

/* True when --version is among the arguments, before any "--"; prints `NAME VERSION`, finishes. */
bool tool_wants_version(const tool *t);
int tool_print_version(const tool *t);

/* The command line, program without its folder, arguments quoted where a shell would need it.
 * Call before options_parse, which moves arguments. malloc'd. */
char *tool_command(const tool *t);
/* The argument, quoted for a shell, malloc'd; NULL when out of memory. */
char *tool_argument(const char *text);

/* Name nearest to `given` in names[count], or NULL. The edit distance, without case, is at most 2
   and half of the longer name. */
const char *tool_nearest(const char *given, const char *const *names, int count);

/* SIGINT, SIGTERM and SIGHUP set a flag; a second one kills, unless it comes within a quarter of a
   second. SIGPIPE and SIGXFSZ (`ulimit -f`) are ignored: writes fail instead. */
void tool_catch_signals(void);
/* `ulimit -f` is a write error like a full disk, and no file of ours is left half written. */
void tool_survive_file_limit(void);
int tool_signal(void); /* the signal that arrived, or 0 */

/* Starts the program again with GOMP_SPINCOUNT=100000, which libgomp reads when it is loaded. Its
 * default spins much longer, on a core that another program may need. Shorter spins wake a late
 * thread in every loop. `bench/targets.py build/release neighbours` prints what a step takes beside
 * busy programs. Returns where OMP_WAIT_POLICY or GOMP_SPINCOUNT is set, under valgrind, and on
 * failure. Call it before anything is printed or moved in argv. */
void tool_wait_briefly(const tool *t);

#endif
