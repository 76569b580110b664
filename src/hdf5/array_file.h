/* array_file.h -- an HDF5 file of named arrays and texts, which is complete or absent; used for
 * checkpoints.
 *
 * The file is PATH.part while it is written. array_writer_finish renames it to PATH when all bytes
 * are durable, and replaces an older file. HDF5's checksums cover all values, so reading detects
 * damage. The file has no time stamps: the same arrays make the same bytes. Names are paths, as
 * "parameters/embedding.weight"; their groups are created.
 */
#ifndef HDF5_ARRAY_FILE_H
#define HDF5_ARRAY_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/npz/npz.h"

/* -- writing: the first failure is kept, and all later calls return it */

typedef struct array_writer array_writer;

/* format, version: stored in the file, and checked by readers. NULL on failure. */
array_writer *array_writer_create(const char *path, const char *format, int64_t version,
                                  sr_failure *why);
/* a->data NULL: its caller had no memory for it, SR_MEMORY. */
sr_status array_writer_add(array_writer *w, const char *name, const npz_array *a, sr_failure *why);
/* UTF-8; an attribute of the root. */
sr_status array_writer_put_text(array_writer *w, const char *name, const char *text,
                                sr_failure *why);
sr_status array_writer_put_int(array_writer *w, const char *name, int64_t value, sr_failure *why);
/* Writes, syncs, renames, and always frees w. A failure leaves no file of this writer, and the
 * older file at the path unchanged. */
sr_status array_writer_finish(array_writer *w, sr_failure *why);

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
/* Fills into->data; its type and shape must equal the stored ones. */
sr_status array_reader_fill(const array_reader *r, const char *name, const npz_array *into,
                            sr_failure *why);
/* A root attribute; the caller frees the text. has_attribute is true also if the attribute cannot
 * be read; reading it reports that. */
bool array_reader_has_attribute(const array_reader *r, const char *name);
sr_status array_reader_text(const array_reader *r, const char *name, char **text, sr_failure *why);
sr_status array_reader_int(const array_reader *r, const char *name, int64_t *value,
                           sr_failure *why);
/* Members of a group, 0 without such a group; name of the i-th in alphabetic order, cut to size. */
sr_status array_reader_count(const array_reader *r, const char *group, int64_t *count,
                             sr_failure *why);
sr_status array_reader_name(const array_reader *r, const char *group, int64_t i, char *name,
                            size_t size, sr_failure *why);

#endif
