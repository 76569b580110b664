/* part_file.c -- PATH.part while recording, PATH afterwards; replaces no other file. */
#define _GNU_SOURCE /* renameat2 */
#include "record/part_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "journal/file_sync.h"
#include "journal/lock_file.h"
#include "journal/writer_lock.h"

static sr_status refuse(const char *path, const char *hint, sr_failure *why) {
    sr_status status = sr_fail(why, SR_EXISTS, "%s: exists", path);
    sr_hint(why, "%s", hint);
    return status;
}

/* Rejects an existing PATH that may not be replaced. */
static sr_status check_old(const char *path, bool force, sr_failure *why) {
    struct stat s;
    if (lstat(path, &s) != 0) return SR_OK;
    if (S_ISDIR(s.st_mode)) return sr_fail(why, SR_EXISTS, "%s: is a directory", path);
    if (!force) return refuse(path, "another name, or --force to replace it", why);
    if (!S_ISREG(s.st_mode)) return sr_fail(why, SR_EXISTS, "%s: not a regular file", path);
    return SR_OK;
}

/* Rejects a file that another run is writing, in this process or another. Only a lock of the system
 * is certain; with force, a lock file does not count. */
static sr_status check_writer(const char *part, bool force, sr_failure *why) {
    if (!force && lock_file_is_held(part)) return lock_file_refuse(part, why);
    if (!writer_lock_is_held_by_system(part)) return SR_OK;
    sr_fail(why, SR_EXISTS, "%s: another run is writing this file", part);
    sr_hint(why, "use another name, or end that run");
    return SR_EXISTS;
}

/* Checks that the directory of PATH exists and is writable. */
static sr_status check_directory(const char *path, const char *part, sr_failure *why) {
    const char *slash = strrchr(path, '/');
    const int length = slash == path ? 1 : slash ? (int)(slash - path) : 1;
    char directory[PATH_MAX];
    struct stat s;
    snprintf(directory, sizeof directory, "%.*s", length, slash ? path : ".");
    int wrong = stat(directory, &s) != 0 ? errno : S_ISDIR(s.st_mode) ? 0 : ENOTDIR;
    if (wrong == ENOENT) return sr_fail(why, SR_IO, "%s: no directory %s", path, directory);
    if (!wrong && access(directory, W_OK | X_OK) != 0) wrong = errno;
    return wrong ? sr_fail(why, SR_IO, "%s: create: %s", part, strerror(wrong)) : SR_OK;
}

sr_status sr_check_path(const char *path, bool force, sr_failure *why) {
    char part[PATH_MAX];
    struct stat s;
    if (!path || !*path) return sr_fail(why, SR_USAGE, "no path for the run file");
    if (strlen(path) + sizeof ".part" > sizeof part)
        return sr_fail(why, SR_USAGE, "%.80s...: the path is longer than %d bytes", path,
                       PATH_MAX - (int)sizeof ".part");
    snprintf(part, sizeof part, "%s.part", path);
    sr_status status = check_old(path, force, why);
    if (status != SR_OK) return status;
    if (lstat(part, &s) != 0) return check_directory(path, part, why);
    if (S_ISREG(s.st_mode)) status = check_writer(part, force, why);
    if (status != SR_OK) return status;
    if (!force)
        return refuse(part, "an unfinished run: `statrec recover` saves it, --force replaces it",
                      why);
    return S_ISDIR(s.st_mode) ? sr_fail(why, SR_EXISTS, "%s: is a directory", part)
                              : check_directory(path, part, why);
}

/* Uses PATH.part, or PATH.part.new while a resumed run is still read from PATH.part. */
static sr_status name_part(sr_recorder *r, const char *path, sr_failure *why) {
    const size_t length = strlen(path), size = length + sizeof ".part.new";
    struct stat s;
    r->path = strdup(path), r->part = malloc(size);
    if (!r->path || !r->part) return sr_fail(why, SR_MEMORY, "%s: its name", path);
    snprintf(r->part, size, "%s.part", path);
    r->resuming = r->options.resume;
    if (r->resuming && lstat(r->part, &s) == 0) strcat(r->part, ".new");
    return SR_OK;
}

static bool same_file(const char *path, dev_t device, ino_t inode);

const char *part_file_at(const sr_recorder *r, const char *path, char room[PATH_MAX]) {
    if (*path == '/' || !r->home || same_file(".", r->home_device, r->home_inode)) return path;
    snprintf(room, PATH_MAX, "%s/%s", r->home, path);
    return room;
}

