/* file_zip.h -- reads the only file of a ZIP archive; the limit on what archives unpack to. */
#ifndef TEXT_FILE_ZIP_H
#define TEXT_FILE_ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "statrec/base.h"

/* Limit on the unpacked bytes of a gzip file: 64 MiB and 64 times its size. Deflate's ratio is 1032
 * at most, for text 20. */
enum { FILE_INFLATED_RATIO = 64 };
size_t file_most_inflated(size_t bytes);

typedef struct file_zip file_zip;

/* Opens the member of an archive that holds one; folders, and files that macOS adds, do not count.
 * NULL: *why names the members, or the fault. path must be a regular file. */
file_zip *file_zip_open(const char *path, sr_failure *why);
/* Unpacks up to `most` bytes; *got 0 at the end, where the checksum was right. SR_FORMAT also
 * beyond file_most_inflated. */
sr_status file_zip_read(file_zip *z, void *to, size_t most, size_t *got, sr_failure *why);
size_t file_zip_size(const file_zip *z); /* as the archive declares, at most file_most_inflated */
void file_zip_close(file_zip *z);

#endif
