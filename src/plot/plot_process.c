/* Runs programs with their arguments as they are: no shell sees a file name. They end within their
 * time, and with us, however we end. */
#define _GNU_SOURCE /* prctl and syscall beside POSIX */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <omp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/program/install_files.h"
#include "base/program/tool.h"
#include "base/utf8.h"
#include "plot/plot_process.h"
#include "plot/template/plot_sizes.h"

enum { CANNOT_EXEC = 127, CANNOT_START = 126 };

/* gnuplot prints the command that failed, a mark under it, then `"FILE" line N: ` and the error. */
static bool names_line(const char *line) {
    const char *at = line[0] == '"' ? strstr(line, " line ") : NULL;
    if (!at) return false;
    at += strlen(" line ");
    const size_t digits = strspn(at, "0123456789");
    return digits > 0 && at[digits] == ':';
}

void plot_error_line(const char *path, char *line, size_t size) {
    char next[512];
    bool found = false; /* gnuplot begins its messages with an empty line */
    line[0] = 0;
    FILE *in = fopen(path, "r");
    if (!in) return;
    while (fgets(next, sizeof next, in)) {
        next[strcspn(next, "\n")] = 0;
        for (char *c = next; *c;) {
            const int bytes = utf8_shown(c);
            if (!bytes) *c = ' ';
            c += bytes ? bytes : 1;
        }
        if (strncmp(next, "stat", 4) == 0 && strstr(next, ": warning: "))
            continue; /* a line of our programs before the reason they ended */
        const bool named = names_line(next);
        if (named || (!found && next[strspn(next, " ")])) snprintf(line, size, "%s", next);
        found = line[0] != 0;
        if (named) break;
    }
    fclose(in);
}

static bool redirect(const char *path, int to) {
    if (!path) return true;
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (fd < 0 || dup2(fd, to) < 0) return false;
    if (fd != to) close(fd);
    return true;
}

/* We are one of several processes of a list: those that we run, we run one after the other. */
static bool nested;

static const plot_program *linked;
static int links;

void plot_process_link(const plot_program *programs, int count) {
    linked = programs;
    links = count;
}

static const plot_program *find_link(const char *name) {
    for (int i = 0; i < links; i++)
        if (strcmp(linked[i].name, name) == 0) return &linked[i];
    return NULL;
}

/* Its name and its signals are reset as in a new program; our exit handlers do not run in it. */
static void run_linked(const plot_program *program, char *const *argv) {
    int argc = 0;
    if (signal(SIGTERM, SIG_DFL) == SIG_IGN) signal(SIGTERM, SIG_IGN);
    prctl(PR_SET_NAME, program->name);
    while (argv[argc]) argc++;
    _exit(program->main(argc, (char **)(uintptr_t)argv));
}

static void run_program(char *const *argv) {
    char beside[PLOT_PATH + 64];
    const plot_program *program = find_link(argv[0]);
    if (program) run_linked(program, argv);
    install_files_program_directory(beside);
    const size_t used = strlen(beside);
    if (used && !strchr(argv[0], '/')) {
        snprintf(beside + used, sizeof beside - used, "%s", argv[0]);
        execv(beside, argv);
    }
    execvp(argv[0], argv);
    _exit(errno == ENOENT ? CANNOT_EXEC : CANNOT_START);
}

static void child(const plot_process *p, pid_t parent) {
    /* a parent that is gone by now sends no signal any more */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(CANNOT_START);
    nested = true;
    /* Ctrl-C comes to all processes of a terminal: with ours, the second signal would leave no time
     * to put things away */
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    if (p->call) _exit(p->call(p->context));
    const int null = open("/dev/null", O_RDONLY);
    signal(SIGPIPE, SIG_DFL);
    /* figures are in UTF-8, and the same bytes whatever the locale */
    setenv("LC_ALL", "C.UTF-8", 1);
    setenv("TZ", "UTC0", 1); /* cairo writes its offset into a PDF, whose length changes with it */
    if (null < 0 || dup2(null, STDIN_FILENO) < 0) _exit(CANNOT_START);
    if (!redirect(p->errors, STDERR_FILENO) || !redirect(p->output, STDOUT_FILENO))
        _exit(CANNOT_START);
    if (p->directory && chdir(p->directory) != 0) _exit(CANNOT_START);
    run_program(p->argv);
}

/* Our own programs may add a line `name: hint: text`. */
static void keep_hint(const char *errors, sr_failure *why) {
    char line[512];
    FILE *in = fopen(errors, "r");
    if (!in) return;
    while (fgets(line, sizeof line, in)) {
        const char *hint = strstr(line, ": hint: ");
        line[strcspn(line, "\n")] = 0;
        if (hint) sr_hint(why, "%s", hint + strlen(": hint: "));
    }
    fclose(in);
}

static double clock_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A descriptor that can be read when the process has ended. -1 before Linux 5.3: then the end is
 * seen up to a nap later, which is as long as many an analysis. */
static int watch_process(pid_t pid) {
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, pid, 0);
#else
    (void)pid;
    return -1;
#endif
}

/* A process while it runs; `at`: its place in the list. */
typedef struct running {
    const plot_process *p;
    pid_t pid;
    int at, watch, state;
    double end;
    bool late, told; /* told: it got the signal to end, and gets no second one */
} running;

