/* h5_checks.h -- checks of HDF5's own metadata before HDF5 1.10 reads it; README.md lists the
 * crashes that they prevent. */
#ifndef HDF5_V1_10_H5_CHECKS_H
#define HDF5_V1_10_H5_CHECKS_H

#include "journal/trailer.h"

/* bytes [size]: read at offset `at` of a file of `end` bytes. trailer: backup copies that replace
 * bytes of the file; NULL: none. */

/* False for a damaged object header: a wrong checksum or length, or a message beyond its end. Other
 * bytes pass. still: no process writes the file. Otherwise a wrong checksum passes, since HDF5
 * reads those bytes again. */
bool h5_header_is_whole(const trailer *e, int fd, bool still, uint64_t at, const void *bytes,
                        size_t size, uint64_t end);
/* False for a message of this type that needs more bytes than its length. Shared messages are not
 * for this function. */
bool h5_message_fits(int type, const unsigned char *at, size_t length);
/* False for the header of an index (B-tree) that would crash HDF5. Other bytes pass. */
bool h5_tree_is_sound(const trailer *e, int fd, const void *bytes, size_t size, uint64_t end);
/* False for a heap whose blocks are too large, or no powers of two. Other bytes pass. */
bool h5_heap_is_small(const void *bytes, size_t size);

/* The checksum at the end of HDF5's metadata. */
uint32_t h5_checksum(const unsigned char *byte, size_t size);

#endif
