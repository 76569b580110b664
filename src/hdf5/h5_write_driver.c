/* h5_write_driver.c -- the file driver for writing: plain reads and writes, or writes by way of the
 * journal (journal.h). It differs from HDF5's own driver in two points.
 *
 * - Only the process that created a file writes to it. A forked process has a copy of HDF5's state.
 *   The exit handler of HDF5 would write this old state over later changes of the parent.
 * - HDF5 does not learn of a failed write, since its exit handler would crash then. The driver
 *   keeps the first failure for h5.c, and drops all later writes.
 *
 * So the host program may exit in any way.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "hdf5/h5_private.h"
#include "journal/journal.h"
#include "journal/positional_io.h"

typedef struct driver_file {
    h5_file base; /* first */
    h5_outcome *outcome;
    pid_t owner;
} driver_file;

static bool is_ours(const driver_file *f) {
    return f->owner == getpid() && !f->outcome->failed;
}

/* Keeps the failure and returns success. A failed allocation may not set errno. */
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
    if (o->users == 1) return; /* the driver has closed it */
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
    h5_release(f->base.driver);
    H5free_memory(f);
}

static H5FD_t *driver_open(const char *name, unsigned flags, hid_t access, haddr_t most) {
    (void)flags, (void)most; /* the flags of h5_create */
    struct stat s;
    driver_file *f = allocate();
    const int how = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
    if (!f) return NULL;
    const bool *logged = H5Pget_driver_info(access);
    *f->outcome = (h5_outcome){.fd = descriptor_above_standard(open(name, how, 0666)), .users = 1};
    f->base.driver = h5_hold_driver(access);
    f->base.descriptor = &f->outcome->fd;
    if (f->outcome->fd < 0 || f->base.driver < 0 || fstat(f->outcome->fd, &s) != 0) {
        h5_driver_fail(true, "open");
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
    f->base.end_of_file = (haddr_t)s.st_size;
    return &f->base.open;
}

static herr_t driver_close(H5FD_t *file) {
    driver_file *f = (driver_file *)file;
    journal *l = is_ours(f) ? f->outcome->log : NULL;
    if (l && !(l->finalize ? journal_finalize : journal_commit)(l, f->base.end_of_space)) lose(f);
    if (f->outcome->fd >= 0 && close(f->outcome->fd) != 0 && is_ours(f)) lose(f);
    release(f);
    return 0;
}

static herr_t driver_query(const H5FD_t *file, unsigned long *flags) {
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_DATA_SIEVE | H5FD_FEAT_AGGREGATE_SMALLDATA |
             H5FD_FEAT_POSIX_COMPAT_HANDLE | H5FD_FEAT_SUPPORTS_SWMR_IO |
             H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
    /* The journal needs each block of metadata by itself. */
    const driver_file *f = (const driver_file *)file;
    if (!f || !f->outcome->log) *flags |= H5FD_FEAT_ACCUMULATE_METADATA;
    return 0;
}

/* Reads zeros after the end, where the journal may be. */
static herr_t driver_read(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t at, size_t size,
                          void *buffer) {
    const driver_file *f = (const driver_file *)file;
    const haddr_t left = at < f->base.end_of_file ? f->base.end_of_file - at : 0;
    const size_t there = size < left ? size : (size_t)left;
    (void)type, (void)transfer;
    if (f->outcome->fd < 0 || !positional_io_read(f->outcome->fd, at, buffer, there))
        return h5_driver_fail(false, "read");
    memset((char *)buffer + there, 0, size - there);
    if (f->outcome->log) journal_patch(f->outcome->log, at, buffer, size);
    return 0;
}

static herr_t driver_write(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t at, size_t size,
                           const void *buffer) {
    driver_file *f = (driver_file *)file;
    journal *log = f->outcome->log;
    (void)transfer;
    if (at + size > f->base.end_of_file) f->base.end_of_file = at + size;
    if (!is_ours(f)) return 0;
    const bool written = log ? journal_write(log, type != H5FD_MEM_DRAW, at, buffer, size)
                             : positional_io_write(f->outcome->fd, at, buffer, size);
    return written ? 0 : lose(f);
}

static herr_t driver_truncate(H5FD_t *file, hid_t transfer, hbool_t closing) {
    driver_file *f = (driver_file *)file;
    (void)transfer, (void)closing;
    h5_file *base = &f->base;
    if (base->end_of_space == base->end_of_file || f->outcome->log) return 0;
    if (is_ours(f) && ftruncate(f->outcome->fd, (off_t)base->end_of_space) != 0) return lose(f);
    base->end_of_file = base->end_of_space;
    return 0;
}

/* When the file is created. Forked processes share such a lock. It is for readers of other
 * programs: the file is new, and a second writer is kept out by writer_lock.h. So nothing fails if
 * a system refuses it. */
static herr_t driver_lock(H5FD_t *file, hbool_t write) {
    const driver_file *f = (const driver_file *)file;
    (void)write;
    flock(f->outcome->fd, LOCK_EX | LOCK_NB);
    return 0;
}

static herr_t driver_unlock(H5FD_t *file) {
    const driver_file *f = (const driver_file *)file;
    if (is_ours(f)) flock(f->outcome->fd, LOCK_UN);
    return 0;
}

static const H5FD_class_t driver = {
    .name = "statrec",
    .maxaddr = ((haddr_t)1 << 63) - 1,
    .fc_degree = H5F_CLOSE_WEAK,
    .fapl_size = sizeof(bool),
    .open = driver_open,
    .close = driver_close,
    .query = driver_query,
    .get_eoa = h5_driver_get_eoa,
    .set_eoa = h5_driver_set_eoa,
    .get_eof = h5_driver_get_eof,
    .get_handle = h5_driver_handle,
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
