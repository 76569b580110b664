/* open_file_cache.c -- many run files at once.
 *
 * An open HDF5 file takes a descriptor and more than a megabyte. In a pool of files only the OPEN
 * that were used last are open in HDF5. The others keep the data that was read, and are opened
 * again on demand. A pool ends with its last file. stat-tid over 1,000 runs takes 80 MB with this
 * limit, 1,301 MB without.
 */
#include "runfile/read/file/open_file_cache.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "journal/trailer.h"
#include "runfile/read/file/read_growing.h"
#include "runfile/read/file/scalar_cache.h"
#include "runfile/read/file/shared_tables.h"

enum { OPEN = 32 };

struct open_file_cache {
    const sr_runfile *open[OPEN];
    int next; /* slot of the file to close next */
    int files;
    shared_tables *tables;
};

sr_status reader_open_file(const char *path, trailer *end, bool *unfinished, int64_t *cut_at,
                           h5_id *file, sr_failure *why) {
    sr_status status = reader_check_live_bytes(path, end, unfinished, cut_at, why);
    const h5_state state = *cut_at ? H5_CUT : *unfinished ? H5_GROWING : H5_CLOSED;
    if (status != SR_OK) return status;
    return h5_open(path, state, end, file, why);
}

static bool is_intact(const trailer *e) {
    return e->kind == TRAILER_FINAL && e->map.count == 0;
}

reader_cache *reader_cache_of(const sr_runfile *f, sr_failure *why) {
    reader_shelf *s = f->shelf;
    if (!s->cache && !(s->cache = calloc(1, sizeof *s->cache)))
        sr_fail(why, SR_MEMORY, "%s: out of memory for its cache", f->path);
    return s->cache;
}

void reader_drop_cache(const sr_runfile *f) {
    reader_cache *c = f->shelf->cache;
    if (!c) return;
    for (size_t i = 0; i < sizeof c->kept / sizeof c->kept[0]; i++)
        h5_close_dataset(c->kept[i].set);
    for (size_t i = 0; i < sizeof c->band / sizeof c->band[0]; i++) free(c->band[i].value);
    free(c);
    f->shelf->cache = NULL;
}

static void close_for_now(const sr_runfile *f) {
    reader_shelf *s = f->shelf;
    reader_drop_cache(f);
    h5_close(s->file, NULL);
    s->file = 0;
    if (is_intact(f->end)) trailer_doze(f->end);
}

static void enter(const sr_runfile *f) {
    open_file_cache *p = f->shelf->pool;
    if (p->open[p->next]) close_for_now(p->open[p->next]);
    p->open[p->next] = f;
    p->next = (p->next + 1) % OPEN;
}

static bool identify(const char *path, int64_t identity[2]) {
    struct stat s;
    if (stat(path, &s) != 0) return false;
    identity[0] = (int64_t)s.st_dev, identity[1] = (int64_t)s.st_ino;
    return true;
}

/* The present path of the file, since a writer renames PATH.part at the end. malloc'd; NULL after a
 * failure. */
static sr_status find_again(const sr_runfile *f, char **path, sr_failure *why) {
    int64_t now[2];
    sr_failure own = {0};
    *path = reader_choose_path(f->path, &own);
    if (!*path) return sr_fail(why, own.status, "%s", own.text);
    if (identify(*path, now) && !memcmp(now, f->shelf->identity, sizeof now)) return SR_OK;
    free(*path), *path = NULL;
    return sr_fail(why, SR_IO, "%s: replaced while it was analysed", f->path);
}

/* Reads the trailer again: the file must be the one that was opened. */
static sr_status wake_trailer(const sr_runfile *f, const char *path, sr_failure *why) {
    trailer now;
    if (!f->end->dozes) return SR_OK;
    sr_status status = trailer_load(&now, path, why);
    if (status != SR_OK) return status;
    if (is_intact(&now) && trailer_is_same(&now, f->end)) {
        *f->end = now;
        return SR_OK;
    }
    trailer_free(&now);
    return sr_fail(why, SR_IO, "%s: changed while it was analysed", f->path);
}

/* A file without a pool is open as long as it is read. */
sr_status reader_wake(const sr_runfile *f, sr_failure *why) {
    bool unfinished;
    int64_t cut_at;
    char *path;
    if (f->shelf->file) return SR_OK;
    sr_status status = find_again(f, &path, why);
    if (status == SR_OK) status = wake_trailer(f, path, why);
    if (status == SR_OK)
        status = reader_open_file(path, f->end, &unfinished, &cut_at, &f->shelf->file, why);
    if (status == SR_OK) enter(f);
    free(path);
    return status;
}

h5_id reader_file(const sr_runfile *f) {
    reader_wake(f, NULL);
    return f->shelf->file;
}

sr_status reader_join(sr_runfile *f, const sr_runfile *beside, sr_failure *why) {
    open_file_cache *p = beside ? beside->shelf->pool : calloc(1, sizeof *p);
    if (!p) return sr_fail(why, SR_MEMORY, "%s: open", f->path);
    if (!identify(f->path, f->shelf->identity)) {
        if (!beside) free(p);
        return sr_fail(why, SR_IO, "%s: removed while it was opened", f->path);
    }
    f->shelf->pool = p;
    p->files++;
    shared_tables_join(f, &p->tables);
    enter(f);
    return SR_OK;
}

void reader_leave(sr_runfile *f) {
    open_file_cache *p = f->shelf->pool;
    if (!p) return;
    f->shelf->pool = NULL;
    shared_tables_leave(f, &p->tables);
    for (int i = 0; i < OPEN; i++)
        if (p->open[i] == f) p->open[i] = NULL;
    if (--p->files == 0) free(p);
}
