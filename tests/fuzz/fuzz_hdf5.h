/* fuzz_hdf5.h -- inputs that are changes to a run file or checkpoint. They are small and stay
 * meaningful when the layout of those files changes. The first byte gives the kind of the rest:
 *
 *   f   the file itself
 *   e   changes of 4 bytes: offset (big-endian, 24 bits), value. If its highest bit is set, the
 *       offset counts bytes of HDF5's own blocks, else of the file; both wrap around
 *   r   the same, then every checksum of HDF5 is corrected: a file from an untrusted source
 *   t   two bytes: keeps that many 65536ths of the file
 *   z   the file itself, compressed by zlib: a file that an input of another kind once made.
 *       Offsets move with every change of the written format, so an old 'e' or 'r' input later
 *       hits something else. STATREC_FUZZ_KEEP=PATH writes its current file.
 */
#ifndef TESTS_FUZZ_HDF5_H
#define TESTS_FUZZ_HDF5_H

#include "fuzz.h"

typedef struct fuzz_image fuzz_image;

/* Loads the file at this path as the base of changes. */
fuzz_image *fuzz_image_load(const char *path);
/* The file of an input under fuzz_folder(); its path. */
const char *fuzz_image_store(const fuzz_image *i, const char *name, const uint8_t *data,
                             size_t size);
/* A run of tiny width with something in every group, and a checkpoint of a tiny model; made on
 * first use. */
const fuzz_image *fuzz_run_image(void);
const fuzz_image *fuzz_checkpoint_image(void);

#endif
