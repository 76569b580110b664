/* dimension_scales.h -- dimension scales (HDF5 Dimension Scale Specification) of datasets. */
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

/* Writes the attributes of all datasets and of their scales; at most SCALED_MAX datasets. A scale
 * lists its users, so call it once. */
sr_status dimension_scales_write(h5_id file, const scaled *list, int count, sr_failure *why);

#endif
