/* pieces.h -- how work is cut. That of the element-wise ops: into fixed pieces of PIECE elements, whatever the
 * number of threads, so that no result depends on it. */
#ifndef ENGINE_PIECES_H
#define ENGINE_PIECES_H

#include <stdint.h>

enum { PIECE = 8192 };

static inline int64_t lesser(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline int64_t piece_count(int64_t count) {
    return (count + PIECE - 1) / PIECE;
}

static inline int64_t piece_length(int64_t piece, int64_t count) {
    return lesser(PIECE, count - piece * PIECE);
}

/* The same for rows: as many as hold about PIECE elements, at least one. */
static inline int64_t piece_rows(int64_t features) {
    return features < PIECE ? PIECE / features : 1;
}

#endif
