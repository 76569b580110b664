/* read_pairs.c -- reads and checks /final/pair_x, pair_y and pair_feature, K pairs of each site. */
#include "runfile/read/datasets/read_pairs.h"

#include <math.h>
#include <stdlib.h>

#include "runfile/pair_check.h"
#include "runfile/read/file/damage_list.h"
#include "runfile/read/file/open_file_cache.h"
#include "runfile/read/file/read_column.h"

bool reader_pairs_init(reader_pairs *p, int64_t count) {
    const size_t n = (size_t)count + 1;
    *p = (reader_pairs){calloc(n, sizeof *p->x), calloc(n, sizeof *p->y),
                        calloc(n, sizeof *p->feature)};
    return p->x && p->y && p->feature;
}

void reader_pairs_free(reader_pairs *p) {
    free(p->x), free(p->y), free(p->feature);
}

/* Checks a dataset of pairs. *count: its columns. */
static sr_status count_columns(const sr_runfile *f, const run_column *c, int64_t *count,
                               sr_failure *why) {
    const h5_path at = h5_path_of("/%s/%s", c->group, c->name);
    const char *path = at.text;
    h5_id set;
    h5_shape shape;
    sr_status status = h5_open_dataset(reader_file(f), path, -1, &set, &shape, NULL, why);
    if (status != SR_OK) return status;
    if (shape.type != c->type || shape.rank != 2 || shape.dims[1] < 1 ||
        shape.dims[0] != f->info.sites)
        status = sr_fail(why, SR_FORMAT, "%s: %s: unexpected type or shape", f->path, path);
    if (status == SR_OK) status = h5_check_stored(reader_file(f), set, path, &shape, why);
    if (status == SR_OK) *count = shape.dims[1];
    h5_close_dataset(set);
    return status;
}

sr_status reader_count_pairs(sr_runfile *f, sr_failure *why) {
    sr_status status = SR_OK;
    f->info.pairs = 0;
    for (int i = 0; i < SR_PAIR_COUNT && status == SR_OK && !f->info.pairs; i++) {
        sr_failure own = {0};
        if (!reader_has_column(f, &run_pairs[i])) continue;
        count_columns(f, &run_pairs[i], &f->info.pairs, &own);
        status = damage_list_add(f, &own, why);
    }
    return status;
}

static sr_status read_part(const sr_runfile *f, const run_column *c, int64_t site, void *value,
                           sr_failure *why) {
    const int64_t count = f->info.pairs;
    const h5_rows row = {site, 1, 0, count, count};
    const h5_path at = h5_path_of("/%s/%s", c->group, c->name);
    const char *path = at.text;
    h5_id set;
    h5_shape shape;
    sr_status status = reader_open(f, path, c->type, 2, count, &set, &shape, why);
    if (status == SR_OK && shape.dims[0] != f->info.sites)
        status = sr_fail(why, SR_FORMAT, "%s: %s: not one row for each site", f->path, path);
    if (status == SR_OK) status = h5_check_stored(reader_file(f), set, path, &shape, why);
    if (status == SR_OK) status = h5_read_rows(set, &row, c->type, value, why);
    h5_close_dataset(set);
    return status;
}

const run_column *reader_read_pairs(const sr_runfile *f, int64_t site, const reader_pairs *p,
                                    sr_failure *why) {
    void *const value[SR_PAIR_COUNT] = {p->x, p->y, p->feature};
    for (int i = 0; i < SR_PAIR_COUNT; i++)
        if (read_part(f, &run_pairs[i], site, value[i], why) != SR_OK) return &run_pairs[i];
    return NULL;
}

sr_status sr_run_pairs(const sr_runfile *f, int64_t site, float *x, float *y, int32_t *feature,
                       sr_failure *why) {
    if (site < 0 || site >= f->info.sites || f->info.pairs == 0)
        return sr_fail(why, SR_USAGE, "%s: pairs of site %lld, %lld of each of %lld sites", f->path,
                       (long long)site, (long long)f->info.pairs, (long long)f->info.sites);
    sr_failure own = {0};
    if (!reader_read_pairs(f, site, &(reader_pairs){x, y, feature}, &own)) return SR_OK;
    return sr_fail(why, own.status, "%s", own.text);
}

/* -- checking -------------------------------------------------------------------------------- */

sr_status reader_check_site_pairs(const sr_runfile *f, int64_t site, bool passed,
                                  const reader_pairs *p, sr_failure *why) {
    if (reader_read_pairs(f, site, p, why)) return why->status;
    const sr_run_site *s = &f->site[site];
    const char *fault = pair_check_fault(p->x, p->y, p->feature, f->info.pairs, s->width);
    if (!fault && !passed && p->feature[0] >= 0) fault = "values without a pass";
    return fault ? sr_fail(why, SR_FORMAT, "%s: /final/pair_feature: site %s: %s", f->path, s->name,
                           fault)
                 : SR_OK;
}

sr_status reader_check_pairs(const sr_runfile *f, sr_failure *why) {
    int64_t batches = -1, any = 0;
    reader_pairs p;
    sr_status status = SR_OK;
    for (int i = 0; i < SR_PAIR_COUNT; i++) any += reader_has_column(f, &run_pairs[i]);
    if (!any) return SR_OK;
    if (h5_has(reader_file(f), "/final/batches")) /* else -1 */
        status = reader_fixed(f, "/final/batches", H5_INT64, 0, 0, &batches, why);
    if (!reader_pairs_init(&p, f->info.pairs))
        status = sr_fail(why, SR_MEMORY, "%s: pairs of a site", f->path);
    for (int64_t i = 0; i < f->info.sites && status == SR_OK; i++)
        status = reader_check_site_pairs(f, i, batches >= 0, &p, why);
    reader_pairs_free(&p);
    return status;
}
