/* file_sync.c -- fsync of files and directories by their paths. */
#include "journal/file_sync.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* fsync; 0 or errno, and the call that failed. */
static int sync_path(const char *path, const char **call) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    *call = "open";
    if (fd < 0) return errno;
    *call = "fsync";
    int failed = fsync(fd) != 0 && errno != EINVAL && errno != ENOSYS ? errno : 0;
    close(fd);
    return failed;
}

sr_status file_sync_directory(const char *path, sr_failure *why) {
    char name[PATH_MAX], here[PATH_MAX];
    const char *slash = strrchr(path, '/'), *call;
    const int length = slash == path ? 1 : slash ? (int)(slash - path) : 1;
    snprintf(name, sizeof name, "%.*s", length, slash ? path : ".");
    const int failed = sync_path(name, &call);
    if (!failed) return SR_OK;
    const char *shown = !slash && getcwd(here, sizeof here) ? here : name;
    return sr_fail(why, SR_IO, "%s: its folder %s: %s: %s", path, shown, call, strerror(failed));
}

sr_status file_sync(const char *path, sr_failure *why) {
    const char *call;
    const int failed = sync_path(path, &call);
    return failed ? sr_fail(why, SR_IO, "%s: %s: %s", path, call, strerror(failed)) : SR_OK;
}
