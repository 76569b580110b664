/* array_file.c -- see array_file.h. */
#include "hdf5/array_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hdf5/h5.h"
#include "journal/file_sync.h"

enum { NAME_SIZE = 256 };

static const h5_type type_of[NPZ_TYPES] = {
    [NPZ_FLOAT32] = H5_FLOAT32, [NPZ_FLOAT64] = H5_FLOAT64, [NPZ_INT32] = H5_INT32,
    [NPZ_INT64] = H5_INT64,     [NPZ_UINT8] = H5_UINT8,     [NPZ_TEXT64] = H5_OTHER,
};

/* -- writing --------------------------------------------------------------------------------- */

struct array_writer {
    char path[PATH_MAX], part[PATH_MAX];
    h5_id file;
    sr_failure failure;
};

/* Keeps the first failure, and hands on the one kept. */
static sr_status keep(array_writer *w, sr_status status, sr_failure *why) {
    if (status != SR_OK && w->file) h5_divert(w->file);
    if (w->failure.status != SR_OK && why) *why = w->failure;
    return w->failure.status;
}

array_writer *array_writer_create(const char *path, const char *format, int64_t version,
                                  sr_failure *why) {
    array_writer *w = calloc(1, sizeof *w);
    if (!w) {
        sr_fail(why, SR_MEMORY, "%s: no memory to write it", path);
        return NULL;
    }
    int length = snprintf(w->path, sizeof w->path, "%s", path);
    sr_status status = SR_OK;
    if (length < 0 || length + sizeof ".part" > sizeof w->part)
        status = sr_fail(why, SR_USAGE, "%.80s...: the path is too long", path);
    if (status == SR_OK) {
        snprintf(w->part, sizeof w->part, "%.*s.part", length, w->path);
        unlink(w->part); /* of a writer that died */
        status = h5_create(w->part, false, &w->file, why);
    }
    if (status == SR_OK) status = array_writer_put_text(w, "format", format, why);
    if (status == SR_OK) status = array_writer_put_int(w, "format_version", version, why);
    if (status == SR_OK) return w;
    array_writer_abandon(w);
    return NULL;
}

/* The groups on the way to a name. */
static sr_status add_groups(array_writer *w, const char *name) {
    char group[NAME_SIZE];
    for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(group, sizeof group, "/%.*s", (int)(slash - name), name);
        if (h5_has(w->file, group)) continue;
        sr_status status = h5_add_group(w->file, group, &w->failure);
        if (status != SR_OK) return status;
    }
    return SR_OK;
}

sr_status array_writer_add(array_writer *w, const char *name, const npz_array *a, sr_failure *why) {
    if (w->failure.status != SR_OK) return keep(w, SR_OK, why);
    char path[NAME_SIZE + 1];
    h5_shape shape = {.type = type_of[a->type], .rank = a->rank, .summed = true};
    h5_id set = 0;
    int64_t count = 1;
    for (int i = 0; i < a->rank; i++) count *= shape.dims[i] = a->dim[i];
    if (shape.type == H5_OTHER || strlen(name) >= NAME_SIZE || count < 1)
        return keep(w, sr_fail(&w->failure, SR_USAGE, "%s: %s cannot be stored", w->path, name),
                    why);
    snprintf(path, sizeof path, "/%s", name);
    sr_status status = add_groups(w, name);
    if (status == SR_OK) status = h5_add_dataset(w->file, path, &shape, &set, &w->failure);
    if (status == SR_OK) status = h5_write_all(set, shape.type, 0, a->data, &w->failure);
    keep(w, status, NULL);
    h5_close_dataset(set);
    return keep(w, SR_OK, why);
}

sr_status array_writer_put_text(array_writer *w, const char *name, const char *text,
                                sr_failure *why) {
    if (w->failure.status == SR_OK)
        keep(w, h5_put_attribute(w->file, "/", name, H5_TEXT, strlen(text), -1, text, &w->failure),
             NULL);
    return keep(w, SR_OK, why);
}

sr_status array_writer_put_int(array_writer *w, const char *name, int64_t value, sr_failure *why) {
    if (w->failure.status == SR_OK)
        keep(w, h5_put_attribute(w->file, "/", name, H5_INT64, 0, -1, &value, &w->failure), NULL);
    return keep(w, SR_OK, why);
}

