/* Runs a program with its arguments as they are: no shell sees a file name. It ends within its time, and
 * with us, however we end. */
#define _GNU_SOURCE /* prctl and syscall beside POSIX */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "statnet/plot.h"
#include "statnet/share.h"
#include "statnet/tool.h"
#include "statnet/utf8.h"

enum { CANNOT_EXEC = 127, CANNOT_START = 126 };

/* gnuplot prints the command that failed, a mark under it, then `"FILE" line N: what is wrong`. */
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
            continue; /* of a program of ours, in front of why it ended; gnuplot's is a failure */
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

static void child(const plot_process *p, pid_t parent) {
    /* a parent that is gone by now sends no signal any more */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(CANNOT_START);
    char beside[PLOT_PATH + 64];
    share_program_directory(beside);
    const size_t used = strlen(beside);
    const int null = open("/dev/null", O_RDONLY);
    signal(SIGPIPE, SIG_DFL);
    /* figures are in UTF-8, and the same bytes whatever the locale */
    setenv("LC_ALL", "C.UTF-8", 1);
    setenv("TZ", "UTC0", 1); /* cairo writes its offset into a PDF, whose length changes with it */
    if (null < 0 || dup2(null, STDIN_FILENO) < 0) _exit(CANNOT_START);
    if (!redirect(p->errors, STDERR_FILENO) || !redirect(p->output, STDOUT_FILENO))
        _exit(CANNOT_START);
    if (p->directory && chdir(p->directory) != 0) _exit(CANNOT_START);
    if (used && !strchr(p->argv[0], '/')) {
        snprintf(beside + used, sizeof beside - used, "%s", p->argv[0]);
        execv(beside, p->argv);
    }
    execvp(p->argv[0], p->argv);
    _exit(errno == ENOENT ? CANNOT_EXEC : CANNOT_START);
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

/* A descriptor that can be read when the process has ended; -1 where the system has none (Linux before
 * 5.3): its end is then seen a nap late, which is as long as many an analysis takes. */
static int watch_process(pid_t pid) {
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, pid, 0);
#else
    (void)pid;
    return -1;
#endif
}

enum { LONGEST_NAP = 20 }; /* milliseconds */

/* Until the process has ended or the nap is over; naps grow where only they can be counted on. */
static void nap(int watch, int *milliseconds) {
    struct pollfd ended = {.fd = watch, .events = POLLIN};
    poll(&ended, 1, watch >= 0 ? LONGEST_NAP : *milliseconds);
    if (*milliseconds < LONGEST_NAP) *milliseconds *= 2;
}

/* Looks every few milliseconds, so that no signal of ours is in the way of the caller's. */
static int wait_for(pid_t pid, double seconds, bool *late) {
    const double end = clock_seconds() + seconds;
    const int watch = watch_process(pid);
    int state = 0, pause = 1;
    for (pid_t done; (done = waitpid(pid, &state, WNOHANG)) != pid;) {
        if (done < 0 && errno != EINTR) {
            state = -1;
            break;
        }
        if (tool_signal()) kill(pid, SIGTERM);
        if (seconds > 0 && clock_seconds() > end && !*late) *late = true, kill(pid, SIGKILL);
        nap(watch, &pause);
    }
    if (watch >= 0) close(watch);
    return state;
}

sr_status plot_process_run(const plot_process *p, sr_failure *why) {
    fflush(NULL);
    const pid_t parent = getpid(), pid = fork();
    bool late = false;
    if (pid < 0) return sr_fail(why, SR_IO, "cannot start %s: %s", p->argv[0], strerror(errno));
    if (pid == 0) child(p, parent);
    const int state = wait_for(pid, p->seconds, &late);
    if (tool_signal()) return sr_fail(why, SR_STATE, "interrupted");
    if (late)
        return sr_fail(why, SR_LIBRARY, "%s was not done after %g seconds", p->argv[0], p->seconds);
    if (WIFSIGNALED(state))
        return sr_fail(why, SR_LIBRARY, "%s was killed by signal %d", p->argv[0], WTERMSIG(state));
    if (WIFEXITED(state) && WEXITSTATUS(state) == 0) return SR_OK;
    if (WIFEXITED(state) && WEXITSTATUS(state) == CANNOT_EXEC)
        return sr_fail(why, SR_IO, "cannot find the program %s", p->argv[0]);
    char line[512];
    plot_error_line(p->errors, line, sizeof line);
    sr_fail(why, SR_LIBRARY, "%s%s", line[0] ? line : p->argv[0],
            line[0] ? "" : " failed without a message");
    keep_hint(p->errors, why);
    return SR_LIBRARY;
}
