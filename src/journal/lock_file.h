/* lock_file.h -- keeps a second writer out where the system refuses file locks.
 *
 * PATH.lock beside the file that is written, created with O_EXCL: host, process and its namespace
 * in one line. Its time of change is a heartbeat. Without one for LOCK_FILE_STALE seconds, or when
 * its process has ended on this host, the file counts no more. */
#ifndef JOURNAL_LOCK_FILE_H
#define JOURNAL_LOCK_FILE_H

#include <stdbool.h>
#include <sys/types.h>

#include "statrec/base.h"

enum { LOCK_FILE_STALE = 600, LOCK_FILE_BEAT = 30 }; /* seconds */

/* All zeros: none. */
typedef struct lock_file {
    char *path;       /* PATH.lock */
    int fd;           /* holds it open */
    pid_t owner;      /* forked processes leave the file alone */
    double beat;      /* monotonic clock of the last heartbeat */
    char reason[512]; /* why there is one */
} lock_file;

/* Creates PATH.lock because of the errno `refused`; replaces a stale one, with force any.
 * SR_EXISTS: another process holds it. */
sr_status lock_file_create(lock_file *l, const char *path, int refused, bool force,
                           sr_failure *why);
/* A heartbeat, unless the last one was a moment ago. */
void lock_file_beat(lock_file *l);
/* The file that is written is called PATH from now on. */
sr_status lock_file_rename(lock_file *l, const char *path, sr_failure *why);
/* Removes it. */
void lock_file_release(lock_file *l);

/* Whether another process holds PATH.lock. */
bool lock_file_is_held(const char *path);
/* The failure of a caller that meets a lock file that counts. */
sr_status lock_file_refuse(const char *path, sr_failure *why);

#endif
