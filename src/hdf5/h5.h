/* h5.h -- the few HDF5 operations that a run file needs; h5*.c are the only users of hdf5.h.
 *
 * Objects are named by their path from the root. Every function returns a status and leaves one
 * line in *why: the object, HDF5's innermost description, and the system's reason when it gives one
 * (SR_IO then; SR_FORMAT while reading, SR_LIBRARY while writing otherwise). HDF5 prints nothing.
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
    H5_TEXT,       /* UTF-8; also what text of any kind is called that was read */
    H5_TEXT_ASCII, /* for datasets: readers without UTF-8 types (Octave) give up at the others */
    H5_ASCII,      /* attributes of scales: null-terminated */
    H5_UINT8,
    H5_SCALE_USES,      /* h5_scale_use */
    H5_REFERENCE_LISTS, /* h5_reference_list */
} h5_type;

enum { H5_RANK = 4, H5_PATH_SIZE = 256 };

/* Type and shape of a dataset or attribute. */
typedef struct h5_shape {
    h5_type type;
    size_t text;           /* bytes of a text */
    int rank;              /* 0 scalar, 1 .. H5_RANK */
    int64_t dims[H5_RANK]; /* extent now */
    int64_t chunk[2]; /* h5_add_dataset: rows and columns of a chunk; 0: contiguous, fixed size */
    bool summed;      /* h5_add_dataset: of fixed size, every byte under a checksum of HDF5's */
} h5_shape;

/* A block of rows: file rows first .. first+count-1, columns column .. column+columns-1 (rank 2; 0
 * and 1 for rank 1), and memory rows of `stride` elements of which the same columns are used. */
typedef struct h5_rows {
    int64_t first, count, column, columns, stride;
} h5_rows;

/* HDF5's exit handler does nothing: as the first call of HDF5 in a process, by the program
   itself. */
void h5_disown_exit(void);

/* A new file in the 1.10 format; SR_EXISTS when path is there. logged: by way of a log
   (journal.h). */
sr_status h5_create(const char *path, bool logged, h5_id *file, sr_failure *why);
/* Of a logged file, once all is declared: from now on the structure goes to the file when it is
 * committed, all or nothing of it, also where the process is killed and, with sync, where the power
 * fails. */
sr_status h5_begin_journal(h5_id file, bool sync, sr_failure *why);
/* Values that are written while held go there with the structure, and have a second copy in the
 * end. Until the log begins all are held. */
void h5_hold(h5_id file, bool hold);
sr_status h5_commit(h5_id file, sr_failure *why);
/* Closing will be the end of the run: the file gets its end matter for good. */
void h5_finalize(h5_id file, bool sync);
/* How a file is opened for reading: one that was closed; one whose writer is alive or died (SWMR);
 * the same that lost its end, where it does not help to read a damaged spot again. */
typedef enum { H5_CLOSED, H5_GROWING, H5_CUT } h5_state;
/* end: its end matter, which must stay until the file is closed; NULL: nobody looked for one. */
struct trailer;
sr_status h5_open(const char *path, h5_state state, struct trailer *end, h5_id *file,
                  sr_failure *why);
int h5_descriptor(h5_id file); /* the system's, or -1 */
/* What is written from now on goes nowhere. After a failed write: HDF5's exit handler, which is the
 * program's and stays, would try again and crash. */
void h5_divert(h5_id file);
sr_status h5_start_swmr(h5_id file, sr_failure *why);
sr_status h5_flush(h5_id file, sr_failure *why);
sr_status h5_close(h5_id file, sr_failure *why); /* and everything opened through it */

/* Declaring. Fixed-size datasets get their space at once, growing ones when written; fill value NaN
 * for reals, -1 for integers. */
sr_status h5_add_group(h5_id file, const char *path, sr_failure *why);
sr_status h5_add_dataset(h5_id file, const char *path, const h5_shape *shape, h5_id *set,
                         sr_failure *why);
/* count < 0: one value; text: bytes of a text, else 0. */
sr_status h5_put_attribute(h5_id file, const char *object, const char *name, h5_type type,
                           size_t text, int64_t count, const void *value, sr_failure *why);

/* What dimension scales are made of (dimension_scales.c). */
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

/* Writing to what was declared. */
/* What is written to it goes to the file at once. H5Fstart_swmr_write forgets it: behind that. */
sr_status h5_make_direct(h5_id *set, sr_failure *why);
sr_status h5_extend(h5_id set, int64_t rows, sr_failure *why);
sr_status h5_write_rows(h5_id set, const h5_rows *rows, h5_type type, const void *buffer,
                        sr_failure *why);
sr_status h5_write_all(h5_id set, h5_type type, size_t text, const void *buffer, sr_failure *why);

/* Reading. What is no part of a run file -- links other than hard ones, values in other files,
 * other filters and types, sizes without bytes -- is refused before it is read (h5_guard.c). */
int64_t h5_file_bytes(h5_id file); /* that are there now */
/* Every value of a dataset that is of fixed size is stored: memory may be taken for all of them. */
sr_status h5_check_stored(h5_id file, h5_id set, const char *path, sr_failure *why);
/* Where HDF5's part of a closed file ends. */
int64_t h5_end_of(h5_id file);
/* The path of an object whose header begins in these bytes; false when there is none. */
bool h5_name_of(h5_id file, int64_t at, int64_t length, char name[H5_PATH_SIZE]);
/* Also true where damage hides whether it is there: opening it then tells what is damaged. */
bool h5_has(h5_id file, const char *path);
/* cache: bytes of chunks that are kept between two reads; 0: chunks go straight into the reader's
 * memory, which is faster where a read takes whole chunks of contiguous rows and slow elsewhere;
 * below 0: HDF5's default. *there, unless NULL: as h5_has; false is a failure too. */
sr_status h5_open_dataset(h5_id file, const char *path, int64_t cache, h5_id *set, bool *there,
                          sr_failure *why);
void h5_close_dataset(h5_id set);
sr_status h5_get_shape(h5_id set, h5_shape *shape, sr_failure *why);
/* Rows and columns of a chunk; 0 where there is none. */
void h5_get_chunk(h5_id set, int64_t chunk[2]);
int64_t h5_stored_bytes(h5_id set);
/* The same; -1 and *why where the index of its chunks cannot be read. */
int64_t h5_stored_bytes_or(h5_id set, sr_failure *why);
/* Of the first `rows` those before the first chunk that does not lie within `end` bytes: in an
 * unfinished file HDF5 reads what was cut off as zeros. */
int64_t h5_whole_rows(h5_id set, int64_t rows, int64_t end);
sr_status h5_read_rows(h5_id set, const h5_rows *rows, h5_type type, void *buffer, sr_failure *why);
sr_status h5_read_all(h5_id set, h5_type type, size_t text, void *buffer, sr_failure *why);
/* A text (malloc'd, NUL-terminated, into *text) or, when text is NULL, a whole number of the type.
 */
sr_status h5_get_attribute(h5_id file, const char *object, const char *name, h5_type type,
                           void **text, void *number, sr_failure *why);
sr_status h5_count_members(h5_id file, const char *group, int64_t *count, sr_failure *why);
/* Name of the i-th member of a group in alphabetic order, cut to size. */
sr_status h5_member(h5_id file, const char *group, int64_t i, char *name, size_t size,
                    sr_failure *why);

#endif
