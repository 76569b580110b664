/* file_kind.h -- the kind of a file, by its first bytes. Every reader asks before it reads, so that
 * a wrong file is named: "data.zip: a ZIP archive, not a run file". */
#ifndef BASE_FILE_KIND_H
#define BASE_FILE_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "statrec/base.h"

/* Only kinds that a reader may accept have names. */
typedef enum { KIND_GZIP = 1, KIND_ZIP, KIND_HDF5, KIND_IDX, KIND_UTF16, KIND_OTHER } file_kind_id;

typedef struct file_kind {
    file_kind_id id;
    const char *name; /* "a ZIP archive" */
    const char *todo; /* one %s: the path; "" without advice */
} file_kind;

/* First bytes that a decision needs; fewer if the file is shorter. */
enum { FILE_KIND_BYTES = 512 };

/* NULL: text, or bytes of no kind in the table. Static storage. */
const file_kind *file_kind_of(const void *first, size_t size);

/* The same for a file that is not open yet. NULL also if it is no regular file or cannot be read:
 * the reader reports that. */
const file_kind *file_kind_of_path(const char *path);

/* Set of kinds that a reader accepts. */
#define ACCEPT(id) (1u << (id))

/* SR_FORMAT ("PATH: a ZIP archive, not WANTED", with advice) for a kind outside `accept`; `first`
 * holds the first bytes. wanted: "UTF-8 text". */
sr_status file_kind_check(const char *path, const void *first, size_t size, unsigned accept,
                          const char *wanted, sr_failure *why);
/* The same for file_kind_of_path. */
sr_status file_kind_check_path(const char *path, unsigned accept, const char *wanted,
                               sr_failure *why);

/* Advice for bytes that are not UTF-8. It names a conversion if they can be text of one byte per
 * character, without control characters. Else it says that the file is no text. */
void file_kind_hint_encoding(const void *bytes, size_t size, sr_failure *why);

#endif
