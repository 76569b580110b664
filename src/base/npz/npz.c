/* npz.c -- reads archives of arrays (npz.h); npz_write.c writes them. The only user of libzip. */
#include "base/npz/npz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zip.h>

#include "base/file_kind.h"
#include "base/npz/npz_format.h"

enum { HEAD_BYTES = 1 << 16, Z_MEM = -4 /* zlib's Z_MEM_ERROR */ };
enum { DEFLATE_RATIO = 1032, DEFLATE_LEAST = 64 }; /* bytes that it can make of one, and of few */

struct npz_reader {
    char path[NPZ_PATH];
    zip_t *zip;
    char name[NPZ_ENTRY]; /* the last npz_name */
};

int64_t npz_count(const npz_array *a) {
    int64_t count = 1;
    for (int i = 0; i < a->rank; i++) count *= a->dim[i];
    return count;
}

/* -- failures and names */

static bool is_of_memory(zip_error_t *error) {
    const int code = zip_error_code_zip(error), below = zip_error_code_system(error);
    return code == ZIP_ER_MEMORY || below == (code == ZIP_ER_ZLIB ? Z_MEM : ENOMEM);
}

static sr_status fail_zip(const char *path, const char *name, zip_error_t *error, sr_failure *why) {
    const sr_status status = is_of_memory(error) ? SR_MEMORY : SR_IO;
    const char *text = zip_error_strerror(error);
    return sr_fail(why, status, "%s: %s%s%s", path, name, *name ? ": " : "", text);
}

/* The failure that libzip reports of opening is a number. Without memory for the directory it calls
 * the file no archive. */
static zip_t *open_zip(const char *path, sr_failure *why) {
    int code = 0;
    errno = 0;
    zip_t *zip = zip_open(path, ZIP_RDONLY, &code);
    if (zip) return zip;
    zip_error_t error;
    zip_error_init_with_code(&error, errno == ENOMEM ? ZIP_ER_MEMORY : code);
    fail_zip(path, "", &error, why);
    zip_error_fini(&error);
    return NULL;
}

sr_status npz_entry_name(char out[NPZ_ENTRY], const char *path, const char *name, sr_failure *why) {
    size_t length = strlen(name);
    if (length == 0 || length > NPZ_ENTRY - 5)
        return sr_fail(why, SR_USAGE, "%s: an array's name has %zu bytes", path, length);
    memcpy(out, name, length);
    strcpy(out + length, ".npy");
    return SR_OK;
}

/* -- reading */

/* Before it is opened: a pipe would wait for its writer. */
static sr_status check_regular(const char *path, sr_failure *why) {
    struct stat s;
    if (stat(path, &s) != 0) return sr_fail(why, SR_IO, "%s: %s", path, strerror(errno));
    if (!S_ISREG(s.st_mode)) return sr_fail(why, SR_IO, "%s: not a regular file", path);
    return file_kind_check_path(path, ACCEPT(KIND_ZIP), "NumPy's .npz", why);
}

npz_reader *npz_open(const char *path, sr_failure *why) {
    if (check_regular(path, why) != SR_OK) return NULL;
    npz_reader *r = calloc(1, sizeof *r);
    if (!r) {
        sr_fail(why, SR_MEMORY, "%s: out of memory", path);
        return NULL;
    }
    if (strlen(path) >= NPZ_PATH) /* unreached: stat rejects such a path */
        sr_fail(why, SR_USAGE, "%.64s...: %s", path, strerror(ENAMETOOLONG));
    else
        r->zip = open_zip(strcpy(r->path, path), why);
    if (r->zip) return r;
    free(r);
    return NULL;
}

void npz_close(npz_reader *r) {
    if (!r) return;
    zip_discard(r->zip);
    free(r);
}

int64_t npz_arrays(const npz_reader *r) {
    return zip_get_num_entries(r->zip, 0);
}

const char *npz_name(npz_reader *r, int64_t i) {
    const char *name = i < 0 ? NULL : zip_get_name(r->zip, (zip_uint64_t)i, 0);
    size_t length = name ? strlen(name) : 0;
    r->name[0] = 0;
    if (length <= 4 || length >= NPZ_ENTRY || strcmp(name + length - 4, ".npy") != 0)
        return r->name;
    memcpy(r->name, name, length - 4);
    r->name[length - 4] = 0;
    return r->name;
}

/* Limits the size that an entry declares to 64 MiB and four times its archive. */
static sr_status check_size(const npz_reader *r, const char *name, zip_uint64_t size,
                            sr_failure *why) {
    struct stat file;
    if (stat(r->path, &file) != 0) return sr_fail(why, SR_IO, "%s: %s", r->path, strerror(errno));
    if (size <= (64u << 20) + 4 * (zip_uint64_t)file.st_size) return SR_OK;
    return sr_fail(why, SR_FORMAT, "%s: %s: unpacks to %llu bytes; the archive has %lld", r->path,
                   name, (unsigned long long)size, (long long)file.st_size);
}

