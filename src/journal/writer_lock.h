/* writer_lock.h -- whether another process is writing a run file.
 *
 * The writer holds a lock of its open file (F_OFD_SETLK) on one byte far after the end of any file.
 * The system releases it when the process ends, for whatever reason. It conflicts neither with
 * readers nor with HDF5's locks, which are another kind. If the system refuses it, the writer has a
 * lock file (lock_file.h). */
#ifndef JOURNAL_WRITER_LOCK_H
#define JOURNAL_WRITER_LOCK_H

#include <stdbool.h>

/* Held until the file is closed in this process and in its forked children. 0, or the errno of a
 * refusal. */
int writer_lock_acquire(int descriptor);
void writer_lock_release(int descriptor);
/* Checks both kinds of lock; the second checks the system's alone. */
bool writer_lock_is_held(const char *path);
bool writer_lock_is_held_by_system(const char *path);

#endif