static sr_status begin(const plot_process *p, int at, running *r, sr_failure *why) {
    const pid_t parent = getpid();
    const double end = p->seconds > 0 ? clock_seconds() + p->seconds : INFINITY;
    if (tool_signal()) return sr_fail(why, SR_STATE, "interrupted");
    fflush(NULL);
    *r = (running){.p = p, .at = at, .pid = fork(), .end = end};
    if (r->pid < 0)
        return sr_fail(why, SR_IO, "cannot start %s: %s", p->argv ? p->argv[0] : "a process",
                       strerror(errno));
    if (r->pid == 0) child(p, parent);
    r->watch = watch_process(r->pid);
    return SR_OK;
}

/* Without waiting, so that no signal of ours is in the way of the caller's. */
static bool has_ended(running *r) {
    const pid_t done = waitpid(r->pid, &r->state, WNOHANG);
    if (done == r->pid || (done < 0 && errno != EINTR)) {
        if (done < 0) r->state = -1;
        if (r->watch >= 0) close(r->watch);
        return true;
    }
    if (tool_signal() && !r->told) r->told = true, kill(r->pid, SIGTERM);
    if (clock_seconds() > r->end && !r->late) r->late = true, kill(r->pid, SIGKILL);
    return false;
}

static sr_status outcome(const running *r, sr_failure *why) {
    const plot_process *p = r->p;
    const char *name = p->argv ? p->argv[0] : "a process";
    char line[512];
    if (tool_signal()) return sr_fail(why, SR_STATE, "interrupted");
    if (r->late)
        return sr_fail(why, SR_LIBRARY, "%s was not done after %g seconds", name, p->seconds);
    if (WIFSIGNALED(r->state))
        return sr_fail(why, SR_LIBRARY, "%s was killed by signal %d", name, WTERMSIG(r->state));
    if (WIFEXITED(r->state) && WEXITSTATUS(r->state) == 0) return SR_OK;
    if (WIFEXITED(r->state) && WEXITSTATUS(r->state) == CANNOT_EXEC)
        return sr_fail(why, SR_IO, "cannot find the program %s", name);
    if (WIFEXITED(r->state) && WEXITSTATUS(r->state) == CANNOT_START)
        return sr_fail(why, SR_LIBRARY, "cannot start %s", name);
    if (p->call) return sr_fail(why, SR_LIBRARY, "%s failed", name);
    plot_error_line(p->errors, line, sizeof line);
    sr_fail(why, SR_LIBRARY, "%s%s", line[0] ? line : name,
            line[0] ? "" : " failed without a message");
    keep_hint(p->errors, why);
    return SR_LIBRARY;
}

enum { LONGEST_NAP = 20, LANES = 64 }; /* milliseconds; processes at a time */

/* Until one has ended or the nap is over; naps grow where only they can be counted on. */
static void nap(const running *lane, int lanes, int *milliseconds) {
    struct pollfd ended[LANES];
    bool watched = true;
    for (int i = 0; i < lanes; i++) {
        ended[i] = (struct pollfd){.fd = lane[i].watch, .events = POLLIN};
        watched = watched && lane[i].watch >= 0;
    }
    poll(ended, (nfds_t)lanes, watched ? LONGEST_NAP : *milliseconds);
    if (*milliseconds < LONGEST_NAP) *milliseconds *= 2;
}

/* A list of processes that are run, and how it went. */
typedef struct list {
    const plot_process *p;
    int count, next, failed; /* failed: the first of them, or count */
    sr_failure *each, first;
} list;

/* Failures of processes that may fail do not end the list, unless we got a signal to end. */
static void list_failed(list *l, int at, const sr_failure *one) {
    if (l->each) l->each[at] = *one;
    if ((l->each && one->status != SR_STATE) || at >= l->failed) return;
    l->failed = at;
    l->first = *one;
}

static bool list_goes_on(const list *l) {
    return l->next < l->count && l->failed == l->count;
}

static int list_begin(list *l, running *lane, int lanes, int most) {
    for (; lanes < most && list_goes_on(l); l->next++) {
        sr_failure one = {0};
        if (begin(&l->p[l->next], l->next, &lane[lanes], &one) == SR_OK)
            lanes++;
        else
            list_failed(l, l->next, &one);
    }
    return lanes;
}

/* Takes those that have ended out of the lanes. */
static int list_reap(list *l, running *lane, int lanes) {
    for (int i = 0; i < lanes;) {
        sr_failure one = {0};
        if (!has_ended(&lane[i])) {
            i++;
            continue;
        }
        if (outcome(&lane[i], &one) != SR_OK) list_failed(l, lane[i].at, &one);
        lane[i] = lane[--lanes];
    }
    return lanes;
}

sr_status plot_process_run_all(const plot_process *p, int count, sr_failure *each,
                               sr_failure *why) {
    running lane[LANES];
    list l = {.p = p, .count = count, .failed = count, .each = each};
    const int cores = omp_get_num_procs(), most = nested ? 1 : cores < LANES ? cores : LANES;
    int lanes = 0, pause = 1;
    /* a program that ignores it may have started us; then no process has an exit status */
    signal(SIGCHLD, SIG_DFL);
    while (lanes || list_goes_on(&l)) {
        lanes = list_begin(&l, lane, lanes, most);
        const int before = lanes;
        if (lanes > 0) nap(lane, lanes, &pause);
        lanes = list_reap(&l, lane, lanes);
        if (lanes < before) pause = 1;
    }
    if (l.failed == count) return SR_OK;
    if (why) *why = l.first;
    return l.first.status;
}

sr_status plot_process_run(const plot_process *p, sr_failure *why) {
    return plot_process_run_all(p, 1, NULL, why);
}
