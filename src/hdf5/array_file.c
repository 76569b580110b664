/* array_file.c -- writes and reads checkpoints as HDF5 files of arrays and texts. */
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

enum { SHAPE_TEXT = 256 };

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

/* Keeps the first failure and returns it. */
static sr_status keep(array_writer *w, sr_status status, sr_failure *why) {
    if (status != SR_OK && w->file) h5_divert(w->file);
    if (w->failure.status != SR_OK && why) *why = w->failure;
    return w->failure.status;
}

static void abandon(array_writer *w) {
    if (w->file) {
        h5_divert(w->file);
        h5_close(w->file, NULL);
    }
    unlink(w->part);
    free(w);
}

array_writer *array_writer_create(const char *path, const char *format, int64_t version,
                                  sr_failure *why) {
    array_writer *w = calloc(1, sizeof *w);
    if (!w) {
        sr_fail(why, SR_MEMORY, "%s: no memory to write it", path);
        return NULL;
    }
    snprintf(w->path, sizeof w->path, "%s", path);
    const int length = snprintf(w->part, sizeof w->part, "%s.part", path);
    if (length >= (int)sizeof w->part) {
        sr_fail(why, SR_USAGE, "%.80s...: the path is too long", path);
        free(w);
        return NULL;
    }
    unlink(w->part); /* left by a writer that died */
    sr_status status = h5_create(w->part, false, &w->file, why);
    if (status == SR_OK) status = array_writer_put_text(w, "format", format, why);
    if (status == SR_OK) status = array_writer_put_int(w, "format_version", version, why);
    if (status == SR_OK) return w;
    abandon(w);
    return NULL;
}

/* Creates the groups that a name is in. */
static sr_status add_groups(array_writer *w, const char *name) {
    for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
        const h5_path group = h5_path_of("/%.*s", (int)(slash - name), name);
        if (h5_has(w->file, group.text)) continue;
        sr_status status = h5_add_group(w->file, group.text, &w->failure);
        if (status != SR_OK) return status;
    }
    return SR_OK;
}

sr_status array_writer_add(array_writer *w, const char *name, const npz_array *a, sr_failure *why) {
    if (w->failure.status != SR_OK) return keep(w, SR_OK, why);
    h5_shape shape = {.type = type_of[a->type], .rank = a->rank, .summed = true};
    h5_id set = 0;
    int64_t count = 1;
    for (int i = 0; i < a->rank; i++) count *= shape.dims[i] = a->dim[i];
    if (shape.type == H5_OTHER || strlen(name) >= H5_PATH_SIZE || count < 1)
        return keep(w, sr_fail(&w->failure, SR_USAGE, "%s: %s cannot be stored", w->path, name),
                    why);
    if (!a->data)
        return keep(w, sr_fail(&w->failure, SR_MEMORY, "%s: no memory for %s", w->path, name), why);
    sr_status status = add_groups(w, name);
    if (status == SR_OK)
        status = h5_add_dataset(w->file, h5_path_of("/%s", name).text, &shape, &set, &w->failure);
    if (status == SR_OK) status = h5_write_all(set, shape.type, 0, a->data, &w->failure);
    keep(w, status, NULL);
    h5_close_dataset(set);
    return keep(w, SR_OK, why);
}

static sr_status put_attribute(array_writer *w, const char *name, h5_type type, size_t text,
                               const void *value, sr_failure *why) {
    if (w->failure.status == SR_OK)
        keep(w, h5_put_attribute(w->file, "/", name, type, text, -1, value, &w->failure), NULL);
    return keep(w, SR_OK, why);
}

sr_status array_writer_put_text(array_writer *w, const char *name, const char *text,
                                sr_failure *why) {
    return put_attribute(w, name, H5_TEXT, strlen(text), text, why);
}

sr_status array_writer_put_int(array_writer *w, const char *name, int64_t value, sr_failure *why) {
    return put_attribute(w, name, H5_INT64, 0, &value, why);
}

sr_status array_writer_finish(array_writer *w, sr_failure *why) {
    if (w->failure.status == SR_OK) keep(w, h5_flush(w->file, &w->failure), NULL);
    if (w->failure.status == SR_OK) {
        const h5_id file = w->file;
        w->file = 0; /* closed, also by a failure */
        keep(w, h5_close(file, &w->failure), NULL);
    }
    if (w->failure.status == SR_OK && file_sync(w->part, &w->failure) == SR_OK) {
        if (rename(w->part, w->path) != 0)
            sr_fail(&w->failure, SR_IO, "%s: rename to %s: %s", w->part, w->path, strerror(errno));
        else
            file_sync_directory(w->path, &w->failure);
    }
    const sr_failure own = w->failure;
    if (own.status == SR_OK) {
        free(w);
        return SR_OK;
    }
    abandon(w);
    if (why) *why = own;
    return own.status;
}

