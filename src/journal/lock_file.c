/* lock_file.c -- see lock_file.h. */
#define _GNU_SOURCE /* O_NOFOLLOW, gethostname */
#include "journal/lock_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/output_file.h"

enum { HOST = 256, SPACE = 64, LINE = HOST + SPACE + 32 };

typedef struct holder {
    char host[HOST], space[SPACE]; /* space: of process numbers, which a container has its own of */
    long pid;
} holder;

static double monotonic(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static char *name_of(const char *path) {
    char *name = malloc(strlen(path) + sizeof ".lock");
    if (name) sprintf(name, "%s.lock", path);
    return name;
}

static holder this_process(void) {
    holder h = {.pid = (long)getpid()};
    if (gethostname(h.host, sizeof h.host - 1) != 0 || !*h.host) strcpy(h.host, "unknown");
    const ssize_t length = readlink("/proc/self/ns/pid", h.space, sizeof h.space - 1);
    strcpy(h.space + (length > 0 ? length : 0), length > 0 ? "" : "unknown");
    return h;
}

/* -- the holder of a lock file --------------------------------------------------------------- */

/* Names that two systems may share are not compared. */
static bool is_same(const char *name, const char *own) {
    return strcmp(name, own) == 0 && strcmp(name, "unknown") != 0;
}

static bool has_ended(const holder *h) {
    const holder own = this_process();
    return is_same(h->host, own.host) && is_same(h->space, own.space) && h->pid > 0 &&
           kill((pid_t)h->pid, 0) != 0 && errno == ESRCH;
}

/* A file that this module could not have written, or cannot read (another user's), counts by its
 * heartbeat alone. A file whose state the system does not report counts. */
static bool counts(const char *name) {
    char line[LINE] = "";
    holder h = {.pid = 0};
    struct stat s;
    const int fd = open(name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    const int error = (fd < 0 ? lstat(name, &s) : fstat(fd, &s)) == 0 ? 0 : errno;
    const ssize_t got = fd >= 0 ? pread(fd, line, sizeof line - 1, 0) : -1;
    if (fd >= 0) close(fd);
    if (error) return error != ENOENT;
    if (!S_ISREG(s.st_mode)) return false;
    if (got > 0 && sscanf(line, "%255s %ld %63s", h.host, &h.pid, h.space) == 3 && has_ended(&h))
        return false;
    return difftime(time(NULL), s.st_mtime) < LOCK_FILE_STALE;
}

/* Only files that this module may have written. */
static bool may_be_replaced(const char *name, bool force) {
    struct stat s;
    return lstat(name, &s) == 0 && S_ISREG(s.st_mode) && (force || !counts(name));
}

bool lock_file_is_held(const char *path) {
    char *name = name_of(path);
    const bool held = name && counts(name);
    free(name);
    return held;
}

/* -- our own --------------------------------------------------------------------------------- */

sr_status lock_file_refuse(const char *path, sr_failure *why) {
    sr_fail(why, SR_EXISTS, "%s: another run is writing this file, says %s.lock", path, path);
    sr_hint(why, "if that process has ended, remove %s.lock", path);
    return SR_EXISTS;
}

static bool write_holder(int fd) {
    char line[LINE];
    const holder h = this_process();
    const int length = snprintf(line, sizeof line, "%s %ld %s\n", h.host, h.pid, h.space);
    return pwrite(fd, line, (size_t)length, 0) == length;
}

sr_status lock_file_create(lock_file *l, const char *path, int refused, bool force,
                           sr_failure *why) {
    *l = (lock_file){.path = name_of(path), .owner = getpid(), .beat = monotonic()};
    if (!l->path) return sr_fail(why, SR_MEMORY, "%s: out of memory for its lock", path);
    if (may_be_replaced(l->path, force)) unlink(l->path);
    l->fd = output_file_create(l->path);
    if (l->fd >= 0 && write_holder(l->fd)) {
        snprintf(l->reason, sizeof l->reason,
                 "%.100s: the file system refuses locks (%s); %.100s keeps a second writer out",
                 path, strerror(refused), l->path);
        return SR_OK;
    }
    const sr_status status = l->fd < 0 && errno == EEXIST
                                 ? lock_file_refuse(path, why)
                                 : sr_fail(why, SR_IO, "%s: %s", l->path, strerror(errno));
    if (l->fd >= 0) lock_file_release(l);
    free(l->path);
    *l = (lock_file){0};
    return status;
}

void lock_file_beat(lock_file *l) {
    if (!l->path || l->owner != getpid()) return;
    const double now = monotonic();
    if (now - l->beat < LOCK_FILE_BEAT) return;
    l->beat = now;
    futimens(l->fd, NULL);
}

/* Whether the name still is our file. */
static bool is_ours(const lock_file *l) {
    struct stat own, now;
    return l->owner == getpid() && fstat(l->fd, &own) == 0 && lstat(l->path, &now) == 0 &&
           /* unreached: another file system is mounted at the name */
           own.st_dev == now.st_dev && own.st_ino == now.st_ino;
}

sr_status lock_file_rename(lock_file *l, const char *path, sr_failure *why) {
    if (!l->path || !is_ours(l)) return SR_OK;
    char *name = name_of(path);
    if (!name) return sr_fail(why, SR_MEMORY, "%s: out of memory for its lock", path);
    const bool moved = rename(l->path, name) == 0;
    if (!moved) sr_fail(why, SR_IO, "%s: rename to %s: %s", l->path, name, strerror(errno));
    if (moved) free(l->path), l->path = name;
    if (!moved) free(name);
    return moved ? SR_OK : SR_IO;
}

void lock_file_release(lock_file *l) {
    if (!l->path) return;
    if (is_ours(l)) unlink(l->path);
    close(l->fd);
    free(l->path);
    *l = (lock_file){0};
}
