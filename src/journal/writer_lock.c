/* writer_lock.c -- see writer_lock.h. */
#define _GNU_SOURCE /* F_OFD_SETLK */
#include "journal/writer_lock.h"

#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

static const off_t far_behind = INT64_C(1) << 62;

static void set(int descriptor, short type) {
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = far_behind, .l_len = 1};
    fcntl(descriptor, F_OFD_SETLK, &lock); /* without locks there is nothing to know */
}

/* Shared, as on NFS it could otherwise keep readers that lock the whole file away. */
void writer_lock_acquire(int descriptor) {
    set(descriptor, F_RDLCK);
}

void writer_lock_release(int descriptor) {
    set(descriptor, F_UNLCK);
}

bool writer_lock_is_held(const char *path) {
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = far_behind, .l_len = 1};
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a FIFO must not stop us */
    if (fd < 0) return false;
    const bool held = fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    close(fd);
    return held;
}
