/* file_sync.h -- makes files durable. */
#ifndef JOURNAL_FILE_SYNC_H
#define JOURNAL_FILE_SYNC_H

#include "statrec/base.h"

/* fsync of a file or directory: its content survives a power failure. SR_OK on file systems without
   fsync. */
sr_status file_sync(const char *path, sr_failure *why);
/* fsync of the directory of a path, which holds its name. */
sr_status file_sync_directory(const char *path, sr_failure *why);

#endif
