/* checksum_table.h -- the table of an end matter (trailer.c) as its reader has it: in the file, which may have any
 * number of extents. Kept are, of a page of entries, the place of its first extent and a sum, by which it is
 * known again when it is read again; of an entry a bit; and some pages. */
#ifndef JOURNAL_CHECKSUM_TABLE_H
#define JOURNAL_CHECKSUM_TABLE_H

#include "journal/crc32.h"
#include "journal/extent_map.h"

enum { END_ENTRY = 16 }; /* bytes */

typedef struct checksum_table {
    const crc_table *crc;
    uint64_t at; /* of the first entry in the file */
    size_t count, slots;
    uint64_t *first;       /* [pages] */
    uint32_t *sum;         /* [pages] */
    unsigned char *looked; /* [count] bits: the extent's bytes were held against its sum */
    unsigned char *page;   /* [slots] */
    size_t *number;        /* [slots] of the page that is there, from 1 */
} checksum_table;

/* count entries at `at`. False where one is impossible (extents are in the order of their places, none of which
 * overlap, and end before `end`), or is not what was written by the sum of all; *memory: there was enough.
 * *copies: bytes of the second copies. To be freed in any case. */
bool checksum_table_open(checksum_table *t, const crc_table *crc, int fd, uint64_t at, size_t count,
                         uint64_t end, uint32_t sum, uint64_t *copies, bool *memory);
void checksum_table_free(checksum_table *t);
/* Entry i; false with errno where it cannot be read, or is another than when the table was opened. */
bool checksum_table_get(checksum_table *t, int fd, size_t i, extent *x);
/* *i: the first extent that ends behind `at`; count when none does. False as checksum_table_get. */
bool checksum_table_find(checksum_table *t, int fd, uint64_t at, size_t *i);
bool checksum_table_is_verified(const checksum_table *t, size_t i);
void checksum_table_set_verified(checksum_table *t, size_t i);

#endif
