/* copy_compatible.c -- whether a recorder can continue the rows of a run file: both have the same
 * sites and embeddings. Metrics and custom scalars of both are equal. */
#include <string.h>

#include "record/recorder_state.h"
#include "record/run/custom_scalars.h"
#include "runfile/read/datasets/read_custom.h"
#include "runfile/read/datasets/read_metrics.h"
#include "runfile/repair/copy.h"

static bool same_sites(const sr_recorder *r, const sr_runfile *f) {
    bool same = f->info.sites == r->sites;
    for (int64_t i = 0; same && i < r->sites; i++)
        same = strcmp(f->site[i].name, r->site[i].name) == 0 &&
               f->site[i].width == r->site[i].width &&
               (f->site[i].observed != 0) == (r->site[i].observed != 0);
    return same;
}

static bool has_embedding(const sr_recorder *r, const char *name, const sr_run_embedding *e) {
    for (int k = 0; k < r->embeddings; k++)
        if (strcmp(r->embedding[k].name, name) == 0 && r->embedding[k].rows == e->rows &&
            r->embedding[k].cols == e->cols)
            return true;
    return false;
}

/* Unreadable embeddings are lost. */
static sr_status compare_sites(sr_recorder *r, const sr_runfile *f, unreadable_data *losses) {
    bool same = same_sites(r, f);
    const char *name;
    for (int i = 0; same && (name = sr_run_name(f, "embeddings", i)); i++) {
        sr_run_embedding e = SR_INIT(sr_run_embedding, .rows = 0);
        sr_failure why = {0};
        if (sr_run_get_embedding(f, name, &e, &why) == SR_OK)
            same = has_embedding(r, name, &e);
        else if (why.status == SR_MEMORY)
            return sr_fail(&r->failure, SR_MEMORY, "%s", why.text);
        else
            copy_missed(losses, "embeddings", name, -1, &why);
    }
    if (same) return SR_OK;
    return sr_fail(&r->failure, SR_USAGE, "%s: its sites or embeddings differ from %s", f->path,
                   r->path);
}

/* A metric of both must have the same unit and direction. */
static sr_status compare_metrics(sr_recorder *r, const sr_runfile *f) {
    for (int i = 0; i < f->metrics; i++) {
        const reader_metric *from = &f->metric[i];
        for (int k = 0; k < r->writer.metrics; k++) {
            const run_metric *to = &r->writer.metric[k];
            if (strcmp(from->name, to->name) != 0) continue;
            if (strcmp(from->unit, to->unit) != 0 || from->better != to->better)
                return sr_fail(&r->failure, SR_USAGE,
                               "%s: metric %s has another unit or direction in %s", f->path,
                               from->name, r->path);
        }
    }
    return SR_OK;
}

/* Declares the file's custom scalars that the recorder lacks. One of both must have the same unit
 * and scope. */
static sr_status declare_own(sr_recorder *r, const sr_runfile *f) {
    for (int i = 0; i < f->declared_count; i++) {
        const sr_run_declared *from = &f->declared[i].shown;
        const run_declared *to = NULL;
        for (int k = 0; k < r->writer.declared_count; k++)
            if (strcmp(r->writer.declared[k].name, from->name) == 0) to = &r->writer.declared[k];
        if (!to &&
            recorder_declare_scalar(r, from->name, from->unit, from->definition, from->scope) < 0)
            return recorder_check(r);
        if (to && (to->scope != from->scope || strcmp(to->unit, from->unit) != 0))
            return sr_fail(&r->failure, SR_USAGE, "%s: scalar %s has another unit or scope in %s",
                           f->path, from->name, r->path);
    }
    return SR_OK;
}

sr_status recorder_copy_match(sr_recorder *r, const sr_runfile *f, unreadable_data *losses) {
    sr_status status = compare_sites(r, f, losses);
    if (status == SR_OK) status = compare_metrics(r, f);
    return status == SR_OK ? declare_own(r, f) : status;
}
