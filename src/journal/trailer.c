/* trailer.c -- see trailer.h.
 *
 * All numbers are little-endian: copies, one after the other; the table; the foot.
 *
 * An entry of the table, in the order of places: place and, in its highest byte, kind [8], length [4], sum
 * [4]. The foot: mark [16], version [4], kind [4], bytes of the end matter [8], end of HDF5's part [8],
 * entries [4], sum of the gaps [4], 0 [8], sum of the table [4], sum of the 60 bytes before it [4].
 */
#include "journal/trailer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "journal/positional_io.h"

enum { FOOT = 64, ENTRY = END_ENTRY, VERSION = 1, LOG_BYTES = 1 << 20, WINDOW = 1 << 18 };

static const unsigned char mark[16] = "\x89statrec end\r\n\x1a";

static void put_number(unsigned char *at, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) at[i] = (unsigned char)(value >> 8 * i);
}

/* -- making ---------------------------------------------------------------------------------- */

static bool belongs(const extent *e, bool all) {
    return e->copy && (e->changed || (all && e->kind == EXTENT_STRUCTURE));
}

static void put_entry(unsigned char *entry, const extent *e, uint64_t at, uint32_t sum) {
    put_number(entry, at | (uint64_t)e->kind << 56, 8);
    put_number(entry + 8, e->length, 4), put_number(entry + 12, sum, 4);
}

/* What a foot tells. */
typedef struct totals {
    end_kind kind;
    uint64_t copies, end; /* bytes */
    size_t count;
    uint32_t gaps, sum; /* sum: of the table */
} totals;

static uint64_t size_of(const totals *t) {
    return t->copies + t->count * ENTRY + FOOT;
}

static void put_footer(unsigned char foot[FOOT], const totals *t, const crc_table *table) {
    memcpy(foot, mark, sizeof mark);
    put_number(foot + 16, VERSION, 4), put_number(foot + 20, t->kind, 4);
    put_number(foot + 24, size_of(t), 8), put_number(foot + 32, t->end, 8);
    put_number(foot + 40, t->count, 4), put_number(foot + 44, t->gaps, 4);
    put_number(foot + 48, 0, 8), put_number(foot + 56, t->sum, 4);
    put_number(foot + 60, crc_add(table, 0, foot, 60), 4);
}

unsigned char *trailer_log(const extent_map *m, const crc_table *table, uint64_t end,
                           size_t *size) {
    size_t structure = 0;
    totals t = {.kind = END_LOG, .end = end};
    for (size_t i = 0; i < m->count; i++)
        if (m->e[i].kind == EXTENT_STRUCTURE) structure += m->e[i].length;
    const bool all = structure <= LOG_BYTES;
    for (size_t i = 0; i < m->count; i++)
        if (belongs(&m->e[i], all)) t.count++, t.copies += m->e[i].length;
    *size = (size_t)size_of(&t);
    unsigned char *bytes = malloc(*size);
    if (!bytes) return NULL;
    unsigned char *copy = bytes, *entry = bytes + t.copies;
    for (size_t i = 0; i < m->count; i++) {
        const extent *e = &m->e[i];
        if (!belongs(e, all)) continue;
        put_entry(entry, e, e->at, crc_add(table, 0, e->copy, e->length));
        memcpy(copy, e->copy, e->length);
        entry += ENTRY, copy += e->length;
    }
    t.sum = crc_add(table, 0, bytes + t.copies, t.count * ENTRY);
    put_footer(entry, &t, table);
    return bytes;
}

/* -- reading bytes --------------------------------------------------------------------------- */

/* Bytes of a file that were read at once: most of what is asked for lies close together. */
typedef struct window {
    int fd;
    uint64_t at;
    size_t size, least;   /* bytes that are there; that are read at once */
    unsigned char *bytes; /* [WINDOW]; NULL: no memory */
} window;

/* least: WINDOW, or 0 where nothing behind what is asked for will be. */
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

static bool sum_of(const crc_table *table, window *w, uint64_t at, uint64_t size, uint32_t *sum) {
    while (size) {
        const size_t part = size < WINDOW ? (size_t)size : WINDOW;
        const unsigned char *bytes = window_at(w, at, part);
        if (!bytes) return false;
        *sum = crc_add(table, *sum, bytes, part);
        at += part, size -= part;
    }
    return true;
}

