/* scalar_cache.h -- values of neighbouring sites of a scalar, for programs that read site after
   site. */
#ifndef RUNFILE_READ_FILE_SCALAR_CACHE_H
#define RUNFILE_READ_FILE_SCALAR_CACHE_H

#include "runfile/read/file/reader.h"

typedef struct scalar_cache {
    const run_column *column; /* NULL: unused */
    h5_rows rows;             /* columns: of these sites */
    float *value;             /* [rows.count, rows.columns] */
} scalar_cache;

typedef sr_status scalar_cache_read_fn(const sr_runfile *f, const run_column *c,
                                       const h5_rows *rows, h5_type type, void *value,
                                       sr_failure *why);
/* Whether reads of `count` rows of one site use the cache. */
bool scalar_cache_holds(const sr_runfile *f, int64_t count);
sr_status scalar_cache_read(const sr_runfile *f, const run_column *c, const h5_rows *rows,
                            scalar_cache_read_fn *read, float *value, sr_failure *why);

#endif
