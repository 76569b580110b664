/* read_column.c -- datasets of an open run file, looked at before they are believed, and the list
 * of what was found damaged. */
#include "runfile/read/file/read_column.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runfile/read/file/open_file_cache.h"

const char *const reader_group_names[READER_GROUPS] = {"scalars", "vectors", "evals", "steps",
                                                       "embeddings"};

/* -- datasets -------------------------------------------------------------------------------- */

/* cache: as h5_open_dataset takes it. */
static sr_status open_checked(const sr_runfile *f, const char *path, int64_t cache, h5_type type,
                              int rank, int64_t columns, h5_id *set, h5_shape *shape,
                              sr_failure *why) {
    *set = 0;
    *shape = (h5_shape){.type = H5_OTHER};
    sr_status status = reader_wake(f, why);
    if (status != SR_OK) return status;
    bool there;
    sr_failure inner = {0};
    status = h5_open_dataset(reader_file(f), path, cache, set, &there, &inner);
    if (!there) return sr_fail(why, SR_FORMAT, "%s: no dataset %s", f->path, path);
    if (status != SR_OK && why && why->status == SR_OK) *why = inner; /* its hint, too */
    if (status != SR_OK) return status;
    status = h5_get_shape(*set, shape, why);
    if (status == SR_OK &&
        (shape->type != type || shape->rank != rank || (rank == 2 && shape->dims[1] != columns)))
        status = sr_fail(why, SR_FORMAT, "%s: %s: not of the type and shape of a run file", f->path,
                         path);
    if (status == SR_OK) return SR_OK;
    h5_close_dataset(*set);
    *set = 0;
    return status;
}

sr_status reader_open(const sr_runfile *f, const char *path, h5_type type, int rank,
                      int64_t columns, h5_id *set, h5_shape *shape, sr_failure *why) {
    return open_checked(f, path, -1, type, rank, columns, set, shape, why);
}

sr_status reader_open_fixed(const sr_runfile *f, const char *path, h5_type type, int rank,
                            h5_id *set, h5_shape *shape, sr_failure *why) {
    sr_status status = reader_open(f, path, type, rank, 0, set, shape, why);
    if (status == SR_OK) status = h5_check_stored(reader_file(f), *set, path, why);
    if (status == SR_OK) return SR_OK;
    h5_close_dataset(*set);
    *set = 0;
    return status;
}

static void column_path(const run_column *c, char path[SR_NAME_SIZE + 16]) {
    snprintf(path, SR_NAME_SIZE + 16, "/%s/%s", c->group, c->name);
}

static sr_status open_column(const sr_runfile *f, const run_column *c, int64_t cache, h5_id *set,
                             h5_shape *shape, sr_failure *why) {
    char path[SR_NAME_SIZE + 16];
    column_path(c, path);
    const bool running = strcmp(c->group, "running") == 0 && c->type == H5_FLOAT64;
    const bool wide = c->type == H5_FLOAT32 || running;
    int64_t columns = strcmp(c->group, "scalars") == 0 ? f->info.sites : f->info.width;
    return open_checked(f, path, cache, c->type, wide ? 2 : 1, columns, set, shape, why);
}

sr_status reader_open_column(const sr_runfile *f, const run_column *c, h5_id *set, h5_shape *shape,
                             sr_failure *why) {
    return open_column(f, c, -1, set, shape, why);
}

sr_status reader_open_direct(const sr_runfile *f, const run_column *c, h5_id *set, h5_shape *shape,
                             sr_failure *why) {
    return open_column(f, c, 0, set, shape, why);
}

bool reader_has_column(const sr_runfile *f, const run_column *c) {
    char path[SR_NAME_SIZE + 16];
    column_path(c, path);
    return h5_has(reader_file(f), path);
}

sr_status reader_fixed(const sr_runfile *f, const char *path, h5_type type, int rank, void *value,
                       sr_failure *why) {
    h5_id set;
    h5_shape shape;
    sr_status status = reader_open_fixed(f, path, type, rank, &set, &shape, why);
    if (status == SR_OK && rank == 1 && shape.dims[0] != f->info.sites)
        status = sr_fail(why, SR_FORMAT, "%s: %s: not one value a site", f->path, path);
    if (status == SR_OK && (rank == 0 || f->info.sites > 0))
        status = h5_read_all(set, type, 0, value, why);
    h5_close_dataset(set);
    return status;
}
