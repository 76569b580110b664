/* file_log.h -- the order in which what HDF5 writes of a run file goes there, so that neither a torn write
 * nor a power failure leaves its structure in parts (file_log.c tells how), and the file's end matter.
 * */
#ifndef JOURNAL_FILE_LOG_H
#define JOURNAL_FILE_LOG_H

#include "journal/end_matter.h"

/* A write that waits. */
typedef struct waiting {
    uint64_t at;
    size_t size, from; /* from: of its bytes in `bytes` */
} waiting;

typedef struct file_log {
    int fd;
    bool hold, begun, sync, seal;
    uint64_t end;   /* of HDF5's part */
    uint64_t at;    /* of the log in the file; 0: there is none */
    extent_map map; /* all that was written */
    crc_table table;
    waiting *queue; /* [queued] */
    unsigned char *bytes;
    size_t queued, queue_room, used, room;
} file_log;

/* All that is written before file_log_begin goes to its place at once, and has a copy. */
void file_log_init(file_log *l, int fd);
void file_log_free(file_log *l);
/* From now on structure, and what is written while `hold`, waits for commits. sync: each is on the disk when
 * it returns. These are false with errno. */
bool file_log_begin(file_log *l, bool sync);
bool file_log_write(file_log *l, bool structure, uint64_t at, const void *bytes, size_t size);
/* end: of the space that HDF5 has taken. */
bool file_log_commit(file_log *l, uint64_t end);
/* The last commit, and the end matter for good. */
bool file_log_seal(file_log *l, uint64_t end);
/* Bytes that were read from the file, as they are to be. */
void file_log_patch(const file_log *l, uint64_t at, void *bytes, size_t size);

#endif