sr_status array_writer_finish(array_writer *w, sr_failure *why) {
    if (w->failure.status == SR_OK) keep(w, h5_flush(w->file, &w->failure), NULL);
    if (w->failure.status == SR_OK) {
        keep(w, h5_close(w->file, &w->failure), NULL);
        w->file = 0;
    }
    if (w->failure.status == SR_OK && file_sync(w->part, &w->failure) == SR_OK) {
        if (rename(w->part, w->path) != 0)
            sr_fail(&w->failure, SR_IO, "%s: rename to %s: %s", w->part, w->path, strerror(errno));
        else
            file_sync_directory(w->path, &w->failure);
    }
    const sr_failure own = w->failure;
    if (own.status == SR_OK)
        free(w);
    else
        array_writer_abandon(w);
    if (own.status != SR_OK && why) *why = own;
    return own.status;
}

void array_writer_abandon(array_writer *w) {
    if (!w) return;
    if (w->file) {
        h5_divert(w->file);
        h5_close(w->file, NULL);
    }
    if (*w->part) unlink(w->part);
    free(w);
}

/* -- reading --------------------------------------------------------------------------------- */

struct array_reader {
    char path[PATH_MAX];
    h5_id file;
};

/* What h5.c hints at helps with run files alone. */
static void forget_recovery(sr_status status, sr_failure *why) {
    if (status == SR_FORMAT && why) why->hint[0] = 0;
}

static sr_status check_format(const array_reader *r, const char *format, int64_t newest,
                              sr_failure *why) {
    void *said = NULL;
    int64_t version = 0;
    sr_failure unread = {0};
    sr_status status = h5_get_attribute(r->file, "/", "format", H5_TEXT, &said, NULL, &unread);
    const bool same = status == SR_OK && !strcmp(said, format);
    free(said);
    if (status == SR_MEMORY) return sr_fail(why, status, "%s: no memory to read it", r->path);
    if (!same) return sr_fail(why, SR_FORMAT, "%s: not a %s file", r->path, format);
    status = array_reader_int(r, "format_version", &version, why);
    if (status != SR_OK || (version >= 1 && version <= newest)) return status;
    return sr_fail(why, SR_FORMAT, "%s: %s version %lld, this program knows 1 to %lld", r->path,
                   format, (long long)version, (long long)newest);
}

/* HDF5 would say "unable to open file" of all of these. */
static sr_status check_file(const char *path, sr_failure *why) {
    static const char signature[] = "\x89HDF\r\n\x1a\n";
    char first[8] = "";
    struct stat s;
    if (stat(path, &s) != 0) return sr_fail(why, SR_IO, "%s: %s", path, strerror(errno));
    if (!S_ISREG(s.st_mode)) return sr_fail(why, SR_IO, "%s: not a regular file", path);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return sr_fail(why, SR_IO, "%s: %s", path, strerror(errno));
    ssize_t got = read(fd, first, sizeof first);
    int failed = got < 0 ? errno : 0;
    close(fd);
    if (failed) return sr_fail(why, SR_IO, "%s: %s", path, strerror(failed));
    if (got == sizeof first && !memcmp(first, signature, sizeof first)) return SR_OK;
    return sr_fail(why, SR_FORMAT, "%s: not an HDF5 file", path);
}

array_reader *array_reader_open(const char *path, const char *format, int64_t newest,
                                sr_failure *why) {
    if (check_file(path, why) != SR_OK) return NULL;
    array_reader *r = calloc(1, sizeof *r);
    if (!r) {
        sr_fail(why, SR_MEMORY, "%s: no memory to read it", path);
        return NULL;
    }
    snprintf(r->path, sizeof r->path, "%s", path);
    sr_status status = h5_open(path, H5_CLOSED, NULL, &r->file, why);
    if (status == SR_OK) status = check_format(r, format, newest, why);
    if (status == SR_OK) return r;
    forget_recovery(status, why);
    array_reader_close(r);
    return NULL;
}

void array_reader_close(array_reader *r) {
    if (!r) return;
    h5_close(r->file, NULL);
    free(r);
}

const char *array_reader_path(const array_reader *r) {
    return r->path;
}

