/* copy_pairs.c -- copies pairs of a run file into a recorder. */
#include "record/recorder_state.h"
#include "runfile/read/datasets/read_pairs.h"
#include "runfile/repair/copy.h"

/* A pair is lost if one of its parts is unreadable. site: in the file; to: in the recorder. */
static void copy_site(sr_recorder *r, const sr_runfile *f, int64_t site, int64_t to, bool passed,
                      const reader_pairs *p, unreadable_data *losses) {
    sr_failure why = {0};
    const run_column *missing = reader_read_pairs(f, site, p, &why);
    if (!missing && reader_check_site_pairs(f, site, passed, p, &why) != SR_OK)
        missing = &run_pairs[SR_PAIR_feature];
    if (missing)
        copy_missed(losses, missing->group, missing->name, -1, &why);
    else
        sr_put_pairs(r, (int)to, p->x, p->y, p->feature);
}

sr_status recorder_copy_pairs(sr_recorder *r, const sr_runfile *f, const copy_choice *choice,
                              bool passed, unreadable_data *losses) {
    reader_pairs p;
    if (!r->options.pairs || r->options.pairs != f->info.pairs) return recorder_check(r);
    const bool made = reader_pairs_init(&p, f->info.pairs);
    if (!made) sr_fail(&r->failure, SR_MEMORY, "%s: pairs of a site", f->path);
    for (int64_t i = 0; i < r->sites && made && recorder_check(r) == SR_OK; i++)
        copy_site(r, f, copy_source_of(choice, i), i, passed, &p, losses);
    reader_pairs_free(&p);
    return recorder_check(r);
}
