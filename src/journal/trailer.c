/* trailer.c -- builds, writes, loads and verifies trailers.
 *
 * A trailer has consecutive backup copies, the table, and the footer. Numbers are little-endian.
 *
 *   table entry  offset and, in its highest byte, kind [8]; length [4]; checksum [4]
 *   footer       mark [16]; version [4]; kind [4]; bytes of the trailer [8]; end of the HDF5 data
 *                [8]; number of entries [4]; checksum of the gaps [4]; 0 [8]; checksum of the table
 *                [4]; checksum of the first 60 bytes [4]
 *
 * Entries are in the order of their offsets.
 */
#include "journal/trailer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32.h"
#include "journal/positional_io.h"

enum { FOOTER = 64, ENTRY = TRAILER_ENTRY, VERSION = 1, WINDOW = 1 << 18 };
/* A journal holds all metadata if that is no larger; else the changes. */
enum { JOURNAL_BYTES = 1 << 20 };

static const unsigned char mark[16] = "\x89statrec end\r\n\x1a";

static void put_number(unsigned char *at, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) at[i] = (unsigned char)(value >> 8 * i);
}

/* -- journal --------------------------------------------------------------------------------- */

static bool belongs(const extent *e, bool all) {
    return e->copy && (e->changed || (all && e->kind == EXTENT_METADATA));
}

static void put_entry(unsigned char *entry, const extent *e, uint64_t at, uint32_t checksum) {
    put_number(entry, at | (uint64_t)e->kind << 56, 8);
    put_number(entry + 8, e->length, 4), put_number(entry + 12, checksum, 4);
}

/* The content of a footer. */
typedef struct totals {
    trailer_kind kind;
    uint64_t copies, end; /* bytes */
    size_t count;
    uint32_t gaps, checksum; /* checksums of the gaps and of the table */
} totals;

static uint64_t size_of(const totals *t) {
    return t->copies + t->count * ENTRY + FOOTER;
}

static void put_footer(unsigned char footer[FOOTER], const totals *t) {
    memcpy(footer, mark, sizeof mark);
    put_number(footer + 16, VERSION, 4), put_number(footer + 20, t->kind, 4);
    put_number(footer + 24, size_of(t), 8), put_number(footer + 32, t->end, 8);
    put_number(footer + 40, t->count, 4), put_number(footer + 44, t->gaps, 4);
    put_number(footer + 48, 0, 8), put_number(footer + 56, t->checksum, 4);
    put_number(footer + 60, crc32_add(0, footer, 60), 4);
}

unsigned char *trailer_build_journal(const extent_map *m, uint64_t end, size_t *size) {
    size_t metadata = 0;
    totals t = {.kind = TRAILER_JOURNAL, .end = end};
    for (size_t i = 0; i < m->count; i++)
        if (m->e[i].kind == EXTENT_METADATA) metadata += m->e[i].length;
    const bool all = metadata <= JOURNAL_BYTES;
    for (size_t i = 0; i < m->count; i++)
        if (belongs(&m->e[i], all)) t.count++, t.copies += m->e[i].length;
    *size = (size_t)size_of(&t);
    unsigned char *bytes = malloc(*size);
    if (!bytes) return NULL;
    unsigned char *copy = bytes, *entry = bytes + t.copies;
    for (size_t i = 0; i < m->count; i++) {
        const extent *e = &m->e[i];
        if (!belongs(e, all)) continue;
        put_entry(entry, e, e->at, crc32_add(0, e->copy, e->length));
        memcpy(copy, e->copy, e->length);
        entry += ENTRY, copy += e->length;
    }
    t.checksum = crc32_add(0, bytes + t.copies, t.count * ENTRY);
    put_footer(entry, &t);
    return bytes;
}

/* -- reading bytes --------------------------------------------------------------------------- */

/* A buffer of consecutive bytes of a file: most reads are close together. */
typedef struct window {
    int fd;
    uint64_t at;
    size_t size;          /* bytes in the buffer */
    size_t least;         /* bytes to read at once */
    unsigned char *bytes; /* [WINDOW]; NULL: out of memory */
} window;

/* least: WINDOW, or 0 when later bytes are not needed. */
static window window_open(int fd, size_t least) {
    return (window){.fd = fd, .least = least, .bytes = malloc(WINDOW)};
}

/* size <= WINDOW. NULL with errno. */
static const unsigned char *window_at(window *w, uint64_t at, size_t size) {
    if (at < w->at || at + size > w->at + w->size) {
        const size_t wanted = size < w->least ? w->least : size;
        w->size = 0;
        if (!positional_io_read(w->fd, at, w->bytes, wanted)) return NULL;
        w->at = at, w->size = wanted;
    }
    return w->bytes + (at - w->at);
}