static void path_of(const char *name, char path[NAME_SIZE]) {
    snprintf(path, NAME_SIZE, "/%s", name);
}

bool array_reader_has(const array_reader *r, const char *name) {
    char path[NAME_SIZE];
    path_of(name, path);
    return h5_has(r->file, path);
}

static sr_status open_array(const array_reader *r, const char *name, h5_id *set, npz_array *a,
                            sr_failure *why) {
    char path[NAME_SIZE];
    h5_shape shape;
    path_of(name, path);
    *set = 0;
    sr_status status = h5_open_dataset(r->file, path, -1, set, NULL, why);
    if (status == SR_OK) status = h5_get_shape(*set, &shape, why);
    forget_recovery(status, why);
    if (status != SR_OK) return status;
    *a = (npz_array){.type = NPZ_TYPES, .rank = shape.rank};
    for (int i = 0; i < NPZ_TYPES; i++)
        if (type_of[i] == shape.type && shape.type != H5_OTHER) a->type = (npz_type)i;
    for (int i = 0; i < shape.rank; i++) a->dim[i] = shape.dims[i];
    if (shape.rank >= 0 && a->type != NPZ_TYPES) return SR_OK;
    return sr_fail(why, SR_FORMAT, "%s: %s: of a type or rank that is not known here", r->path,
                   name);
}

sr_status array_reader_shape(const array_reader *r, const char *name, npz_array *a,
                             sr_failure *why) {
    h5_id set;
    sr_status status = open_array(r, name, &set, a, why);
    h5_close_dataset(set);
    return status;
}

static void format_shape(const npz_array *a, char text[NAME_SIZE]) {
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < a->rank; i++)
        used += (size_t)snprintf(text + used, NAME_SIZE - used, "%s%lld", i ? " x " : "",
                                 (long long)a->dim[i]);
    if (a->rank == 0) snprintf(text, NAME_SIZE, "one value");
}

static sr_status check_same(const array_reader *r, const char *name, const npz_array *found,
                            const npz_array *wanted, sr_failure *why) {
    bool same = found->rank == wanted->rank && found->type == wanted->type;
    for (int i = 0; same && i < found->rank; i++) same = found->dim[i] == wanted->dim[i];
    if (same) return SR_OK;
    char has[NAME_SIZE], wants[NAME_SIZE];
    format_shape(found, has), format_shape(wanted, wants);
    return sr_fail(why, SR_FORMAT, "%s: %s is %s%s, not %s", r->path, name, has,
                   found->type == wanted->type ? "" : " of another type", wants);
}

sr_status array_reader_fill(const array_reader *r, const char *name, const npz_array *into,
                            sr_failure *why) {
    h5_id set;
    npz_array found;
    sr_status status = open_array(r, name, &set, &found, why);
    if (status == SR_OK) status = check_same(r, name, &found, into, why);
    if (status == SR_OK) status = h5_read_all(set, type_of[into->type], 0, into->data, why);
    h5_close_dataset(set);
    forget_recovery(status, why);
    return status;
}

sr_status array_reader_text(const array_reader *r, const char *name, char **text, sr_failure *why) {
    void *at = NULL;
    sr_status status = h5_get_attribute(r->file, "/", name, H5_TEXT, &at, NULL, why);
    *text = at;
    forget_recovery(status, why);
    return status;
}

sr_status array_reader_int(const array_reader *r, const char *name, int64_t *value,
                           sr_failure *why) {
    sr_status status = h5_get_attribute(r->file, "/", name, H5_INT64, NULL, value, why);
    forget_recovery(status, why);
    return status;
}

sr_status array_reader_count(const array_reader *r, const char *group, int64_t *count,
                             sr_failure *why) {
    char path[NAME_SIZE];
    path_of(group, path);
    *count = 0;
    if (!h5_has(r->file, path)) return SR_OK;
    sr_status status = h5_count_members(r->file, path, count, why);
    forget_recovery(status, why);
    return status;
}

sr_status array_reader_name(const array_reader *r, const char *group, int64_t i, char *name,
                            size_t size, sr_failure *why) {
    char path[NAME_SIZE];
    path_of(group, path);
    sr_status status = h5_member(r->file, path, i, name, size, why);
    forget_recovery(status, why);
    return status;
}
