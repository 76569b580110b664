/* read_column.h -- opens the datasets of a run file; checks type and shape before anything is
   read. */
#ifndef RUNFILE_READ_FILE_READ_COLUMN_H
#define RUNFILE_READ_FILE_READ_COLUMN_H

#include "runfile/read/file/reader.h"

/* Opens a dataset that must have this type, rank and (rank 2) number of columns. */
sr_status reader_open(const sr_runfile *f, const char *path, h5_type type, int rank,
                      int64_t columns, h5_id *set, h5_shape *shape, sr_failure *why);
/* Opens a dataset of fixed size. Fails unless every value is stored, so that a caller may allocate
 * memory for all. */
sr_status reader_open_fixed(const sr_runfile *f, const char *path, h5_type type, int rank,
                            h5_id *set, h5_shape *shape, sr_failure *why);
/* Opens a column of a table of format.h. */
sr_status reader_open_column(const sr_runfile *f, const run_column *c, h5_id *set, h5_shape *shape,
                             sr_failure *why);
/* As reader_open_column, without a cache of chunks (h5_open_dataset). */
sr_status reader_open_direct(const sr_runfile *f, const run_column *c, h5_id *set, h5_shape *shape,
                             sr_failure *why);
bool reader_has_column(const sr_runfile *f, const run_column *c);
/* Reads a fixed dataset: one value (rank 0), or one per site (rank 1). text: bytes of a text. */
sr_status reader_fixed(const sr_runfile *f, const char *path, h5_type type, size_t text, int rank,
                       void *value, sr_failure *why);

#endif
