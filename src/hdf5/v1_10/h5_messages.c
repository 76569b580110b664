/* h5_messages.c -- checks that the content of a header's message fits its length. HDF5 1.10 copies
 * values, names and properties of some messages from beyond their end.
 *
 * HDF5 File Format Specification 3.0, IV.A.2; the comments below name its sections. Only fields
 * that determine a length are checked. HDF5 itself checks the others, and rejects unknown versions.
 */
#include "hdf5/v1_10/h5_checks.h"

#include "journal/positional_io.h"

/* Bytes of addresses and lengths in files that HDF5 1.8 and later write. */
enum { ADDRESS = 8, LENGTH = 8 };

/* The unread part of a message. */
typedef struct message {
    const unsigned char *at, *end;
    bool fits;
    uint64_t number; /* dataspace: values; datatype: bytes of a value */
} message;

/* The next bytes as a number; 0 past the end. */
static uint64_t take(message *m, int bytes) {
    m->fits = m->fits && m->end - m->at >= bytes;
    if (!m->fits) return 0;
    m->at += bytes;
    return positional_io_number(m->at - bytes, bytes);
}

static void skip(message *m, uint64_t bytes) {
    m->fits = m->fits && (uint64_t)(m->end - m->at) >= bytes;
    if (m->fits) m->at += bytes;
}

/* Skips a field that follows its length. */
static void skip_counted(message *m, int width) {
    skip(m, take(m, width));
}

/* Skips the lengths of a chunk. HDF5 divides by them, so none may be 0. */
static void skip_lengths(message *m, uint64_t count, uint64_t width) {
    if (width < 1 || width > 8) m->fits = false;
    for (uint64_t i = 0; i < count && m->fits; i++)
        if (take(m, (int)width) == 0) m->fits = false;
}

static uint64_t padded(uint64_t bytes, bool eight) {
    return eight ? (bytes + 7) / 8 * 8 : bytes;
}

/* b, dataspace. */
static void dataspace(message *m) {
    const uint64_t version = take(m, 1), rank = take(m, 1), flags = take(m, 1);
    skip(m, version == 1 ? 5 : 1);
    for (uint64_t i = 0; i < rank && m->fits; i++)
        if (__builtin_mul_overflow(m->number, take(m, LENGTH), &m->number)) m->fits = false;
    skip(m, (flags & 1 ? rank * LENGTH : 0) + (version == 1 && flags & 2 ? rank * LENGTH : 0));
}

/* d, datatype: integers, floats and texts. check_type rejects the others. */
static void datatype(message *m) {
    static const int properties[] = {4, 12, 2, 0};
    const uint64_t class = take(m, 4) & 15;
    m->number = take(m, 4);
    if (class < 4) skip(m, (uint64_t)properties[class]);
}

/* e, fill value, old. */
static void fill_old(message *m) {
    skip_counted(m, 4);
}

/* f, fill value. */
static void fill(message *m) {
    const uint64_t version = take(m, 1), flags = take(m, 1);
    if (version < 3) skip(m, 1);
    const bool there = version < 3 ? take(m, 1) != 0 || version == 1 : (flags & 0x20) != 0;
    const uint64_t bytes = there ? take(m, 4) : 0;
    /* HDF5 would allocate 0 bytes and report that it is out of memory */
    if (there && version > 2 && bytes == 0) m->fits = false;
    skip(m, bytes);
}

/* g, link. */
static void link_of(message *m) {
    skip(m, 1);
    const uint64_t flags = take(m, 1), type = flags & 8 ? take(m, 1) : 0;
    skip(m, (flags & 4 ? 8u : 0u) + (flags & 16 ? 1u : 0u));
    skip_counted(m, 1 << (flags & 3));
    if (type == 0)
        skip(m, ADDRESS);
    else
        skip_counted(m, 2);
}

/* i, layout, versions 1 and 2. */
static void layout_old(message *m) {
    const uint64_t rank = take(m, 1), class = take(m, 1);
    skip(m, 5 + (class ? ADDRESS : 0u));
    if (class == 2)
        skip_lengths(m, rank, 4);
    else
        skip(m, 4 * rank);
    if (class == 0) skip_counted(m, 4);
}

/* i, layout, version 4, chunked: the type of the index determines the fields before its address. */
static void layout_index(message *m) {
    static const uint64_t before[] = {0, 0, 0, 1, 5, 6};
    const uint64_t flags = take(m, 1), rank = take(m, 1);
    skip_lengths(m, rank, take(m, 1));
    const uint64_t type = take(m, 1);
    skip(m, (type < 6 ? before[type] : 0) + (type == 1 && flags & 2 ? LENGTH + 4 : 0u) + ADDRESS);
}

static void layout(message *m) {
    enum { COMPACT, CONTIGUOUS, CHUNKED };
    const uint64_t version = take(m, 1);
    if (version < 3) {
        layout_old(m);
        return;
    }
    const uint64_t class = take(m, 1);
    if (class == COMPACT)
        skip_counted(m, 2);
    else if (class == CONTIGUOUS)
        skip(m, ADDRESS + LENGTH);
    else if (class == CHUNKED && version == 3) {
        const uint64_t rank = take(m, 1);
        skip(m, ADDRESS);
        skip_lengths(m, rank, 4);
    } else if (class == CHUNKED)
        layout_index(m);
}

/* l, filter pipeline. */
static void pipeline(message *m) {
    const uint64_t version = take(m, 1), filters = take(m, 1);
    if (filters == 0) m->fits = false; /* as in fill */
    skip(m, version == 1 ? 6 : 0);
    for (uint64_t i = 0; i < filters && m->fits; i++) {
        const uint64_t filter = take(m, 2), name = version == 1 || filter >= 256 ? take(m, 2) : 0;
        skip(m, 2);
        const uint64_t values = take(m, 2);
        skip(m, padded(name, version == 1) + 4 * values + (version == 1 && values % 2 ? 4 : 0));
    }
}

/* m, attribute: name, type, space, values. A shared type or space is stored elsewhere. */
static void attribute(message *m) {
    const uint64_t version = take(m, 1), flags = take(m, 1), name = take(m, 2), type = take(m, 2),
                   space = take(m, 2);
    uint64_t bytes = 0;
    skip(m, (version == 3) + padded(name, version == 1));
    message t = {m->at, m->at + type, m->fits, 0}, s;
    skip(m, padded(type, version == 1));
    s = (message){m->at, m->at + space, m->fits, 1};
    skip(m, padded(space, version == 1));
    if (!m->fits || (version > 1 && flags & 3)) return;
    datatype(&t);
    dataspace(&s);
    m->fits = t.fits && s.fits && !__builtin_mul_overflow(t.number, s.number, &bytes);
    skip(m, bytes);
}

bool h5_message_fits(int type, const unsigned char *at, size_t length) {
    static void (*const check[])(message *) = {
        [0x01] = dataspace, [0x03] = datatype, [0x04] = fill_old, [0x05] = fill,
        [0x06] = link_of,   [0x08] = layout,   [0x0b] = pipeline, [0x0c] = attribute};
    message m = {at, at + length, true, 1};
    if (type >= 0 && type < (int)(sizeof check / sizeof *check) && check[type]) check[type](&m);
    return m.fits;
}
