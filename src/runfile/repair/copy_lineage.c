/* copy_lineage.c -- compares properties that all parts of a run share: model, data, seed, sites,
 * embeddings, units of metrics and of custom scalars. */
#include "runfile/repair/copy_lineage.h"

#include <math.h>
#include <string.h>

#include "runfile/read/datasets/read_custom.h"
#include "runfile/read/datasets/read_metrics.h"

static sr_status differs(const sr_runfile *first, const sr_runfile *f, const char *what,
                         const char *here, const char *there, sr_failure *why) {
    return sr_fail(why, SR_USAGE, "%s: not a part of the run in %s: %s is '%.64s', not '%.64s'",
                   f->path, first->path, what, here, there);
}

static sr_status compare_texts(const sr_runfile *first, const sr_runfile *f, sr_failure *why) {
    const sr_run_info *a = &first->info, *b = &f->info;
    const struct {
        const char *what, *first, *here;
    } text[] = {{"its program", a->program, b->program},
                {"its model", a->model, b->model},
                {"its data", a->data, b->data},
                {"its task", a->task, b->task},
                {"its ranks", a->ranks, b->ranks},
                {"its loss reduction", a->loss_reduction, b->loss_reduction}};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        if (strcmp(text[i].first, text[i].here) != 0)
            return differs(first, f, text[i].what, text[i].here, text[i].first, why);
    if (a->seed == b->seed) return SR_OK;
    return sr_fail(why, SR_USAGE, "%s: not a part of the run in %s: its seed is %llu, not %llu",
                   f->path, first->path, (unsigned long long)b->seed, (unsigned long long)a->seed);
}

static bool equal(double a, double b) {
    return a == b || (isnan(a) && isnan(b));
}

static bool same_site(const sr_run_site *a, const sr_run_site *b) {
    return !strcmp(a->name, b->name) && !strcmp(a->norm, b->norm) && !strcmp(a->kind, b->kind) &&
           !strcmp(a->axis, b->axis) && !strcmp(a->uses, b->uses) &&
           !strcmp(a->constants, b->constants) && a->family == b->family && a->width == b->width &&
           a->depth == b->depth && a->layer_scale == b->layer_scale &&
           a->layer_scale_own == b->layer_scale_own && a->observed == b->observed &&
           a->merged == b->merged && equal(a->eps, b->eps) && equal(a->alpha, b->alpha);
}

static sr_status compare_sites(const sr_runfile *first, const sr_runfile *f, sr_failure *why) {
    if (first->info.sites != f->info.sites)
        return sr_fail(why, SR_USAGE,
                       "%s: not a part of the run in %s: it has %lld sites, not %lld", f->path,
                       first->path, (long long)f->info.sites, (long long)first->info.sites);
    for (int64_t i = 0; i < f->info.sites; i++)
        if (!same_site(&first->site[i], &f->site[i]))
            return sr_fail(why, SR_USAGE,
                           "%s: not a part of the run in %s: site %s differs from %s there",
                           f->path, first->path, f->site[i].name, first->site[i].name);
    return SR_OK;
}

static sr_status compare_embeddings(const sr_runfile *first, const sr_runfile *f, sr_failure *why) {
    const char *name;
    for (int i = 0; (name = sr_run_name(f, "embeddings", i)); i++) {
        sr_run_embedding a = SR_INIT(sr_run_embedding, .rows = 0), b = a;
        const char *known;
        int k = 0;
        while ((known = sr_run_name(first, "embeddings", k)) && strcmp(known, name) != 0) k++;
        sr_status status = known ? sr_run_get_embedding(first, name, &a, why) : SR_OK;
        if (status == SR_OK) status = sr_run_get_embedding(f, name, &b, why);
        if (status != SR_OK) return status;
        if (a.rows != b.rows || a.cols != b.cols) /* no rows: not there */
            return sr_fail(why, SR_USAGE,
                           "%s: not a part of the run in %s: embedding %s is not there, or of "
                           "another size",
                           f->path, first->path, name);
    }
    return SR_OK;
}

static sr_status compare_units(const sr_runfile *first, const sr_runfile *f, sr_failure *why) {
    for (int i = 0; i < f->metrics; i++) {
        const sr_run_metric *m = sr_run_find_metric(first, f->metric[i].name);
        if (m && (strcmp(m->unit, f->metric[i].unit) != 0 || m->better != f->metric[i].better))
            return sr_fail(why, SR_USAGE, "%s: metric %s has another unit or direction than in %s",
                           f->path, f->metric[i].name, first->path);
    }
    for (int i = 0; i < f->declared_count; i++)
        for (int k = 0; k < first->declared_count; k++) {
            const sr_run_declared *a = &first->declared[k].shown, *b = &f->declared[i].shown;
            if (strcmp(a->name, b->name) == 0 &&
                (a->scope != b->scope || strcmp(a->unit, b->unit) != 0))
                return sr_fail(why, SR_USAGE, "%s: scalar %s has another unit or scope than in %s",
                               f->path, b->name, first->path);
        }
    return SR_OK;
}

sr_status copy_lineage_check(const sr_runfile *first, const sr_runfile *f, sr_failure *why) {
    sr_status status = compare_texts(first, f, why);
    if (status == SR_OK) status = compare_sites(first, f, why);
    if (status == SR_OK) status = compare_embeddings(first, f, why);
    return status == SR_OK ? compare_units(first, f, why) : status;
}
