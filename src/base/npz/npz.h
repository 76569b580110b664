/* npz.h -- archives of arrays as NumPy writes and reads them (numpy.savez, numpy.load).
 *
 * An archive is a zip file; the array NAME is the entry NAME.npy, format 1.0 of
 * https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html: little-endian numbers in
 * row-major (C) order. Written entries are stored, not compressed, and carry no time: the same
 * arrays make the same bytes. Read entries may be compressed.
 */
#ifndef BASE_NPZ_NPZ_H
#define BASE_NPZ_NPZ_H

#include <stdbool.h>
#include <stdint.h>

#include "statrec/base.h"

typedef enum npz_type {
    NPZ_FLOAT32,
    NPZ_FLOAT64,
    NPZ_INT32,
    NPZ_INT64,
    NPZ_UINT8,
    NPZ_TEXT64, /* 64 bytes, filled up with zeros */
    NPZ_TYPES
} npz_type;

enum { NPZ_RANK = 4 };

typedef struct npz_array {
    npz_type type;
    int rank;              /* 0 (one number) .. NPZ_RANK */
    int64_t dim[NPZ_RANK]; /* [0..rank-1] */
    void *data;            /* [product of dim] */
} npz_array;

/* Product of dim. */
int64_t npz_count(const npz_array *a);

/* -- writing: the arrays stay in memory until npz_write makes the file */

typedef struct npz_writer npz_writer;

/* SR_OK when npz_write can make a file at this path. A regular file may be there if `force` is set,
 * and the directory must be writable. */
sr_status npz_check_path(const char *path, bool force, sr_failure *why);

/* NULL on failure, also where PATH.part exists. Nothing is written yet. */
npz_writer *npz_create(const char *path, bool force, sr_failure *why);
/* Copies one array. A duplicate name is rejected. */
sr_status npz_add(npz_writer *w, const char *name, const npz_array *a, sr_failure *why);
int64_t npz_added(const npz_writer *w); /* arrays so far */
/* Writes all of them as PATH.part, renames when the file is whole, frees the writer. After a
 * failure no file of this writer is left, and an earlier file at the path stays. */
sr_status npz_write(npz_writer *w, sr_failure *why);
void npz_abandon(npz_writer *w); /* frees it, writes nothing; NULL is fine */

/* -- reading */

typedef struct npz_reader npz_reader;

npz_reader *npz_open(const char *path, sr_failure *why); /* NULL on failure */
void npz_close(npz_reader *r);                           /* NULL is fine */
int64_t npz_arrays(const npz_reader *r);
/* Name of the i-th array, "" past the end or where an entry is no .npy. Valid until the next
 * call. */
const char *npz_name(npz_reader *r, int64_t i);
/* Type and shape of an array, from its first bytes; data is NULL. */
sr_status npz_shape(npz_reader *r, const char *name, npz_array *a, sr_failure *why);
/* Reads an array; the caller frees a->data, which is never NULL after SR_OK. */
sr_status npz_read(npz_reader *r, const char *name, npz_array *a, sr_failure *why);

#endif
