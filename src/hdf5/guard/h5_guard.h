/* h5_guard.h -- checks of untrusted files: every group, dataset and attribute passes them before
 * its values are read. A rejected object leaves the reason on HDF5's error stack, and SR_FORMAT. */
#ifndef HDF5_GUARD_H5_GUARD_H
#define HDF5_GUARD_H5_GUARD_H

#include "hdf5/h5_private.h"

/* How to open an object. */
typedef struct h5_way {
    htri_t found;     /* above 0: hard links lead to it; 0: the name does not exist; below 0: other
                     links, a path through objects that are no groups, or damage */
    hid_t at;         /* the file, or a group of it that stays open */
    const char *name; /* from there on: the path, or its last part */
} h5_way;
/* Call it before an object is opened. */
h5_way h5_reach(hid_t file, const char *path);
/* After a name was not found: false if a read of this file failed before. HDF5 1.10 keeps a header
 * that it read in part, and then finds nothing of the rest. Puts errno on the error stack. */
bool h5_guard_complete(hid_t file);
/* Before a group is listed: false when a link in it is unreadable. */
bool h5_guard_links(hid_t at, const char *group);
/* After a dataset is opened: its type, storage, filters and sizes. *shape: as of
 * h5_open_dataset. */
bool h5_guard_dataset(hid_t set, int64_t file_bytes, h5_shape *shape);
/* Every value of a dataset is stored. */
bool h5_guard_stored(hid_t set, int64_t file_bytes);
/* An attribute is one value of this class; its bytes, which HDF5 has read by now, to *size. */
bool h5_guard_attribute(hid_t attribute, H5T_class_t class, size_t *size);
/* The function name of these reasons on the error stack. */
extern const char h5_guard_name[];

#endif
