#define _XOPEN_SOURCE 700
#include "capture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing/check.h"

static int open_file(const char *path) {
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0) fail_msg("cannot open %s", path);
    return file;
}

static void read_back(int file, char *text) {
    lseek(file, 0, SEEK_SET);
    size_t at = 0;
    ssize_t got;
    while (at < CAPTURE_SIZE - 1 && (got = read(file, text + at, CAPTURE_SIZE - 1 - at)) > 0)
        at += (size_t)got;
    text[at] = 0;
}

static void run_child(capture_fn *run, void *context, int out, int err) {
    if (out >= 0)
        dup2(out, STDOUT_FILENO);
    else
        close(STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    int status = run(context);
    fflush(stderr);
    _exit(status);
}

static int wait_for(pid_t child) {
    int status;
    if (waitpid(child, &status, 0) != child) fail_msg("the child is lost");
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

captured capture(capture_fn *run, void *context, const char *stdout_path) {
    static captured c;
    char out_path[4200], err_path[4200];
    snprintf(out_path, sizeof out_path, "%s/captured.out", check_temporary());
    snprintf(err_path, sizeof err_path, "%s/captured.err", check_temporary());
    int err = open_file(err_path), out = -1;
    if (!stdout_path)
        out = open_file(out_path);
    else if (*stdout_path)
        out = open(stdout_path, O_WRONLY);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) run_child(run, context, out, err);
    c.status = wait_for(child);
    c.out[0] = 0;
    if (!stdout_path) read_back(out, c.out);
    read_back(err, c.err);
    if (out >= 0) close(out);
    close(err);
    return c;
}

captured capture_terminal(capture_fn *run, void *context, int columns) {
    static captured c;
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) || unlockpt(master)) fail_msg("no pseudo terminal");
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    if (slave < 0) fail_msg("cannot open the pseudo terminal");
    struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
    ioctl(slave, TIOCSWINSZ, &size);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) run_child(run, context, slave, slave);
    close(slave);
    c.out[0] = 0;
    size_t at = 0;
    ssize_t got; /* EIO when the last writer is gone */
    while ((got = read(master, c.err + at, CAPTURE_SIZE - 1 - at)) > 0) at += (size_t)got;
    c.err[at] = 0;
    c.status = wait_for(child);
    close(master);
    return c;
}
