/* work_chunks.h -- fixed chunks of work. Element-wise ops process chunks of CHUNK elements for any
 * number of threads, so that results do not depend on it. */
#ifndef ENGINE_WORK_CHUNKS_H
#define ENGINE_WORK_CHUNKS_H

#include <stdint.h>

enum { CHUNK = 8192 };

static inline int64_t lesser(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline int64_t greater(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static inline int64_t ceiling(int64_t n, int64_t by) {
    return (n + by - 1) / by;
}

static inline int64_t chunk_count(int64_t count) {
    return ceiling(count, CHUNK);
}

static inline int64_t chunk_length(int64_t chunk, int64_t count) {
    return lesser(CHUNK, count - chunk * CHUNK);
}

/* Rows of a chunk: as many as contain about CHUNK elements, at least one. */
static inline int64_t chunk_rows(int64_t features) {
    return features < CHUNK ? CHUNK / features : 1;
}

#endif
