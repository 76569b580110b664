/* array_file.h -- named arrays and texts in an HDF5 file that is whole or not there: what a
 * checkpoint is made of.
 *
 * While it is written the file is PATH.part; array_writer_finish gives it its name when every byte
 * is on the disk, in place of a file that had it. All values lie under checksums of HDF5's, so that
 * a damaged file is seen when it is read. Nothing in the file tells the time: the same arrays make
 * the same bytes. Names are paths, "parameters/embedding.weight"; the groups on the way are made.
 */
#ifndef HDF5_ARRAY_FILE_H
#define HDF5_ARRAY_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/npz/npz.h"

/* -- writing: a failure stays, and the calls behind it return it */

typedef struct array_writer array_writer;

/* format: what the file says that it is, with a version. NULL on failure. */
array_writer *array_writer_create(const char *path, const char *format, int64_t version,
                                  sr_failure *why);
sr_status array_writer_add(array_writer *w, const char *name, const npz_array *a, sr_failure *why);
/* UTF-8; an attribute of the root. */
sr_status array_writer_put_text(array_writer *w, const char *name, const char *text,
                                sr_failure *why);
sr_status array_writer_put_int(array_writer *w, const char *name, int64_t value, sr_failure *why);
/* Writes, synchronises, renames; frees w always. After a failure no file of this writer is left,
 * and what was at the path still is. */
sr_status array_writer_finish(array_writer *w, sr_failure *why);
void array_writer_abandon(array_writer *w); /* NULL is fine */

/* -- reading */

typedef struct array_reader array_reader;

/* NULL on failure: no file, another format, a version above `newest`. */
array_reader *array_reader_open(const char *path, const char *format, int64_t newest,
                                sr_failure *why);
void array_reader_close(array_reader *r); /* NULL is fine */
const char *array_reader_path(const array_reader *r);
bool array_reader_has(const array_reader *r, const char *name);
/* Type and shape; data is NULL. */
sr_status array_reader_shape(const array_reader *r, const char *name, npz_array *a,
                             sr_failure *why);
/* Fills into->data, whose type and shape must be those of the file. */
sr_status array_reader_fill(const array_reader *r, const char *name, const npz_array *into,
                            sr_failure *why);
/* A root attribute; the caller frees the text. */
sr_status array_reader_text(const array_reader *r, const char *name, char **text, sr_failure *why);
sr_status array_reader_int(const array_reader *r, const char *name, int64_t *value,
                           sr_failure *why);
/* Members of a group; name of the i-th in alphabetic order, cut to size. 0 members where there is
 * no such group. */
sr_status array_reader_count(const array_reader *r, const char *group, int64_t *count,
                             sr_failure *why);
sr_status array_reader_name(const array_reader *r, const char *group, int64_t i, char *name,
                            size_t size, sr_failure *why);

#endif
