/* output_file.h -- the one way to make an output file: a new file beside it, which takes its name
 * when its bytes are durable.
 *
 * The new file is never an existing one, and no link is followed: a planted PATH.part is rejected
 * with its name, and stays. */
#ifndef BASE_OUTPUT_FILE_H
#define BASE_OUTPUT_FILE_H

#include <stdio.h>

#include "statrec/base.h"

/* Creates the file; a descriptor above 2, or -1 with errno. EEXIST: something has this name. */
int output_file_create(const char *path);
/* The same for the new file `part` of the output `path`, as a stream; NULL and *why on failure. */
FILE *output_file_open(const char *part, const char *path, sr_failure *why);
/* SR_EXISTS if the name `part` is taken: call it before long work that would fail for this
 * reason. */
sr_status output_file_check(const char *part, sr_failure *why);
/* Opens a device or pipe, which is written in place; NULL and *why on failure. */
FILE *output_file_device(const char *path, sr_failure *why);
/* Writes, syncs and closes `out`, and gives it the name `path`. so_far: a failure of the caller.
 * After any failure the file `part` is removed, and `path` stays as it is. */
sr_status output_file_publish(FILE *out, const char *part, const char *path, sr_status so_far,
                              sr_failure *why);

#endif
