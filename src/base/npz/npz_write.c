/* npz_write.c -- writes archives of arrays (npz.h) as stored entries of a zip file. The format is
 * PKWARE's APPNOTE 6.3: local headers in 4.3.7, central directory in 4.3.12 and 4.3.14 to 4.3.16.
 * Numbers of 64 bits are in 4.5.3.
 *
 * An array takes its bytes and a few hundred more until it is written. A run with 100,000 sites has
 * 200,000 arrays; libzip needs a kilobyte for each.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/containers/map.h"
#include "base/containers/vector.h"
#include "base/npz/npz_format.h"
#include "base/output_file.h"

enum { NPZ_PART = NPZ_PATH + 8, SHORT_MOST = 0xffff };
/* Versions and a flag of zip files; the first day that they can store, 1 January 1980. */
enum { STORED_VERSION = 10, LONG_VERSION = 45, UTF8 = 1 << 11, DAY = 1 << 5 | 1 };
static const uint64_t long_most = 0xffffffff;

typedef struct entry {
    uint64_t size, place; /* its bytes; offset of its header in the file */
    uint32_t sum;
    uint16_t name; /* bytes of it, which come first */
    char bytes[];
} entry;

struct npz_writer {
    char path[NPZ_PATH];
    bool force;
    map names;
    entry **entry; /* [names.count] */
    int64_t capacity;
};

/* -- paths ----------------------------------------------------------------------------------- */

sr_status npz_check_path(const char *path, bool force, sr_failure *why) {
    char directory[NPZ_PATH];
    struct stat s;
    if (strlen(path) >= NPZ_PATH)
        return sr_fail(why, SR_USAGE, "%.64s...: %s", path, strerror(ENAMETOOLONG));
    if (!*path) return sr_fail(why, SR_USAGE, "an archive of arrays with an empty name");
    if (lstat(path, &s) == 0 && !S_ISREG(s.st_mode))
        return sr_fail(why, SR_EXISTS, "%s: exists and is not a regular file", path);
    if (access(path, F_OK) == 0 && !force) {
        sr_fail(why, SR_EXISTS, "%s: exists", path);
        sr_hint(why, "another name, or --force to replace it");
        return SR_EXISTS;
    }
    /* The directory that holds the path. */
    strcpy(directory, path);
    char *slash = strrchr(directory, '/');
    if (!slash)
        strcpy(directory, ".");
    else
        slash[slash == directory] = 0; /* "/" keeps its slash */
    if (access(directory, W_OK | X_OK) != 0)
        return sr_fail(why, SR_IO, "%s: %s", path, strerror(errno));
    return SR_OK;
}

/* -- entries --------------------------------------------------------------------------------- */

/* path: shorter than NPZ_PATH */
static void part_of(const char *path, char part[NPZ_PART]) {
    snprintf(part, NPZ_PART, "%s.part", path);
}

npz_writer *npz_create(const char *path, bool force, sr_failure *why) {
    char part[NPZ_PART];
    if (npz_check_path(path, force, why) != SR_OK) return NULL;
    part_of(path, part);
    if (output_file_check(part, why) != SR_OK) return NULL;
    npz_writer *w = calloc(1, sizeof *w);
    if (!w) {
        sr_fail(why, SR_MEMORY, "%s: out of memory", path);
        return NULL;
    }
    strcpy(w->path, path);
    w->force = force;
    return w;
}

static uint32_t sum_of(const char *bytes, uint64_t size) {
    uLong sum = crc32(0, NULL, 0);
    for (uint64_t part; size; bytes += part, size -= part) {
        part = size < 1 << 30 ? size : 1 << 30;
        sum = crc32(sum, (const Bytef *)bytes, (uInt)part);
    }
    return (uint32_t)sum;
}

/* malloc'd; NULL when out of memory. */
static entry *make_entry(const char *name, size_t length, const npz_array *a) {
    char header[NPY_HEADER_MAX];
    const size_t start = npy_write_header(header, a);
    const size_t bytes = (size_t)(npz_count(a) * npy_item_bytes(a->type));
    entry *e = malloc(sizeof *e + length + start + bytes);
    if (!e) return NULL;
    *e = (entry){.size = start + bytes, .name = (uint16_t)length};
    memcpy(e->bytes, name, length);
    memcpy(e->bytes + length, header, start);
    if (bytes) memcpy(e->bytes + length + start, a->data, bytes);
    e->sum = sum_of(e->bytes + length, e->size);
    return e;
}

sr_status npz_add(npz_writer *w, const char *name, const npz_array *a, sr_failure *why) {
    char full[NPZ_ENTRY];
    sr_status status = npz_entry_name(full, w->path, name, why);
    if (status != SR_OK) return status;
    const size_t length = strlen(full);
    if (map_find(&w->names, full, length) >= 0)
        return sr_fail(why, SR_IO, "%s: %s: File already exists", w->path, full);
    entry *e = make_entry(full, length, a);
    if (e && vector_reserve(&w->entry, &w->capacity, w->names.count + 1, sizeof(entry *))) {
        const int64_t i = map_add(&w->names, full, length);
        if (i >= 0) {
            w->entry[i] = e;
            return SR_OK;
        }
    }
    free(e);
    return sr_fail(why, SR_MEMORY, "%s: %s: out of memory", w->path, name);
}

