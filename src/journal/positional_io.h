/* positional_io.h -- bytes and numbers of a run file at their places. */
#ifndef JOURNAL_POSITIONAL_IO_H
#define JOURNAL_POSITIONAL_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Little-endian, of 1 to 8 bytes, as everything in such a file. */
uint64_t positional_io_number(const unsigned char *at, int bytes);
/* All of [at, at + size), zeros behind the end of the file; false with errno. */
bool positional_io_read(int fd, uint64_t at, void *bytes, size_t size);
/* All of them; false with errno. */
bool positional_io_write(int fd, uint64_t at, const void *bytes, size_t size);

#endif
