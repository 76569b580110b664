/* tool.c -- error lines, the command line, signals and standard output of every program. */
#define _XOPEN_SOURCE 700 /* sigaltstack */
#include "base/program/tool.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/utf8.h"

/* -- messages ---------------------------------------------------------------------------------- */

/* File names may contain line breaks or escape sequences; a message stays one line. */
static void write_line(const tool *t, const char *label, const char *text) {
    char line[2 * SR_FAILURE_TEXT];
    snprintf(line, sizeof line, "%s: %s%s", t->name, label, text);
    for (char *c = line; *c;) {
        const int bytes = utf8_shown(c);
        if (!bytes) *c = '?';
        c += bytes ? bytes : 1;
    }
    fflush(stdout);
    fprintf(stderr, "%s\n", line);
}

int tool_report(const tool *t, const sr_failure *why) {
    write_line(t, "", why->text[0] ? why->text : sr_status_name(why->status));
    if (why->hint[0]) tool_hint(t, why->hint);
    return why->status == SR_USAGE ? TOOL_USAGE : TOOL_FAILED;
}

void tool_hint(const tool *t, const char *text) {
    write_line(t, "hint: ", text);
}

int tool_error(const tool *t, int exit_status, const char *format, ...) {
    char text[SR_FAILURE_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    write_line(t, "", text);
    return exit_status;
}

void tool_warn(const tool *t, const char *format, ...) {
    char text[SR_FAILURE_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    write_line(t, "warning: ", text);
}

int tool_finish(const tool *t, int exit_status) {
    errno = 0;
    bool failed = ferror(stdout) != 0; /* an earlier write; its errno is gone */
    if (fflush(stdout) != 0) failed = true;
    int reason = errno;
    if (fclose(stdout) != 0) {
        /* A caller may start us without a standard output; that is no loss if nothing was written.
         */
        if (errno != EBADF || failed) failed = true, reason = reason ? reason : errno;
    }
    if (!failed) return exit_status;
    write_line(t, "standard output: ", reason ? strerror(reason) : "write failed");
    return exit_status ? exit_status : TOOL_FAILED;
}

/* -- the command line -------------------------------------------------------------------------- */

static bool has_argument(const tool *t, const char *argument) {
    for (int i = 1; i < t->argc && strcmp(t->argv[i], "--") != 0; i++)
        if (strcmp(t->argv[i], argument) == 0) return true;
    return false;
}

bool tool_wants_help(const tool *t) {
    return has_argument(t, "--help") || has_argument(t, "-h");
}

bool tool_wants_version(const tool *t) {
    return has_argument(t, "--version");
}

int tool_print_version(const tool *t) {
    printf("%s %s\n", t->name, STATREC_VERSION);
    return tool_finish(t, TOOL_DONE);
}

/* Appends one argument, quoted for a shell; `out` is large enough for it. Returns the new end. */
static char *append_argument(char *out, const char *text) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-./:=,+@%";
    if (*text && !text[strspn(text, plain)]) return stpcpy(out, text);
    *out++ = '\'';
    for (; *text; text++) {
        if (*text == '\'')
            out = stpcpy(out, "'\\''");
        else
            *out++ = *text;
    }
    *out++ = '\'';
    return out;
}

char *tool_argument(const char *text) {
    char *argument = malloc(4 * strlen(text) + 3);
    if (argument) *append_argument(argument, text) = 0;
    return argument;
}

char *tool_command(const tool *t) {
    size_t capacity = 1;
    for (int i = 0; i < t->argc; i++) capacity += 4 * strlen(t->argv[i]) + 3;
    char *command = malloc(capacity), *at = command;
    if (!command) return NULL;
    for (int i = 0; i < t->argc; i++) {
        const char *slash = i ? NULL : strrchr(t->argv[0], '/');
        if (i) *at++ = ' ';
        at = append_argument(at, slash ? slash + 1 : t->argv[i]);
    }
    *at = 0;
    return command;
}

/* -- signals ----------------------------------------------------------------------------------- */

static const int caught[] = {SIGINT, SIGTERM, SIGHUP};
static volatile sig_atomic_t arrived; /* a handler can only set a global variable */
static struct timespec arrived_at;

/* `timeout` signals the process and then its group: two signals for one. A second key press takes
 * longer. */
enum { AS_ONE = 250 }; /* milliseconds */

/* The other caught signals are blocked meanwhile. */
static void note_signal(int number) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!arrived) {
        arrived_at = now, arrived = number;
        return;
    }
    const double passed = 1000.0 * (double)(now.tv_sec - arrived_at.tv_sec) +
                          1e-6 * (double)(now.tv_nsec - arrived_at.tv_nsec);
    if (passed < AS_ONE) return;
    signal(number, SIG_DFL);
    raise(number);
}

/* A signal during dnnl_sgemm (oneDNN 2.6) needs a separate stack. Otherwise the heap was corrupted
   in one of fifteen trials; the library seems to keep data below the red zone. */
static void set_signal_stack(void) {
    static char memory[64 * 1024]; /* the kernel saves the CPU's state there: ten KiB with AMX */
    stack_t present, own = {.ss_sp = memory, .ss_size = sizeof memory};
    if (sigaltstack(NULL, &present) == 0 && present.ss_flags & SS_DISABLE) sigaltstack(&own, NULL);
}

/* Else the next file that is opened becomes standard output, and every message goes into it. Opened
 * for reading: writing to it fails as on a closed descriptor. */
static void occupy_standard_descriptors(void) {
    int fd;
    do {
        fd = open("/dev/null", O_RDONLY);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) close(fd);
}

void tool_begin(void) {
    occupy_standard_descriptors();
    tool_survive_file_limit();
    setenv("HDF5_PLUGIN_PRELOAD", "::", 1);
}

void tool_survive_file_limit(void) {
#ifdef SIGXFSZ
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigemptyset(&ignore.sa_mask);
    sigaction(SIGXFSZ, &ignore, NULL);
#endif
}

void tool_catch_signals(void) {
    struct sigaction catch = {.sa_handler = note_signal, .sa_flags = SA_RESTART | SA_ONSTACK};
    struct sigaction ignore = {.sa_handler = SIG_IGN}, old;
    sigemptyset(&catch.sa_mask);
    for (unsigned i = 0; i < sizeof caught / sizeof caught[0]; i++)
        sigaddset(&catch.sa_mask, caught[i]);
    sigemptyset(&ignore.sa_mask);
    set_signal_stack();
    for (unsigned i = 0; i < sizeof caught / sizeof caught[0]; i++)
        /* nohup and `command &` start us with signals ignored on purpose */
        if (sigaction(caught[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(caught[i], &catch, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
    tool_survive_file_limit();
}

int tool_signal(void) {
    return arrived;
}

/* -- threads ----------------------------------------------------------------------------------- */

void tool_wait_briefly(const tool *t) {
    const char *preload = getenv("LD_PRELOAD");
    char path[4096];
    if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT")) return;
    if (preload && strstr(preload, "vgpreload")) return; /* /proc/self/exe is valgrind there */
    /* by its own path, or it would be called "exe" in lists of processes */
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0 || setenv("GOMP_SPINCOUNT", "100000", 1) != 0) return;
    path[length] = 0;
    execv(path, t->argv);
}