int64_t npz_added(const npz_writer *w) {
    return w->names.count;
}

/* -- the file -------------------------------------------------------------------------------- */

/* A file in progress; numbers are little-endian. */
typedef struct output {
    FILE *file;
    uint64_t at;
} output;

static void put_bytes(output *o, const void *bytes, size_t size) {
    fwrite(bytes, 1, size, o->file); /* ferror reports failures, once */
    o->at += size;
}

static void put(output *o, int bytes, uint64_t value) {
    unsigned char b[8];
    for (int i = 0; i < bytes; i++) b[i] = (unsigned char)(value >> 8 * i);
    put_bytes(o, b, (size_t)bytes);
}

static uint64_t short_of(uint64_t value, uint64_t most) {
    return value < most ? value : most;
}

/* Writes the fields that both headers of an entry share. */
static void put_common(output *o, const entry *e, bool is_long, int more) {
    /* unreached: arrays and archives of 4 GiB, here and below */
    put(o, 2, is_long ? LONG_VERSION : STORED_VERSION), put(o, 2, UTF8), put(o, 2, 0);
    put(o, 2, 0), put(o, 2, DAY), put(o, 4, e->sum);
    put(o, 4, short_of(e->size, long_most)), put(o, 4, short_of(e->size, long_most));
    put(o, 2, e->name), put(o, 2, (uint64_t)more);
}

static void put_entry(output *o, entry *e) {
    const bool is_long = e->size >= long_most;
    e->place = o->at;
    put_bytes(o, "PK\3\4", 4);
    put_common(o, e, is_long, is_long ? 20 : 0); /* unreached: 4 GiB */
    put_bytes(o, e->bytes, e->name);
    /* unreached: an array of 4 GiB */
    if (is_long) put(o, 2, 1), put(o, 2, 16), put(o, 8, e->size), put(o, 8, e->size);
    put_bytes(o, e->bytes + e->name, e->size);
}

static void put_directory_entry(output *o, const entry *e) {
    const bool large = e->size >= long_most, far = e->place >= long_most;
    const int numbers = (large ? 16 : 0) + (far ? 8 : 0); /* unreached: 4 GiB */
    put_bytes(o, "PK\1\2", 4);
    put(o, 2, 3 << 8 | LONG_VERSION);                         /* made under Unix */
    put_common(o, e, numbers > 0, numbers ? 4 + numbers : 0); /* unreached: 4 GiB */
    put(o, 2, 0), put(o, 2, 0), put(o, 2, 0), put(o, 4, (uint64_t)0100644 << 16);
    put(o, 4, short_of(e->place, long_most));
    put_bytes(o, e->bytes, e->name);
    if (numbers) put(o, 2, 1), put(o, 2, (uint64_t)numbers); /* unreached: 4 GiB */
    if (large) put(o, 8, e->size), put(o, 8, e->size);       /* unreached: an array of 4 GiB */
    if (far) put(o, 8, e->place);                            /* unreached: 4 GiB before it */
}

static void put_end(output *o, uint64_t count, uint64_t directory) {
    const uint64_t size = o->at - directory, end = o->at;
    if (count >= SHORT_MOST || end >= long_most) {
        put_bytes(o, "PK\6\6", 4), put(o, 8, 44);
        put(o, 2, LONG_VERSION), put(o, 2, LONG_VERSION), put(o, 4, 0), put(o, 4, 0);
        put(o, 8, count), put(o, 8, count), put(o, 8, size), put(o, 8, directory);
        put_bytes(o, "PK\6\7", 4), put(o, 4, 0), put(o, 8, end), put(o, 4, 1);
    }
    put_bytes(o, "PK\5\6", 4), put(o, 2, 0), put(o, 2, 0);
    put(o, 2, short_of(count, SHORT_MOST)), put(o, 2, short_of(count, SHORT_MOST));
    put(o, 4, short_of(size, long_most)), put(o, 4, short_of(directory, long_most)), put(o, 2, 0);
}

static void put_archive(const npz_writer *w, FILE *file) {
    output o = {file, 0};
    const int64_t count = w->names.count;
    for (int64_t i = 0; i < count && !ferror(file); i++) put_entry(&o, w->entry[i]);
    const uint64_t directory = o.at;
    for (int64_t i = 0; i < count && !ferror(file); i++) put_directory_entry(&o, w->entry[i]);
    put_end(&o, (uint64_t)count, directory);
}

static sr_status write_file(const npz_writer *w, sr_failure *why) {
    char part[NPZ_PART];
    part_of(w->path, part);
    FILE *file = output_file_open(part, w->path, why);
    if (!file) return why->status;
    put_archive(w, file);
    return output_file_publish(file, part, w->path, SR_OK, why);
}

sr_status npz_write(npz_writer *w, sr_failure *why) {
    /* the run may have taken days since npz_create */
    sr_status status = npz_check_path(w->path, w->force, why);
    if (status == SR_OK) status = write_file(w, why);
    npz_abandon(w);
    return status;
}

void npz_abandon(npz_writer *w) {
    if (!w) return;
    for (int64_t i = 0; i < w->names.count; i++) free(w->entry[i]);
    free(w->entry);
    map_free(&w->names);
    free(w);
}
