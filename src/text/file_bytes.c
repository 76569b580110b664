/* file_bytes.c -- finds, opens, reads and unpacks whole files; see file_bytes.h. */
#include "text/file_bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "text/file_zip.h"

enum { GZIP_ONLY = 15 + 16, CHUNK = 1 << 30 };
enum { PIPE_MOST = 1 << 30 };

static sr_status probe(const char *path, bool *found, sr_failure *why) {
    *found = access(path, F_OK) == 0;
    if (*found || errno == ENOENT) return SR_OK;
    return sr_fail(why, SR_IO, "%s: %s", path, strerror(errno));
}

sr_status file_find(const char *dir, const char *name, char path[FILE_PATH], bool *found,
                    sr_failure *why) {
    *found = false;
    if (name[0] == '/') dir = "";
    const char *slash = !*dir || dir[strlen(dir) - 1] == '/' ? "" : "/";
    int length = snprintf(path, FILE_PATH, "%s%s%s", dir, slash, name);
    if (length < 0 || length + 4 > FILE_PATH)
        return sr_fail(why, SR_USAGE, "%.200s...: the path is longer than %d bytes", path,
                       FILE_PATH);
    sr_status status = probe(path, found, why);
    if (status != SR_OK || *found) return status;
    strcpy(path + length, ".gz");
    status = probe(path, found, why);
    if (status == SR_OK && !*found) path[length] = 0;
    return status;
}

sr_status file_missing(const char *path, sr_failure *why) {
    return sr_fail(why, SR_IO, "%s: %s (nor %s.gz)", path, strerror(ENOENT), path);
}

/* -- which files */

/* A pipe that the caller opened, so it has a writer, as in <(command). */
static bool is_handed_over(const char *path) {
    return strcmp(path, "/dev/stdin") == 0 || strncmp(path, "/dev/fd/", 8) == 0 ||
           strncmp(path, "/proc/self/fd/", 14) == 0;
}

/* 0 for a file that ends, else the reason not to read it. fd < 0: it is not open yet. */
static int refuse_kind(const char *path, const struct stat *s, int fd) {
    struct stat null;
    const bool device = S_ISCHR(s->st_mode) && stat("/dev/null", &null) == 0;
    if (S_ISREG(s->st_mode) || (device && s->st_rdev == null.st_rdev)) return 0;
    if (S_ISDIR(s->st_mode)) return EISDIR;
    if (!is_handed_over(path)) return EINVAL;
    return fd < 0 || S_ISFIFO(s->st_mode) || isatty(fd) ? 0 : EINVAL;
}

static bool make_blocking(int fd) {
    const int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) == 0;
}

/* Checks the kind before and after opening: a pipe without a writer would block, a device may do
 * anything. */
sr_status file_open(const char *path, int *fd, sr_failure *why) {
    struct stat s;
    *fd = -1;
    int reason = stat(path, &s) == 0 ? refuse_kind(path, &s, -1) : errno;
    if (!reason && (*fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) < 0) reason = errno;
    if (!reason) reason = fstat(*fd, &s) == 0 ? refuse_kind(path, &s, *fd) : errno;
    if (!reason && !make_blocking(*fd)) reason = errno;
    if (!reason) return SR_OK;
    if (*fd >= 0) close(*fd);
    *fd = -1;
    return sr_fail(why, SR_IO, "%s: %s", path,
                   reason == EINVAL ? "not a regular file" : strerror(reason));
}

/* -- all of a file */

/* Grows the buffer to `capacity` bytes and the final zero. */
static sr_status reserve(file_bytes *f, size_t capacity, sr_failure *why) {
    uint8_t *larger = realloc(f->byte, capacity + 1);
    if (!larger)
        return sr_fail(why, SR_MEMORY, "%s: out of memory for %zu bytes", f->path, capacity);
    f->byte = larger;
    return SR_OK;
}

static sr_status read_all(int fd, size_t expected, file_bytes *f, sr_failure *why) {
    size_t capacity = expected + 1; /* one more, to see the end without growing */
    sr_status status = reserve(f, capacity, why);
    while (status == SR_OK) {
        ssize_t got = read(fd, f->byte + f->size, capacity - f->size);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            return sr_fail(why, SR_IO, "%s: byte %zu: %s", f->path, f->size, strerror(errno));
        if (got == 0) break;
        f->size += (size_t)got;
        /* unreached: a pipe that gives a gibibyte */
        if (f->size == capacity && f->size > expected && f->size >= PIPE_MOST)
            return sr_fail(why, SR_FORMAT, "%s: byte %zu: no end of it", f->path, f->size);
        if (f->size == capacity) status = reserve(f, capacity *= 2, why);
    }
    return status;
}

static sr_status read_raw(const char *path, file_bytes *f, sr_failure *why) {
    *f = (file_bytes){0};
    snprintf(f->path, sizeof f->path, "%s", path);
    int fd;
    struct stat st;
    sr_status status = file_open(path, &fd, why);
    if (status != SR_OK) return status;
    if (fstat(fd, &st) != 0) status = sr_fail(why, SR_IO, "%s: %s", path, strerror(errno));
    if (status == SR_OK) status = read_all(fd, st.st_size > 0 ? (size_t)st.st_size : 0, f, why);
    close(fd);
    if (status == SR_OK) f->byte[f->size] = 0;
    return status;
}

/* Reports the fault at compressed byte `at` after inflate returned `code`. text: zlib's, which each
 * fault of the data has. */
