/* powerloss.c -- for LD_PRELOAD: logs the calls that change files, for powerloss.py: one record
 * each in $POWERLOSS_LOG, "KIND\tPATH\tOTHER\tOFFSET\tSIZE\n" and SIZE bytes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NEXT(type, name)                                                                           \
    union {                                                                                        \
        void *symbol;                                                                              \
        type *call;                                                                                \
    } original = {.symbol = dlsym(RTLD_NEXT, name)}

static void note(const char *kind, const char *path, const char *other, long at, const void *bytes,
                 size_t size) {
    const char *log = getenv("POWERLOSS_LOG");
    char head[9000];
    if (!log) return;
    const int length = snprintf(head, sizeof head, "%s\t%s\t%s\t%ld\t%zu\n", kind, path, other, at,
                                bytes ? size : 0);
    const int fd = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (fd < 0) return;
    if (syscall(SYS_write, fd, head, length) != length) abort();
    if (bytes && syscall(SYS_write, fd, bytes, size) != (long)size) abort();
    syscall(SYS_close, fd);
}

/* The call with all bytes of the file: the C library's own writes of streams are seen by this
 * alone. */
static void note_content(const char *kind, const char *path, const char *other) {
    struct stat s;
    const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY);
    char *bytes = NULL;
    if (fd >= 0 && fstat(fd, &s) == 0 && S_ISREG(s.st_mode) &&
        (bytes = malloc((size_t)s.st_size + 1)))
        if (syscall(SYS_pread64, fd, bytes, s.st_size, 0) != s.st_size) abort();
    note(kind, path, other, 0, bytes, bytes ? (size_t)s.st_size : 0);
    free(bytes);
    if (fd >= 0) syscall(SYS_close, fd);
}

/* The path of an open regular file or folder; NULL of others. */
static const char *path_of(int fd) {
    static _Thread_local char path[4096];
    char name[64];
    struct stat s;
    if (fstat(fd, &s) != 0 || !(S_ISREG(s.st_mode) || S_ISDIR(s.st_mode))) return NULL;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(name, path, sizeof path - 1);
    if (length <= 0) return NULL;
    path[length] = 0;
    return path;
}

ssize_t write(int fd, const void *bytes, size_t size) {
    const char *path = path_of(fd);
    const long at = path ? (long)lseek(fd, 0, SEEK_CUR) : 0;
    const ssize_t done = (ssize_t)syscall(SYS_write, fd, bytes, size);
    if (path && done > 0) note("write", path, "", at, bytes, (size_t)done);
    return done;
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at) {
    const char *path = path_of(fd);
    const ssize_t done = (ssize_t)syscall(SYS_pwrite64, fd, bytes, size, at);
    if (path && done > 0) note("write", path, "", (long)at, bytes, (size_t)done);
    return done;
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off_t at) {
    return pwrite(fd, bytes, size, at);
}

static int sync_noted(int fd, long number) {
    const char *path = path_of(fd);
    const int result = (int)syscall(number, fd);
    if (path && result == 0) note_content("sync", path, "");
    return result;
}

int fsync(int fd) {
    return sync_noted(fd, SYS_fsync);
}

int fdatasync(int fd) {
    return sync_noted(fd, SYS_fdatasync);
}

int ftruncate(int fd, off_t size) {
    const char *path = path_of(fd);
    const int result = (int)syscall(SYS_ftruncate, fd, size);
    if (path && result == 0) note("truncate", path, "", (long)size, NULL, 0);
    return result;
}

int rename(const char *from, const char *to) {
    typedef int function(const char *, const char *);
    NEXT(function, "rename");
    note_content("named", from, "");
    const int result = original.call(from, to);
    if (result == 0) note("rename", from, to, 0, NULL, 0);
    return result;
}

int link(const char *from, const char *to) {
    typedef int function(const char *, const char *);
    NEXT(function, "link");
    note_content("named", from, "");
    const int result = original.call(from, to);
    if (result == 0) note("link", from, to, 0, NULL, 0);
    return result;
}

int unlink(const char *path) {
    typedef int function(const char *);
    NEXT(function, "unlink");
    const int result = original.call(path);
    if (result == 0) note("unlink", path, "", 0, NULL, 0);
    return result;
}
