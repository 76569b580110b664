/* h5_declare.c -- creates groups, datasets, attributes and links of a new file. */
#include <math.h>
#include <stdio.h>

#include "hdf5/h5_private.h"

/* Links stay in the group's header. With denser storage HDF5 1.10 crashes when it lists the names
 * after one byte was damaged. */
sr_status h5_add_group(h5_id file, const char *path, sr_failure *why) {
    h5_errors q = h5_quiet();
    hid_t properties = H5Pcreate(H5P_GROUP_CREATE), group = -1;
    bool ok = properties >= 0 && H5Pset_link_phase_change(properties, 1024, 1024) >= 0 &&
              H5Pset_obj_track_times(properties, false) >= 0;
    if (ok) group = H5Gcreate2(file, path, H5P_DEFAULT, properties, H5P_DEFAULT);
    ok = group >= 0 && H5Gclose(group) >= 0;
    sr_status status = h5_end(q, ok, why, SR_LIBRARY, file, path, "create group");
    h5_release(properties);
    return status;
}

/* Chunks of whole rows, up to 64 MiB, each with a checksum. A single value is stored in the
 * object's header, which has a checksum. */
static herr_t set_sums(hid_t properties, const h5_shape *shape) {
    enum { CHUNK_VALUES = 8 << 20 };
    hsize_t chunk[H5_RANK];
    int64_t row = 1;
    if (shape->rank == 0) return H5Pset_layout(properties, H5D_COMPACT);
    for (int i = 1; i < shape->rank; i++) row *= shape->dims[i];
    for (int i = 0; i < shape->rank; i++) chunk[i] = (hsize_t)shape->dims[i];
    const int64_t rows = row < CHUNK_VALUES ? CHUNK_VALUES / row : 1;
    if (shape->dims[0] > rows) chunk[0] = (hsize_t)rows;
    if (H5Pset_chunk(properties, shape->rank, chunk) < 0) return -1;
    return H5Pset_fletcher32(properties);
}

static herr_t set_layout(hid_t properties, const h5_shape *shape) {
    const hsize_t chunk[2] = {(hsize_t)shape->chunk[0], (hsize_t)shape->chunk[1]};
    if (shape->summed) return set_sums(properties, shape);
    if (shape->chunk[0] > 0) return H5Pset_chunk(properties, shape->rank, chunk);
    return H5Pset_alloc_time(properties, H5D_ALLOC_TIME_EARLY);
}

static hid_t creation_properties(const h5_shape *shape) {
    const double nan = NAN, none = -1;
    const bool real = shape->type == H5_FLOAT32 || shape->type == H5_FLOAT64;
    const bool filled = real || shape->type == H5_INT32 || shape->type == H5_INT64;
    hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    if (properties < 0) return properties;
    /* Up to 16 attributes, not 8, stay in the object header: a heap takes 1 KB for each dataset. */
    if (H5Pset_obj_track_times(properties, false) >= 0 &&
        H5Pset_attr_phase_change(properties, 16, 12) >= 0 &&
        (!filled || H5Pset_fill_value(properties, H5T_NATIVE_DOUBLE, real ? &nan : &none) >= 0) &&
        set_layout(properties, shape) >= 0)
        return properties;
    h5_release(properties);
    return -1;
}

static hid_t make_space(const h5_shape *shape) {
    if (shape->rank == 0) return H5Screate(H5S_SCALAR);
    hsize_t dims[H5_RANK], most[H5_RANK];
    for (int i = 0; i < shape->rank; i++) dims[i] = most[i] = (hsize_t)shape->dims[i];
    if (shape->chunk[0] > 0) most[0] = H5S_UNLIMITED;
    return H5Screate_simple(shape->rank, dims, most);
}

sr_status h5_add_dataset(h5_id file, const char *path, const h5_shape *shape, h5_id *set,
                         sr_failure *why) {
    h5_errors q = h5_quiet();
    hid_t type = h5_make_type(shape->type, shape->text, true);
    hid_t space = type < 0 ? -1 : make_space(shape);
    hid_t properties = space < 0 ? -1 : creation_properties(shape);
    hid_t id = properties >= 0
                   ? H5Dcreate2(file, path, type, space, H5P_DEFAULT, properties, H5P_DEFAULT)
                   : -1;
    *set = id < 0 ? 0 : id;
    sr_status status = h5_end(q, id >= 0, why, SR_LIBRARY, file, path, "create dataset");
    h5_release(properties), h5_release(space), h5_release(type);
    return status;
}

sr_status h5_put_attribute(h5_id file, const char *object, const char *name, h5_type type,
                           size_t text, int64_t count, const void *value, sr_failure *why) {
    h5_errors q = h5_quiet();
    hsize_t dims = (hsize_t)count;
    hid_t stored = h5_make_type(type, text, true), memory = -1, space = -1, id = -1;
    if (stored >= 0) memory = h5_make_type(type, text, false);
    if (memory >= 0) space = count < 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &dims, NULL);
    if (space >= 0)
        id = H5Acreate_by_name(file, object, name, stored, space, H5P_DEFAULT, H5P_DEFAULT,
                               H5P_DEFAULT);
    bool ok = id >= 0 && H5Awrite(id, memory, value) >= 0;
    ok = h5_release(id) && ok;
    const h5_path at = h5_path_of("%s attribute %s", object, name);
    sr_status status = h5_end(q, ok, why, SR_LIBRARY, file, at.text, "write");
    h5_release(stored), h5_release(memory), h5_release(space);
    return status;
}

sr_status h5_make_direct(h5_id *set, sr_failure *why) {
    char name[H5_NAME_SIZE] = "", path[H5_PATH_SIZE] = "";
    if (*set <= 0) return SR_OK;
    h5_errors q = h5_quiet();
    H5Fget_name(*set, path, sizeof path);
    hid_t file = H5Iget_file_id(*set), access = H5Pcreate(H5P_DATASET_ACCESS), id = -1;
    const bool ok = H5Iget_name(*set, name, sizeof name) > 0 && h5_release(*set) &&
                    H5Pset_chunk_cache(access, 0, 0, 1) >= 0;
    if (ok) id = H5Dopen2(file, name, access);
    *set = id < 0 ? 0 : id;
    const h5_path what = h5_path_of("%s: %s", path, name);
    sr_status status = h5_end(q, id >= 0, why, SR_LIBRARY, 0, what.text, "open dataset");
    h5_release(access), h5_release(file);
    return status;
}

sr_status h5_link(h5_id file, const char *object, const char *name, sr_failure *why) {
    h5_errors q = h5_quiet();
    bool ok = H5Lcreate_hard(file, object, file, name, H5P_DEFAULT, H5P_DEFAULT) >= 0;
    return h5_end(q, ok, why, SR_LIBRARY, file, object, "link");
}

sr_status h5_refer(h5_id file, const char *object, uint64_t *reference, sr_failure *why) {
    h5_errors q = h5_quiet();
    bool ok = H5Rcreate(reference, file, object, H5R_OBJECT, -1) >= 0; /* a hobj_ref_t */
    return h5_end(q, ok, why, SR_LIBRARY, file, object, "refer to");
}
