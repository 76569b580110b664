/* journal.h -- the order in which what HDF5 writes of a run file goes there, so that neither a torn write
 * nor a power failure leaves its structure in parts (journal.c tells how), and the file's end matter.
 * */
#ifndef JOURNAL_JOURNAL_H
#define JOURNAL_JOURNAL_H

#include "journal/trailer.h"

/* A write that waits. */
typedef struct waiting {
    uint64_t at;
    size_t size, from; /* from: of its bytes in `bytes` */
} waiting;

typedef struct journal {
    int fd;
    bool hold, begun, sync, seal;
    uint64_t end;   /* of HDF5's part */
    uint64_t at;    /* of the log in the file; 0: there is none */
    extent_map map; /* all that was written */
    crc_table table;
    waiting *queue; /* [queued] */
    unsigned char *bytes;
    size_t queued, queue_room, used, room;
} journal;

/* All that is written before journal_begin goes to its place at once, and has a copy. */
void journal_init(journal *l, int fd);
void journal_free(journal *l);
/* From now on structure, and what is written while `hold`, waits for commits. sync: each is on the disk when
 * it returns. These are false with errno. */
bool journal_begin(journal *l, bool sync);
bool journal_write(journal *l, bool structure, uint64_t at, const void *bytes, size_t size);
/* end: of the space that HDF5 has taken. */
bool journal_commit(journal *l, uint64_t end);
/* The last commit, and the end matter for good. */
bool journal_finalize(journal *l, uint64_t end);
/* Bytes that were read from the file, as they are to be. */
void journal_patch(const journal *l, uint64_t at, void *bytes, size_t size);

#endif
