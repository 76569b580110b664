/* file_sync.c -- fsync of files and directories by their paths. */
#include "journal/file_sync.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

sr_status file_sync_directory(const char *path, sr_failure *why) {
    char name[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const int length = slash == path ? 1 : slash ? (int)(slash - path) : 1;
    snprintf(name, sizeof name, "%.*s", length, slash ? path : ".");
    return file_sync(name, why);
}

sr_status file_sync(const char *path, sr_failure *why) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return sr_fail(why, SR_IO, "%s: open: %s", path, strerror(errno));
    int failed = fsync(fd) != 0 && errno != EINVAL && errno != ENOSYS ? errno : 0;
    close(fd);
    return failed ? sr_fail(why, SR_IO, "%s: fsync: %s", path, strerror(failed)) : SR_OK;
}
