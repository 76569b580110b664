/* axis_blocks.h -- one axis seen as blocks, for op_concat and op_slice.
 *
 * A tensor has `outer` rows of dim[axis] * inner numbers. Indices first .. first+count-1 of the
 * axis are one block in each row. */
#ifndef ENGINE_AXIS_BLOCKS_H
#define ENGINE_AXIS_BLOCKS_H

#include <string.h>

#include "engine/tape.h"
#include "engine/work_chunks.h"

static inline int64_t axis_blocks_outer(const tensor *x, int axis) {
    int64_t n = 1;
    for (int i = 0; i < axis; i++) n *= x->dim[i];
    return n;
}

static inline int64_t axis_blocks_inner(const tensor *x, int axis) {
    int64_t n = 1;
    for (int i = axis + 1; i < x->rank; i++) n *= x->dim[i];
    return n;
}

/* to = from, or to += from: `outer` blocks of `length` numbers. Blocks start from_step and to_step
 * apart. */
static inline void axis_blocks_move(int threads, bool add, int64_t outer, int64_t length,
                                    const real *from, int64_t from_step, real *to,
                                    int64_t to_step) {
#pragma omp parallel for num_threads(threads) schedule(static) if (outer * length > CHUNK)
    for (int64_t o = 0; o < outer; o++) {
        const real *restrict x = from + o * from_step;
        real *restrict y = to + o * to_step;
        if (add)
            for (int64_t i = 0; i < length; i++) y[i] += x[i];
        else
            memcpy(y, x, (size_t)length * sizeof *y);
    }
}

#endif
