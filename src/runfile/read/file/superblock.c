/* superblock.c -- what a run file is by its first bytes, told before HDF5 opens it.
 *
 * A run file begins with HDF5's superblock of version 3, 48 bytes, little-endian (HDF5 File Format
 * Specification 3.0, section II.A): signature [8], version, sizes of offsets and of lengths, flags
 * (bit 0: open for writing, bit 2: for SWMR), then the base address, that of an extension, that of
 * the file's end and that of the root, 8 bytes each, and a checksum. A file that was closed ends
 * where the superblock says. That of a writer that was killed may end a little earlier, when it
 * died between writing the superblock and the space it speaks of; everything past the end would
 * read as zeros.
 */
#include "runfile/read/file/superblock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "journal/trailer.h"

enum {
    SUPERBLOCK = 48,
    AT_VERSION = 8,
    AT_OFFSET_SIZE = 9,
    AT_FLAGS = 11,
    AT_END = 28,
    WRITING = 1,
    SWMR_WRITING = 4,
};

static const unsigned char signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};

/* Fills head as far as the file goes; *size of the whole file, taken afterwards: it may be growing.
 */
static sr_status read_head(const char *path, unsigned char head[SUPERBLOCK], int64_t *size,
                           sr_failure *why) {
    struct stat s;
    ssize_t got = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* it may have become a pipe */
    if (fd >= 0) got = pread(fd, head, SUPERBLOCK, 0);      /* of a regular file: all there is */
    bool ok = fd >= 0 && got >= 0 && fstat(fd, &s) == 0;
    sr_status status = ok ? SR_OK : sr_fail(why, SR_IO, "%s: %s", path, strerror(errno));
    if (ok) *size = (int64_t)s.st_size;
    if (fd >= 0) close(fd);
    return status;
}

static int64_t end_address(const unsigned char *head) {
    uint64_t end = 0;
    for (int i = 7; i >= 0; i--) end = end << 8 | head[AT_END + i];
    return end > INT64_MAX ? INT64_MAX : (int64_t)end;
}

static sr_status fail_without_superblock(const char *path, const unsigned char *head, int64_t size,
                                         sr_failure *why) {
    size_t had = size < 8 ? (size_t)size : 8;
    if (size == 0) {
        sr_fail(why, SR_FORMAT, "%s: empty, not a run file", path);
    } else if (memcmp(head, signature, had) != 0) {
        sr_fail(why, SR_FORMAT, "%s: not a run file (%lld bytes without the signature of HDF5)",
                path, (long long)size);
    } else {
        sr_fail(why, SR_FORMAT, "%s: truncated: its first %lld bytes only", path, (long long)size);
    }
    return SR_FORMAT;
}

sr_status superblock_check(const char *path, const trailer *e, bool *unfinished, int64_t *cut_at,
                           sr_failure *why) {
    unsigned char head[SUPERBLOCK] = {0};
    int64_t size = 0;
    *cut_at = 0, *unfinished = false;
    sr_status status = read_head(path, head, &size, why);
    if (status != SR_OK) return status;
    trailer_patch(e, 0, head, sizeof head);
    if (size < SUPERBLOCK || memcmp(head, signature, sizeof signature) != 0)
        return fail_without_superblock(path, head, size, why);
    if (head[AT_VERSION] < 2 || head[AT_VERSION] > 3 || head[AT_OFFSET_SIZE] != 8) return SR_OK;
    int64_t end = end_address(head);
    bool writing = head[AT_FLAGS] & WRITING, swmr = head[AT_FLAGS] & SWMR_WRITING;
    if (writing && !swmr) {
        sr_fail(why, SR_FORMAT, "%s: nothing to read: its writer has not begun, or died before it",
                path);
        return SR_FORMAT;
    }
    if (size < end && !swmr) {
        sr_fail(why, SR_FORMAT, "%s: truncated: %lld of %lld bytes", path, (long long)size,
                (long long)end);
        sr_hint(why, "copy the file again: what is left of a closed file cannot be recovered");
        return SR_FORMAT;
    }
    *unfinished = swmr;
    if (size < end) *cut_at = size;
    return SR_OK;
}
