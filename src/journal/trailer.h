/* trailer.h -- what stands behind the part of a run file that HDF5 knows: sums of its values and a second
 * copy of its structure. HDF5 ends where the superblock says and takes no notice of it.
 *
 * While a file is written, the end matter holds what the last flush changed before any of it goes to its
 * place (a log): whatever of that was torn is read from there. In a file that was closed it is for good (a
 * seal). docs/file-format.md has the bytes.
 */
#ifndef JOURNAL_TRAILER_H
#define JOURNAL_TRAILER_H

#include "journal/checksum_table.h"
#include "journal/crc32.h"
#include "journal/extent_map.h"
#include "statrec/base.h"

typedef enum { END_NONE, END_LOG, END_SEAL } end_kind;

typedef struct trailer {
    end_kind kind;
    bool damaged;  /* there is some, and it is not whole */
    uint64_t end;  /* of HDF5's part */
    uint64_t size; /* of the file */
    uint32_t gaps; /* sum of all bytes that no extent has, one after the other */
    checksum_table entries;
    extent_map
        map; /* those that are bad: of structure and steps, and of values that were looked at */
    extent spare;   /* one that could not be kept there */
    extent refused; /* what was found bad last */
    crc_table table;
} trailer;

/* The bytes of a log: of what changed and as much structure as is reasonable. malloc'd; NULL when memory is
 * short. end: of HDF5's part. */
unsigned char *trailer_log(const extent_map *m, const crc_table *table, uint64_t end, size_t *size);
/* Puts a seal behind HDF5's part: copies, and sums of what the file has. In little memory beside the copies.
 * False with errno. */
bool trailer_finalize(const extent_map *m, const crc_table *table, int fd, uint64_t end);

/* Of the file at the path. What its copies and sums say of the structure is found out: an extent that is to
 * be read from its copy has `changed`; one whose copy alone is bad has `bad`, one that is bad in both
 * places neither and no copy, but `bad` and `looked`. SR_OK also without any (kind END_NONE). */
sr_status trailer_load(trailer *e, const char *path, sr_failure *why);
void trailer_free(trailer *e);

/* Bytes that were read from a place of the file, as its copies have them. */
void trailer_patch(const trailer *e, uint64_t at, void *bytes, size_t size);
/* Whether the values in these bytes are those that were written; of an extent that is not among them as a
 * whole, the file is asked. *bad: the first that is not. */
bool trailer_agrees(trailer *e, int fd, uint64_t at, const void *bytes, size_t size,
                    const extent **bad);
/* Looks at all extents of values that nobody read, and at the bytes between them (false: those are not what
 * they were). */
sr_status trailer_verify(trailer *e, const char *path, bool *gaps, sr_failure *why);

#endif
