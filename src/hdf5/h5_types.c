/* h5_types.c -- HDF5's types for the values of a run file, and how its handles are released. */
#include "hdf5/h5_private.h"

/* A successful call of HDF5 clears the error stack, so it is saved. */
bool h5_release(hid_t id) {
    if (id < 0) return true;
    hid_t stack = H5Eget_num(H5E_DEFAULT) > 0 ? H5Eget_current_stack() : -1;
    bool closed = H5Idec_ref(id) >= 0;
    if (stack >= 0) H5Eset_current_stack(stack);
    return closed;
}

hid_t h5_hold_driver(hid_t access) {
    const hid_t id = H5Pget_driver(access);
    return id >= 0 && H5Iinc_ref(id) >= 0 ? id : -1;
}

static hid_t text_type(size_t size, H5T_cset_t set, H5T_str_t padding) {
    hid_t type = H5Tcopy(H5T_C_S1);
    if (type >= 0 && H5Tset_size(type, size ? size : 1) >= 0 && H5Tset_cset(type, set) >= 0 &&
        H5Tset_strpad(type, padding) >= 0)
        return type;
    h5_release(type);
    return -1;
}

hid_t h5_make_type(h5_type type, size_t text, bool stored) {
    if (type == H5_UINT8) return H5Tcopy(stored ? H5T_STD_U8LE : H5T_NATIVE_UINT8);
    const hid_t number[][2] = {[H5_INT32] = {H5T_NATIVE_INT32, H5T_STD_I32LE},
                               [H5_INT64] = {H5T_NATIVE_INT64, H5T_STD_I64LE},
                               [H5_UINT64] = {H5T_NATIVE_UINT64, H5T_STD_U64LE},
                               [H5_FLOAT32] = {H5T_NATIVE_FLOAT, H5T_IEEE_F32LE},
                               [H5_FLOAT64] = {H5T_NATIVE_DOUBLE, H5T_IEEE_F64LE}};
    if (type >= H5_INT32 && type <= H5_FLOAT64) return H5Tcopy(number[type][stored]);
    if (type == H5_TEXT) return text_type(text, H5T_CSET_UTF8, H5T_STR_NULLPAD);
    if (type == H5_TEXT_ASCII) return text_type(text, H5T_CSET_ASCII, H5T_STR_NULLPAD);
    if (type == H5_ASCII) return text_type(text, H5T_CSET_ASCII, H5T_STR_NULLTERM);
    if (type == H5_REFERENCE_LISTS) return H5Tvlen_create(H5T_STD_REF_OBJ);
    hid_t use = type == H5_SCALE_USES ? H5Tcreate(H5T_COMPOUND, sizeof(h5_scale_use)) : -1;
    if (use < 0) return use;
    H5Tinsert(use, "dataset", HOFFSET(h5_scale_use, dataset), H5T_STD_REF_OBJ);
    H5Tinsert(use, "dimension", HOFFSET(h5_scale_use, dimension), H5T_NATIVE_INT32);
    return use;
}

h5_type h5_name_type(hid_t type) {
    size_t size = H5Tget_size(type);
    H5T_class_t class = H5Tget_class(type);
    if (class == H5T_STRING) return H5_TEXT;
    if (class == H5T_FLOAT) return size == 4 ? H5_FLOAT32 : H5_FLOAT64;
    if (H5Tget_sign(type) == H5T_SGN_NONE) return size == 8 ? H5_UINT64 : H5_UINT8;
    return size == 4 ? H5_INT32 : H5_INT64;
}

hid_t h5_memory_type(hid_t stored, h5_type type, size_t text) {
    if (stored < 0) return -1;
    if (type != H5_TEXT) return h5_make_type(type, text, false);
    H5T_cset_t set = H5Tget_cset(stored);
    return text_type(text, set == H5T_CSET_ASCII ? set : H5T_CSET_UTF8, H5T_STR_NULLPAD);
}
