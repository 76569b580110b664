/* positional_io.c -- pread and pwrite of all bytes, across interruptions. */
#include "journal/positional_io.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

uint64_t positional_io_number(const unsigned char *at, int bytes) {
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; i--) value = value << 8 | at[i];
    return value;
}

bool positional_io_read(int fd, uint64_t at, void *bytes, size_t size) {
    unsigned char *to = bytes;
    while (size) {
        const ssize_t got = pread(fd, to, size, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return false;
        if (got == 0) break;
        to += got, at += (uint64_t)got, size -= (size_t)got;
    }
    memset(to, 0, size);
    return true;
}

bool positional_io_write(int fd, uint64_t at, const void *bytes, size_t size) {
    const unsigned char *from = bytes;
    while (size) {
        const ssize_t put = pwrite(fd, from, size, (off_t)at);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return false;
        from += put, at += (uint64_t)put, size -= (size_t)put;
    }
    return true;
}
