/* h5_private.h -- declarations that the files of src/hdf5 share. They alone include this header,
 * and it alone includes hdf5.h. */
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

/* Every operation runs between h5_quiet and h5_end (or h5_unquiet). These keep HDF5 from printing
 * and read its error stack. */
typedef struct h5_errors {
    H5E_auto2_t print;
    void *context;
} h5_errors;

h5_errors h5_quiet(void);
void h5_unquiet(h5_errors q);
/* Unless `ok`, turns the error stack into a failure about `object` or, when NULL, about the dataset
 * id. */
sr_status h5_end(h5_errors q, bool ok, sr_failure *why, sr_status otherwise, hid_t id,
                 const char *object, const char *action);
/* Closes a handle of any kind and keeps the error stack. Ignores handles below 0. False on
 * failure. */
bool h5_release(hid_t id);

/* A type that the caller closes: as stored in the file, or as in memory. */
hid_t h5_make_type(h5_type type, size_t text, bool stored);
/* The type in memory for values stored as `stored`. HDF5 does not convert between ASCII and
 * UTF-8. */
hid_t h5_memory_type(hid_t stored, h5_type type, size_t text);
/* Name of one of the types that h5_guard.c lets pass. */
h5_type h5_name_type(hid_t type);

/* -- file drivers */

/* A file as HDF5 sees it: the first member of both drivers' structs. */
typedef struct h5_file {
    H5FD_t open; /* HDF5's; first */
    hid_t driver;
    int *descriptor;
    haddr_t end_of_space, end_of_file;
} h5_file;

/* The driver of the list `access`, which a file releases when it is closed. HDF5 1.10 releases its
 * own reference first, and then calls the driver's `close` in freed memory. */
hid_t h5_hold_driver(hid_t access);
/* Puts errno on the error stack; returns -1. */
herr_t h5_driver_fail(bool write, const char *action);
haddr_t h5_driver_get_eoa(const H5FD_t *file, H5FD_mem_t type);
herr_t h5_driver_set_eoa(H5FD_t *file, H5FD_mem_t type, haddr_t end);
haddr_t h5_driver_get_eof(const H5FD_t *file, H5FD_mem_t type);
herr_t h5_driver_handle(H5FD_t *file, hid_t access, void **handle);

/* h5_write_driver.c: the result of the writes to a file. H5Fget_vfd_handle returns its address. */
typedef struct h5_outcome {
    int fd;              /* first, as with HDF5's own driver */
    int failed;          /* errno of the first write that failed; later writes are dropped */
    int users;           /* the open file, and h5_close */
    struct journal *log; /* NULL: writes go to their place at once */
} h5_outcome;
bool h5_write_driver(hid_t access, bool logged);
void h5_outcome_release(h5_outcome *o);
/* After HDF5 closed the file, or failed to close it. HDF5 keeps its state then, and this function
 * closes the descriptor with its locks. */
void h5_outcome_leave(h5_outcome *o);
/* h5_read_driver.c: a file that is only read. H5Fget_vfd_handle returns its address. */
enum { H5_KEPT_GROUPS = 16, H5_GROUP_PATH = 24 };
typedef struct h5_reading {
    int fd;     /* first, as with HDF5's own driver */
    int failed; /* errno of the last read that failed; 0: none */
    int groups;
    struct {
        char path[H5_GROUP_PATH];
        hid_t id;
    } group[H5_KEPT_GROUPS]; /* checked and open until the file is closed; h5_guard.c */
} h5_reading;
/* Reads the file with its trailer (NULL: none). still: no process writes it. */
bool h5_read_driver(hid_t access, struct trailer *end, bool still);

#endif
