/* dimension_scales.c -- does the work of H5DSattach_scale of HDF5's high-level library, for all
 * datasets at once. A scale has the attributes CLASS, NAME and REFERENCE_LIST; its users have
 * DIMENSION_LIST. */
#include "hdf5/dimension_scales.h"

#include <string.h>

/* The path of a dimension's scale; NULL: none. */
static const char *scale_of(const scaled *s, int dimension) {
    return dimension ? s->column : s->row;
}

static sr_status write_scale(h5_id file, const char *scale, const scaled *list, int count,
                             sr_failure *why) {
    h5_scale_use use[2 * SCALED_MAX];
    int64_t used = 0;
    sr_status status = SR_OK;
    memset(use, 0, sizeof use);
    for (int i = 0; i < count; i++)
        for (int d = 0; d < 2 && status == SR_OK; d++) {
            const char *of = scale_of(&list[i], d);
            if (!of || strcmp(of, scale) != 0) continue;
            status = h5_refer(file, list[i].dataset, &use[used].dataset, why);
            use[used++].dimension = d;
        }
    static const char class[] = "DIMENSION_SCALE";
    const char *name = strrchr(scale, '/') + 1;
    if (status == SR_OK)
        status = h5_put_attribute(file, scale, "CLASS", H5_ASCII, sizeof class, -1, class, why);
    if (status == SR_OK)
        status = h5_put_attribute(file, scale, "NAME", H5_ASCII, strlen(name) + 1, -1, name, why);
    if (status == SR_OK)
        status = h5_put_attribute(file, scale, "REFERENCE_LIST", H5_SCALE_USES, 0, used, use, why);
    return status;
}

static sr_status write_user(h5_id file, const scaled *s, sr_failure *why) {
    uint64_t reference[2];
    h5_reference_list list[2] = {{0, NULL}, {0, NULL}};
    sr_status status = SR_OK;
    for (int d = 0; d < s->rank && status == SR_OK; d++) {
        if (!scale_of(s, d)) continue;
        status = h5_refer(file, scale_of(s, d), &reference[d], why);
        list[d] = (h5_reference_list){1, &reference[d]};
    }
    if (status != SR_OK) return status;
    return h5_put_attribute(file, s->dataset, "DIMENSION_LIST", H5_REFERENCE_LISTS, 0, s->rank,
                            list, why);
}

/* True if an entry before list[i], or its first dimension, has the same scale. */
static bool seen_before(const scaled *list, int i, int dimension) {
    const char *scale = scale_of(&list[i], dimension);
    for (int k = 0; k <= i; k++)
        for (int d = 0; d < 2 && (k < i || d < dimension); d++) {
            const char *of = scale_of(&list[k], d);
            if (of && strcmp(of, scale) == 0) return true;
        }
    return false;
}

sr_status dimension_scales_write(h5_id file, const scaled *list, int count, sr_failure *why) {
    if (count > SCALED_MAX) return sr_fail(why, SR_USAGE, "%d datasets with scales", count);
    sr_status status = SR_OK;
    for (int i = 0; i < count && status == SR_OK; i++) {
        status = write_user(file, &list[i], why);
        for (int d = 0; d < 2 && status == SR_OK; d++)
            if (scale_of(&list[i], d) && !seen_before(list, i, d))
                status = write_scale(file, scale_of(&list[i], d), list, count, why);
    }
    return status;
}
