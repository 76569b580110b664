/* h5_private.h -- what the files under h5.h share: h5.c (files, rows, reading), h5_errors.c,
 * h5_guard.c (what is opened for reading), h5_declare.c, h5_write_driver.c and h5_types.c. They and
 * this header are the only users of hdf5.h, and nobody else includes it. */
#ifndef HDF5_H5_PRIVATE_H
#define HDF5_H5_PRIVATE_H

#include <hdf5.h>

#include "hdf5/h5.h"

struct trailer;

enum { H5_NAME_SIZE = 256 };

/* The checks of hdf5/v1_10 that this version of HDF5 needs; v1_10/README.md names the crash that
 * each avoids. Object headers: fixed one by one from 1.14.1 to 2.0.0. Indexes and heaps: no fix is
 * known. */
enum { H5_CHECKS_HEADERS = !H5_VERSION_GE(2, 0, 0), H5_CHECKS_INDEXES = 1 };

/* Every operation runs between h5_quiet and h5_end (or h5_unquiet), which keep HDF5 from printing
 * and read its error stack. */
typedef struct h5_errors {
    H5E_auto2_t print;
    void *context;
} h5_errors;

h5_errors h5_quiet(void);
void h5_unquiet(h5_errors q);
/* `ok` false: the failure that the stack tells, about `object` or, when NULL, the dataset id. */
sr_status h5_end(h5_errors q, bool ok, sr_failure *why, sr_status otherwise, hid_t id,
                 const char *object, const char *action);
/* Closes a handle of any kind, below 0: none; what the error stack holds stays. False: it failed.
 */
bool h5_release(hid_t id);
/* The driver of this list, for a file that it opens to hold until it is closed: HDF5 1.10 lets go
 * of its own hold first, and calls the driver's close in memory that is free then. To be
 * released. */
hid_t h5_hold_driver(hid_t access);

/* A type that the caller closes: as stored in the file, or as in memory. */
hid_t h5_make_type(h5_type type, size_t text, bool stored);
/* The type in memory for what is stored as `stored`. HDF5 does not convert between ASCII and UTF-8.
 */
hid_t h5_memory_type(hid_t stored, h5_type type, size_t text);
h5_type h5_name_type(hid_t type);

/* h5_write_driver.c: what became of the writes to a file that is opened with h5_write_driver's
 * list; what H5Fget_vfd_handle leads to. */
typedef struct h5_outcome {
    int fd;              /* first, as with HDF5's own driver */
    int failed;          /* errno of the first write that failed, after which there are none */
    int users;           /* the open file, and who still wants to know */
    struct journal *log; /* NULL: what is written goes to its place */
} h5_outcome;
bool h5_write_driver(hid_t access, bool logged);
void h5_outcome_release(h5_outcome *o);
/* The file is closed, or HDF5 could not: it keeps what it has of it, we the descriptor and its
   locks. */
void h5_outcome_leave(h5_outcome *o);
/* h5_read_driver.c: the file is read by its end matter (NULL: it has none); still: nobody writes
   it. */
bool h5_read_driver(hid_t access, struct trailer *end, bool still);

#endif
