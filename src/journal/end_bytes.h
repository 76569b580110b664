/* end_bytes.h -- bytes and numbers of a run file at their places. */
#ifndef JOURNAL_END_BYTES_H
#define JOURNAL_END_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Little-endian, of 1 to 8 bytes, as everything in such a file. */
uint64_t end_bytes_number(const unsigned char *at, int bytes);
/* All of [at, at + size), zeros behind the end of the file; false with errno. */
bool end_bytes_read(int fd, uint64_t at, void *bytes, size_t size);
/* All of them; false with errno. */
bool end_bytes_write(int fd, uint64_t at, const void *bytes, size_t size);

#endif