/* Of the bytes that no extent has, as extents go by in their order. */
typedef struct gap_sum {
    const crc_table *table;
    window *w;
    uint64_t done, end;
    uint32_t sum;
} gap_sum;

static bool gaps_until(gap_sum *g, uint64_t at) {
    const uint64_t to = at < g->end ? at : g->end;
    return g->done >= to || sum_of(g->table, g->w, g->done, to - g->done, &g->sum);
}

static bool gaps_pass(gap_sum *g, const extent *x) {
    const bool ok = gaps_until(g, x->at);
    g->done = x->at + x->length;
    return ok;
}

/* -- sealing --------------------------------------------------------------------------------- */

/* Bytes that are put one behind the other. */
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

/* A seal that is being made. */
typedef struct sealing {
    const crc_table *table;
    window *w; /* of HDF5's part */
    stream *s;
    gap_sum between;
    totals t;
} sealing;

/* From its place. */
static bool seal_settled(sealing *z, const extent *e) {
    bool ok = true;
    for (uint32_t done = 0; done < e->length && ok;) {
        const uint32_t left = e->length - done, part = left < WINDOW ? left : WINDOW;
        const unsigned char *bytes = window_at(z->w, e->at + done, part);
        ok = bytes && stream_put(z->s, bytes, part);
        done += part;
    }
    return ok;
}

static bool seal_copies(sealing *z, const extent_map *m) {
    bool ok = true;
    for (size_t i = 0; i < m->count && ok; i++) {
        const extent *e = &m->e[i];
        if (e->kind == EXTENT_VALUES) continue;
        ok = e->copy ? stream_put(z->s, e->copy, e->length) : seal_settled(z, e);
        z->t.copies += e->length;
    }
    return ok;
}

static bool sum_of_extent(const sealing *z, const extent *e, uint64_t at, uint32_t *sum) {
    *sum = extent_is_settled(e) ? e->sum : 0;
    if (e->copy) *sum = crc_add(z->table, 0, e->copy, e->length);
    return e->kind != EXTENT_VALUES || sum_of(z->table, z->w, at, e->length, sum);
}

/* Entry after entry of those that stand as one. */
static bool seal_entries(sealing *z, const extent *e) {
    bool ok = true;
    for (uint64_t k = 0; k <= e->more && ok; k++) {
        unsigned char entry[ENTRY];
        const extent one = {.at = e->at + k * e->length, .length = e->length};
        uint32_t sum = 0;
        ok = gaps_pass(&z->between, &one) && sum_of_extent(z, e, one.at, &sum);
        put_entry(entry, e, one.at, sum);
        ok = ok && stream_put(z->s, entry, ENTRY);
        z->t.sum = crc_add(z->table, z->t.sum, entry, ENTRY);
        z->t.count++;
    }
    return ok;
}

static bool seal_all(sealing *z, const extent_map *m) {
    unsigned char foot[FOOT];
    bool ok = seal_copies(z, m);
    for (size_t i = 0; i < m->count && ok; i++) ok = seal_entries(z, &m->e[i]);
    if (!ok || !gaps_until(&z->between, z->t.end)) return false;
    z->t.gaps = z->between.sum;
    put_footer(foot, &z->t, z->table);
    return stream_put(z->s, foot, FOOT) && stream_out(z->s);
}

bool trailer_finalize(const extent_map *m, const crc_table *table, int fd, uint64_t end) {
    window w = window_open(fd, WINDOW);
    stream s = {.fd = fd, .at = end, .bytes = malloc(WINDOW)};
    sealing z = {.table = table,
                 .w = &w,
                 .s = &s,
                 .between = {.table = table, .w = &w, .end = end},
                 .t = {.kind = END_SEAL, .end = end}};
    const bool memory = w.bytes && s.bytes, ok = memory && seal_all(&z, m);
    free(w.bytes), free(s.bytes);
    if (!memory) errno = ENOMEM;
    return ok;
}

/* -- loading --------------------------------------------------------------------------------- */

