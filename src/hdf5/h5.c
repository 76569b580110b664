/* h5.c -- opens, writes and reads HDF5 files. Each operation closes the handles that it opens. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hdf5/guard/h5_guard.h"
#include "hdf5/h5_private.h"
#include "journal/journal.h"

enum { REASON_SIZE = 400 };

h5_path h5_path_of(const char *format, ...) {
    h5_path path;
    va_list args;
    va_start(args, format);
    vsnprintf(path.text, sizeof path.text, format, args);
    va_end(args);
    return path;
}

/* No h5_quiet: this must be the first call of HDF5 in the process. */
void h5_disown_exit(void) {
    H5dont_atexit();
}

/* The outcome of a file that this process writes; NULL: it only reads it. */
static h5_outcome *outcome_of(hid_t file) {
    unsigned intent = 0;
    void *at = NULL;
    if (file <= 0 || H5Fget_intent(file, &intent) < 0 || !(intent & H5F_ACC_RDWR)) return NULL;
    return H5Fget_vfd_handle(file, H5P_DEFAULT, &at) >= 0 ? at : NULL;
}

/* HDF5 does not learn of failed writes (h5_write_driver.c); this reports them. A failure of HDF5
 * itself, `own`, may follow from one, and is reported otherwise. */
static sr_status check_outcome(sr_status status, const sr_failure *own, const h5_outcome *o,
                               const char *path, sr_failure *why) {
    if (o && o->failed)
        return sr_fail(why, o->failed == ENOMEM ? SR_MEMORY : SR_IO, "%s: write: %s", path,
                       strerror(o->failed));
    if (status != SR_OK && why && why->status == SR_OK) *why = *own;
    return status;
}

static sr_status end_written(h5_errors q, bool ok, hid_t file, const char *action,
                             sr_failure *why) {
    char path[REASON_SIZE] = "";
    sr_failure own = {0};
    const h5_outcome *o = outcome_of(file);
    H5Fget_name(file, path, sizeof path);
    const sr_status status = h5_end(q, ok, &own, SR_LIBRARY, file, NULL, action);
    return check_outcome(status, &own, o, path, why);
}

/* -- files ----------------------------------------------------------------------------------- */

/* Reads of metadata with a wrong checksum, while a writer may be changing it. HDF5 waits 1, 2, 4
 * ... ns in between. 20 reads take 1 ms; HDF5's default of 100 would never end. */
enum { READ_ATTEMPTS = 20 };

static hid_t file_access(unsigned attempts /* 0: a writer */) {
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (access < 0) return access;
    /* Contiguous datasets (committed_*) bypass the sieve buffer. So they reach the file after the
     * rows that were flushed before them. A reader takes no lock, since it must not stop a
     * writer. */
    if (H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110) >= 0 &&
        H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) >= 0 &&
        H5Pset_sieve_buf_size(access, 0) >= 0 &&
        H5Pset_file_locking(access, !attempts, true) >= 0 &&
        (!attempts || H5Pset_metadata_read_attempts(access, attempts) >= 0))
        return access;
    h5_release(access);
    return -1;
}

sr_status h5_create(const char *path, bool logged, h5_id *file, sr_failure *why) {
    h5_errors q = h5_quiet();
    hid_t access = file_access(0);
    hid_t creation = access < 0 ? -1 : H5Pcreate(H5P_FILE_CREATE), id = -1;
    if (creation >= 0 && h5_write_driver(access, logged) &&
        H5Pset_obj_track_times(creation, false) >= 0) /* times of the root group */
        id = H5Fcreate(path, H5F_ACC_EXCL, creation, access);
    *file = id < 0 ? 0 : id;
    sr_failure own = {0};
    sr_status status = h5_end(q, id >= 0, &own, SR_LIBRARY, 0, path, "create");
    h5_release(creation), h5_release(access);
    return check_outcome(status, &own, outcome_of(id), path, why);
}

