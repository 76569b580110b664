/* file_kind.c -- recognizes the kind of a file by its first bytes; see file_kind.h.
 *
 * Signatures: RFC 1952 (gzip), APPNOTE 4.3 (ZIP), the formats' own specifications for the others.
 */
#include "base/file_kind.h"

#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* -- kinds without a fixed signature */

/* A header "WORDS WIDTH", then a word, a space and floats in bytes. */
static bool is_word2vec(const uint8_t *p, size_t size) {
    size_t at = 0;
    for (int field = 0; field < 2; field++) {
        const size_t from = at;
        while (at < size && p[at] >= '0' && p[at] <= '9') at++;
        if (at == from || at == size || p[at++] != (field ? '\n' : ' ')) return false;
    }
    for (; at < size; at++)
        if (p[at] < 0x09 || (p[at] > 0x0d && p[at] < 0x20)) return true;
    return false;
}

/* A page instead of the file: an expired link, a log-in. */
static bool is_html(const uint8_t *p, size_t size) {
    static const char *const start[] = {"<!doctype html", "<html"};
    size_t at = size >= 3 && !memcmp(p, "\xef\xbb\xbf", 3) ? 3 : 0;
    while (at < size && (p[at] == ' ' || (p[at] >= 0x09 && p[at] <= 0x0d))) at++;
    for (size_t i = 0; i < sizeof start / sizeof *start; i++) {
        const size_t length = strlen(start[i]);
        if (size - at >= length && !strncasecmp((const char *)p + at, start[i], length))
            return true;
    }
    return false;
}

/* Latin letters, digits and blanks have one zero byte of two. */
static bool is_utf16(const uint8_t *p, size_t size) {
    size_t zero[2] = {0}, pairs = size / 2;
    if (size >= 2 && (!memcmp(p, "\xff\xfe", 2) || !memcmp(p, "\xfe\xff", 2))) return true;
    if (pairs < 4) return false;
    for (size_t i = 0; i < pairs; i++)
        for (size_t k = 0; k < 2; k++) {
            const uint8_t other = p[2 * i + 1 - k];
            if (p[2 * i + k] == 0 && (other < 0x09 || (other > 0x0d && other < 0x20))) return false;
            zero[k] += p[2 * i + k] == 0;
        }
    return (zero[0] == 0 && 4 * zero[1] > pairs) || (zero[1] == 0 && 4 * zero[0] > pairs);
}

/* Protocol 2 to 5; from 4 on a frame follows, before it an opcode. */
static bool is_pickle(const uint8_t *p, size_t size) {
    if (size < 4 || p[0] != 0x80 || p[1] < 2 || p[1] > 5) return false;
    return p[1] >= 4 ? p[2] == 0x95 : strchr("}]()cX", p[2]) != NULL && p[2] != 0;
}

/* Protocol 0, as Python 2 writes a dictionary or a list: `(dp0` or `(lp0` and a newline. */
static bool is_old_pickle(const uint8_t *p, size_t size) {
    return size > 5 && p[0] == '(' && (p[1] == 'd' || p[1] == 'l') && p[2] == 'p' && p[3] >= '0' &&
           p[3] <= '9' && p[4] == '\n';
}

/* Two zero bytes, a type, a number of dimensions. */
static bool is_idx(const uint8_t *p, size_t size) {
    return size >= 8 && p[0] == 0 && p[1] == 0 && p[2] >= 0x08 && p[2] <= 0x0e && p[2] != 0x0a &&
           p[3] >= 1 && p[3] <= 4;
}

/* The magic follows "BZh" and a digit. */
static bool is_bzip2(const uint8_t *p, size_t size) {
    return size > 4 && !memcmp(p, "BZh", 3);
}

/* The first name is filled up by zeros, which no text has. */
static bool is_tar(const uint8_t *p, size_t size) {
    return memchr(p, 0, size) != NULL;
}

/* A ZIP archive whose first entry is an array: its name begins at byte 30, and its length is in
 * bytes 26 and 27. */
static bool is_npz(const uint8_t *p, size_t size) {
    const size_t length = size > 30 ? p[26] + 256u * p[27] : 0;
    return length > 4 && 30 + length <= size && !memcmp(p, "PK\x03\x04", 4) &&
           !memcmp(p + 30 + length - 4, ".npy", 4);
}

/* -- the table */

typedef struct kind_row {
    file_kind kind;
    size_t at;
    const char *magic; /* `length` bytes at `at`; NULL: none */
    size_t length;
    bool (*is)(const uint8_t *first, size_t size); /* NULL: the magic is enough */
} kind_row;

#define MAGIC(text) 0, text, sizeof(text) - 1, NULL

#define PICKLE_TODO                                                                                \
    "take the binary or text version of the data; CIFAR's page has a \"binary version\""

