/* conv_memory.c -- memory that the code of convolutions shares. */
#include <stdlib.h>

#include "statnet/conv.h"

void *conv_memory_of(conv_memory *m, size_t bytes, sr_failure *why) {
    if (bytes <= m->bytes) return m->start;
    free(m->start);
    m->bytes = 0;
    bytes = (bytes + 63) / 64 * 64;
    m->start = aligned_alloc(64, bytes);
    if (m->start)
        m->bytes = bytes;
    else
        sr_fail(why, SR_MEMORY, "out of memory for a convolution");
    return m->start;
}