static sr_status inflate_failure(const file_bytes *raw, size_t at, int code, const char *text,
                                 sr_failure *why) {
    if (code == Z_MEM_ERROR)
        return sr_fail(why, SR_MEMORY, "%s: out of memory for zlib", raw->path);
    if (code != Z_DATA_ERROR)
        return sr_fail(why, SR_FORMAT, "%s: byte %zu: truncated gzip data", raw->path, raw->size);
    if (at <= 2) return sr_fail(why, SR_FORMAT, "%s: byte 0: not a gzip file", raw->path);
    return sr_fail(why, SR_FORMAT, "%s: byte %zu: corrupt gzip data: %s", raw->path, at, text);
}

/* Doubles up to the limit, then adds one byte to detect more data. */
static size_t larger_capacity(const file_bytes *raw, size_t capacity) {
    const size_t most = file_most_inflated(raw->size) + 1;
    return capacity < most / 2 ? 2 * capacity : capacity < most ? most : capacity + 1;
}

/* Inflates all members of raw into f. */
static sr_status inflate_all(z_stream *z, const file_bytes *raw, file_bytes *f, sr_failure *why) {
    size_t at = 0, capacity = 64;
    if (raw->size >= 18) { /* the declared size of the last member, within the limit */
        const uint8_t *p = raw->byte + raw->size - 4;
        const size_t said = p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 | (size_t)p[3] << 24;
        const size_t most = file_most_inflated(raw->size);
        capacity = (said < most ? said : most) + 1;
    }
    sr_status status = reserve(f, capacity, why);
    while (status == SR_OK) {
        size_t in = raw->size - at < CHUNK ? raw->size - at : CHUNK;
        size_t out = capacity - f->size < CHUNK ? capacity - f->size : CHUNK;
        z->next_in = raw->byte + at, z->avail_in = (uInt)in;
        z->next_out = f->byte + f->size, z->avail_out = (uInt)out;
        int code = inflate(z, Z_NO_FLUSH);
        at += in - z->avail_in;
        f->size += out - z->avail_out;
        if (code == Z_STREAM_END && at == raw->size) break;
        if (code == Z_STREAM_END && raw->byte[at] != 0x1f)
            return sr_fail(why, SR_FORMAT, "%s: byte %zu: something else follows the gzip data",
                           raw->path, at);
        if (code == Z_STREAM_END) inflateReset(z);
        bool starved = at == raw->size && z->avail_out > 0;
        if (starved || (code != Z_OK && code != Z_BUF_ERROR && code != Z_STREAM_END))
            return inflate_failure(raw, at, code, z->msg, why);
        if (f->size > file_most_inflated(raw->size)) {
            sr_fail(why, SR_FORMAT, "%s: byte %zu: unpacks to over %zu bytes, %d per byte",
                    raw->path, at, file_most_inflated(raw->size), FILE_INFLATED_RATIO);
            sr_hint(why, "gunzip it to have it read all the same");
            return SR_FORMAT;
        }
        if (f->size == capacity)
            status = reserve(f, capacity = larger_capacity(raw, capacity), why);
    }
    return status;
}

/* Replaces the bytes of a gzip file. */
static sr_status unpack_gzip(file_bytes *f, sr_failure *why) {
    file_bytes raw = *f;
    z_stream z = {0};
    sr_status status;
    f->byte = NULL;
    f->size = 0;
    if (raw.size == 0)
        status = sr_fail(why, SR_FORMAT, "%s: byte 0: empty, not a gzip file", raw.path);
    else if (inflateInit2(&z, GZIP_ONLY) != Z_OK)
        status = sr_fail(why, SR_MEMORY, "%s: out of memory for zlib", raw.path);
    else
        status = inflate_all(&z, &raw, f, why);
    inflateEnd(&z);
    if (status == SR_OK) f->byte[f->size] = 0;
    free(raw.byte);
    return status;
}

/* Replaces the bytes of a ZIP archive by its only file. */
static sr_status unpack_zip(file_bytes *f, sr_failure *why) {
    file_zip *z = file_zip_open(f->path, why);
    if (!z) return why->status;
    size_t capacity = file_zip_size(z) + 1, got = 1;
    f->size = 0;
    sr_status status = reserve(f, capacity, why);
    while (status == SR_OK && got > 0) {
        status = file_zip_read(z, f->byte + f->size, capacity - f->size, &got, why);
        if (status == SR_OK) f->size += got;
        if (status == SR_OK && f->size == capacity) status = reserve(f, capacity *= 2, why);
    }
    file_zip_close(z);
    if (status == SR_OK) f->byte[f->size] = 0;
    return status;
}

static bool is_regular(const char *path) {
    struct stat s;
    return stat(path, &s) == 0 && S_ISREG(s.st_mode);
}

sr_status file_read_as(const char *path, unsigned accept, const char *wanted, file_bytes *f,
                       sr_failure *why) {
    sr_failure own = {0};
    if (!why) why = &own;
    sr_status status = read_raw(path, f, why);
    const size_t length = strlen(path);
    const bool named = length > 3 && strcmp(path + length - 3, ".gz") == 0;
    const file_kind *k = status == SR_OK ? file_kind_of(f->byte, f->size) : NULL;
    const bool zipped = k && k->id == KIND_ZIP && is_regular(path);
    if (status == SR_OK && zipped)
        status = unpack_zip(f, why);
    else if (status == SR_OK && ((k && k->id == KIND_GZIP) || (named && !k)))
        status = unpack_gzip(f, why);
    /* of unpacked bytes, too: an archive may contain an archive */
    if (status == SR_OK) status = file_kind_check(path, f->byte, f->size, accept, wanted, why);
    if (status != SR_OK) file_free(f);
    return status;
}

sr_status file_read(const char *path, file_bytes *f, sr_failure *why) {
    return file_read_as(path, 0, "UTF-8 text", f, why);
}

void file_free(file_bytes *f) {
    free(f->byte);
    f->byte = NULL;
    f->size = 0;
}