sr_status h5_open(const char *path, h5_state state, trailer *end, h5_id *file, sr_failure *why) {
    h5_errors q = h5_quiet();
    hid_t access = file_access(state == H5_GROWING ? READ_ATTEMPTS : 1);
    unsigned flags = H5F_ACC_RDONLY | (state == H5_CLOSED ? 0 : H5F_ACC_SWMR_READ);
    const bool ok = access >= 0 && h5_read_driver(access, end, state != H5_GROWING);
    hid_t id = ok ? H5Fopen(path, flags, access) : -1;
    *file = id < 0 ? 0 : id;
    sr_status status = h5_end(q, id >= 0, why, SR_FORMAT, 0, path, "open");
    h5_release(access);
    return status;
}

/* Between h5_quiet and h5_end. */
static int descriptor(hid_t file) {
    void *at = NULL;
    return file > 0 && H5Fget_vfd_handle(file, H5P_DEFAULT, &at) >= 0 ? *(int *)at : -1;
}

/* -1: the reason is on the error stack. */
static int64_t file_bytes(hid_t file) {
    struct stat s;
    const int fd = descriptor(file);
    if (fd >= 0 && fstat(fd, &s) == 0) return (int64_t)s.st_size;
    return fd < 0 ? -1 : h5_driver_fail(false, "stat");
}

int h5_descriptor(h5_id file) {
    h5_errors q = h5_quiet();
    const int fd = descriptor(file);
    h5_unquiet(q);
    return fd;
}

int64_t h5_file_bytes(h5_id file) {
    h5_errors q = h5_quiet();
    const int64_t bytes = file_bytes(file);
    h5_unquiet(q);
    return bytes < 0 ? 0 : bytes;
}

void h5_divert(h5_id file) {
    h5_outcome *o = outcome_of(file);
    if (o && !o->failed) o->failed = EIO;
}

sr_status h5_start_swmr(h5_id file, sr_failure *why) {
    h5_errors q = h5_quiet();
    return end_written(q, H5Fstart_swmr_write(file) >= 0, file, "begin SWMR", why);
}

sr_status h5_flush(h5_id file, sr_failure *why) {
    h5_errors q = h5_quiet();
    return end_written(q, H5Fflush(file, H5F_SCOPE_LOCAL) >= 0, file, "flush", why);
}

/* Begins or commits the journal of a logged file. */
static sr_status run_journal(h5_id file, bool begin, bool sync, sr_failure *why) {
    char path[REASON_SIZE] = "";
    h5_errors q = h5_quiet();
    h5_outcome *o = outcome_of(file);
    if (o && o->log && !o->failed &&
        !(begin ? journal_begin(o->log, sync) : journal_commit(o->log, 0)))
        o->failed = errno;
    H5Fget_name(file, path, sizeof path);
    h5_unquiet(q);
    return check_outcome(SR_OK, NULL, o, path, why);
}

sr_status h5_begin_journal(h5_id file, bool sync, sr_failure *why) {
    return run_journal(file, true, sync, why);
}

sr_status h5_commit(h5_id file, sr_failure *why) {
    return run_journal(file, false, false, why);
}

void h5_hold(h5_id file, bool hold) {
    h5_errors q = h5_quiet();
    h5_outcome *o = outcome_of(file);
    if (o && o->log) o->log->hold = hold;
    h5_unquiet(q);
}

void h5_finalize(h5_id file, bool sync) {
    h5_errors q = h5_quiet();
    h5_outcome *o = outcome_of(file);
    if (o && o->log) o->log->finalize = true, o->log->sync = sync;
    h5_unquiet(q);
}

sr_status h5_close(h5_id file, sr_failure *why) {
    if (file <= 0) return SR_OK;
    char path[REASON_SIZE] = "";
    h5_errors q = h5_quiet();
    h5_outcome *o = outcome_of(file);
    if (o) o->users++;
    sr_failure own = {0};
    H5Fget_name(file, path, sizeof path);
    sr_status status = h5_end(q, H5Fclose(file) >= 0, &own, SR_LIBRARY, 0, path, "close");
    status = check_outcome(status, &own, o, path, why);
    if (o) h5_outcome_leave(o), h5_outcome_release(o);
    return status;
}

/* -- writing and reading rows ---------------------------------------------------------------- */

