/* journal.c -- a write-ahead journal.
 *
 * A commit, with `sync`:
 *     fdatasync    the rows of this flush, and the metadata of the last one, are durable
 *     journal      writes the changed metadata and the counts to the end of the file
 *     fdatasync    from here on this flush counts
 *     metadata     goes to its place, in HDF5's order; the next commit's first fdatasync makes it
 *                  durable, before the journal is overwritten
 * Torn rows are not counted yet. Torn metadata is read from the journal. A torn journal leaves the
 * flush before it, which is in its place. Without sync this holds for a killed process, at any
 * point.
 *
 * The journal is some bytes after the end of the HDF5 data, so that few flushes have to move it.
 */
#include "journal/journal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/containers/vector.h"
#include "journal/positional_io.h"

enum { JOURNAL_GAP = 8192, JOURNAL_GAP_MOST = 4 << 20, JOURNAL_ALIGNMENT = 4096 };

void journal_init(journal *l, int fd) {
    *l = (journal){.fd = fd, .hold = true};
}

void journal_free(journal *l) {
    extent_map_free(&l->map);
    free(l->queue), free(l->bytes);
    *l = (journal){0};
}

/* -- system calls ---------------------------------------------------------------------- */

/* A file system without fdatasync has no disk. */
static bool synchronize(const journal *l) {
    return !l->sync || fdatasync(l->fd) == 0 || errno == EINVAL || errno == ENOSYS;
}

static bool set_size(const journal *l, uint64_t size) {
    struct stat s;
    if (fstat(l->fd, &s) != 0) return false;
    return s.st_size == (off_t)size || ftruncate(l->fd, (off_t)size) == 0;
}

/* -- queued writes ----------------------------------------------------------------------------- */

void journal_patch(const journal *l, uint64_t at, void *bytes, size_t size) {
    for (size_t i = 0; i < l->queued; i++) {
        const queued_write *w = &l->queue[i];
        const uint64_t from = w->at > at ? w->at : at;
        const uint64_t end = w->at + w->size < at + size ? w->at + w->size : at + size;
        if (from < end)
            memcpy((unsigned char *)bytes + (from - at), l->bytes + w->from + (from - w->at),
                   (size_t)(end - from));
    }
}

/* -- commits --------------------------------------------------------------------------------- */

/* Frees space for values: the data in the journal must be durable before. */
static bool drop_journal(journal *l) {
    const uint64_t at = l->at;
    l->at = 0;
    return synchronize(l) && set_size(l, at);
}

/* Settled steps that are written again get a copy again, from their place in the file. */
static bool unsettle(const journal *l, uint64_t at, uint64_t end) {
    for (size_t i = extent_map_find(&l->map, at); i < l->map.count && l->map.e[i].at < end; i++) {
        extent *e = &l->map.e[i];
        if (!extent_is_settled(e)) continue;
        if (!(e->copy = malloc(e->length))) return errno = ENOMEM, false;
        if (!positional_io_read(l->fd, e->at, e->copy, e->length)) return false;
    }
    return true;
}

bool journal_write(journal *l, bool metadata, uint64_t at, const void *bytes, size_t size) {
    const extent_kind kind = metadata || (l->hold && !l->begun) ? EXTENT_METADATA
                             : l->hold                          ? EXTENT_STEPS
                                                                : EXTENT_VALUES;
    if (!unsettle(l, at, at + size)) return false;
    if (!extent_map_put(&l->map, kind, at, (uint32_t)size, bytes)) return errno = ENOMEM, false;
    if (at + size > l->end) l->end = at + size;
    if (l->begun && kind != EXTENT_VALUES) {
        if (!vector_reserve(&l->queue, &l->queue_capacity, (int64_t)l->queued + 1,
                            sizeof *l->queue) ||
            !vector_reserve(&l->bytes, &l->capacity, (int64_t)(l->used + size), 1))
            return errno = ENOMEM, false;
        l->queue[l->queued++] = (queued_write){at, size, l->used};
        memcpy(l->bytes + l->used, bytes, size);
        l->used += size;
        return true;
    }
    if (l->at && at + size > l->at && !drop_journal(l)) return false;
    return positional_io_write(l->fd, at, bytes, size);
}

static bool put_journal(journal *l) {
    size_t size;
    if (l->at && l->at < l->end && !drop_journal(l)) return false;
    unsigned char *bytes = trailer_build_journal(&l->map, l->end, &size);
    if (!bytes) return errno = ENOMEM, false;
    if (!l->at) {
        const uint64_t part = l->end / 8, least = part < JOURNAL_GAP ? JOURNAL_GAP : part,
                       gap = least > JOURNAL_GAP_MOST ? JOURNAL_GAP_MOST : least;
        l->at = (l->end + gap + JOURNAL_ALIGNMENT - 1) / JOURNAL_ALIGNMENT * JOURNAL_ALIGNMENT;
    }
    const bool ok = positional_io_write(l->fd, l->at, bytes, size) && set_size(l, l->at + size);
    free(bytes);
    return ok && synchronize(l);
}

static bool put_metadata(journal *l) {
    for (size_t i = 0; i < l->queued; i++)
        if (!positional_io_write(l->fd, l->queue[i].at, l->bytes + l->queue[i].from,
                                 l->queue[i].size))
            return false;
    l->queued = l->used = 0;
    extent_map_settle(&l->map);
    return true;
}

bool journal_commit(journal *l, uint64_t end) {
    if (!l->begun) return true;
    if (end > l->end) l->end = end;
    return synchronize(l) && put_journal(l) && put_metadata(l);
}

bool journal_begin(journal *l, bool sync) {
    l->begun = true, l->hold = false, l->sync = sync;
    return journal_commit(l, 0);
}

bool journal_finalize(journal *l, uint64_t end) {
    return journal_commit(l, end) && synchronize(l) && set_size(l, end) &&
           trailer_finalize(&l->map, l->fd, end) && synchronize(l);
}
