/* trailer.h -- the trailer: bytes after the HDF5 data, which HDF5 ignores.
 *
 * While a run is recorded the trailer is a journal. Each flush first writes its metadata changes
 * there, so that readers can repair a torn write. When the run closes, the final trailer replaces
 * it: checksums of all values and a backup copy of the metadata. Byte layout:
 * docs/file-format.md. */
#ifndef JOURNAL_TRAILER_H
#define JOURNAL_TRAILER_H

#include "journal/checksum_table.h"
#include "statrec/base.h"

/* The kinds as the footer stores them. */
typedef enum { TRAILER_NONE, TRAILER_JOURNAL, TRAILER_FINAL } trailer_kind;

typedef struct trailer {
    trailer_kind kind;
    bool damaged;      /* there is one, and it is not valid: kind is TRAILER_NONE */
    uint64_t end;      /* end of the HDF5 data */
    uint64_t size;     /* size of the file */
    uint32_t gaps;     /* checksum of the bytes between the extents, in their order */
    uint32_t checksum; /* checksum of the table of extents */
    bool dozes;        /* the table is not in memory */
    checksum_table entries;
    extent_map map; /* bad extents: of metadata and steps, and of values that were verified */
    extent spare;   /* a bad extent that `map` had no memory for */
    extent refused; /* the bad extent that was found last */
} trailer;

/* The bytes of a journal: the changed metadata, and all of it while that is small. malloc'd; NULL
 * when out of memory. end: of the HDF5 data. */
unsigned char *trailer_build_journal(const extent_map *m, uint64_t end, size_t *size);
/* Writes the final trailer after the HDF5 data. Memory use is small. False with errno. */
bool trailer_finalize(const extent_map *m, int fd, uint64_t end);

/* Loads the trailer of a file, and compares backup copies with the metadata. A bad extent of e->map
 * is one of: `changed`, read it from the copy; not `verified`, only the copy is bad; else both are
 * bad. SR_OK also without a trailer (TRAILER_NONE). */
sr_status trailer_load(trailer *e, const char *path, sr_failure *why);
void trailer_free(trailer *e);
/* Frees the table of a final trailer. Load the trailer again before the file is read. */
void trailer_doze(trailer *e);
/* Whether two final trailers cover the same bytes; one of them may doze. */
bool trailer_is_same(const trailer *a, const trailer *b);

/* Overwrites bytes read at an offset with the backup copies. */
void trailer_patch(const trailer *e, uint64_t at, void *bytes, size_t size);
/* Verifies the values in bytes that were read at an offset. An extent that is only partly among
 * them is read from the file. *bad: the first bad extent. */
bool trailer_agrees(trailer *e, int fd, uint64_t at, const void *bytes, size_t size,
                    const extent **bad);
/* Verifies all values that were not read yet, and the bytes between extents. *gaps: false when
   those were read and differ. */
sr_status trailer_verify(trailer *e, const char *path, bool *gaps, sr_failure *why);

#endif
