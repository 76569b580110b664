/* positional_io.h -- reads and writes bytes at an offset of a file. */
#ifndef JOURNAL_POSITIONAL_IO_H
#define JOURNAL_POSITIONAL_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The little-endian number in 1 to 8 bytes. */
uint64_t positional_io_number(const unsigned char *at, int bytes);
/* Reads [at, at + size); zeros after the end of the file. False with errno. */
bool positional_io_read(int fd, uint64_t at, void *bytes, size_t size);
/* Writes all bytes. False with errno. */
bool positional_io_write(int fd, uint64_t at, const void *bytes, size_t size);

#endif
