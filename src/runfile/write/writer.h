/* writer.h -- writes a run file: buffers rows, flushes and commits them. Computes no statistics.
 *
 * writer_create -> layout filled in -> writer_declare -> { writer_begin_step, columns,
 * writer_end_step | evaluations | singular values | writer_flush }* -> writer_finish.
 */
#ifndef RUNFILE_WRITE_WRITER_H
#define RUNFILE_WRITE_WRITER_H

#include "runfile/write/run_writer.h"

sr_status writer_create(run_writer *w, const char *path, sr_failure *why);
/* Declares every dataset, allocates the row buffers, switches to SWMR. */
sr_status writer_declare(run_writer *w, const sr_run_info *info, sr_failure *why);

/* Begins the next row, and one of /vectors when with_vectors: all reals NaN. Writes the buffered
 * rows when the buffers are full. */
sr_status writer_begin_step(run_writer *w, bool with_vectors, sr_failure *why);
/* The S values of a scalar in the current row; NULL when out of memory. */
float *writer_scalar_row(run_writer *w, int which, sr_failure *why);
/* A site's columns of a vector in the current row; NULL when out of memory or the row has no
   vectors. */
float *writer_vector_row(run_writer *w, int which, int64_t site, sr_failure *why);
/* Ends the row with its values of run_steps. */
void writer_end_step(run_writer *w, const step_value value[RUN_STEPS]);

/* A new metric whose buffered values are NaN; NULL when out of memory. */
run_metric *writer_add_metric(run_writer *w, sr_failure *why);
/* Buffers the current value of every metric. */
sr_status writer_put_eval(run_writer *w, int64_t step, double epoch, sr_failure *why);

/* Appends `rows` rows to a growing dataset after the first `written`. values NULL: fill values. */
sr_status writer_append(h5_id set, int64_t written, int64_t rows, int64_t columns, h5_type type,
                        const void *values, sr_failure *why);

/* Returns `status`. After a failure, HDF5 is not called again. */
sr_status writer_keep(run_writer *w, sr_status status);
/* Flushes and commits the data written so far, unless status is a failure. */
sr_status writer_commit(run_writer *w, sr_status status, sr_failure *why);
/* Writes the buffered rows, then their committed counts, and commits. */
sr_status writer_flush(run_writer *w, sr_failure *why);

/* Flushes, fills /state, writes the final trailer, closes. */
sr_status writer_finish(run_writer *w, const sr_run_info *end, sr_failure *why);
/* Frees the memory; closes the file unless broken. */
void writer_free(run_writer *w);

#endif
