/* h5_read_driver.c -- the file under what is read by its end matter (trailer.h): copies of the
 * structure where its own bytes are damaged or, in a file whose writer died, not the newest; values
 * that are not those that were written are an error. See h5_private.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hdf5/guard/h5_guard.h"
#include "hdf5/h5_private.h"
#include "hdf5/v1_10/h5_headers.h"
#include "hdf5/v1_10/h5_heaps.h"
#include "hdf5/v1_10/h5_trees.h"
#include "journal/positional_io.h"
#include "journal/trailer.h"

typedef struct read_file {
    H5FD_t open; /* of HDF5; first */
    hid_t driver;
    int fd;
    bool still;   /* nobody writes the file */
    trailer *end; /* NULL: nobody looked for one */
    haddr_t end_of_space, end_of_file;
} read_file;

typedef struct read_info {
    trailer *end;
    bool still;
} read_info;

/* In the words of HDF5's own driver: h5.c looks for them. */
static herr_t push(const char *action) {
    const int failed = errno;
    H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_VFL, H5E_READERROR,
             "file %s failed: errno = %d, error message = '%s'", action, failed, strerror(failed));
    return -1;
}

static herr_t read_close(H5FD_t *file) {
    read_file *f = (read_file *)file;
    if (f->fd >= 0) close(f->fd);
    h5_release(f->driver);
    H5free_memory(f);
    return 0;
}

static H5FD_t *read_open(const char *name, unsigned flags, hid_t access, haddr_t most) {
    (void)flags, (void)most;
    struct stat s;
    const read_info *info = H5Pget_driver_info(access);
    read_file *f = info ? H5allocate_memory(sizeof *f, true) : NULL;
    if (!f) return NULL;
    f->fd = open(name, O_RDONLY | O_CLOEXEC);
    f->driver = h5_hold_driver(access);
    if (f->fd < 0 || f->driver < 0 || fstat(f->fd, &s) != 0) {
        push("open");
        read_close(&f->open);
        return NULL;
    }
    f->end = info->end, f->still = info->still, f->end_of_file = (haddr_t)s.st_size;
    return &f->open;
}

static herr_t read_query(const H5FD_t *file, unsigned long *flags) {
    (void)file;
    /* no accumulator of structure: HDF5 1.10 reads beyond it where addresses of two pieces
       overlap */
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_DATA_SIEVE | H5FD_FEAT_AGGREGATE_SMALLDATA |
             H5FD_FEAT_POSIX_COMPAT_HANDLE | H5FD_FEAT_SUPPORTS_SWMR_IO |
             H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
    return 0;
}

static haddr_t read_get_eoa(const H5FD_t *file, H5FD_mem_t type) {
    (void)type;
    return ((const read_file *)file)->end_of_space;
}

static herr_t read_set_eoa(H5FD_t *file, H5FD_mem_t type, haddr_t end) {
    (void)type;
    ((read_file *)file)->end_of_space = end;
    return 0;
}

static haddr_t read_get_eof(const H5FD_t *file, H5FD_mem_t type) {
    (void)type;
    return ((const read_file *)file)->end_of_file;
}

static herr_t read_handle(H5FD_t *file, hid_t access, void **handle) {
    (void)access;
    *handle = &((read_file *)file)->fd;
    return 0;
}

/* Metadata on which HDF5 would crash, or whose damage it would not report. */
static bool is_sound(const read_file *f, H5FD_mem_t type, haddr_t at, const void *bytes,
                     size_t size) {
    if (H5_CHECKS_INDEXES && type == H5FD_MEM_BTREE)
        return h5_tree_is_sound(f->end, f->fd, bytes, size, f->end_of_file);
    if (type != H5FD_MEM_OHDR) return true; /* headers of heaps have this type too */
    if (H5_CHECKS_INDEXES && !h5_heap_is_small(bytes, size)) return false;
    return !H5_CHECKS_HEADERS ||
           h5_header_is_whole(f->end, f->fd, f->still, at, bytes, size, f->end_of_file);
}

static herr_t read_read(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t at, size_t size,
                        void *buffer) {
    const read_file *f = (const read_file *)file;
    const extent *bad;
    (void)transfer;
    if (!positional_io_read(f->fd, at, buffer, size)) return push("read");
    if (f->end && type == H5FD_MEM_DRAW && !trailer_agrees(f->end, f->fd, at, buffer, size, &bad)) {
        H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_IO, H5E_READERROR,
                 "bytes %llu to %llu of the file are not those that were written",
                 (unsigned long long)bad->at, (unsigned long long)(bad->at + bad->length - 1));
        return -1;
    }
    if (f->end) trailer_patch(f->end, at, buffer, size);
    if (is_sound(f, type, at, buffer, size)) return 0;
    H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_IO, H5E_READERROR,
             "incorrect metadata checksum after all read attempts"); /* as HDF5 has it */
    return -1;
}

static herr_t read_write(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t at, size_t size,
                         const void *buffer) {
    (void)file, (void)type, (void)transfer, (void)at, (void)size, (void)buffer;
    errno = EBADF;
    return push("write");
}

/* Without .cmp, by which HDF5 would give a reader what it remembers of a file that grew since, or
 * of one that it could not close and whose place another has taken: two opened files are two. */
static const H5FD_class_t driver = {
    .name = "statrec reader",
    .maxaddr = ((haddr_t)1 << 63) - 1,
    .fc_degree = H5F_CLOSE_WEAK,
    .fapl_size = sizeof(read_info),
    .open = read_open,
    .close = read_close,
    .query = read_query,
    .get_eoa = read_get_eoa,
    .set_eoa = read_set_eoa,
    .get_eof = read_get_eof,
    .get_handle = read_handle,
    .read = read_read,
    .write = read_write,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

bool h5_read_driver(hid_t access, trailer *end, bool still) {
    const read_info info = {end, still};
    const hid_t id = H5FDregister(&driver);
    const bool ok = id >= 0 && H5Pset_driver(access, id, &info) >= 0;
    return h5_release(id) && ok; /* the list has it */
}

/* -- what a reader of it asks ----------------------------------------------------------------- */

int64_t h5_end_of(h5_id file) {
    h5_errors q = h5_quiet();
    haddr_t end = 0;
    if (H5Fget_eoa(file, &end) < 0) end = 0;
    h5_unquiet(q);
    return end > INT64_MAX ? INT64_MAX : (int64_t)end;
}

typedef struct extent_query {
    haddr_t at, length;
    char *name;
} extent_query;

static herr_t compare_place(hid_t file, const char *name, const H5O_info_t *info, void *context) {
    const extent_query *p = context;
    if (info->type == H5O_TYPE_GROUP && !h5_guard_links(file, name)) return -1;
    if (info->addr < p->at || info->addr - p->at >= p->length) return 0;
    snprintf(p->name, H5_PATH_SIZE, "/%s", strcmp(name, ".") == 0 ? "" : name);
    return 1;
}

bool h5_name_of(h5_id file, int64_t at, int64_t length, char name[H5_PATH_SIZE]) {
    h5_errors q = h5_quiet();
    extent_query p = {(haddr_t)at, (haddr_t)length, name};
    const herr_t found = H5Ovisit(file, H5_INDEX_NAME, H5_ITER_NATIVE, compare_place, &p);
    h5_unquiet(q);
    return found > 0;
}
