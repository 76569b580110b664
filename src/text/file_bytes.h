/* file_bytes.h -- whole files in memory: plain, gzip, or a ZIP archive of one file. */
#ifndef TEXT_FILE_BYTES_H
#define TEXT_FILE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file_kind.h"
#include "statrec/base.h"

enum { FILE_PATH = 2048 };

typedef struct file_bytes {
    uint8_t *byte; /* [size], one zero byte follows */
    size_t size;   /* after decompression */
    char path[FILE_PATH];
} file_bytes;

/* Looks for DIR/NAME, then DIR/NAME.gz, and writes the path found. dir "" is the current directory;
 * an absolute NAME stays. *found false: neither exists, path holds DIR/NAME. SR_IO when the system
 * refuses to look ("Permission denied"), SR_USAGE when the path is too long. */
sr_status file_find(const char *dir, const char *name, char path[FILE_PATH], bool *found,
                    sr_failure *why);

/* SR_IO: neither path, from file_find, nor path.gz exists. */
sr_status file_missing(const char *path, sr_failure *why);

/* Opens a file that ends: a regular one, or a pipe that the caller handed over (/dev/stdin,
 * /dev/fd/N). SR_IO for anything else, without opening it. A FIFO would wait for its writer, a
 * device may have no end. */
sr_status file_open(const char *path, int *fd, sr_failure *why);

/* Reads all of a text. gzip is unpacked, whatever the name, several members included; a name ending
 * in .gz must be gzip. So is a ZIP archive with one member. Both hold at most file_most_inflated.
 * SR_FORMAT for a file of another kind (file_kind.h). The message names the byte of the file. Free
 * with file_free. */
sr_status file_read(const char *path, file_bytes *f, sr_failure *why);
/* The same for a file that is no text. wanted: "images in MNIST's format"; accept: kinds that are
 * read as they are. */
sr_status file_read_as(const char *path, unsigned accept, const char *wanted, file_bytes *f,
                       sr_failure *why);
void file_free(file_bytes *f);

#endif
