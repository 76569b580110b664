/* checksum_table.h -- the table of a final trailer in memory: one entry of 16 bytes for each extent
 * of the file.
 *
 * A file of 1,000,000 steps of 61 sites has 90,000 extents, which take 1.4 MB. */
#ifndef JOURNAL_CHECKSUM_TABLE_H
#define JOURNAL_CHECKSUM_TABLE_H

#include "journal/extent_map.h"

enum { TRAILER_ENTRY = 16 }; /* bytes */

typedef struct checksum_table {
    size_t count;
    unsigned char *entry; /* [count, TRAILER_ENTRY] as in the file */
    /* [count] bits: the checksum of the extent was compared with the file */
    unsigned char *verified;
} checksum_table;

/* Reads count entries at offset `at`. False if the table has another checksum, or if an entry is
 * impossible. Extents are in the order of their offsets, do not overlap, and end before `end`.
 * *memory: false if out of memory. *copies: bytes of the backup copies. Free the table in any
 * case. */
bool checksum_table_open(checksum_table *t, int fd, uint64_t at, size_t count, uint64_t end,
                         uint32_t checksum, uint64_t *copies, bool *memory);
void checksum_table_free(checksum_table *t);
extent checksum_table_get(const checksum_table *t, size_t i);
/* The first extent that ends after offset `at`; count when none does. */
size_t checksum_table_find(const checksum_table *t, uint64_t at);
bool checksum_table_is_verified(const checksum_table *t, size_t i);
void checksum_table_set_verified(checksum_table *t, size_t i);

#endif