static bool checksum_of(window *w, uint64_t at, uint64_t size, uint32_t *checksum) {
    while (size) {
        const size_t part = size < WINDOW ? (size_t)size : WINDOW;
        const unsigned char *bytes = window_at(w, at, part);
        if (!bytes) return false;
        *checksum = crc32_add(*checksum, bytes, part);
        at += part, size -= part;
    }
    return true;
}

/* Checksum of the bytes between extents, which are passed in their order. */
typedef struct gap_checksum {
    window *w;
    uint64_t done, end;
    uint32_t checksum;
} gap_checksum;

static bool gaps_until(gap_checksum *g, uint64_t at) {
    const uint64_t to = at < g->end ? at : g->end;
    return g->done >= to || checksum_of(g->w, g->done, to - g->done, &g->checksum);
}

static bool gaps_pass(gap_checksum *g, const extent *x) {
    const bool ok = gaps_until(g, x->at);
    g->done = x->at + x->length;
    return ok;
}

/* -- final trailer ----------------------------------------------------------------------------- */

/* A buffered sequential writer. */
typedef struct stream {
    int fd;
    uint64_t at;
    size_t used;
    unsigned char *bytes; /* [WINDOW] */
} stream;

static bool stream_out(stream *s) {
    const size_t size = s->used;
    s->used = 0, s->at += size;
    return positional_io_write(s->fd, s->at - size, s->bytes, size);
}

static bool stream_put(stream *s, const void *bytes, size_t size) {
    for (const unsigned char *from = bytes; size;) {
        const size_t room = WINDOW - s->used, part = size < room ? size : room;
        memcpy(s->bytes + s->used, from, part);
        s->used += part, from += part, size -= part;
        if (s->used == WINDOW && !stream_out(s)) return false;
    }
    return true;
}

/* A final trailer in progress. */
typedef struct finalizing {
    window *w; /* window over the HDF5 data */
    stream *s;
    gap_checksum between;
    totals t;
} finalizing;

/* Copies steps from their place in the file. */
static bool final_settled(finalizing *z, const extent *e) {
    bool ok = true;
    for (uint32_t done = 0; done < e->length && ok;) {
        const uint32_t left = e->length - done, part = left < WINDOW ? left : WINDOW;
        const unsigned char *bytes = window_at(z->w, e->at + done, part);
        ok = bytes && stream_put(z->s, bytes, part);
        done += part;
    }
    return ok;
}

static bool final_copies(finalizing *z, const extent_map *m) {
    bool ok = true;
    for (size_t i = 0; i < m->count && ok; i++) {
        const extent *e = &m->e[i];
        if (e->kind == EXTENT_VALUES) continue;
        ok = e->copy ? stream_put(z->s, e->copy, e->length) : final_settled(z, e);
        z->t.copies += e->length;
    }
    return ok;
}

/* Writes an entry for each of the equal extents of `e`. */
static bool final_entries(finalizing *z, const extent *e) {
    bool ok = true;
    for (uint64_t k = 0; k <= e->more && ok; k++) {
        unsigned char entry[ENTRY];
        const extent one = {.at = e->at + k * e->length, .length = e->length};
        uint32_t checksum = extent_is_settled(e) ? e->checksum : 0;
        if (e->copy) checksum = crc32_add(0, e->copy, e->length);
        ok = gaps_pass(&z->between, &one) &&
             (e->kind != EXTENT_VALUES || checksum_of(z->w, one.at, e->length, &checksum));
        put_entry(entry, e, one.at, checksum);
        ok = ok && stream_put(z->s, entry, ENTRY);
        z->t.checksum = crc32_add(z->t.checksum, entry, ENTRY);
        z->t.count++;
    }
    return ok;
}

static bool final_all(finalizing *z, const extent_map *m) {
    unsigned char footer[FOOTER];
    bool ok = final_copies(z, m);
    for (size_t i = 0; i < m->count && ok; i++) ok = final_entries(z, &m->e[i]);
    if (!ok || !gaps_until(&z->between, z->t.end)) return false;
    z->t.gaps = z->between.checksum;
    put_footer(footer, &z->t);
    return stream_put(z->s, footer, FOOTER) && stream_out(z->s);
}

bool trailer_finalize(const extent_map *m, int fd, uint64_t end) {
    window w = window_open(fd, WINDOW);
    stream s = {.fd = fd, .at = end, .bytes = malloc(WINDOW)};
    finalizing z = {.w = &w,
                    .s = &s,
                    .between = {.w = &w, .end = end},
                    .t = {.kind = TRAILER_FINAL, .end = end}};
    const bool memory = w.bytes && s.bytes, ok = memory && final_all(&z, m);
    free(w.bytes), free(s.bytes);
    if (!memory) errno = ENOMEM;
    return ok;
}

