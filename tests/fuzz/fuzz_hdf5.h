/* fuzz_hdf5.h -- inputs that are changes of a run file or checkpoint, so that they are small and
 * still mean something when the layout of those files changes. The first byte says what the rest
 * is:
 *
 *   f   the file itself
 *   e   changes of 4 bytes: place (big-endian, 24 bits), value. The place counts bytes of HDF5's
 *   own
 *       blocks where its highest bit is set, else those of the file; both round and round
 *   r   the same, and then every checksum of HDF5 is made right: what a file from someone else may
 *   hold
 *   t   two bytes: so many 65536th of the file are left
 *   z   the file itself, by zlib: what an input of the other kinds made of the file of its day.
 *   Places move with
 *       every change of what is written, so that an input of 'e' or 'r' that broke a target once
 *       hits something
 *       else later; STATREC_FUZZ_KEEP=PATH writes what it stands for now.
 */
#ifndef TESTS_FUZZ_HDF5_H
#define TESTS_FUZZ_HDF5_H

#include "fuzz.h"

typedef struct fuzz_image fuzz_image;

/* The file at this path as what changes are made to. */
fuzz_image *fuzz_image_load(const char *path);
/* The file of an input under fuzz_folder(); its path. */
const char *fuzz_image_store(const fuzz_image *i, const char *name, const uint8_t *data,
                             size_t size);
/* A run of tiny width with something in every group, and a checkpoint of a tiny model; made when
 * they are asked for first. */
const fuzz_image *fuzz_run_image(void);
const fuzz_image *fuzz_checkpoint_image(void);

#endif
