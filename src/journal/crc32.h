/* crc32.h -- CRC-32 as zlib and gzip have it (polynomial 0x04c11db7 reflected, ISO 3309): Python's
 * zlib.crc32 gives the same number. */
#ifndef JOURNAL_CRC32_H
#define JOURNAL_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* Tables for eight bytes at a time, and factors for more; whoever computes sums owns one. */
typedef struct crc_table {
    uint32_t of[8][256];
    uint64_t farthest[2], far[2], near[2];
} crc_table;

void crc_table_init(crc_table *t);
/* The sum of what `sum` was of (0: nothing) followed by these bytes. */
uint32_t crc_add(const crc_table *t, uint32_t sum, const void *bytes, size_t size);
/* The same by tables alone, as on a CPU without products of polynomials: for tests. */
uint32_t crc_add_plainly(const crc_table *t, uint32_t sum, const void *bytes, size_t size);

#endif
