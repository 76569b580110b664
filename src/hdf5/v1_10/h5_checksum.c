/* h5_checksum.c -- the checksum of HDF5's metadata: "hashlittle" of Jenkins' lookup3, initial value
 * 0 (http://burtleburtle.net/bob/c/lookup3.c). */
#include "hdf5/v1_10/h5_checks.h"

static uint32_t turn(uint32_t x, int bits) {
    return x << bits | x >> (32 - bits);
}

static void mix(uint32_t s[3]) {
    static const int bits[6] = {4, 6, 8, 16, 19, 4};
    for (int i = 0; i < 6; i++) {
        uint32_t *a = &s[i % 3], *b = &s[(i + 1) % 3];
        const uint32_t c = s[(i + 2) % 3];
        *a = (*a - c) ^ turn(c, bits[i]);
        s[(i + 2) % 3] = c + *b;
    }
}

static void mix_last(uint32_t s[3]) {
    static const int bits[7] = {14, 11, 25, 16, 4, 14, 24};
    for (int i = 0; i < 7; i++) {
        uint32_t *to = &s[(i + 2) % 3];
        const uint32_t from = s[(i + 1) % 3];
        *to = (*to ^ from) - turn(from, bits[i]);
    }
}

uint32_t h5_checksum(const unsigned char *byte, size_t size) {
    uint32_t s[3];
    s[0] = s[1] = s[2] = 0xdeadbeef + (uint32_t)size;
    for (; size > 12; size -= 12, byte += 12) {
        for (int i = 0; i < 12; i++) s[i / 4] += (uint32_t)byte[i] << 8 * (i % 4);
        mix(s);
    }
    for (size_t i = 0; i < size; i++) s[i / 4] += (uint32_t)byte[i] << 8 * (i % 4);
    mix_last(s);
    return s[2];
}
