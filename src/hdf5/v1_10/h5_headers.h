/* h5_headers.h -- headers of objects, as they lie in a file. */
#ifndef HDF5_V1_10_H5_HEADERS_H
#define HDF5_V1_10_H5_HEADERS_H

#include "journal/trailer.h"

/* False where an object's header begins in these bytes, which were read from a place of the file,
 * and it or what continues it is not what was written, or a message of it does not hold what it
 * says. e: what the file is read by, NULL: nothing; still: nobody writes it, else what has no right
 * sum is left to HDF5, which looks again; end: of the file. */
bool h5_header_is_whole(const trailer *e, int fd, bool still, uint64_t at, const void *bytes,
                        size_t size, uint64_t end);

#endif