/* -- loading --------------------------------------------------------------------------------- */

/* Compares an extent of metadata with its copy [length]. */
static void compare(extent *x, const unsigned char *copy, const unsigned char *here) {
    const bool copy_good = crc32_add(0, copy, x->length) == x->checksum;
    const bool same = memcmp(copy, here, x->length) == 0;
    x->verified = true;
    if (same && copy_good) return;
    x->bad = true;
    if (copy_good) {
        x->changed = true;
        if ((x->copy = malloc(x->length))) memcpy(x->copy, copy, x->length);
    } else if (crc32_add(0, here, x->length) == x->checksum) {
        x->verified = false;
    }
}

/* Bytes of an extent of any size: in the window, or in *large, which the caller frees. NULL with
   errno. */
static const unsigned char *extent_at(window *w, uint64_t at, size_t size, unsigned char **large) {
    *large = NULL;
    if (size <= WINDOW) return window_at(w, at, size);
    *large = malloc(size);
    return *large && positional_io_read(w->fd, at, *large, size) ? *large : NULL;
}

/* False when the extent or its copy cannot be read. */
static bool compare_copy(extent *x, window *w, window *copies, uint64_t copy_at, bool *memory) {
    unsigned char *large[2];
    const unsigned char *here = extent_at(w, x->at, x->length, &large[0]);
    const unsigned char *copy = extent_at(copies, copy_at, x->length, &large[1]);
    const bool ok = here && copy;
    if (ok) compare(x, copy, here);
    *memory = (x->length <= WINDOW || (large[0] && large[1])) && (!x->changed || x->copy);
    free(large[0]), free(large[1]);
    return ok && *memory;
}

/* Copies are consecutive, from `at` on. False: unreadable, or an incomplete journal. */
static bool load_copies(trailer *e, int fd, uint64_t at, bool *memory) {
    window w = window_open(fd, WINDOW), copies = window_open(fd, WINDOW);
    bool ok = *memory = w.bytes && copies.bytes;
    for (size_t i = 0; i < e->entries.count && ok; i++) {
        extent x = checksum_table_get(&e->entries, i);
        if (x.kind == EXTENT_VALUES) continue;
        ok = compare_copy(&x, &w, &copies, at, memory);
        if (x.bad && !extent_map_add(&e->map, &x)) free(x.copy), ok = *memory = false;
        if (e->kind == TRAILER_JOURNAL && x.bad && !x.changed) ok = false;
        at += x.length;
    }
    free(w.bytes), free(copies.bytes);
    return ok;
}

static sr_status load(trailer *e, int fd, const char *path, sr_failure *why) {
    unsigned char footer[FOOTER];
    bool memory = true;
    if (e->size < FOOTER || !positional_io_read(fd, e->size - FOOTER, footer, FOOTER) ||
        memcmp(footer, mark, sizeof mark) != 0)
        return SR_OK;
    const uint64_t length = positional_io_number(footer + 24, 8);
    e->gaps = (uint32_t)positional_io_number(footer + 44, 4);
    e->checksum = (uint32_t)positional_io_number(footer + 56, 4);
    e->kind =
        positional_io_number(footer + 20, 4) == TRAILER_FINAL ? TRAILER_FINAL : TRAILER_JOURNAL;
    e->end = positional_io_number(footer + 32, 8);
    bool ok = crc32_add(0, footer, 60) == positional_io_number(footer + 60, 4) &&
              length <= e->size && e->end <= e->size - length &&
              positional_io_number(footer + 16, 4) == VERSION;
    const uint64_t count = positional_io_number(footer + 40, 4), table = count * ENTRY + FOOTER;
    uint64_t copies; /* bytes; they must fill the rest of the trailer */
    ok = ok && table <= length &&
         checksum_table_open(&e->entries, fd, e->size - table, count, e->end, e->checksum, &copies,
                             &memory) &&
         copies == length - table && load_copies(e, fd, e->size - length, &memory);
    if (ok) return SR_OK;
    extent_map_free(&e->map), checksum_table_free(&e->entries);
    if (!memory) return sr_fail(why, SR_MEMORY, "%s: out of memory for the trailer", path);
    e->damaged = e->kind == TRAILER_FINAL;
    e->kind = TRAILER_NONE;
    return SR_OK;
}

sr_status trailer_load(trailer *e, const char *path, sr_failure *why) {
    struct stat s;
    *e = (trailer){0};
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &s) != 0) {
        sr_status status = sr_fail(why, SR_IO, "%s: %s", path, strerror(errno));
        if (fd >= 0) close(fd);
        return status;
    }
    e->size = (uint64_t)s.st_size;
    sr_status status = load(e, fd, path, why);
    close(fd);
    return status;
}