sr_status h5_extend(h5_id set, int64_t rows, sr_failure *why) {
    h5_errors q = h5_quiet();
    hsize_t dims[2] = {0, 0};
    hid_t space = H5Dget_space(set);
    bool known = space >= 0 && H5Sget_simple_extent_dims(space, dims, NULL) >= 0;
    h5_release(space);
    dims[0] = (hsize_t)rows;
    bool ok = known && H5Dset_extent(set, dims) >= 0;
    return h5_end(q, ok, why, SR_LIBRARY, set, NULL, "extend");
}

/* Moves rows between file and memory. Both spaces have the same rank: otherwise HDF5 takes a slow
 * path that needs 100 bytes for each element. */
static herr_t move_rows(hid_t set, const h5_rows *rows, h5_type type, void *buffer, bool write) {
    hid_t in_file = H5Dget_space(set), memory = -1, in_memory = -1;
    int rank = in_file < 0 ? -1 : H5Sget_simple_extent_ndims(in_file);
    hsize_t start[2] = {(hsize_t)rows->first, (hsize_t)rows->column};
    hsize_t count[2] = {(hsize_t)rows->count, (hsize_t)rows->columns};
    hsize_t whole[2] = {(hsize_t)rows->count, (hsize_t)rows->stride};
    hsize_t offset[2] = {0, write ? (hsize_t)rows->column : 0};
    herr_t result = -1;
    if (rank > 0 && rank <= 2) memory = h5_make_type(type, 0, false);
    if (memory >= 0) in_memory = H5Screate_simple(rank, whole, NULL);
    if (in_memory >= 0 &&
        H5Sselect_hyperslab(in_file, H5S_SELECT_SET, start, NULL, count, NULL) >= 0 &&
        H5Sselect_hyperslab(in_memory, H5S_SELECT_SET, offset, NULL, count, NULL) >= 0)
        result = write ? H5Dwrite(set, memory, in_memory, in_file, H5P_DEFAULT, buffer)
                       : H5Dread(set, memory, in_memory, in_file, H5P_DEFAULT, buffer);
    h5_release(in_memory), h5_release(memory), h5_release(in_file);
    return result;
}

sr_status h5_write_rows(h5_id set, const h5_rows *rows, h5_type type, const void *buffer,
                        sr_failure *why) {
    h5_errors q = h5_quiet();
    bool ok = move_rows(set, rows, type, (void *)(uintptr_t)buffer, true) >= 0;
    return h5_end(q, ok, why, SR_LIBRARY, set, NULL, "write");
}

sr_status h5_read_rows(h5_id set, const h5_rows *rows, h5_type type, void *buffer,
                       sr_failure *why) {
    if (rows->count == 0 || rows->columns == 0) return SR_OK;
    h5_errors q = h5_quiet();
    return h5_end(q, move_rows(set, rows, type, buffer, false) >= 0, why, SR_FORMAT, set, NULL,
                  "read");
}

/* Moves a whole dataset. */
static sr_status move_all(h5_id set, h5_type type, size_t text, void *buffer, bool write,
                          sr_failure *why) {
    h5_errors q = h5_quiet();
    hid_t stored = H5Dget_type(set), memory = h5_memory_type(stored, type, text);
    herr_t result = -1;
    if (memory >= 0)
        result = write ? H5Dwrite(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, buffer)
                       : H5Dread(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, buffer);
    sr_status status = h5_end(q, result >= 0, why, write ? SR_LIBRARY : SR_FORMAT, set, NULL,
                              write ? "write" : "read");
    h5_release(memory), h5_release(stored);
    return status;
}

sr_status h5_write_all(h5_id set, h5_type type, size_t text, const void *buffer, sr_failure *why) {
    return move_all(set, type, text, (void *)(uintptr_t)buffer, true, why);
}

sr_status h5_read_all(h5_id set, h5_type type, size_t text, void *buffer, sr_failure *why) {
    return move_all(set, type, text, buffer, false, why);
}

/* -- reading --------------------------------------------------------------------------------- */

bool h5_has(h5_id file, const char *path) {
    h5_errors q = h5_quiet();
    const htri_t there = h5_reach(file, path).found;
    h5_unquiet(q);
    return there != 0;
}

