/* superblock.h -- checks the first bytes of a file before HDF5 opens it. */
#ifndef RUNFILE_READ_FILE_SUPERBLOCK_H
#define RUNFILE_READ_FILE_SUPERBLOCK_H

#include "journal/trailer.h"

/* *unfinished: not closed by its writer; *cut_at: its size in bytes if it is truncated, else 0.
 * Fails when the file is no run file, is a truncated closed file, or its writer wrote nothing. */
sr_status superblock_check(const char *path, const trailer *e, bool *unfinished, int64_t *cut_at,
                           sr_failure *why);

#endif
