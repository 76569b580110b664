/* file_sync.h -- bytes that are on the disk. */
#ifndef JOURNAL_FILE_SYNC_H
#define JOURNAL_FILE_SYNC_H

#include "statrec/base.h"

/* What has been written to a file, or the names in a directory, survives the machine; file systems that
 * know nothing of it are fine. */
sr_status file_sync(const char *path, sr_failure *why);
/* The same of the directory that a path is in: what names it holds. */
sr_status file_sync_directory(const char *path, sr_failure *why);

#endif
