/* damage.h -- makes damaged run files, and checks that readers survive them. */
#ifndef TESTS_DAMAGE_H
#define TESTS_DAMAGE_H

#include <hdf5.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes the sample run with `steps` steps, an evaluation after every tenth; replaces an existing
 * file. */
void damage_make_run(const char *path, int64_t steps);
/* Length of HDF5's part of a run file. */
size_t damage_end(const char *bytes);
/* All bytes of a file, to be freed; a file of these bytes. */
char *damage_load(const char *path, size_t *size);
void damage_store(const char *path, const char *bytes, size_t size);
/* `path` becomes a copy of whole.h5 among the samples, open for HDF5 to write. */
hid_t damage_reopen(const char *path);
/* Turns a closed file without a trailer into one whose writer was killed. Its superblock is marked
 * as open for writing, and the last `less` bytes are missing. */
void damage_leave_open(const char *path, size_t less);
/* Opens, checks, reads everything and recovers; a rejection must be one line with a reason. Returns
 * whether the file opened. */
bool damage_exercise(const char *path);

#endif
