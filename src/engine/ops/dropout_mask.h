/* dropout_mask.h -- the random mask of dropout, shared by op_dropout and op_attention.
 *
 * One 64-bit value of the counter-based stream (rng.h) decides four elements, 16 bits each. An
 * element is dropped when its 16 bits, as an integer, are below `threshold` = p 65536, rounded. The
 * used p is thus a multiple of 1/65536. It differs from the requested p by at most 2^-17 = 7.6e-6;
 * a smaller p drops nothing. `scale` = 1/(1-p) is exact for the used p. The mask is a function of
 * (key, element), so backward draws it again instead of keeping it. Elements are counted from the
 * start of the whole batch, although a pass may have only some of its samples (tape.samples). The
 * mask therefore does not depend on how a batch is cut into shards. */
#ifndef ENGINE_OPS_DROPOUT_MASK_H
#define ENGINE_OPS_DROPOUT_MASK_H

#include <stdbool.h>
#include <string.h>

#include "base/real.h"
#include "engine/tape.h"

enum { MASK_PER_WORD = 4, MASK_WORDS = 64, MASK_BLOCK = MASK_PER_WORD * MASK_WORDS };

typedef struct dropout_mask {
    uint64_t key;
    uint32_t threshold; /* 0 .. 65535 */
    real scale;         /* 1/(1-p) */
    uint64_t first;     /* index of element 0 in the whole batch */
} dropout_mask;

static inline dropout_mask dropout_mask_of(uint64_t key, double p) {
    uint32_t threshold = (uint32_t)(p * 65536 + 0.5);
    if (threshold > 65535) threshold = 65535;
    return (dropout_mask){key, threshold, (real)(65536.0 / (65536 - threshold)), 0};
}

/* Makes the mask of the tape's next op, whose pass has `count` elements. */
static inline dropout_mask dropout_mask_create(tape *t, int64_t count, double p) {
    dropout_mask m = dropout_mask_of(tape_random(t), p);
    m.first = (uint64_t)tape_first(t, count);
    return m;
}

/* Draws 16 bits for each of MASK_BLOCK elements from element 4 word of the stream on. With `more`,
 * also for the next MASK_PER_WORD elements. */
static inline void dropout_mask_draw(uint64_t key, uint64_t word, bool more,
                                     uint16_t *restrict bits) {
    uint64_t drawn[MASK_WORDS];
    for (int i = 0; i < MASK_WORDS; i++) drawn[i] = rng_at(key, word + (uint64_t)i);
    memcpy(bits, drawn, sizeof drawn);
    if (!more) return;
    drawn[0] = rng_at(key, word + MASK_WORDS);
    memcpy(bits + MASK_BLOCK, drawn, sizeof drawn[0]);
}

/* y = x m scale, or y += x m scale, for n elements from element 4 word on; y may be x. */
static inline void dropout_mask_apply(const dropout_mask *m, uint64_t word, int64_t n, bool add,
                                      const real *x, real *y) {
    const uint32_t threshold = m->threshold;
    const real scale = m->scale;
    /* the first element is inside a word that two shards share */
    const int inside = (int)(m->first % MASK_PER_WORD);
    word += m->first / MASK_PER_WORD;
    for (int64_t at = 0; at < n; at += MASK_BLOCK, word += MASK_WORDS) {
        uint16_t drawn[MASK_BLOCK + MASK_PER_WORD];
        const uint16_t *bits = drawn + inside;
        real factor[MASK_BLOCK];
        int64_t length = n - at < MASK_BLOCK ? n - at : MASK_BLOCK;
        dropout_mask_draw(m->key, word, inside > 0, drawn);
        for (int i = 0; i < MASK_BLOCK; i++) factor[i] = bits[i] < threshold ? 0 : scale;
        if (add) {
#pragma omp simd
            for (int64_t i = 0; i < length; i++) y[at + i] += x[at + i] * factor[i];
        } else {
#pragma omp simd
            for (int64_t i = 0; i < length; i++) y[at + i] = x[at + i] * factor[i];
        }
    }
}

/* Dropout of chunk number `chunk` of P [chunks, size] into R. Without m returns the chunk of P. */
static inline const real *dropout_mask_chunk(const dropout_mask *m, int64_t chunk, int64_t size,
                                             const real *P, real *R) {
    P += chunk * size;
    if (!m) return P;
    dropout_mask_apply(m, (uint64_t)(chunk * size / MASK_PER_WORD), size, false, P, R);
    return R;
}

#endif
