/* read_trailer.c -- loads the trailer of a file (trailer.h) and reports the objects that it
 * repaired and the bytes whose checksums differ. */
#include "runfile/read/read_trailer.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "journal/trailer.h"
#include "journal/writer_lock.h"
#include "runfile/read/file/damage_list.h"
#include "runfile/read/file/open_file_cache.h"

sr_status reader_load_trailer(sr_runfile *f, sr_failure *why) {
    f->end = calloc(1, sizeof *f->end);
    if (!f->end) return sr_fail(why, SR_MEMORY, "%s: its trailer", f->path);
    const bool live = writer_lock_is_held(f->path);
    sr_status status = trailer_load(f->end, f->path, why);
    /* While the process writes, the file itself is newer than its journal. */
    if (status != SR_OK || f->end->kind != TRAILER_JOURNAL || !live) return status;
    trailer_free(f->end);
    return SR_OK;
}

static void describe_extent(const sr_runfile *f, const extent *x, sr_failure *own) {
    char what[H5_PATH_SIZE + 64]; /* the object whose header starts in these bytes, or the bytes */
    if (!h5_name_of(reader_file(f), (int64_t)x->at, x->length, what))
        snprintf(what, sizeof what, "bytes %llu to %llu", (unsigned long long)x->at,
                 (unsigned long long)(x->at + x->length - 1));
    if (x->changed)
        sr_fail(own, SR_FORMAT, "%s: %s: damaged, and read from its backup copy", f->path, what);
    else if (!x->verified)
        sr_fail(own, SR_FORMAT, "%s: %s: its backup copy is damaged", f->path, what);
    else
        sr_fail(own, SR_FORMAT, "%s: %s: damaged, and its backup copy too", f->path, what);
}

static sr_status add_damage(sr_runfile *f, const sr_failure *own, bool repaired, sr_failure *why) {
    const int64_t before = f->damages;
    sr_status status = damage_list_add(f, own, why);
    if (f->damages > before) f->damage[before].repaired = repaired;
    return status;
}

/* The file was just opened and no value was read yet, so its bad extents are in metadata and steps.
 * Metadata that is newer in the journal than in the file is not damage. */
sr_status reader_report_trailer(sr_runfile *f, sr_failure *why) {
    const trailer *e = f->end;
    sr_status status = SR_OK;
    sr_failure own = {0};
    const bool strange =
        e->kind == TRAILER_NONE && !f->unfinished && e->size > (uint64_t)h5_end_of(reader_file(f));
    if (e->damaged || strange)
        sr_fail(&own, SR_FORMAT, "%s: trailer: damaged, checksums of values cannot be verified",
                f->path);
    status = add_damage(f, &own, true, why);
    for (size_t i = 0; i < e->map.count && status == SR_OK && e->kind == TRAILER_FINAL; i++) {
        const extent *x = &e->map.e[i];
        sr_failure part = {0};
        describe_extent(f, x, &part);
        status = add_damage(f, &part, x->changed || !x->verified, why);
    }
    return status;
}

bool sr_run_has_checksums(const sr_runfile *f) {
    return f->end->kind == TRAILER_FINAL;
}

bool reader_is_intact(const sr_runfile *f) {
    return sr_run_has_checksums(f) && f->end->map.count == 0;
}

bool reader_identify(const sr_runfile *f, uint64_t identity[READER_IDENTITY]) {
    struct stat st;
    const trailer *e = f->end;
    if (!reader_is_intact(f) || f->damages || stat(f->path, &st) != 0 ||
        (uint64_t)st.st_size != e->size)
        return false;
    identity[0] = e->size;
    identity[1] = (uint64_t)st.st_mtim.tv_sec, identity[2] = (uint64_t)st.st_mtim.tv_nsec;
    identity[3] = (uint64_t)e->checksum << 32 | e->gaps;
    return true;
}

void reader_verify_trailer(const sr_runfile *f, void (*report)(void *context, sr_failure *why),
                           void *context) {
    bool gaps;
    sr_failure own = {0};
    if (trailer_verify(f->end, f->path, &gaps, &own) != SR_OK) report(context, &own);
    for (size_t i = 0; i < f->end->map.count; i++) {
        const extent *x = &f->end->map.e[i];
        sr_failure part = {0};
        if (x->kind != EXTENT_VALUES || x->reported) continue;
        sr_fail(&part, SR_FORMAT, "%s: bytes %llu to %llu: not those that were written", f->path,
                (unsigned long long)x->at, (unsigned long long)(x->at + x->length - 1));
        report(context, &part);
    }
    sr_failure between = {0};
    if (gaps) return;
    sr_fail(&between, SR_FORMAT, "%s: bytes that nothing uses: not those that were written",
            f->path);
    report(context, &between);
}