void trailer_free(trailer *e) {
    extent_map_free(&e->map), checksum_table_free(&e->entries);
    *e = (trailer){0};
}

void trailer_doze(trailer *e) {
    checksum_table_free(&e->entries);
    e->dozes = true;
}

bool trailer_is_same(const trailer *a, const trailer *b) {
    return a->size == b->size && a->end == b->end && a->gaps == b->gaps &&
           a->checksum == b->checksum;
}

/* -- using ----------------------------------------------------------------------------------- */

void trailer_patch(const trailer *e, uint64_t at, void *bytes, size_t size) {
    for (size_t i = extent_map_find(&e->map, at); i < e->map.count; i++) {
        const extent *x = &e->map.e[i];
        if (x->at >= at + size) return;
        if (!x->changed) continue;
        const uint64_t from = x->at > at ? x->at : at;
        const uint64_t x_end = x->at + x->length, end = x_end < at + size ? x_end : at + size;
        memcpy((unsigned char *)bytes + (from - at), x->copy + (from - x->at),
               (size_t)(end - from));
    }
}

/* Records that an extent of values was verified; returns it when it is bad. */
static extent *record_verified(trailer *e, size_t i, const extent *x, uint32_t checksum) {
    extent bad = *x, *kept = NULL;
    bad.verified = bad.bad = true;
    if (checksum != x->checksum && !(kept = extent_map_add(&e->map, &bad))) {
        e->spare = bad; /* to be verified again */
        return &e->spare;
    }
    checksum_table_set_verified(&e->entries, i);
    return kept;
}

/* The extent if it is bad, else NULL. bytes: of the extent; NULL: read them from the file. */
static extent *find_bad(trailer *e, size_t i, const extent *x, int fd, const unsigned char *bytes) {
    uint32_t checksum;
    if (checksum_table_is_verified(&e->entries, i)) {
        const size_t k = extent_map_find(&e->map, x->at);
        return k < e->map.count && e->map.e[k].at == x->at ? &e->map.e[k] : NULL;
    }
    if (bytes) {
        checksum = crc32_add(0, bytes, x->length);
    } else {
        window w = window_open(fd, 0);
        checksum = 0;
        const bool read = w.bytes && checksum_of(&w, x->at, x->length, &checksum);
        free(w.bytes);
        if (!read) return e->spare = *x, &e->spare; /* unreadable is as good as bad */
    }
    return record_verified(e, i, x, checksum);
}

bool trailer_agrees(trailer *e, int fd, uint64_t at, const void *bytes, size_t size,
                    const extent **bad) {
    *bad = NULL;
    if (e->kind != TRAILER_FINAL) return true;
    for (size_t i = checksum_table_find(&e->entries, at); i < e->entries.count; i++) {
        const extent x = checksum_table_get(&e->entries, i);
        if (x.at >= at + size) break;
        if (x.kind != EXTENT_VALUES) continue;
        const bool within = x.at >= at && x.at + x.length <= at + size;
        extent *found =
            find_bad(e, i, &x, fd, within ? (const unsigned char *)bytes + (x.at - at) : NULL);
        if (found && !*bad) found->reported = true, e->refused = *found, *bad = &e->refused;
    }
    return *bad == NULL;
}

/* Verifies the values that were not read yet, and passes the bytes between extents. */
static bool verify_rest(trailer *e, window *w, gap_checksum *between) {
    bool ok = true;
    for (size_t i = 0; i < e->entries.count && ok; i++) {
        const extent x = checksum_table_get(&e->entries, i);
        uint32_t checksum = 0;
        ok = gaps_pass(between, &x);
        if (!ok || x.kind != EXTENT_VALUES || checksum_table_is_verified(&e->entries, i)) continue;
        ok = checksum_of(w, x.at, x.length, &checksum);
        if (ok && record_verified(e, i, &x, checksum) == &e->spare) ok = false, errno = ENOMEM;
    }
    return ok && gaps_until(between, e->end);
}

sr_status trailer_verify(trailer *e, const char *path, bool *gaps, sr_failure *why) {
    *gaps = true;
    if (e->kind != TRAILER_FINAL) return SR_OK;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    window w = window_open(fd, WINDOW);
    gap_checksum between = {&w, 0, e->end, 0};
    const bool ok = w.bytes && fd >= 0 && verify_rest(e, &w, &between);
    *gaps = !ok || between.checksum == e->gaps; /* a part of them shows nothing */
    const int error = w.bytes ? errno : ENOMEM;
    if (fd >= 0) close(fd);
    free(w.bytes);
    if (ok) return SR_OK;
    return sr_fail(why, error == ENOMEM ? SR_MEMORY : SR_IO, "%s: %s", path, strerror(error));
}
