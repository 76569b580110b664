/* npz_format.h -- the header of a .npy entry and its name, for reading and writing. */
#ifndef BASE_NPZ_NPZ_FORMAT_H
#define BASE_NPZ_NPZ_FORMAT_H

#include <stddef.h>

#include "base/npz/npz.h"

enum { NPY_PREFIX = 10, NPY_HEADER_MAX = 192, NPZ_PATH = 4096, NPZ_ENTRY = 512 };

/* NAME.npy; SR_USAGE when it does not fit. */
sr_status npz_entry_name(char out[NPZ_ENTRY], const char *path, const char *name, sr_failure *why);

int64_t npy_item_bytes(npz_type type);

/* Writes the header of an array; returns its bytes, a multiple of 64. */
size_t npy_write_header(char out[NPY_HEADER_MAX], const npz_array *a);

/* Reads type, rank and dim from the first bytes of an entry; *data is the offset of the numbers.
 * what: the entry's name, for messages. */
sr_status npy_read_header(const char *bytes, int64_t count, const char *what, npz_array *a,
                          int64_t *data, sr_failure *why);

#endif
