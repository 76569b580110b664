/* part_file.h -- PATH.part, which is renamed to PATH when the run ends. */
#ifndef RECORD_PART_FILE_H
#define RECORD_PART_FILE_H

#include <limits.h>

#include "record/recorder.h"

/* Fills r->path and r->part; removes an old PATH.part if the options allow it. */
sr_status part_file_reserve(sr_recorder *r, const char *path, sr_failure *why);
/* r->path or r->part for calls of the system: in the working directory of sr_create, where the host
 * program has left it. */
const char *part_file_at(const sr_recorder *r, const char *path, char room[PATH_MAX]);
/* Renames the new file to PATH.part, once it has all rows of the PATH.part that it resumes. */
sr_status part_file_take_over(sr_recorder *r, sr_failure *why);
sr_status part_file_publish(sr_recorder *r, sr_failure *why);
/* SR_IO when another file, or none, has the name of the file that is being written. */
sr_status part_file_check(const sr_recorder *r, sr_failure *why);

#endif
