/* damage.h -- run files to be damaged, and what no damage may do to a reader. */
#ifndef TESTS_DAMAGE_H
#define TESTS_DAMAGE_H

#include <hdf5.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The sample run with so many steps, an evaluation after every tenth; replaces what is there. */
void damage_make_run(const char *path, int64_t steps);
/* Where HDF5's part ends, of a run file's bytes. */
size_t damage_end(const char *bytes);
/* All bytes of a file, to be freed; a file of these bytes. */
char *damage_load(const char *path, size_t *size);
void damage_store(const char *path, const char *bytes, size_t size);
/* `path` becomes a copy of whole.h5 among the samples, open for HDF5 to write. */
hid_t damage_reopen(const char *path);
/* Makes a closed file without a trailer one whose writer was killed: its superblock says that a
 * writer has it open, and the last `less` bytes are missing. */
void damage_leave_open(const char *path, size_t less);
/* Opens, checks, reads everything and recovers: what is refused is refused in one line with a
 * reason. Returns whether the file opened. */
bool damage_exercise(const char *path);

#endif
