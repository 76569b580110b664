/* damage_list.c -- damage found while a file was opened: the rest of the file stays readable. */
#include "runfile/read/file/damage_list.h"

#include <stdlib.h>
#include <string.h>

sr_status damage_list_add(sr_runfile *f, const sr_failure *own, sr_failure *why) {
    if (own->status == SR_OK) return SR_OK;
    damage_list **last = &f->damage;
    const bool damage = own->status == SR_FORMAT || own->status == SR_IO;
    if (!damage || f->cut_at) {
        sr_fail(why, own->status, "%s", own->text);
        sr_hint(why, "%s", own->hint);
        return own->status;
    }
    while (*last) last = &(*last)->next;
    *last = calloc(1, sizeof **last);
    if (!*last) return sr_fail(why, SR_MEMORY, "%s: out of memory for the list of damage", f->path);
    memcpy((*last)->text, own->text, sizeof own->text);
    return SR_OK;
}

void damage_list_free(sr_runfile *f) {
    for (damage_list *d = f->damage, *next; d; d = next) {
        next = d->next;
        free(d);
    }
    f->damage = NULL;
}

const char *sr_run_damage(const sr_runfile *f, int i) {
    const damage_list *d = f->damage;
    while (d && i-- > 0) d = d->next;
    return d && i < 0 ? d->text : NULL;
}

const char *sr_run_repaired(const sr_runfile *f, int i) {
    for (const damage_list *d = f->damage; d && i >= 0; d = d->next)
        if (d->repaired && i-- == 0) return d->text;
    return NULL;
}