static const kind_row table[] = {
    {{KIND_GZIP, "a gzip file", "`gunzip -c %s > FILE` unpacks it"}, MAGIC("\x1f\x8b")},
    {{KIND_ZIP, "a NumPy archive (.npz)",
      "numpy.load reads it; `statrec export` makes such archives"},
     0,
     NULL,
     0,
     is_npz},
    {{KIND_ZIP, "a ZIP archive", "`unzip %s` unpacks it"}, MAGIC("PK\x03\x04")},
    {{KIND_OTHER, "an empty ZIP archive", ""}, MAGIC("PK\x05\x06")},
    {{KIND_OTHER, "an xz file", "`xz -dc %s > FILE` unpacks it"},
     MAGIC("\xfd"
           "7zXZ\0")},
    {{KIND_OTHER, "a Zstandard file", "`zstd -dc %s > FILE` unpacks it"},
     MAGIC("\x28\xb5\x2f\xfd")},
    {{KIND_OTHER, "a bzip2 file", "`bzip2 -dc %s > FILE` unpacks it"}, 4, "1AY&SY", 6, is_bzip2},
    {{KIND_OTHER, "a 7z archive", "`7z x %s` unpacks it"}, MAGIC("7z\xbc\xaf\x27\x1c")},
    {{KIND_OTHER, "a RAR archive", "`unrar x %s` unpacks it"}, MAGIC("Rar!\x1a\x07")},
    {{KIND_OTHER, "a tar archive", "`tar xf %s` unpacks it"}, 257, "ustar", 5, is_tar},
    {{KIND_HDF5, "an HDF5 file", ""}, MAGIC("\x89HDF\r\n\x1a\n")},
    {{KIND_OTHER, "a NumPy array", "`numpy.load` reads it; write text or bytes from it"},
     MAGIC("\x93NUMPY")},
    {{KIND_OTHER, "a Parquet file", "`pandas.read_parquet` reads it; write text from it"},
     MAGIC("PAR1\x15")},
    {{KIND_OTHER, "an Arrow file", "`datasets.Dataset.from_file` reads it; write text from it"},
     MAGIC("ARROW1\0\0")},
    {{KIND_OTHER, "a MATLAB file", "take the binary or text version of the data"},
     MAGIC("MATLAB 5.0 MAT-file")},
    {{KIND_OTHER, "a PDF file", ""}, MAGIC("%PDF-")},
    {{KIND_OTHER, "a PNG image", ""}, MAGIC("\x89PNG\r\n\x1a\n")},
    {{KIND_OTHER, "a JPEG image", ""}, MAGIC("\xff\xd8\xff")},
    {{KIND_OTHER, "a Git LFS pointer, not the file that it points to",
      "`git lfs pull` in its repository fetches the file"},
     MAGIC("version https://git-lfs.github.com/spec/")},
    {{KIND_OTHER, "a Python pickle", PICKLE_TODO}, 0, NULL, 0, is_pickle},
    {{KIND_OTHER, "a Python pickle", PICKLE_TODO}, 0, NULL, 0, is_old_pickle},
    {{KIND_OTHER, "an HTML page", "the download was a page; open it in a browser to see why"},
     0,
     NULL,
     0,
     is_html},
    {{KIND_OTHER, "word vectors in word2vec's binary format",
      "gensim: KeyedVectors.load_word2vec_format(FILE, binary=True).save_word2vec_format(TEXT)"},
     0,
     NULL,
     0,
     is_word2vec},
    {{KIND_IDX, "an IDX file (MNIST's format)", "--data idx reads it"}, 0, NULL, 0, is_idx},
    {{KIND_UTF16, "UTF-16 text", "`iconv -f UTF-16 -t UTF-8 %s > FILE` converts it"},
     0,
     NULL,
     0,
     is_utf16},
};

const file_kind *file_kind_of(const void *first, size_t size) {
    const uint8_t *p = first;
    if (size > FILE_KIND_BYTES) size = FILE_KIND_BYTES;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const kind_row *r = &table[i];
        const bool is = size >= r->at + r->length &&
                        (!r->magic || !memcmp(p + r->at, r->magic, r->length)) &&
                        (!r->is || r->is(p, size));
        if (is) return &r->kind;
    }
    return NULL;
}

const file_kind *file_kind_of_path(const char *path) {
    uint8_t first[FILE_KIND_BYTES];
    struct stat s;
    const int fd = stat(path, &s) == 0 && S_ISREG(s.st_mode)
                       ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
                       : -1;
    if (fd < 0) return NULL;
    const ssize_t got = pread(fd, first, sizeof first, 0);
    close(fd);
    return got > 0 ? file_kind_of(first, (size_t)got) : NULL;
}

/* -- messages */

/* A path as one word of a shell, if it is short and needs no quotes, else FILE. */
static const char *shell_word(const char *path) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_./-+=,@%";
    return strlen(path) < 120 && path[0] != '-' && strspn(path, plain) == strlen(path) ? path
                                                                                       : "ARCHIVE";
}

static sr_status refuse(const char *path, const file_kind *k, unsigned accept, const char *wanted,
                        sr_failure *why) {
    if (!k || accept & ACCEPT(k->id)) return SR_OK;
    sr_fail(why, SR_FORMAT, "%s: %s; wanted is %s", path, k->name, wanted);
    const char *at = strstr(k->todo, "%s");
    if (at)
        sr_hint(why, "%.*s%s%s", (int)(at - k->todo), k->todo, shell_word(path), at + 2);
    else if (*k->todo)
        sr_hint(why, "%s", k->todo);
    return SR_FORMAT;
}

sr_status file_kind_check(const char *path, const void *first, size_t size, unsigned accept,
                          const char *wanted, sr_failure *why) {
    return refuse(path, file_kind_of(first, size), accept, wanted, why);
}

sr_status file_kind_check_path(const char *path, unsigned accept, const char *wanted,
                               sr_failure *why) {
    return refuse(path, file_kind_of_path(path), accept, wanted, why);
}

void file_kind_hint_encoding(const void *bytes, size_t size, sr_failure *why) {
    const uint8_t *p = bytes;
    for (size_t i = 0; i < size; i++)
        if (p[i] < 0x09 || (p[i] > 0x0d && p[i] < 0x20) || p[i] == 0x7f) {
            sr_hint(why, "the file is no text: it has control characters");
            return;
        }
    sr_hint(why, "the text must be UTF-8; iconv can convert it");
}
