/* dimension_scales.h -- dimension scales (HDF5 Dimension Scale Specification) of the growing
 * columns.
 * */
#ifndef HDF5_DIMENSION_SCALES_H
#define HDF5_DIMENSION_SCALES_H

#include "hdf5/h5.h"

enum { SCALED_MAX = 288 };

/* Dimensions 0 and 1 of a dataset have the scales `row` and `column` (paths; NULL: none). */
typedef struct scaled {
    const char *dataset;
    int rank;
    const char *row, *column;
} scaled;

/* Writes the attributes of all of them, once: a scale lists its users. At most SCALED_MAX. */
sr_status dimension_scales_write(h5_id file, const scaled *list, int count, sr_failure *why);

#endif
