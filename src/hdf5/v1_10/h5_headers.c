/* h5_headers.c -- whether the header of an object is whole, before HDF5 looks: 1.10 keeps the
 * memory of one whose sum is wrong, and at the end of a process that reads damaged files prints
 * "infinite loop closing library".
 *
 * HDF5 File Format Specification 3.0, IV.A.1.b: "OHDR", version 2, flags, 16 bytes of times where
 * flags & 32, 4 of limits where flags & 16, the size of what follows in 1 << (flags & 3) bytes,
 * that, the sum [4] of all before it (h5_checksum.c); "OCHK" is more of one, with a sum of its own
 * at its end.
 */
#include "hdf5/v1_10/h5_headers.h"

#include <stdlib.h>
#include <string.h>

#include "hdf5/v1_10/h5_checksum.h"
#include "hdf5/v1_10/h5_messages.h"
#include "journal/positional_io.h"

enum { PREFIX = 6, SUM = 4, SHARED = 2, CHUNKS = 256, LONGEST = PREFIX + 16 + 4 + 8 };

/* Where its messages begin. */
static int start_of(const unsigned char *byte) {
    const int flags = byte[5];
    return PREFIX + (flags & 32 ? 16 : 0) + (flags & 16 ? 4 : 0) + (1 << (flags & 3));
}

/* Bytes of the header that begins here, its sum among them; 0: it is none that has a sum, or not
   that long. */
static uint64_t length_of(const unsigned char *byte, size_t size) {
    if (size < LONGEST || memcmp(byte, "OHDR\2", 5) != 0) return 0;
    const int at = start_of(byte), width = 1 << (byte[5] & 3);
    const uint64_t more = positional_io_number(byte + at - width, width);
    return more > UINT32_MAX ? UINT64_MAX : (uint64_t)at + more + SUM;
}

/* One header and what continues it. */
typedef struct header {
    const trailer *e;
    int fd, flags;
    bool still;         /* nobody writes the file: what has no right sum is damaged */
    uint64_t end, left; /* of the file; bytes that may still come */
    int chunks;         /* that may still come */
} header;

static bool messages_are_whole(header *h, const unsigned char *at, const unsigned char *end);

/* A piece of the file that ends in its sum; malloc'd, NULL: HDF5 will tell why. */
static unsigned char *read_piece(const header *h, uint64_t at, uint64_t length) {
    unsigned char *piece = malloc(length);
    if (piece && positional_io_read(h->fd, at, piece, length)) {
        if (h->e) trailer_patch(h->e, at, piece, length);
        return piece;
    }
    free(piece);
    return NULL;
}

static bool sum_is_right(const unsigned char *piece, uint64_t length) {
    return h5_checksum(piece, length - SUM) == positional_io_number(piece + length - SUM, SUM);
}

static bool chunk_is_whole(header *h, uint64_t at, uint64_t length) {
    if (length < 2 * SUM || at > h->end || length > h->end - at || length > h->left)
        return !h->still;
    h->left -= length;
    unsigned char *chunk = read_piece(h, at, length);
    bool whole = true;
    if (chunk && memcmp(chunk, "OCHK", 4) == 0 && sum_is_right(chunk, length))
        whole = messages_are_whole(h, chunk + 4, chunk + length - SUM);
    else if (chunk)
        whole = !h->still;
    free(chunk);
    return whole;
}

/* Messages [at, end): type [1], bytes [2], flags [1], an order [2] where the header's flags & 4,
 * the bytes. Type 16: place and length, 8 each, of a chunk that goes on. */
static bool messages_are_whole(header *h, const unsigned char *at, const unsigned char *end) {
    const int head = h->flags & 4 ? 6 : 4;
    while (end - at >= head) {
        const unsigned char *message = at + head;
        const size_t length = (size_t)positional_io_number(at + 1, 2);
        if ((size_t)(end - message) < length) return true; /* HDF5 will tell */
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
    unsigned char *all = length > size ? read_piece(&h, at, length) : NULL;
    const unsigned char *byte = all ? all : bytes;
    if (length > size && !all) return true;
    const bool whole = sum_is_right(byte, length)
                           ? messages_are_whole(&h, byte + start_of(byte), byte + length - SUM)
                           : !still;
    free(all);
    return whole;
}