sr_status part_file_reserve(sr_recorder *r, const char *path, sr_failure *why) {
    sr_status status = sr_check_path(path, r->options.force || r->options.resume, why);
    if (status == SR_OK) status = name_part(r, path, why);
    if (status != SR_OK) return status;
    struct stat s;
    if (stat(".", &s) == 0) r->home_device = s.st_dev, r->home_inode = s.st_ino;
    r->home = getcwd(NULL, 0);
    if (lstat(path, &s) == 0) r->replaces = true, r->old_device = s.st_dev, r->old_inode = s.st_ino;
    /* another process may resume the run, too */
    const bool force = r->options.force && !r->options.resume;
    char *usual = r->resuming ? strndup(r->part, strlen(path) + sizeof ".part" - 1) : NULL;
    if (usual) status = check_writer(usual, force, why);
    free(usual);
    if (status == SR_OK) status = check_writer(r->part, force, why);
    if (status != SR_OK || unlink(r->part) == 0 || errno == ENOENT) return status;
    return sr_fail(why, SR_IO, "%s: remove: %s", r->part, strerror(errno));
}

sr_status part_file_take_over(sr_recorder *r, sr_failure *why) {
    const size_t length = strlen(r->path) + sizeof ".part" - 1;
    char *old = strdup(r->part);
    if (!old) return sr_fail(why, SR_MEMORY, "%s: out of memory for its name", r->part);
    r->part[length] = 0; /* the writer has a pointer to this text */
    char from[PATH_MAX], to[PATH_MAX];
    const int failed = strcmp(old, r->part) &&
                               rename(part_file_at(r, old, from), part_file_at(r, r->part, to)) != 0
                           ? errno
                           : 0;
    if (failed) strcpy(r->part, old);
    free(old);
    r->resuming = failed != 0;
    if (failed) return sr_fail(why, SR_IO, "%s: rename: %s", r->part, strerror(failed));
    return lock_file_rename(&r->writer.lock, r->part, why);
}

/* True if `path` is still the same file as at the start. */
static bool same_file(const char *path, dev_t device, ino_t inode) {
    struct stat s;
    return lstat(path, &s) == 0 && s.st_dev == device && s.st_ino == inode;
}

/* Renames without replacing a file, unlike rename(2). On file systems without hard links it uses
 * renameat2 or, last, creates an empty file that rename may replace. */
static int rename_new(const char *from, const char *to) {
    if (link(from, to) == 0) {
        if (unlink(from) == 0) return 0;
        const int reason = errno;
        unlink(to), errno = reason; /* one name, the one in the message */
        return -1;
    }
    if (errno == EEXIST) return -1;
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return 0;
    if (errno == EEXIST) return -1;
    int fd = open(to, O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (fd < 0) return -1;
    close(fd);
    return rename(from, to);
}

sr_status part_file_check(const sr_recorder *r, sr_failure *why) {
    struct stat s = {0};
    char room[PATH_MAX];
    if (same_file(part_file_at(r, r->part, room), r->device, r->inode)) return SR_OK;
    const int fd = h5_descriptor(r->writer.file);
    const bool left = fd >= 0 && fstat(fd, &s) == 0 && s.st_nlink > 0;
    return sr_fail(why, SR_IO, "%s: %s while recording", r->part,
                   left ? "moved or replaced" : "removed or replaced");
}

sr_status part_file_publish(sr_recorder *r, sr_failure *why) {
    char from[PATH_MAX], to[PATH_MAX];
    const char *const part = part_file_at(r, r->part, from), *const path =
                                                                 part_file_at(r, r->path, to);
    if (!same_file(part, r->device, r->inode))
        return sr_fail(why, SR_IO, "%s: removed or replaced while recording", r->part);
    const bool sync = r->options.sync != SR_SYNC_NONE;
    sr_status status = sync ? file_sync(part, why) : SR_OK;
    if (status != SR_OK) return status;
    bool replace = r->replaces && same_file(path, r->old_device, r->old_inode);
    int failed = replace ? rename(part, path) : rename_new(part, path);
    if (failed && errno == EEXIST) {
        sr_fail(why, SR_EXISTS, "%s: appeared while recording; the run is in %s", r->path, r->part);
        sr_hint(why, "move one of the two away");
        return SR_EXISTS;
    }
    if (failed)
        return sr_fail(why, SR_IO, "%s: rename to %s: %s", r->part, r->path, strerror(errno));
    return sync ? file_sync_directory(path, why) : SR_OK;
}