/* -- reading --------------------------------------------------------------------------------- */

struct array_reader {
    char path[PATH_MAX];
    h5_id file;
};

/* Drops the hint of h5.c, which is for run files. */
static sr_status without_hint(sr_status status, sr_failure *why) {
    if (status == SR_FORMAT && why) why->hint[0] = 0;
    return status;
}

static sr_status check_format(const array_reader *r, const char *format, int64_t newest,
                              sr_failure *why) {
    void *found = NULL;
    int64_t version = 0;
    sr_failure unread = {0};
    sr_status status = h5_get_attribute(r->file, "/", "format", H5_TEXT, &found, NULL, &unread);
    const bool same = status == SR_OK && !strcmp(found, format);
    free(found);
    if (status == SR_MEMORY) return sr_fail(why, status, "%s: no memory to read it", r->path);
    if (status == SR_IO) return sr_fail(why, status, "%s", unread.text);
    if (!same) return sr_fail(why, SR_FORMAT, "%s: not a %s file", r->path, format);
    status = array_reader_int(r, "format_version", &version, why);
    if (status != SR_OK || (version >= 1 && version <= newest)) return status;
    return sr_fail(why, SR_FORMAT, "%s: %s version %lld, not 1 to %lld", r->path, format,
                   (long long)version, (long long)newest);
}

/* HDF5 would report "unable to open file" for each of these faults. */
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
    without_hint(status, why);
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

bool array_reader_has(const array_reader *r, const char *name) {
    return h5_has(r->file, h5_path_of("/%s", name).text);
}

static sr_status open_array(const array_reader *r, const char *name, h5_id *set, npz_array *a,
                            sr_failure *why) {
    h5_shape shape;
    *set = 0;
    sr_status status =
        h5_open_dataset(r->file, h5_path_of("/%s", name).text, -1, set, &shape, NULL, why);
    if (status != SR_OK) return without_hint(status, why);
    *a = (npz_array){.type = NPZ_TYPES, .rank = shape.rank};
    for (int i = 0; i < NPZ_TEXT64; i++) /* the types before it are numbers */
        if (type_of[i] == shape.type) a->type = (npz_type)i;
    for (int i = 0; i < shape.rank; i++) a->dim[i] = shape.dims[i];
    if (a->type != NPZ_TYPES) return SR_OK;
    return sr_fail(why, SR_FORMAT, "%s: %s: unknown type or rank", r->path, name);
}

sr_status array_reader_shape(const array_reader *r, const char *name, npz_array *a,
                             sr_failure *why) {
    h5_id set;
    sr_status status = open_array(r, name, &set, a, why);
    h5_close_dataset(set);
    return status;
}

static void format_shape(const npz_array *a, char text[SHAPE_TEXT]) {
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < a->rank; i++)
        used += (size_t)snprintf(text + used, SHAPE_TEXT - used, "%s%lld", i ? " x " : "",
                                 (long long)a->dim[i]);
    if (a->rank == 0) snprintf(text, SHAPE_TEXT, "one value");
}

static sr_status check_same(const array_reader *r, const char *name, const npz_array *found,
                            const npz_array *wanted, sr_failure *why) {
    bool same = found->rank == wanted->rank && found->type == wanted->type;
    for (int i = 0; same && i < found->rank; i++) same = found->dim[i] == wanted->dim[i];
    if (same) return SR_OK;
    char has[SHAPE_TEXT], wants[SHAPE_TEXT];
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
    return without_hint(status, why);
}

sr_status array_reader_text(const array_reader *r, const char *name, char **text, sr_failure *why) {
    void *at = NULL;
    sr_status status = h5_get_attribute(r->file, "/", name, H5_TEXT, &at, NULL, why);
    *text = at;
    return without_hint(status, why);
}

sr_status array_reader_int(const array_reader *r, const char *name, int64_t *value,
                           sr_failure *why) {
    return without_hint(h5_get_attribute(r->file, "/", name, H5_INT64, NULL, value, why), why);
}

bool array_reader_has_attribute(const array_reader *r, const char *name) {
    return h5_has_attribute(r->file, "/", name);
}

sr_status array_reader_count(const array_reader *r, const char *group, int64_t *count,
                             sr_failure *why) {
    const h5_path path = h5_path_of("/%s", group);
    *count = 0;
    if (!h5_has(r->file, path.text)) return SR_OK;
    return without_hint(h5_count_members(r->file, path.text, count, why), why);
}

sr_status array_reader_name(const array_reader *r, const char *group, int64_t i, char *name,
                            size_t size, sr_failure *why) {
    const h5_path path = h5_path_of("/%s", group);
    return without_hint(h5_member(r->file, path.text, i, name, size, why), why);
}
