/* read_column.c -- opens datasets of a run file and checks their types and shapes. */
#include "runfile/read/file/read_column.h"

#include <string.h>

#include "runfile/read/file/open_file_cache.h"

const char *const reader_group_names[READER_GROUPS] = {"scalars", "vectors", "evals", "steps",
                                                       "embeddings"};

/* -- datasets -------------------------------------------------------------------------------- */

/* cache: as in h5_open_dataset. */
static sr_status open_checked(const sr_runfile *f, const char *path, int64_t cache, h5_type type,
                              int rank, int64_t columns, h5_id *set, h5_shape *shape,
                              sr_failure *why) {
    *set = 0, *shape = (h5_shape){.type = H5_OTHER};
    sr_status status = reader_wake(f, why);
    if (status != SR_OK) return status;
    bool there;
    sr_failure inner = {0};
    status = h5_open_dataset(reader_file(f), path, cache, set, shape, &there, &inner);
    if (!there) return sr_fail(why, SR_FORMAT, "%s: no dataset %s", f->path, path);
    if (status != SR_OK && why && why->status == SR_OK) *why = inner; /* its hint, too */
    if (status != SR_OK) return status;
    if (shape->type == type && shape->rank == rank && (rank != 2 || shape->dims[1] == columns))
        return SR_OK;
    status = sr_fail(why, SR_FORMAT, "%s: %s: unexpected type or shape", f->path, path);
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
    if (status == SR_OK) status = h5_check_stored(reader_file(f), *set, path, shape, why);
    if (status == SR_OK) return SR_OK;
    h5_close_dataset(*set);
    *set = 0;
    return status;
}

static sr_status open_column(const sr_runfile *f, const run_column *c, int64_t cache, h5_id *set,
                             h5_shape *shape, sr_failure *why) {
    const h5_path path = h5_path_of("/%s/%s", c->group, c->name);
    const bool running = strcmp(c->group, "running") == 0 && c->type == H5_FLOAT64;
    const bool wide = c->type == H5_FLOAT32 || running;
    int64_t columns = strcmp(c->group, "scalars") == 0 ? f->info.sites : f->info.width;
    return open_checked(f, path.text, cache, c->type, wide ? 2 : 1, columns, set, shape, why);
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
    return h5_has(reader_file(f), h5_path_of("/%s/%s", c->group, c->name).text);
}

sr_status reader_fixed(const sr_runfile *f, const char *path, h5_type type, size_t text, int rank,
                       void *value, sr_failure *why) {
    h5_id set;
    h5_shape shape;
    sr_status status = reader_open_fixed(f, path, type, rank, &set, &shape, why);
    if (status == SR_OK && (shape.text != text || (rank == 1 && shape.dims[0] != f->info.sites)))
        status = sr_fail(why, SR_FORMAT, "%s: %s: not of the size in a run file", f->path, path);
    if (status == SR_OK && (rank == 0 || f->info.sites > 0))
        status = h5_read_all(set, type, text, value, why);
    h5_close_dataset(set);
    return status;
}
