/* h5_write_driver.c -- the file under what is being written: plain reads and writes at places, as
 * HDF5's own driver makes them, or by way of a log (journal.c), but
 *
 * - only by the process that created it. A process forked from it has the library's state of the
 * file
 *   too, and the library's exit handler would write that over what the first one has written since;
 * - HDF5 does not hear of a write that failed: it would be left in a state in which its exit
 * handler
 *   crashes. The first failure is kept here for h5.c to ask for, and nothing is written after it.
 *
 * So how HDF5 handles the process's exit is left to the host. See h5_private.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hdf5/h5_private.h"
#include "journal/journal.h"
#include "journal/positional_io.h"

typedef struct driver_file {
    H5FD_t open; /* of HDF5; first */
    hid_t driver;
    h5_outcome *outcome;
    pid_t owner;
    haddr_t end_of_space, end_of_file;
} driver_file;

/* In the words of HDF5's own driver: h5.c looks for them. */
static herr_t push(const char *action) {
    const int failed = errno;
    H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_VFL, H5E_WRITEERROR,
             "file %s failed: errno = %d, error message = '%s'", action, failed, strerror(failed));
    return -1;
}

static bool is_ours(const driver_file *f) {
    return f->owner == getpid() && !f->outcome->failed;
}

/* Returns success whatever happened. An allocation need not leave an errno. */
static herr_t lose(driver_file *f) {
    f->outcome->failed = errno ? errno : ENOMEM;
    return 0;
}

void h5_outcome_release(h5_outcome *o) {
    if (--o->users > 0) return;
    if (o->log) journal_free(o->log);
    H5free_memory(o->log), H5free_memory(o);
}

void h5_outcome_leave(h5_outcome *o) {
    if (o->users == 1) return; /* ours alone: the driver has closed it */
    if (!o->failed) o->failed = EIO;
    close(o->fd);
    o->fd = -1;
}

static driver_file *allocate(void) {
    driver_file *f = H5allocate_memory(sizeof *f, true);
    if (f) f->outcome = H5allocate_memory(sizeof *f->outcome, true);
    if (f && f->outcome) return f;
    H5free_memory(f);
    H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_RESOURCE, H5E_NOSPACE,
             "memory allocation failed");
    return NULL;
}

static void release(driver_file *f) {
    h5_outcome_release(f->outcome);
    h5_release(f->driver);
    H5free_memory(f);
}

static H5FD_t *driver_open(const char *name, unsigned flags, hid_t access, haddr_t most) {
    (void)most;
    struct stat s;
    driver_file *f = allocate();
    const int how = (flags & H5F_ACC_RDWR ? O_RDWR : O_RDONLY) |
                    (flags & H5F_ACC_TRUNC ? O_TRUNC : 0) | (flags & H5F_ACC_CREAT ? O_CREAT : 0) |
                    (flags & H5F_ACC_EXCL ? O_EXCL : 0);
    if (!f) return NULL;
    const bool *logged = H5Pget_driver_info(access);
    *f->outcome = (h5_outcome){.fd = open(name, how | O_CLOEXEC, 0666), .users = 1};
    f->driver = h5_hold_driver(access);
    if (f->outcome->fd < 0 || f->driver < 0 || fstat(f->outcome->fd, &s) != 0) {
        push("open");
        if (f->outcome->fd >= 0) close(f->outcome->fd);
        release(f);
        return NULL;
    }
    if (logged && *logged) {
        journal *log = f->outcome->log = H5allocate_memory(sizeof *log, false);
        if (!log) {
            close(f->outcome->fd), release(f);
            return NULL;
        }
        journal_init(log, f->outcome->fd);
    }
    f->owner = getpid();
    f->end_of_file = (haddr_t)s.st_size;
    return &f->open;
}

static herr_t driver_close(H5FD_t *file) {
    driver_file *f = (driver_file *)file;
    journal *l = is_ours(f) ? f->outcome->log : NULL;
    if (l &&
        !(l->finalize ? journal_finalize(l, f->end_of_space) : journal_commit(l, f->end_of_space)))
        lose(f);
    if (f->outcome->fd >= 0 && close(f->outcome->fd) != 0 && is_ours(f)) lose(f);
    release(f);
    return 0;
}

