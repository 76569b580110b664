/* superblock.c -- checks the first bytes of a run file before HDF5 opens it.
 *
 * A run file starts with a superblock of version 3 (HDF5 File Format Specification 3.0, II.A): 48
 * bytes, little-endian.
 *   signature [8], version [1], bytes of offsets [1], bytes of lengths [1],
 *   flags [1]: bit 0 open for writing, bit 2 open for SWMR,
 *   base address [8], address of an extension [8], end of the file [8],
 *   address of the root [8], checksum [4]
 *
 * A closed file ends at the offset in the superblock. A file whose writer was killed may be a
 * little shorter, since the superblock is written before the space. HDF5 would read zeros there.
 */
#include "runfile/read/file/superblock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_kind.h"
#include "journal/positional_io.h"
#include "journal/trailer.h"

enum { SUPERBLOCK = 48, AT_VERSION = 8, AT_OFFSET_SIZE = 9, AT_FLAGS = 11, AT_END = 28 };
enum { WRITING = 1, SWMR_WRITING = 4 }; /* flags */

static const unsigned char signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};

/* Fills head as far as the file goes. *size: of the file afterwards, since it may be growing. */
static sr_status read_head(const char *path, unsigned char head[SUPERBLOCK], int64_t *size,
                           sr_failure *why) {
    struct stat s;
    ssize_t got = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* it may have become a pipe */
    if (fd >= 0) got = pread(fd, head, SUPERBLOCK, 0);      /* all bytes of a regular file */
    bool ok = fd >= 0 && got >= 0 && fstat(fd, &s) == 0;
    sr_status status = ok ? SR_OK : sr_fail(why, SR_IO, "%s: %s", path, strerror(errno));
    if (ok) *size = (int64_t)s.st_size;
    if (fd >= 0) close(fd);
    return status;
}

static sr_status fail_without_superblock(const char *path, const unsigned char *head, int64_t size,
                                         sr_failure *why) {
    size_t had = size < 8 ? (size_t)size : 8;
    if (size == 0) return sr_fail(why, SR_FORMAT, "%s: empty, not a run file", path);
    if (memcmp(head, signature, had) != 0) {
        if (file_kind_check_path(path, ACCEPT(KIND_HDF5), "a run file", why) != SR_OK)
            return SR_FORMAT;
        if (memcmp(head, "# program", size < 9 ? (size_t)size : 9) == 0) {
            sr_fail(why, SR_FORMAT, "%s: a table of statrec; wanted is a run file", path);
            sr_hint(why, "the line `# command` in it names the run file");
            return SR_FORMAT;
        }
        return sr_fail(why, SR_FORMAT,
                       "%s: not a run file (%lld bytes without the signature of HDF5)", path,
                       (long long)size);
    }
    return sr_fail(why, SR_FORMAT, "%s: truncated: its first %lld bytes only", path,
                   (long long)size);
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
    const uint64_t address = positional_io_number(head + AT_END, 8);
    const int64_t end = address > INT64_MAX ? INT64_MAX : (int64_t)address;
    bool writing = head[AT_FLAGS] & WRITING, swmr = head[AT_FLAGS] & SWMR_WRITING;
    if (writing && !swmr)
        return sr_fail(why, SR_FORMAT,
                       "%s: nothing to read: its writer has not begun, or died before it", path);
    if (size < end && !swmr) {
        sr_fail(why, SR_FORMAT, "%s: truncated: %lld of at least %lld bytes", path, (long long)size,
                (long long)end);
        sr_hint(why, "copy the file again: truncated closed files cannot be recovered");
        return SR_FORMAT;
    }
    *unfinished = swmr;
    if (size < end) *cut_at = size;
    return SR_OK;
}