/* The table before the foot, by which the copies must have `left` bytes. */
static bool load_table(trailer *e, int fd, const unsigned char *foot, uint64_t length,
                       bool *memory) {
    const uint64_t count = positional_io_number(foot + 40, 4);
    uint64_t copies;
    if (count * ENTRY > length - FOOT) return false;
    return checksum_table_open(&e->entries, &e->table, fd, e->size - FOOT - count * ENTRY, count,
                               e->end, (uint32_t)positional_io_number(foot + 56, 4), &copies,
                               memory) &&
           copies == length - FOOT - count * ENTRY;
}

/* Holds one extent of the structure against its copy [length]. */
static void compare(trailer *e, extent *x, const unsigned char *copy, const unsigned char *here) {
    const bool copy_good = crc_add(&e->table, 0, copy, x->length) == x->sum;
    const bool same = memcmp(copy, here, x->length) == 0;
    x->looked = true;
    if (same && copy_good) return;
    x->bad = true;
    if (copy_good) {
        x->changed = true;
        if ((x->copy = malloc(x->length))) memcpy(x->copy, copy, x->length);
    } else if (crc_add(&e->table, 0, here, x->length) == x->sum) {
        x->looked = false;
    }
}

/* An extent of any size: in the window, or in *large, to be freed. NULL with errno. */
static const unsigned char *extent_at(window *w, uint64_t at, size_t size, unsigned char **large) {
    *large = NULL;
    if (size <= WINDOW) return window_at(w, at, size);
    *large = malloc(size);
    return *large && positional_io_read(w->fd, at, *large, size) ? *large : NULL;
}

/* An extent's copy, and what is in its place; false where one cannot be read. */
static bool compare_copy(trailer *e, extent *x, window *w, window *copies, uint64_t copy_at,
                         bool *memory) {
    unsigned char *large[2];
    const unsigned char *here = extent_at(w, x->at, x->length, &large[0]);
    const unsigned char *copy = extent_at(copies, copy_at, x->length, &large[1]);
    const bool ok = here && copy;
    if (ok) compare(e, x, copy, here);
    *memory = (x->length <= WINDOW || (large[0] && large[1])) && (!x->changed || x->copy);
    free(large[0]), free(large[1]);
    return ok && *memory;
}

/* The copies are behind one another. False: of a log, not all that was meant. */
static bool compare_copies(trailer *e, window *w, window *copies, uint64_t at, bool *memory) {
    for (size_t i = 0; i < e->entries.count; i++) {
        extent x;
        if (!checksum_table_get(&e->entries, w->fd, i, &x)) return false;
        if (x.kind == EXTENT_VALUES) continue;
        bool ok = compare_copy(e, &x, w, copies, at, memory);
        if (x.bad && !extent_map_add(&e->map, &x)) free(x.copy), ok = *memory = false;
        if (!ok || (e->kind == END_LOG && x.bad && !x.changed)) return false;
        at += x.length;
    }
    return true;
}

static bool load_copies(trailer *e, int fd, uint64_t at, bool *memory) {
    window w = window_open(fd, WINDOW), copies = window_open(fd, WINDOW);
    *memory = w.bytes && copies.bytes;
    const bool ok = *memory && compare_copies(e, &w, &copies, at, memory);
    free(w.bytes), free(copies.bytes);
    return ok;
}

static sr_status load(trailer *e, int fd, const char *path, sr_failure *why) {
    unsigned char foot[FOOT];
    bool memory = true;
    if (e->size < FOOT || !positional_io_read(fd, e->size - FOOT, foot, FOOT) ||
        memcmp(foot, mark, sizeof mark) != 0)
        return SR_OK;
    const uint64_t length = positional_io_number(foot + 24, 8);
    e->gaps = (uint32_t)positional_io_number(foot + 44, 4);
    e->kind = positional_io_number(foot + 20, 4) == END_SEAL ? END_SEAL : END_LOG;
    e->end = positional_io_number(foot + 32, 8);
    bool ok = crc_add(&e->table, 0, foot, 60) == positional_io_number(foot + 60, 4) &&
              length >= FOOT && length <= e->size && e->end <= e->size - length &&
              positional_io_number(foot + 16, 4) == VERSION;
    ok = ok && load_table(e, fd, foot, length, &memory) &&
         load_copies(e, fd, e->size - length, &memory);
    if (ok) return SR_OK;
    extent_map_free(&e->map), checksum_table_free(&e->entries);
    if (!memory) return sr_fail(why, SR_MEMORY, "%s: its end matter", path);
    e->damaged = e->kind == END_SEAL;
    e->kind = END_NONE;
    return SR_OK;
}

