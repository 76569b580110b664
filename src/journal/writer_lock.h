/* writer_lock.h -- whether somebody writes a run file at this moment.
 *
 * A writer holds a lock of its open file (F_OFD_SETLK) on one byte far behind every file's end. The
 * system gives it up with the writer, however that ends; HDF5's own locks, which are of other kinds,
 * and those who read are not in its way. Where a file system has no such locks nobody seems to be alive.
 */
#ifndef JOURNAL_WRITER_LOCK_H
#define JOURNAL_WRITER_LOCK_H

#include <stdbool.h>

/* Until the file is closed, in this process and in those that it forks. */
void writer_lock_acquire(int descriptor);
void writer_lock_release(int descriptor);
bool writer_lock_is_held(const char *path);

#endif
