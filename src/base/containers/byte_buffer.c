/* byte_buffer.c -- appends to bytes that grow; see byte_buffer.h. */
#include "base/containers/byte_buffer.h"

#include <stdlib.h>
#include <string.h>

#include "base/containers/vector.h"

bool buffer_put(byte_buffer *b, const void *bytes, size_t length) {
    if (length > PTRDIFF_MAX - 1 - b->size) b->failed = true;
    if (!b->failed)
        b->failed = !vector_reserve(&b->byte, &b->capacity, (int64_t)(b->size + length + 1), 1);
    if (b->failed) return false;
    if (length) memcpy(b->byte + b->size, bytes, length);
    b->size += length;
    b->byte[b->size] = 0;
    return true;
}

void buffer_free(byte_buffer *b) {
    free(b->byte);
    *b = (byte_buffer){0};
}
