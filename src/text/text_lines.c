/* text_lines.c -- reads a text line by line, plain or gzip; see text_lines.h. */
#include "text/text_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/containers/vector.h"
#include "base/utf8.h"
#include "text/file_bytes.h"
#include "text/file_zip.h"
#include "text/text.h"

enum { CHUNK = 1 << 16, LONGEST = 1 << 30, MARK = 3 /* bytes of a byte order mark */ };

struct text_lines {
    char path[FILE_PATH]; /* for messages */
    int fd;               /* -1: from gz */
    gzFile gz;
    file_zip *zip;
    int64_t line; /* number of the last one returned, from 1 */
    line_ends ends;
    bool ended;
    size_t longest; /* line */
    char *byte;     /* [capacity] */
    int64_t capacity;
    size_t at, size; /* bytes [at, size) are still to be returned */
};

static sr_status open_gzip(text_lines *t, sr_failure *why) {
    int fd;
    struct stat s;
    sr_status status = file_open(t->path, &fd, why);
    if (status != SR_OK) return status;
    const size_t most = fstat(fd, &s) == 0 ? file_most_inflated((size_t)s.st_size) : LONGEST;
    if (most < t->longest) t->longest = most;
    t->gz = gzdopen(fd, "rb"); /* owns it */
    if (!t->gz) {
        close(fd);
        return sr_fail(why, SR_MEMORY, "%s: out of memory for zlib", t->path);
    }
    if (gzdirect(t->gz)) return sr_fail(why, SR_FORMAT, "%s: byte 0: not a gzip file", t->path);
    return SR_OK;
}

static sr_status open_path(text_lines *t, const char *path, sr_failure *why) {
    size_t length = strlen(path);
    if (length >= FILE_PATH)
        return sr_fail(why, SR_USAGE, "%.200s...: the path is longer than %d bytes", path,
                       FILE_PATH);
    strcpy(t->path, path);
    if (strcmp(path, "-") == 0) {
        strcpy(t->path, "standard input");
        t->fd = STDIN_FILENO;
        return SR_OK;
    }
    const file_kind *k = file_kind_of_path(path);
    const bool named = length > 3 && strcmp(path + length - 3, ".gz") == 0;
    if (k && k->id == KIND_ZIP) return (t->zip = file_zip_open(path, why)) ? SR_OK : why->status;
    if (k ? k->id == KIND_GZIP : named) return open_gzip(t, why);
    return file_open(t->path, &t->fd, why);
}

text_lines *text_lines_open(const char *path, sr_failure *why) {
    text_lines *t = calloc(1, sizeof *t);
    if (!t) {
        sr_fail(why, SR_MEMORY, "%s: out of memory", path);
        return NULL;
    }
    t->fd = -1;
    t->longest = LONGEST;
    const bool room = vector_reserve(&t->byte, &t->capacity, CHUNK + 1, 1);
    sr_status status =
        room ? open_path(t, path, why) : sr_fail(why, SR_MEMORY, "%s: out of memory", path);
    if (status == SR_OK) return t;
    text_lines_close(t);
    return NULL;
}

void text_lines_close(text_lines *t) {
    if (!t) return;
    if (t->gz) gzclose_r(t->gz);
    file_zip_close(t->zip);
    if (t->fd > STDIN_FILENO) close(t->fd);
    free(t->byte);
    free(t);
}

sr_status text_lines_fail_at(const text_lines *t, int64_t line, sr_status status, const char *text,
                             sr_failure *why) {
    return sr_fail(why, status, "%s:%lld: %s", t->path, (long long)line, text);
}

sr_status text_lines_fail(const text_lines *t, sr_status status, const char *text,
                          sr_failure *why) {
    return text_lines_fail_at(t, t->line, status, text, why);
}

/* Moves the kept bytes to the front and grows the buffer after them. */
static sr_status reserve(text_lines *t, sr_failure *why) {
    if (t->at) {
        memmove(t->byte, t->byte + t->at, t->size - t->at);
        t->size -= t->at;
        t->at = 0;
    }
    if (t->size >= t->longest)
        return sr_fail(why, SR_FORMAT, "%s:%lld: a line of more than %zu bytes", t->path,
                       (long long)t->line + 1, t->longest);
    if (!vector_reserve(&t->byte, &t->capacity, (int64_t)t->size + CHUNK + 1, 1))
        return sr_fail(why, SR_MEMORY, "%s:%lld: out of memory for a line of %zu bytes", t->path,
                       (long long)t->line + 1, t->size);
    return SR_OK;
}

