/* crc32.c -- see crc32.h. Eight bytes at a time by tables ("slicing by 8": Kounavis and Berry, A
 * Systematic Approach to Building High Performance, Software-based, CRC Generators, 2005). */
#include "crc32.h"

void crc_table_init(crc_table *t) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++) c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
        t->of[0][i] = c;
    }
    for (int k = 1; k < 8; k++)
        for (int i = 0; i < 256; i++)
            t->of[k][i] = t->of[k - 1][i] >> 8 ^ t->of[0][t->of[k - 1][i] & 255];
}

uint32_t crc_add(const crc_table *t, uint32_t sum, const void *bytes, size_t size) {
    const unsigned char *at = bytes;
    uint32_t c = ~sum;
    for (; size >= 8; size -= 8, at += 8) {
        c ^= (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
        c = t->of[7][c & 255] ^ t->of[6][c >> 8 & 255] ^ t->of[5][c >> 16 & 255] ^
            t->of[4][c >> 24] ^ t->of[3][at[4]] ^ t->of[2][at[5]] ^ t->of[1][at[6]] ^
            t->of[0][at[7]];
    }
    for (; size; size--) c = c >> 8 ^ t->of[0][(c ^ *at++) & 255];
    return ~c;
}
