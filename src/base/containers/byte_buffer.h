/* byte_buffer.h -- bytes that grow, such as a line of text. */
#ifndef BASE_BYTE_BUFFER_H
#define BASE_BYTE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The caller owns the struct, zero at first. To start again, set size to 0. */
typedef struct byte_buffer {
    char *byte; /* [size], a zero byte after it; NULL before the first buffer_put */
    size_t size;
    int64_t capacity;
    bool failed; /* out of memory: later bytes are not appended either */
} byte_buffer;

/* Appends; false once it has failed. */
bool buffer_put(byte_buffer *b, const void *bytes, size_t length);
void buffer_free(byte_buffer *b);

#endif