sr_status trailer_load(trailer *e, const char *path, sr_failure *why) {
    struct stat s;
    *e = (trailer){0};
    crc_table_init(&e->table);
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

/* Keeps what is known of an extent of values: those that are bad. */
static extent *look_at(trailer *e, size_t i, const extent *x, uint32_t sum) {
    extent bad = *x, *kept = NULL;
    bad.looked = bad.bad = true;
    if (sum != x->sum && !(kept = extent_map_add(&e->map, &bad))) {
        e->spare = bad; /* to be looked at again */
        return &e->spare;
    }
    checksum_table_set_verified(&e->entries, i);
    return kept;
}

static bool sum_in_file(const trailer *e, const extent *x, int fd, uint32_t *sum) {
    window w = window_open(fd, 0);
    *sum = 0;
    const bool ok = w.bytes && sum_of(&e->table, &w, x->at, x->length, sum);
    free(w.bytes);
    return ok;
}

/* What cannot be read is as good as bad. */
static extent *unreadable(trailer *e, const extent *x) {
    e->spare = *x;
    return &e->spare;
}

/* NULL: its bytes are those that were written. bytes: they; NULL: in the file. */
static extent *find_bad(trailer *e, size_t i, const extent *x, int fd, const unsigned char *bytes) {
    uint32_t sum;
    if (checksum_table_is_verified(&e->entries, i)) {
        const size_t k = extent_map_find(&e->map, x->at);
        return k < e->map.count && e->map.e[k].at == x->at ? &e->map.e[k] : NULL;
    }
    if (bytes)
        sum = crc_add(&e->table, 0, bytes, x->length);
    else if (!sum_in_file(e, x, fd, &sum))
        return unreadable(e, x);
    return look_at(e, i, x, sum);
}

bool trailer_agrees(trailer *e, int fd, uint64_t at, const void *bytes, size_t size,
                    const extent **bad) {
    size_t i;
    *bad = NULL;
    if (e->kind != END_SEAL) return true;
    bool known = checksum_table_find(&e->entries, fd, at, &i);
    for (; known && i < e->entries.count; i++) {
        extent x;
        known = checksum_table_get(&e->entries, fd, i, &x);
        if (!known || x.at >= at + size) break;
        if (x.kind != EXTENT_VALUES) continue;
        const bool within = x.at >= at && x.at + x.length <= at + size;
        extent *found =
            find_bad(e, i, &x, fd, within ? (const unsigned char *)bytes + (x.at - at) : NULL);
        if (found && !*bad) found->told = true, e->refused = *found, *bad = &e->refused;
    }
    if (known || *bad) return *bad == NULL;
    e->refused = (extent){.at = at, .length = (uint32_t)size};
    *bad = &e->refused;
    return false;
}

/* Extent after extent: of values that nobody read, and of the bytes before each. */
static bool look_at_all(trailer *e, window *w, gap_sum *between) {
    bool ok = true;
    for (size_t i = 0; i < e->entries.count && ok; i++) {
        extent x;
        uint32_t sum = 0;
        ok = checksum_table_get(&e->entries, w->fd, i, &x) && gaps_pass(between, &x);
        if (!ok || x.kind != EXTENT_VALUES || checksum_table_is_verified(&e->entries, i)) continue;
        ok = sum_of(&e->table, w, x.at, x.length, &sum);
        if (ok && look_at(e, i, &x, sum) == &e->spare) ok = false, errno = ENOMEM;
    }
    return ok && gaps_until(between, e->end);
}

sr_status trailer_verify(trailer *e, const char *path, bool *gaps, sr_failure *why) {
    *gaps = true;
    if (e->kind != END_SEAL) return SR_OK;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    window w = window_open(fd, WINDOW);
    gap_sum between = {&e->table, &w, 0, e->end, 0};
    const bool ok = w.bytes && fd >= 0 && look_at_all(e, &w, &between);
    *gaps = between.sum == e->gaps;
    const int error = w.bytes ? errno : ENOMEM;
    if (fd >= 0) close(fd);
    free(w.bytes);
    if (ok) return SR_OK;
    return sr_fail(why, error == ENOMEM ? SR_MEMORY : SR_IO, "%s: %s", path, strerror(error));
}
