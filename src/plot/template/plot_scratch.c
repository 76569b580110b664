/* plot_scratch.c -- see plot_scratch.h. The lock is flock() on the folder: it ends with the
 * process, however that ends, and other containers and hosts see it too. */
#define _GNU_SOURCE /* flock and O_DIRECTORY beside POSIX */
#include "plot/template/plot_scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX  "statplot-work."
#define KEPT    "statplot."
#define LETTERS "XXXXXX" /* suffix for mkdtemp */

static const char *temporary(void) {
    const char *base = getenv("TMPDIR");
    return base && base[0] ? base : "/tmp";
}

/* -1 and errno: EWOULDBLOCK if another process has it, ENOENT if it is gone or another user's. */
static int lock_folder(const char *path) {
    struct stat st;
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return -1;
    int reason = flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
    if (!reason && (fstat(fd, &st) != 0 || st.st_uid != geteuid() || st.st_nlink == 0))
        reason = ENOENT;
    if (!reason) return fd;
    close(fd);
    errno = reason;
    return -1;
}

/* A sweep of another call may take the folder before it is locked. A file system without locks has
 * no sweeps either. */
sr_status plot_scratch_make(plot_scratch *s, const char *base, const char *prefix,
                            sr_failure *why) {
    enum { TRIES = 3 };
    for (int i = 0; i < TRIES; i++) {
        if (snprintf(s->path, sizeof s->path, "%s/%s" LETTERS, base, prefix) >= PLOT_PATH - 64)
            return s->path[0] = 0, sr_fail(why, SR_IO, "%.200s...: the name is too long", base);
        if (!mkdtemp(s->path)) break;
        s->lock = lock_folder(s->path);
        if (s->lock >= 0 || (errno != EWOULDBLOCK && errno != ENOENT)) return SR_OK;
    }
    sr_fail(why, SR_IO, "%s: %s", s->path, strerror(errno));
    s->path[0] = 0;
    return SR_IO;
}

sr_status plot_scratch_create(plot_scratch *s, sr_failure *why) {
    return plot_scratch_make(s, temporary(), PREFIX, why);
}

void plot_folder_remove(const char *path) {
    char file[2 * PLOT_PATH];
    struct dirent *entry;
    DIR *folder = opendir(path);
    if (!folder) return;
    while ((entry = readdir(folder))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        unlink(file);
    }
    closedir(folder);
    rmdir(path);
}

void plot_scratch_forget(plot_scratch *s) {
    if (s->path[0] && s->lock >= 0) close(s->lock);
    s->path[0] = 0;
}

void plot_scratch_remove(plot_scratch *s) {
    if (s->path[0]) plot_folder_remove(s->path);
    plot_scratch_forget(s);
}

void plot_scratch_keep(plot_scratch *s) {
    char kept[PLOT_PATH];
    const char *letters = s->path + strlen(s->path) - strlen(LETTERS);
    if (!s->path[0]) return;
    snprintf(kept, sizeof kept, "%.900s/" KEPT "%s", temporary(), letters);
    if (rename(s->path, kept) == 0) snprintf(s->path, sizeof s->path, "%s", kept);
    if (s->lock >= 0) close(s->lock);
}

void plot_scratch_each_left(const char *base, const char *prefix,
                            void (*visit)(const char *path, void *context), void *context) {
    char path[2 * PLOT_PATH];
    const size_t length = strlen(prefix);
    struct dirent *entry;
    DIR *folder = opendir(base);
    while (folder && (entry = readdir(folder))) {
        if (strncmp(entry->d_name, prefix, length) != 0 ||
            strlen(entry->d_name) != length + strlen(LETTERS))
            continue;
        snprintf(path, sizeof path, "%s/%s", base, entry->d_name);
        const int lock = lock_folder(path);
        if (lock < 0) continue;
        visit(path, context);
        close(lock);
    }
    if (folder) closedir(folder);
}

static void remove_left(const char *path, void *context) {
    (void)context;
    plot_folder_remove(path);
}

void plot_scratch_sweep(void) {
    plot_scratch_each_left(temporary(), PREFIX, remove_left, NULL);
}
