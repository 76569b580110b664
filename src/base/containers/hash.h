/* hash.h -- the hash of bytes that tables and shares are made with: FNV-1a of 64 bits
 * (http://www.isthe.com/chongo/tech/comp/fnv/). */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t hash_bytes(const void *bytes, size_t count) {
    const unsigned char *at = (const unsigned char *)bytes;
    uint64_t h = 0xcbf29ce484222325ull;
    for (size_t i = 0; i < count; i++) h = (h ^ at[i]) * 0x100000001b3ull;
    return h;
}

/* The hash of a sequence whose hash so far is h (0 at first), with one more value. */
static inline uint64_t hash_join(uint64_t h, uint64_t value) {
    h = (h ^ value) * 0x9e3779b97f4a7c15ull;
    return h ^ h >> 32;
}

#endif
