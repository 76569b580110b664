/* descriptor.c -- see descriptor.h. */
#include "base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int descriptor_above_standard(int fd) {
    if (fd < 0 || fd > STDERR_FILENO) return fd;
    const int higher = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), reason = errno;
    close(fd);
    errno = reason;
    return higher;
}
