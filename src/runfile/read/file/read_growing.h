/* read_growing.h -- opens a run file that another process may be writing. */
#ifndef RUNFILE_READ_FILE_READ_GROWING_H
#define RUNFILE_READ_FILE_READ_GROWING_H

#include "journal/trailer.h"

/* As superblock_check; waits while the writer extends the file. */
sr_status reader_check_live_bytes(const char *path, const trailer *e, bool *unfinished,
                                  int64_t *cut_at, sr_failure *why);
/* PATH or PATH.part, whichever exists. malloc'd; NULL: neither. */
char *reader_choose_path(const char *path, sr_failure *why);
/* Whether another process writes the file under either name. */
bool reader_is_live(const char *path);
/* Whether to try again after the failure *why, and waits before it. live: the file was being
 * written when the failed attempt began. */
bool reader_retries(const char *path, bool live, const sr_failure *why, int attempts);

#endif