static herr_t driver_query(const H5FD_t *file, unsigned long *flags) {
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_DATA_SIEVE | H5FD_FEAT_AGGREGATE_SMALLDATA |
             H5FD_FEAT_POSIX_COMPAT_HANDLE | H5FD_FEAT_SUPPORTS_SWMR_IO |
             H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
    /* of a file with a log each piece of structure comes by itself */
    const driver_file *f = (const driver_file *)file;
    if (!f || !f->outcome->log) *flags |= H5FD_FEAT_ACCUMULATE_METADATA;
    return 0;
}

static haddr_t driver_get_eoa(const H5FD_t *file, H5FD_mem_t type) {
    (void)type;
    return ((const driver_file *)file)->end_of_space;
}

static herr_t driver_set_eoa(H5FD_t *file, H5FD_mem_t type, haddr_t end) {
    (void)type;
    ((driver_file *)file)->end_of_space = end;
    return 0;
}

static haddr_t driver_get_eof(const H5FD_t *file, H5FD_mem_t type) {
    (void)type;
    return ((const driver_file *)file)->end_of_file;
}

static herr_t driver_handle(H5FD_t *file, hid_t access, void **handle) {
    (void)access;
    *handle = &((driver_file *)file)->outcome->fd;
    return 0;
}

/* Zeros behind the end, where a log may be. */
static herr_t driver_read(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t at, size_t size,
                          void *buffer) {
    const driver_file *f = (const driver_file *)file;
    const haddr_t left = at < f->end_of_file ? f->end_of_file - at : 0;
    const size_t there = size < left ? size : (size_t)left;
    (void)type, (void)transfer;
    if (f->outcome->fd < 0 || !positional_io_read(f->outcome->fd, at, buffer, there))
        return push("read");
    memset((char *)buffer + there, 0, size - there);
    if (f->outcome->log) journal_patch(f->outcome->log, at, buffer, size);
    return 0;
}

static herr_t driver_write(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t at, size_t size,
                           const void *buffer) {
    driver_file *f = (driver_file *)file;
    const char *from = buffer;
    (void)transfer;
    if (at + size > f->end_of_file) f->end_of_file = at + size;
    if (f->outcome->log && is_ours(f))
        return journal_write(f->outcome->log, type != H5FD_MEM_DRAW, at, buffer, size) ? 0
                                                                                       : lose(f);
    while (size > 0 && is_ours(f)) {
        const ssize_t put = pwrite(f->outcome->fd, from, size, (off_t)at);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return lose(f);
        from += put, at += (haddr_t)put, size -= (size_t)put;
    }
    return 0;
}

static herr_t driver_truncate(H5FD_t *file, hid_t transfer, hbool_t closing) {
    driver_file *f = (driver_file *)file;
    (void)transfer, (void)closing;
    if (f->end_of_space == f->end_of_file || f->outcome->log) return 0;
    if (is_ours(f) && ftruncate(f->outcome->fd, (off_t)f->end_of_space) != 0) return lose(f);
    f->end_of_file = f->end_of_space;
    return 0;
}

/* A lock of this kind is shared with the processes that were forked. */
static herr_t driver_lock(H5FD_t *file, hbool_t write) {
    const driver_file *f = (const driver_file *)file;
    if (!is_ours(f) || flock(f->outcome->fd, (write ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0) return 0;
    return errno == ENOSYS ? 0 : push("lock");
}

static herr_t driver_unlock(H5FD_t *file) {
    const driver_file *f = (const driver_file *)file;
    if (!is_ours(f) || flock(f->outcome->fd, LOCK_UN) == 0 || errno == ENOSYS) return 0;
    return push("unlock");
}

static const H5FD_class_t driver = {
    .name = "statrec",
    .maxaddr = ((haddr_t)1 << 63) - 1,
    .fc_degree = H5F_CLOSE_WEAK,
    .fapl_size = sizeof(bool),
    .open = driver_open,
    .close = driver_close,
    .query = driver_query,
    .get_eoa = driver_get_eoa,
    .set_eoa = driver_set_eoa,
    .get_eof = driver_get_eof,
    .get_handle = driver_handle,
    .read = driver_read,
    .write = driver_write,
    .truncate = driver_truncate,
    .lock = driver_lock,
    .unlock = driver_unlock,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

bool h5_write_driver(hid_t access, bool logged) {
    const hid_t id = H5FDregister(&driver);
    const bool ok = id >= 0 && H5Pset_driver(access, id, &logged) >= 0;
    return h5_release(id) && ok; /* the list has it */
}
