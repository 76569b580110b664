/* journal.h -- orders the writes to a run file, so that neither a torn write nor a power failure
 * leaves its metadata inconsistent; writes the trailer. */
#ifndef JOURNAL_JOURNAL_H
#define JOURNAL_JOURNAL_H

#include "journal/trailer.h"

/* A write that waits for the next commit. */
typedef struct queued_write {
    uint64_t at;
    size_t size, from; /* from: index of its bytes in `bytes` */
} queued_write;

typedef struct journal {
    int fd;
    bool hold, begun, sync, finalize;
    uint64_t end;        /* end of the HDF5 data */
    uint64_t at;         /* offset of the journal in the file; 0: none */
    extent_map map;      /* everything that was written */
    queued_write *queue; /* [queued] */
    unsigned char *bytes;
    size_t queued, used;
    int64_t queue_capacity, capacity;
} journal;

/* Writes before journal_begin go to the file at once, and get a backup copy. */
void journal_init(journal *l, int fd);
void journal_free(journal *l);
/* From now on metadata, and values written while `hold` is set, wait for commits. sync: a commit
 * returns when it is durable. This function and the next three return false with errno. */
bool journal_begin(journal *l, bool sync);
bool journal_write(journal *l, bool metadata, uint64_t at, const void *bytes, size_t size);
/* end: of the space that HDF5 has allocated. */
bool journal_commit(journal *l, uint64_t end);
/* The last commit, and the final trailer. */
bool journal_finalize(journal *l, uint64_t end);
/* Overwrites bytes read from the file with queued writes. */
void journal_patch(const journal *l, uint64_t at, void *bytes, size_t size);

#endif