bool h5_has_attribute(h5_id file, const char *object, const char *name) {
    h5_errors q = h5_quiet();
    const h5_way way = h5_reach(file, object);
    bool there = way.found < 0;
    if (way.found > 0)
        there =
            H5Aexists_by_name(way.at, way.name, name, H5P_DEFAULT) != 0 || !h5_guard_complete(file);
    h5_unquiet(q);
    return there;
}

sr_status h5_open_dataset(h5_id file, const char *path, int64_t cache, h5_id *set, h5_shape *shape,
                          bool *there, sr_failure *why) {
    h5_errors q = h5_quiet();
    hid_t access = cache < 0 ? H5P_DEFAULT : H5Pcreate(H5P_DATASET_ACCESS);
    bool ok = access >= 0 && (cache < 0 || H5Pset_chunk_cache(access, 521, (size_t)cache, 1) >= 0);
    const h5_way way = ok ? h5_reach(file, path) : (h5_way){-1, file, path};
    hid_t id = way.found > 0 ? H5Dopen2(way.at, way.name, access) : -1;
    *shape = (h5_shape){.type = H5_OTHER, .rank = -1};
    if (there) *there = way.found != 0;
    const int64_t bytes = id < 0 ? -1 : file_bytes(file);
    if (id >= 0 && (bytes < 0 || !h5_guard_dataset(id, bytes, shape))) h5_release(id), id = -1;
    *set = id < 0 ? 0 : id;
    if (access != H5P_DEFAULT) h5_release(access);
    return h5_end(q, id >= 0, why, SR_FORMAT, file, path, "open dataset");
}

sr_status h5_check_stored(h5_id file, h5_id set, const char *path, const h5_shape *shape,
                          sr_failure *why) {
    if (shape->stored) return SR_OK;
    h5_errors q = h5_quiet();
    const int64_t bytes = file_bytes(file);
    const bool ok = bytes >= 0 && h5_guard_stored(set, bytes);
    return h5_end(q, ok, why, SR_FORMAT, file, path, "open dataset");
}

void h5_close_dataset(h5_id set) {
    if (set <= 0) return;
    h5_errors q = h5_quiet();
    H5Dclose(set);
    h5_unquiet(q);
}

void h5_get_chunk(h5_id set, int64_t chunk[2]) {
    h5_errors q = h5_quiet();
    hid_t properties = H5Dget_create_plist(set);
    hsize_t size[2] = {0, 0};
    if (H5Pget_layout(properties) == H5D_CHUNKED) H5Pget_chunk(properties, 2, size);
    chunk[0] = (int64_t)size[0], chunk[1] = (int64_t)size[1];
    h5_release(properties), h5_unquiet(q);
}

int64_t h5_stored_bytes(h5_id set, sr_failure *why) {
    h5_errors q = h5_quiet();
    H5Eclear2(H5E_DEFAULT); /* H5Dget_storage_size returns 0 for a failure, too */
    hsize_t bytes = H5Dget_storage_size(set);
    bool ok = bytes <= INT64_MAX && H5Eget_num(H5E_DEFAULT) == 0;
    sr_status status = h5_end(q, ok, why, SR_FORMAT, set, NULL, "read the index of chunks");
    return status == SR_OK ? (int64_t)bytes : -1;
}

/* Chunks of a dataset in the order of their rows. */
typedef struct chunk_list {
    hid_t set, space;
    hsize_t count, end; /* end: bytes of the file */
    hsize_t row, bytes; /* last chunk passed to chunk_is_whole */
} chunk_list;

/* Slow, since HDF5 goes through all earlier chunks. An unreadable chunk is not whole. */
static bool chunk_is_whole(chunk_list *l, hsize_t i) {
    hsize_t first[2] = {0, 0};
    haddr_t address = 0;
    l->row = 0, l->bytes = 1;
    if (H5Dget_chunk_info(l->set, l->space, i, first, NULL, &address, &l->bytes) < 0) return false;
    l->row = first[0];
    return address + l->bytes <= l->end;
}

/* An incomplete chunk after a complete one, or the last or the first chunk. */
static hsize_t find_border(chunk_list *l) {
    hsize_t low = 0, high = l->count - 1;
    while (low < high) {
        hsize_t middle = low + (high - low) / 2;
        if (chunk_is_whole(l, middle))
            low = middle + 1;
        else
            high = middle;
    }
    return high;
}

