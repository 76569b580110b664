/* h5_headers.c -- checks the header of an object. HDF5 1.10 keeps the memory of a header whose
 * checksum is wrong. A process that reads damaged files then ends with "infinite loop closing
 * library".
 *
 * HDF5 File Format Specification 3.0, IV.A.1.b. A header has:
 *   "OHDR", version 2, flags; 16 bytes of times if flags & 32; 4 bytes of limits if flags & 16;
 *   the size of the messages in 1 << (flags & 3) bytes; the messages; the checksum [4].
 * A further chunk of a header has "OCHK", messages, and its own checksum.
 */
#include "hdf5/v1_10/h5_checks.h"

#include <stdlib.h>
#include <string.h>

#include "journal/positional_io.h"

enum { PREFIX = 6, SUM = 4, SHARED = 2, CHUNKS = 256, LONGEST = PREFIX + 16 + 4 + 8 };

/* Offset of the messages. */
static int start_of(const unsigned char *byte) {
    const int flags = byte[5];
    return PREFIX + (flags & 32 ? 16 : 0) + (flags & 16 ? 4 : 0) + (1 << (flags & 3));
}

/* Bytes of the header, with its checksum; 0: no header with a checksum, or too short. */
static uint64_t length_of(const unsigned char *byte, size_t size) {
    if (size < LONGEST || memcmp(byte, "OHDR\2", 5) != 0) return 0;
    const int at = start_of(byte), width = 1 << (byte[5] & 3);
    const uint64_t more = positional_io_number(byte + at - width, width);
    return more > UINT32_MAX ? UINT64_MAX : (uint64_t)at + more + SUM;
}

/* A header and its further chunks. */
typedef struct header {
    const trailer *e;
    int fd, flags;
    bool still;         /* no process writes the file: a wrong checksum is damage */
    uint64_t end, left; /* bytes of the file; bytes left for chunks, so that loops end */
    int chunks;         /* left */
} header;

static bool messages_are_whole(header *h, const unsigned char *at, const unsigned char *end);

/* Bytes of the file; malloc'd. NULL: HDF5 reports the reason. */
static unsigned char *read_bytes(const header *h, uint64_t at, uint64_t length) {
    unsigned char *bytes = malloc(length);
    if (bytes && positional_io_read(h->fd, at, bytes, length)) {
        if (h->e) trailer_patch(h->e, at, bytes, length);
        return bytes;
    }
    free(bytes);
    return NULL;
}

static bool checksum_is_right(const unsigned char *bytes, uint64_t length) {
    return h5_checksum(bytes, length - SUM) == positional_io_number(bytes + length - SUM, SUM);
}

static bool chunk_is_whole(header *h, uint64_t at, uint64_t length) {
    if (length < 2 * SUM || at > h->end || length > h->end - at || length > h->left)
        return !h->still;
    h->left -= length;
    unsigned char *chunk = read_bytes(h, at, length);
    bool whole = true;
    if (chunk && memcmp(chunk, "OCHK", 4) == 0 && checksum_is_right(chunk, length))
        whole = messages_are_whole(h, chunk + 4, chunk + length - SUM);
    else if (chunk)
        whole = !h->still;
    free(chunk);
    return whole;
}

/* Messages [at, end): type [1], length [2], flags [1], order [2] if the header's flags & 4, the
 * content. Type 16 has offset and length, 8 bytes each, of a further chunk. */
static bool messages_are_whole(header *h, const unsigned char *at, const unsigned char *end) {
    const int head = h->flags & 4 ? 6 : 4;
    while (end - at >= head) {
        const unsigned char *message = at + head;
        const size_t length = (size_t)positional_io_number(at + 1, 2);
        if ((size_t)(end - message) < length) return true; /* HDF5 reports it */
        if (!(at[3] & SHARED) && !h5_message_fits(at[0], message, length)) return false;
        if (at[0] == 16 && length >= 16 && h->chunks-- > 0 &&
            !chunk_is_whole(h, positional_io_number(message, 8),
                            positional_io_number(message + 8, 8)))
            return false;
        at = message + length;
    }
    return true;
}

bool h5_header_is_whole(const trailer *e, int fd, bool still, uint64_t at, const void *bytes,
                        size_t size, uint64_t end) {
    const uint64_t length = length_of(bytes, size);
    if (length == 0) return true;
    if (at > end || length > end - at) return !still;
    header h = {e, fd, ((const unsigned char *)bytes)[5], still, end, end, CHUNKS};
    unsigned char *all = length > size ? read_bytes(&h, at, length) : NULL;
    const unsigned char *byte = all ? all : bytes;
    if (length > size && !all) return true;
    const bool whole = checksum_is_right(byte, length)
                           ? messages_are_whole(&h, byte + start_of(byte), byte + length - SUM)
                           : !still;
    free(all);
    return whole;
}
