/* damage_list.c -- damage found while a file was opened: the rest of the file stays readable. */
#include "runfile/read/file/damage_list.h"

#include <string.h>

#include "base/containers/vector.h"

sr_status damage_list_add(sr_runfile *f, const sr_failure *own, sr_failure *why) {
    if (own->status == SR_OK) return SR_OK;
    const bool is_damage = own->status == SR_FORMAT || own->status == SR_IO;
    if (!is_damage || f->cut_at) {
        sr_fail(why, own->status, "%s", own->text);
        sr_hint(why, "%s", own->hint);
        return own->status;
    }
    if (!vector_reserve(&f->damage, &f->damage_capacity, f->damages + 1, sizeof *f->damage))
        return sr_fail(why, SR_MEMORY, "%s: out of memory for the list of damage", f->path);
    damage *new = &f->damage[f->damages++];
    new->repaired = false;
    memcpy(new->text, own->text, sizeof own->text);
    return SR_OK;
}

const char *sr_run_damage(const sr_runfile *f, int i) {
    return i >= 0 && i < f->damages ? f->damage[i].text : NULL;
}

const char *sr_run_repaired(const sr_runfile *f, int i) {
    for (int64_t k = 0; k < f->damages && i >= 0; k++)
        if (f->damage[k].repaired && i-- == 0) return f->damage[k].text;
    return NULL;
}