/* "incorrect data check" of "<fd:3>: incorrect data check". */
static const char *reason_of(const char *text) {
    const char *blank = strchr(text, ' ');
    return blank ? blank + 1 : text; /* unreached: a reason of zlib without a name */
}

static sr_status read_more(text_lines *t, sr_failure *why) {
    sr_status status = reserve(t, why);
    if (status != SR_OK) return status;
    const size_t most = (size_t)t->capacity - 1 < t->longest ? (size_t)t->capacity - 1 : t->longest;
    const bool first = t->line == 0 && t->size == 0;
    ssize_t got;
    if (t->zip) {
        size_t unpacked;
        status = file_zip_read(t->zip, t->byte + t->size, most - t->size, &unpacked, why);
        if (status != SR_OK) return status;
        got = (ssize_t)unpacked;
    } else if (t->gz) {
        got = gzread(t->gz, t->byte + t->size, (unsigned)(most - t->size));
        int code = Z_OK;
        const char *text = gzerror(t->gz, &code); /* a truncated file ends like a complete one */
        if (got > 0) code = Z_OK;
        if (code == Z_MEM_ERROR)
            return sr_fail(why, SR_MEMORY, "%s: out of memory for zlib", t->path);
        if (code == Z_ERRNO) return sr_fail(why, SR_IO, "%s: %s", t->path, strerror(errno));
        if (got < 0 || code != Z_OK)
            return sr_fail(why, SR_FORMAT, "%s:%lld: %s", t->path, (long long)t->line + 1,
                           code == Z_BUF_ERROR ? "truncated gzip data" : reason_of(text));
    } else {
        do got = read(t->fd, t->byte + t->size, most - t->size);
        while (got < 0 && errno == EINTR);
        if (got < 0) return sr_fail(why, SR_IO, "%s: %s", t->path, strerror(errno));
    }
    t->ended = got == 0;
    t->size += (size_t)got;
    return first ? file_kind_check(t->path, t->byte, t->size, 0, "UTF-8 text", why) : SR_OK;
}

static sr_status check_line(const text_lines *t, const char *line, size_t length, sr_failure *why) {
    for (size_t i = 0; i < length;) {
        int bytes = utf8_bytes(line + i); /* never beyond the zero byte after the line */
        if (!bytes) {
            sr_fail(why, SR_FORMAT, "%s:%lld: byte %zu of the line is 0x%02x, not UTF-8", t->path,
                    (long long)t->line, i, (unsigned char)line[i]);
            file_kind_hint_encoding(line, length, why);
            return SR_FORMAT;
        }
        i += (size_t)bytes;
    }
    return SR_OK;
}

sr_status text_lines_next(text_lines *t, const char **line, size_t *length, sr_failure *why) {
    const char *end = NULL;
    size_t seen = 0;
    *line = NULL;
    while (!(end = memchr(t->byte + t->at + seen, '\n', t->size - t->at - seen)) && !t->ended) {
        seen = t->size - t->at;
        sr_status status = read_more(t, why);
        if (status != SR_OK) return status;
    }
    if (!t->line && t->size - t->at >= MARK && !memcmp(t->byte + t->at, "\xef\xbb\xbf", MARK))
        t->at += MARK;
    if (t->at == t->size) return SR_OK;
    *line = t->byte + t->at;
    *length = end ? (size_t)(end - *line) + 1 : t->size - t->at;
    t->at += *length;
    t->line++;
    t->byte[t->size] = 0;
    line_ends_add(&t->ends, *line, *length);
    return check_line(t, *line, *length, why);
}

void text_lines_warning(const text_lines *t, char *text, size_t size) {
    line_ends_warning(&t->ends, t->path, text, size);
}

size_t text_first_line(const char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        const unsigned char *p = (const unsigned char *)text + i;
        const size_t left = length - i;
        if (p[0] == '\r') return i + (left > 1 && p[1] == '\n' ? 2 : 1);
        if ((p[0] >= 0x0a && p[0] <= 0x0c) || (p[0] >= 0x1c && p[0] <= 0x1e)) return i + 1;
        if (left > 1 && p[0] == 0xc2 && p[1] == 0x85) return i + 2;
        if (left > 2 && p[0] == 0xe2 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9))
            return i + 3;
    }
    return length;
}
