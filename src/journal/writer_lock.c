/* writer_lock.c -- the writer lock: an open file description lock, which the system releases. */
#define _GNU_SOURCE /* F_OFD_SETLK */
#include "journal/writer_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

#include "journal/lock_file.h"

static const off_t far_offset = INT64_C(1) << 62;

static int set(int descriptor, short type) {
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = far_offset, .l_len = 1};
    return fcntl(descriptor, F_OFD_SETLK, &lock) == 0 ? 0 : errno;
}

/* Shared: on NFS an exclusive lock would stop readers that lock the whole file. */
int writer_lock_acquire(int descriptor) {
    return set(descriptor, F_RDLCK);
}

void writer_lock_release(int descriptor) {
    set(descriptor, F_UNLCK);
}

bool writer_lock_is_held_by_system(const char *path) {
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = far_offset, .l_len = 1};
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* not blocked by a FIFO */
    if (fd < 0) return false;
    const bool held = fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    close(fd);
    return held;
}

bool writer_lock_is_held(const char *path) {
    return writer_lock_is_held_by_system(path) || lock_file_is_held(path);
}
