/* h5_checksum.c -- the checksum of HDF5's metadata: "hashlittle" of Jenkins' lookup3, initial value
 * 0 (http://burtleburtle.net/bob/c/lookup3.c). */
#include "hdf5/v1_10/h5_checks.h"

#include <string.h>

static inline uint32_t turn(uint32_t x, int bits) {
    return x << bits | x >> (32 - bits);
}

static inline uint32_t word(const unsigned char *byte) {
    return byte[0] | (uint32_t)byte[1] << 8 | (uint32_t)byte[2] << 16 | (uint32_t)byte[3] << 24;
}

static inline void mix(uint32_t *a, uint32_t b, uint32_t *c, int bits) {
    *a = (*a - *c) ^ turn(*c, bits);
    *c += b;
}

static inline void mix_last(uint32_t *to, uint32_t from, int bits) {
    *to = (*to ^ from) - turn(from, bits);
}

uint32_t h5_checksum(const unsigned char *byte, size_t size) {
    uint32_t a = 0xdeadbeef + (uint32_t)size, b = a, c = a;
    for (; size > 12; size -= 12, byte += 12) {
        a += word(byte), b += word(byte + 4), c += word(byte + 8);
        mix(&a, b, &c, 4), mix(&b, c, &a, 6), mix(&c, a, &b, 8);
        mix(&a, b, &c, 16), mix(&b, c, &a, 19), mix(&c, a, &b, 4);
    }
    unsigned char rest[12] = {0};
    memcpy(rest, byte, size);
    a += word(rest), b += word(rest + 4), c += word(rest + 8);
    mix_last(&c, b, 14), mix_last(&a, c, 11), mix_last(&b, a, 25), mix_last(&c, b, 16);
    mix_last(&a, c, 4), mix_last(&b, a, 14), mix_last(&c, b, 24);
    return c;
}
