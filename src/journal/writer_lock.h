/* writer_lock.h -- whether another process is writing a run file.
 *
 * The writer holds a lock of its open file (F_OFD_SETLK) on one byte far after the end of any file.
 * The system releases it when the process ends, for whatever reason. It does not conflict with
 * HDF5's locks, which are of another kind, nor with readers. On file systems without such locks no
 * file has a writer. */
#ifndef JOURNAL_WRITER_LOCK_H
#define JOURNAL_WRITER_LOCK_H

#include <stdbool.h>

/* Held until the file is closed in this process and in its forked children. */
void writer_lock_acquire(int descriptor);
void writer_lock_release(int descriptor);
bool writer_lock_is_held(const char *path);

#endif