/* Files grow at their end, and a writer flushes its rows in order. Within a flush the order of
 * chunks differs: some columns come first, and the cache of chunks mixes its content. So the search
 * goes back from the border until enough chunks in a row are complete: one flush of all columns,
 * and the cache. */
int64_t h5_whole_rows(h5_id set, int64_t rows, int64_t end) {
    enum { CACHE_BYTES = 1 << 20 };
    h5_errors q = h5_quiet();
    chunk_list l = {.set = set, .space = H5Dget_space(set), .end = (hsize_t)end};
    hsize_t dims[2] = {0, 1};
    int64_t chunk[2], whole = 0;
    h5_get_chunk(set, chunk);
    if (H5Sget_simple_extent_dims(l.space, dims, NULL) < 0 ||
        H5Dget_num_chunks(set, l.space, &l.count) < 0)
        rows = 0;
    int64_t band = chunk[1] > 0 ? (int64_t)dims[1] / chunk[1] + 1 : 1;
    for (hsize_t i = l.count && rows ? find_border(&l) + 1 : 0; i-- > 0;) {
        whole = chunk_is_whole(&l, i) ? whole + 1 : 0;
        if (whole == 0 && (int64_t)l.row < rows) rows = (int64_t)l.row;
        if (whole > band + CACHE_BYTES / (int64_t)(l.bytes + 1)) break;
    }
    h5_release(l.space), h5_unquiet(q);
    return rows;
}

/* Opens an attribute of one value of this class. *size: its bytes. */
static hid_t open_attribute(hid_t file, const char *object, const char *name, H5T_class_t class,
                            size_t *size) {
    const h5_way way = h5_reach(file, object);
    if (way.found < 0) return -1;
    hid_t id = H5Aopen_by_name(way.at, way.name, name, H5P_DEFAULT, H5P_DEFAULT);
    if (id < 0 || h5_guard_attribute(id, class, size)) return id;
    h5_release(id);
    return -1;
}

sr_status h5_get_attribute(h5_id file, const char *object, const char *name, h5_type type,
                           void **text, void *number, sr_failure *why) {
    h5_errors q = h5_quiet();
    size_t size = 0;
    hid_t id = open_attribute(file, object, name, text ? H5T_STRING : H5T_INTEGER, &size);
    hid_t stored = id < 0 ? -1 : H5Aget_type(id), memory = h5_memory_type(stored, type, size);
    void *at = number;
    if (text) *text = at = memory < 0 ? NULL : calloc(size + 1, 1);
    bool ok = memory >= 0 && at && H5Aread(id, memory, at) >= 0;
    const h5_path what = h5_path_of("%s attribute %s", object, name);
    sr_status otherwise = memory >= 0 && !at ? SR_MEMORY : SR_FORMAT;
    sr_status status = h5_end(q, ok, why, otherwise, file, what.text, "read");
    h5_release(memory), h5_release(stored), h5_release(id);
    if (!ok && text) free(*text), *text = NULL;
    return status;
}

sr_status h5_count_members(h5_id file, const char *group, int64_t *count, sr_failure *why) {
    h5_errors q = h5_quiet();
    H5G_info_t info = {0};
    bool ok = h5_reach(file, group).found >= 0 && h5_guard_links(file, group) &&
              H5Gget_info_by_name(file, group, &info, H5P_DEFAULT) >= 0;
    *count = ok ? (int64_t)info.nlinks : 0;
    return h5_end(q, ok, why, SR_FORMAT, file, group, "open group");
}

sr_status h5_member(h5_id file, const char *group, int64_t i, char *name, size_t size,
                    sr_failure *why) {
    h5_errors q = h5_quiet();
    bool ok = h5_reach(file, group).found >= 0 && (i > 0 || h5_guard_links(file, group)) &&
              H5Lget_name_by_idx(file, group, H5_INDEX_NAME, H5_ITER_INC, (hsize_t)i, name, size,
                                 H5P_DEFAULT) >= 0;
    return h5_end(q, ok, why, SR_FORMAT, file, group, "list group");
}
