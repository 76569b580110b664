/* h5_read_driver.c -- the file driver for reading, which uses the trailer (trailer.h). Backup
 * copies replace metadata that is damaged or, after the writer died, older than the journal. A
 * value whose checksum differs is an error. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "hdf5/guard/h5_guard.h"
#include "hdf5/h5_private.h"
#include "hdf5/v1_10/h5_checks.h"
#include "journal/positional_io.h"
#include "journal/trailer.h"

typedef struct read_file {
    h5_file base; /* first */
    h5_reading reading;
    bool still;   /* no process writes the file */
    trailer *end; /* NULL: not loaded */
} read_file;

typedef struct read_info {
    trailer *end;
    bool still;
} read_info;

static herr_t read_close(H5FD_t *file) {
    read_file *f = (read_file *)file;
    if (f->reading.fd >= 0) close(f->reading.fd);
    h5_release(f->base.driver);
    H5free_memory(f);
    return 0;
}

static H5FD_t *read_open(const char *name, unsigned flags, hid_t access, haddr_t most) {
    (void)flags, (void)most;
    struct stat s;
    const read_info *info = H5Pget_driver_info(access);
    read_file *f = info ? H5allocate_memory(sizeof *f, true) : NULL;
    if (!f) return NULL;
    f->reading.fd = descriptor_above_standard(open(name, O_RDONLY | O_CLOEXEC));
    f->base.driver = h5_hold_driver(access);
    f->base.descriptor = &f->reading.fd;
    if (f->reading.fd < 0 || f->base.driver < 0 || fstat(f->reading.fd, &s) != 0) {
        h5_driver_fail(false, "open");
        read_close(&f->base.open);
        return NULL;
    }
    f->end = info->end, f->still = info->still, f->base.end_of_file = (haddr_t)s.st_size;
    return &f->base.open;
}

static herr_t read_query(const H5FD_t *file, unsigned long *flags) {
    (void)file;
    /* No accumulator of metadata: HDF5 1.10 reads beyond its end where blocks overlap. */
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_DATA_SIEVE | H5FD_FEAT_AGGREGATE_SMALLDATA |
             H5FD_FEAT_POSIX_COMPAT_HANDLE | H5FD_FEAT_SUPPORTS_SWMR_IO |
             H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
    return 0;
}

/* False for metadata that would crash HDF5, or whose damage it would not report. */
static bool is_sound(const read_file *f, H5FD_mem_t type, haddr_t at, const void *bytes,
                     size_t size) {
    if (H5_CHECKS_INDEXES && type == H5FD_MEM_BTREE)
        return h5_tree_is_sound(f->end, f->reading.fd, bytes, size, f->base.end_of_file);
    if (type != H5FD_MEM_OHDR) return true; /* headers of heaps have this type, too */
    if (H5_CHECKS_INDEXES && !h5_heap_is_small(bytes, size)) return false;
    return !H5_CHECKS_HEADERS || h5_header_is_whole(f->end, f->reading.fd, f->still, at, bytes,
                                                    size, f->base.end_of_file);
}

static herr_t read_read(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t at, size_t size,
                        void *buffer) {
    read_file *f = (read_file *)file;
    const extent *bad;
    (void)transfer;
    if (!positional_io_read(f->reading.fd, at, buffer, size)) {
        f->reading.failed = errno;
        return h5_driver_fail(false, "read");
    }
    if (f->end && type == H5FD_MEM_DRAW &&
        !trailer_agrees(f->end, f->reading.fd, at, buffer, size, &bad)) {
        H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_IO, H5E_READERROR,
                 "bytes %llu to %llu of the file are not those that were written",
                 (unsigned long long)bad->at, (unsigned long long)(bad->at + bad->length - 1));
        return -1;
    }
    if (f->end) trailer_patch(f->end, at, buffer, size);
    if (is_sound(f, type, at, buffer, size)) return 0;
    H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_IO, H5E_READERROR,
             "incorrect metadata checksum after all read attempts"); /* HDF5's words */
    return -1;
}

static herr_t read_write(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t at, size_t size,
                         const void *buffer) {
    (void)file, (void)type, (void)transfer, (void)at, (void)size, (void)buffer;
    errno = EBADF;
    return h5_driver_fail(true, "write");
}

/* Without .cmp HDF5 treats two opened files as two. With it, a reader would get HDF5's cached state
 * of a file that grew since, or of another file that had this name. */
static const H5FD_class_t driver = {
    .name = "statrec reader",
    .maxaddr = ((haddr_t)1 << 63) - 1,
    .fc_degree = H5F_CLOSE_WEAK,
    .fapl_size = sizeof(read_info),
    .open = read_open,
    .close = read_close,
    .query = read_query,
    .get_eoa = h5_driver_get_eoa,
    .set_eoa = h5_driver_set_eoa,
    .get_eof = h5_driver_get_eof,
    .get_handle = h5_driver_handle,
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

/* -- queries ----------------------------------------------------------------------------------- */

int64_t h5_end_of(h5_id file) {
    h5_errors q = h5_quiet();
    haddr_t end = 0;
    if (H5Fget_eoa(file, &end) < 0) end = 0;
    h5_unquiet(q);
    return (int64_t)end; /* at most .maxaddr */
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
