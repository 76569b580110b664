/* digest.c -- a fingerprint of weights and running state: FNV-1a over 64-bit words, parameters in
 * order of creation, then every site's persistent vectors. Two runs with equal digests have, but
 * for a chance of 2^-64, equal bytes. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "trainer.h"

static uint64_t add_bytes(uint64_t h, const void *bytes, size_t count) {
    const unsigned char *at = bytes;
    for (; count > 0; count -= count < 8 ? count : 8, at += 8) {
        uint64_t word = 0;
        memcpy(&word, at, count < 8 ? count : 8);
        h = (h ^ word) * 0x100000001b3ull;
        h ^= h >> 29; /* FNV alone never carries high bits down */
    }
    return h;
}

void trainer_digest(const model *m, char digest[32]) {
    uint64_t h = 0xcbf29ce484222325ull;
    for (int i = 0; i < m->params.count; i++) {
        const tensor *x = &m->params.item[i]->t;
        h = add_bytes(h, x->value, (size_t)x->count * sizeof *x->value);
    }
    for (int i = 0; i < m->sites; i++) {
        const norm_site *s = m->site[i];
        for (int k = 0; k < NORM_STATE_MAX; k++)
            if (s->state[k])
                h = add_bytes(h, s->state[k], (size_t)s->state_count[k] * sizeof(double));
    }
    snprintf(digest, 32, "%016" PRIx64, h);
}