/* Checks the declared size against the stored bytes of the entry. */
static sr_status check_entry(const npz_reader *r, const char *name, const zip_stat_t *s,
                             sr_failure *why) {
    const zip_uint64_t known =
        ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
    const bool stored = s->comp_method == ZIP_CM_STORE, deflated = s->comp_method == ZIP_CM_DEFLATE;
    /* unreached: libzip gives all of these for an entry of a file that it has opened */
    if ((s->valid & known) != known || s->encryption_method != ZIP_EM_NONE || !(stored || deflated))
        return sr_fail(why, SR_FORMAT, "%s: %s: neither stored nor deflated", r->path, name);
    const zip_uint64_t most = stored ? s->comp_size
                              : s->comp_size < UINT64_MAX / DEFLATE_RATIO - DEFLATE_LEAST
                                  ? DEFLATE_LEAST + s->comp_size * DEFLATE_RATIO
                                  : UINT64_MAX;
    if (s->size <= most && s->size < INT64_MAX) return SR_OK;
    return sr_fail(why, SR_FORMAT, "%s: %s: %llu bytes, of which %llu are stored", r->path, name,
                   (unsigned long long)s->size, (unsigned long long)s->comp_size);
}

/* Opens an entry after checking its declared size; NULL and *why. */
static zip_file_t *open_entry(npz_reader *r, const char *name, int64_t *size, sr_failure *why) {
    zip_stat_t s;
    if (zip_stat(r->zip, name, 0, &s) != 0) {
        fail_zip(r->path, name, zip_get_error(r->zip), why);
        return NULL;
    }
    if (check_entry(r, name, &s, why) != SR_OK || check_size(r, name, s.size, why) != SR_OK)
        return NULL;
    zip_file_t *file = zip_fopen_index(r->zip, s.index, 0);
    if (!file) fail_zip(r->path, name, zip_get_error(r->zip), why);
    *size = (int64_t)s.size;
    return file;
}

/* The first bytes of an entry, all of them unless `most` is less; malloc'd. At its end its checksum
 * is compared. */
static char *read_entry(npz_reader *r, const char *name, int64_t most, int64_t *size, int64_t *got,
                        sr_failure *why) {
    char beyond, *bytes = NULL;
    zip_file_t *file = open_entry(r, name, size, why);
    if (!file) return NULL;
    *got = *size < most ? *size : most;
    if (!(bytes = malloc((size_t)*got + 1))) {
        sr_fail(why, SR_MEMORY, "%s: %s: out of memory", r->path, name);
    } else if (zip_fread(file, bytes, (zip_uint64_t)*got) != (zip_int64_t)*got ||
               (*got == *size && zip_fread(file, &beyond, 1) != 0)) {
        if (is_of_memory(zip_file_get_error(file)))
            sr_fail(why, SR_MEMORY, "%s: %s: out of memory", r->path, name);
        else
            sr_fail(why, SR_FORMAT, "%s: %s: damaged or cut short", r->path, name);
        free(bytes);
        bytes = NULL;
    }
    zip_fclose(file);
    return bytes;
}

/* Reads `most` bytes of NAME.npy and the header in front; *data: where the numbers begin. */
static char *read_array(npz_reader *r, const char *name, int64_t most, npz_array *a, int64_t *data,
                        sr_failure *why) {
    char full[NPZ_ENTRY], what[NPZ_PATH + NPZ_ENTRY];
    int64_t size = 0, got = 0;
    *a = (npz_array){0};
    sr_status status = npz_entry_name(full, r->path, name, why);
    char *bytes = status == SR_OK ? read_entry(r, full, most, &size, &got, why) : NULL;
    if (!bytes) return NULL;
    strcpy(what, r->path);
    strcat(strcat(what, ": "), full);
    status = npy_read_header(bytes, got, what, a, data, why);
    const int64_t wanted = status == SR_OK ? npz_count(a) * npy_item_bytes(a->type) : 0;
    if (status == SR_OK && wanted != size - *data)
        status = sr_fail(why, SR_FORMAT, "%s: %lld bytes of numbers, its shape wants %lld", what,
                         (long long)(size - *data), (long long)wanted);
    if (status == SR_OK) return bytes;
    free(bytes);
    return NULL;
}

sr_status npz_shape(npz_reader *r, const char *name, npz_array *a, sr_failure *why) {
    sr_failure unheard = {0};
    int64_t data;
    if (!why) why = &unheard;
    free(read_array(r, name, HEAD_BYTES, a, &data, why));
    return why->status;
}

sr_status npz_read(npz_reader *r, const char *name, npz_array *a, sr_failure *why) {
    sr_failure unheard = {0};
    int64_t data = 0;
    if (!why) why = &unheard;
    if (npz_shape(r, name, a, why) != SR_OK) return why->status; /* before memory for all of it */
    char *bytes = read_array(r, name, INT64_MAX, a, &data, why);
    if (!bytes) return why->status;
    memmove(bytes, bytes + data, (size_t)(npz_count(a) * npy_item_bytes(a->type)));
    a->data = bytes;
    return SR_OK;
}
