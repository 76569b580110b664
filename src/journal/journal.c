/* journal.c -- see journal.h.
 *
 * A commit, with `sync`:
 *     fdatasync          rows of this flush, and the structure of the last one, are on the disk
 *     the log            at the file's end: what this flush changes of the structure, and the counts
 *     fdatasync          from here on this flush counts
 *     the structure      to its places, in the order in which HDF5 wrote it; reaches the disk by the next
 *                        commit's first fdatasync, before anything is written over the log
 * Rows that are torn are not counted yet; a structure that is torn is read from the log; a log that is torn
 * leaves the flush before it, all of which is in its place. Without sync the same holds for a process that
 * is killed, whatever it was writing.
 *
 * The log stands some way behind the end of HDF5's part: few flushes grow that far.
 */
#include "journal/journal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "journal/positional_io.h"

enum { LOG_GAP = 8192, LOG_GAP_MOST = 4 << 20, LOG_BORDER = 4096 };

void journal_init(journal *l, int fd) {
    *l = (journal){.fd = fd, .hold = true};
    crc_table_init(&l->table);
}

void journal_free(journal *l) {
    extent_map_free(&l->map);
    free(l->queue), free(l->bytes);
    *l = (journal){0};
}

/* -- the system's calls ---------------------------------------------------------------------- */

/* Where a file system cannot, there is no disk that it would have to reach. */
static bool synchronise(const journal *l) {
    return !l->sync || fdatasync(l->fd) == 0 || errno == EINVAL || errno == ENOSYS;
}

static bool set_size(const journal *l, uint64_t size) {
    struct stat s;
    if (fstat(l->fd, &s) != 0) return false;
    return s.st_size == (off_t)size || ftruncate(l->fd, (off_t)size) == 0;
}

/* -- what waits ------------------------------------------------------------------------------ */

static bool grow(void *at, size_t *room, size_t wanted, size_t size) {
    void **p = at, *grown;
    if (wanted <= *room) return true;
    const size_t next = wanted > 2 * *room ? wanted : 2 * *room;
    if (!(grown = realloc(*p, next * size))) return false;
    *p = grown, *room = next;
    return true;
}

static bool enqueue(journal *l, uint64_t at, const void *bytes, size_t size) {
    if (!grow(&l->queue, &l->queue_room, l->queued + 1, sizeof *l->queue) ||
        !grow(&l->bytes, &l->room, l->used + size, 1))
        return false;
    l->queue[l->queued++] = (waiting){at, size, l->used};
    memcpy(l->bytes + l->used, bytes, size);
    l->used += size;
    return true;
}

void journal_patch(const journal *l, uint64_t at, void *bytes, size_t size) {
    for (size_t i = 0; i < l->queued; i++) {
        const waiting *w = &l->queue[i];
        const uint64_t from = w->at > at ? w->at : at;
        const uint64_t end = w->at + w->size < at + size ? w->at + w->size : at + size;
        if (from < end)
            memcpy((unsigned char *)bytes + (from - at), l->bytes + w->from + (from - w->at),
                   (size_t)(end - from));
    }
}

/* -- commits --------------------------------------------------------------------------------- */

/* Makes room for what is written at its place: what the log says must be on the disk before. */
static bool drop_log(journal *l) {
    const uint64_t at = l->at;
    l->at = 0;
    return synchronise(l) && set_size(l, at);
}

/* Steps that settled and are written again, or in part: their copy is made again, of their place. */
static bool unsettle(const journal *l, uint64_t at, uint64_t end) {
    for (size_t i = extent_map_find(&l->map, at); i < l->map.count && l->map.e[i].at < end; i++) {
        extent *e = &l->map.e[i];
        if (!extent_is_settled(e)) continue;
        if (!(e->copy = malloc(e->length))) return errno = ENOMEM, false;
        if (!positional_io_read(l->fd, e->at, e->copy, e->length)) return false;
    }
    return true;
}

bool journal_write(journal *l, bool structure, uint64_t at, const void *bytes, size_t size) {
    const extent_kind kind = structure || (l->hold && !l->begun) ? EXTENT_STRUCTURE
                             : l->hold                           ? EXTENT_STEPS
                                                                 : EXTENT_VALUES;
    if (!unsettle(l, at, at + size)) return false;
    if (!extent_map_put(&l->map, kind, at, (uint32_t)size, bytes)) return errno = ENOMEM, false;
    if (at + size > l->end) l->end = at + size;
    if (l->begun && kind != EXTENT_VALUES)
        return enqueue(l, at, bytes, size) || (errno = ENOMEM, false);
    if (l->at && at + size > l->at && !drop_log(l)) return false;
    return positional_io_write(l->fd, at, bytes, size);
}

static uint64_t place_for_log(uint64_t end) {
    uint64_t gap = end / 8;
    if (gap < LOG_GAP) gap = LOG_GAP;
    if (gap > LOG_GAP_MOST) gap = LOG_GAP_MOST;
    return (end + gap + LOG_BORDER - 1) / LOG_BORDER * LOG_BORDER;
}

static bool put_log(journal *l) {
    size_t size;
    if (l->at && l->at < l->end && !drop_log(l)) return false;
    unsigned char *log = trailer_log(&l->map, &l->table, l->end, &size);
    if (!log) return errno = ENOMEM, false;
    if (!l->at) l->at = place_for_log(l->end);
    const bool ok = positional_io_write(l->fd, l->at, log, size) && set_size(l, l->at + size);
    free(log);
    return ok && synchronise(l);
}

static bool put_structure(journal *l) {
    for (size_t i = 0; i < l->queued; i++)
        if (!positional_io_write(l->fd, l->queue[i].at, l->bytes + l->queue[i].from,
                                 l->queue[i].size))
            return false;
    l->queued = l->used = 0;
    extent_map_settle(&l->map, &l->table);
    return true;
}

bool journal_commit(journal *l, uint64_t end) {
    if (!l->begun) return true;
    if (end > l->end) l->end = end;
    return synchronise(l) && put_log(l) && put_structure(l);
}

bool journal_begin(journal *l, bool sync) {
    l->begun = true, l->hold = false, l->sync = sync;
    return journal_commit(l, 0);
}

bool journal_finalize(journal *l, uint64_t end) {
    return journal_commit(l, end) && synchronise(l) && set_size(l, end) &&
           trailer_finalize(&l->map, &l->table, l->fd, end) && synchronise(l);
}
