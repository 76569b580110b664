/* h5.h -- the few HDF5 operations that run files and checkpoints need; src/hdf5 alone uses hdf5.h.
 *
 * Objects are named by their path from the root. A failing function returns a status and one line
 * in *why: the object and HDF5's innermost description. If the system gave a reason, the status is
 * SR_IO and the line has it. Otherwise it is SR_FORMAT for reads and SR_LIBRARY for writes. HDF5
 * prints nothing.
 */
#ifndef HDF5_H5_H
#define HDF5_H5_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "statrec/base.h"

typedef int64_t h5_id; /* hid_t; 0 = none */

typedef enum {
    H5_OTHER,
    H5_INT32,
    H5_INT64,
    H5_UINT64,
    H5_FLOAT32,
    H5_FLOAT64,
    H5_TEXT,       /* UTF-8; for reads any text of fixed length */
    H5_TEXT_ASCII, /* for datasets: some readers (Octave) have no UTF-8 types */
    H5_ASCII,      /* null-terminated, for attributes of dimension scales */
    H5_UINT8,
    H5_SCALE_USES,      /* h5_scale_use */
    H5_REFERENCE_LISTS, /* h5_reference_list */
} h5_type;

enum { H5_RANK = 4, H5_PATH_SIZE = 256 };

typedef struct h5_path {
    char text[H5_PATH_SIZE];
} h5_path;
/* A path by a printf format, cut to its size. */
h5_path h5_path_of(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Type and shape of a dataset or attribute. */
typedef struct h5_shape {
    h5_type type;
    size_t text;           /* bytes of a text */
    int rank;              /* 0 scalar, 1 .. H5_RANK */
    int64_t dims[H5_RANK]; /* extent now */
    int64_t chunk[2];      /* h5_add_dataset: rows, columns of a chunk; 0: contiguous, fixed size */
    bool summed;           /* h5_add_dataset: of fixed size, with HDF5's checksum of every byte */
    bool stored;           /* h5_open_dataset: of fixed size, every value is in the file */
} h5_shape;

/* A block of a dataset: `count` rows from `first`, `columns` columns from `column` (rank 1: 0 and
 * 1). In memory a row has `stride` elements; writes use the same columns of it, reads the first. */
typedef struct h5_rows {
    int64_t first, count, column, columns, stride;
} h5_rows;

/* Disables HDF5's exit handler. A program calls it before any other function of HDF5. */
void h5_disown_exit(void);

/* Creates a file in the 1.10 format; SR_EXISTS if the path exists. logged: uses a journal
   (journal.h). */
sr_status h5_create(const char *path, bool logged, h5_id *file, sr_failure *why);
/* Starts the journal of a logged file, after all objects are declared. Later changes of metadata
 * reach the file in commits. A commit is complete or absent after the process was killed and, with
 * sync, after a power failure. */
sr_status h5_begin_journal(h5_id file, bool sync, sr_failure *why);
/* This function and the next two are for logged files.
 * Values that are written while `hold` is set are committed with the metadata, and get a backup
 * copy. Before h5_begin_journal all values are held. */
void h5_hold(h5_id file, bool hold);
sr_status h5_commit(h5_id file, sr_failure *why);
/* Closing will end the run and write the final trailer. */
void h5_finalize(h5_id file, bool sync);
/* The state of a file that is opened: closed by its writer; not closed (SWMR); not closed and
 * truncated. A truncated file is not read again after a wrong checksum. */
typedef enum { H5_CLOSED, H5_GROWING, H5_CUT } h5_state;
/* end: its trailer, which must stay until the file is closed; NULL: none. */
struct trailer;
sr_status h5_open(const char *path, h5_state state, struct trailer *end, h5_id *file,
                  sr_failure *why);
int h5_descriptor(h5_id file); /* the system's, or -1 */
/* Drops all later writes. After a failed write HDF5's exit handler would otherwise try again and
 * crash. */
void h5_divert(h5_id file);
sr_status h5_start_swmr(h5_id file, sr_failure *why);
sr_status h5_flush(h5_id file, sr_failure *why);
sr_status h5_close(h5_id file, sr_failure *why); /* and everything opened through it */

/* Declares objects. Datasets of fixed size get their space at once, growing ones when written. The
 * fill value is NaN for reals, -1 for integers. */
sr_status h5_add_group(h5_id file, const char *path, sr_failure *why);
sr_status h5_add_dataset(h5_id file, const char *path, const h5_shape *shape, h5_id *set,
                         sr_failure *why);
/* count < 0: one value; text: bytes of a text, else 0. */
sr_status h5_put_attribute(h5_id file, const char *object, const char *name, h5_type type,
                           size_t text, int64_t count, const void *value, sr_failure *why);

/* Values of the attributes of dimension scales (dimension_scales.c). */
typedef struct h5_scale_use {
    uint64_t dataset; /* from h5_refer */
    int32_t dimension;
} h5_scale_use;
typedef struct h5_reference_list { /* laid out as hvl_t */
    size_t count;
    uint64_t *reference;
} h5_reference_list;
/* A second name for an object. */
sr_status h5_link(h5_id file, const char *object, const char *name, sr_failure *why);
sr_status h5_refer(h5_id file, const char *object, uint64_t *reference, sr_failure *why);

/* Writes to declared objects. */
/* Makes later writes to a dataset reach the file at once. Call it after H5Fstart_swmr_write, which
 * resets this. */
sr_status h5_make_direct(h5_id *set, sr_failure *why);
sr_status h5_extend(h5_id set, int64_t rows, sr_failure *why);
sr_status h5_write_rows(h5_id set, const h5_rows *rows, h5_type type, const void *buffer,
                        sr_failure *why);
sr_status h5_write_all(h5_id set, h5_type type, size_t text, const void *buffer, sr_failure *why);

/* Reads objects. h5_guard.c rejects everything that no run file has: links other than hard ones,
 * values in other files, other filters and types, sizes without stored bytes. */
int64_t h5_file_bytes(h5_id file); /* its current size */
/* Fails unless every value of a dataset is stored, so that a caller may allocate memory for all.
 * shape: from h5_open_dataset, which has checked fixed sizes. */
sr_status h5_check_stored(h5_id file, h5_id set, const char *path, const h5_shape *shape,
                          sr_failure *why);
/* Offset of the end of the HDF5 data in a closed file. */
int64_t h5_end_of(h5_id file);
/* The path of the object whose header starts in these bytes; false without one. */
bool h5_name_of(h5_id file, int64_t at, int64_t length, char name[H5_PATH_SIZE]);
/* Also true if damage prevents the search; opening the object then reports the damage. */
bool h5_has(h5_id file, const char *path);
/* The same for an attribute: an unreadable attribute must not count as missing. */
bool h5_has_attribute(h5_id file, const char *object, const char *name);
/* cache: bytes of chunks that are kept between two reads; below 0: HDF5's default. 0: chunks go to
 * the reader's memory without a copy. That is faster for whole chunks of contiguous rows, and slow
 * otherwise. *shape: its type and extent; an extent beyond int64 gives rank -1 and H5_OTHER.
 * *there, unless NULL: as h5_has; false is a failure, too. */
sr_status h5_open_dataset(h5_id file, const char *path, int64_t cache, h5_id *set, h5_shape *shape,
                          bool *there, sr_failure *why);
void h5_close_dataset(h5_id set);
/* Rows and columns of a chunk; 0 without chunks. */
void h5_get_chunk(h5_id set, int64_t chunk[2]);
/* Bytes in the file; -1 and *why if the index of its chunks is unreadable. */
int64_t h5_stored_bytes(h5_id set, sr_failure *why);
/* How many of the first `rows` come before the first chunk that is not within `end` bytes. HDF5
 * reads the missing bytes of a truncated file as zeros. */
int64_t h5_whole_rows(h5_id set, int64_t rows, int64_t end);
sr_status h5_read_rows(h5_id set, const h5_rows *rows, h5_type type, void *buffer, sr_failure *why);
sr_status h5_read_all(h5_id set, h5_type type, size_t text, void *buffer, sr_failure *why);
/* Reads a text (malloc'd, NUL-terminated, to *text) or, if text is NULL, an integer of this
   type. */
sr_status h5_get_attribute(h5_id file, const char *object, const char *name, h5_type type,
                           void **text, void *number, sr_failure *why);
sr_status h5_count_members(h5_id file, const char *group, int64_t *count, sr_failure *why);
/* Name of the i-th member of a group in alphabetic order, cut to size. */
sr_status h5_member(h5_id file, const char *group, int64_t i, char *name, size_t size,
                    sr_failure *why);

#endif
