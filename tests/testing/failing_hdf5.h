/* failing_hdf5.h -- calls of HDF5 from the program's own text that fail (failing_calls.h). */
#ifndef TESTS_FAILING_HDF5_H
#define TESTS_FAILING_HDF5_H

#include <hdf5.h>

#include "testing/failing_calls.h"

/* Reason that the failing call reports: unknown, out of memory, no space in a file. */
typedef enum { FAILING_UNKNOWN, FAILING_MEMORY, FAILING_SPACE } failing_reason;

static failing_reason failing_gives;
static const char *failing_only; /* only this function's calls count; NULL: all functions */

static void failing_complain(void) {
    static const char *const text[] = {"made to fail", "no room", "made to be full"};
    const hid_t major[] = {H5E_INTERNAL, H5E_RESOURCE, H5E_FILE},
                minor[] = {H5E_SYSTEM, H5E_NOSPACE, H5E_NOSPACE};
    H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, major[failing_gives],
             minor[failing_gives], "%s", text[failing_gives]);
}

static bool failing_hdf5_now(const char *name, const void *caller) {
    if (failing_only && strcmp(name, failing_only) != 0) return false;
    return failing_now(FAILING_HDF5, caller);
}

#define FAILING_H5(type, name, parameters, arguments, value)                                       \
    type name parameters {                                                                         \
        FAILING_REAL(type, name, parameters);                                                      \
        if (!failing_hdf5_now(#name, __builtin_return_address(0))) return original.call arguments; \
        failing_complain();                                                                        \
        return value;                                                                              \
    }
/* A failing close has closed the object. */
#define FAILING_CLOSE(type, name, parameters, arguments, value)                                    \
    type name parameters {                                                                         \
        FAILING_REAL(type, name, parameters);                                                      \
        const type result = original.call arguments;                                               \
        if (!failing_hdf5_now(#name, __builtin_return_address(0))) return result;                  \
        failing_complain();                                                                        \
        return value;                                                                              \
    }

FAILING_H5(hid_t, H5Acreate_by_name,
           (hid_t a, const char *b, const char *c, hid_t d, hid_t e, hid_t f, hid_t g, hid_t h),
           (a, b, c, d, e, f, g, h), -1)
FAILING_H5(htri_t, H5Aexists_by_name, (hid_t a, const char *b, const char *c, hid_t d),
           (a, b, c, d), -1)
FAILING_H5(hid_t, H5Aget_space, (hid_t a), (a), -1)
FAILING_H5(hid_t, H5Aget_type, (hid_t a), (a), -1)
FAILING_H5(hid_t, H5Aopen_by_name, (hid_t a, const char *b, const char *c, hid_t d, hid_t e),
           (a, b, c, d, e), -1)
FAILING_H5(herr_t, H5Aread, (hid_t a, hid_t b, void *c), (a, b, c), -1)
FAILING_H5(herr_t, H5Awrite, (hid_t a, hid_t b, const void *c), (a, b, c), -1)
FAILING_CLOSE(herr_t, H5Dclose, (hid_t a), (a), -1)
FAILING_H5(hid_t, H5Dcreate2, (hid_t a, const char *b, hid_t c, hid_t d, hid_t e, hid_t f, hid_t g),
           (a, b, c, d, e, f, g), -1)
FAILING_H5(herr_t, H5Dget_chunk_info,
           (hid_t a, hid_t b, hsize_t c, hsize_t *d, unsigned *e, haddr_t *f, hsize_t *g),
           (a, b, c, d, e, f, g), -1)
FAILING_H5(hid_t, H5Dget_create_plist, (hid_t a), (a), -1)
FAILING_H5(herr_t, H5Dget_num_chunks, (hid_t a, hid_t b, hsize_t *c), (a, b, c), -1)
FAILING_H5(hid_t, H5Dget_space, (hid_t a), (a), -1)
FAILING_H5(hsize_t, H5Dget_storage_size, (hid_t a), (a), 0)
FAILING_H5(hid_t, H5Dget_type, (hid_t a), (a), -1)
FAILING_H5(hid_t, H5Dopen2, (hid_t a, const char *b, hid_t c), (a, b, c), -1)
FAILING_H5(herr_t, H5Dread, (hid_t a, hid_t b, hid_t c, hid_t d, hid_t e, void *f),
           (a, b, c, d, e, f), -1)
FAILING_H5(herr_t, H5Dset_extent, (hid_t a, const hsize_t b[]), (a, b), -1)
FAILING_H5(herr_t, H5Dwrite, (hid_t a, hid_t b, hid_t c, hid_t d, hid_t e, const void *f),
           (a, b, c, d, e, f), -1)
FAILING_H5(hid_t, H5FDregister, (const H5FD_class_t *a), (a), -1)
FAILING_CLOSE(herr_t, H5Fclose, (hid_t a), (a), -1)
FAILING_H5(hid_t, H5Fcreate, (const char *a, unsigned b, hid_t c, hid_t d), (a, b, c, d), -1)
FAILING_H5(herr_t, H5Fflush, (hid_t a, H5F_scope_t b), (a, b), -1)
FAILING_H5(herr_t, H5Fget_eoa, (hid_t a, haddr_t *b), (a, b), -1)
FAILING_H5(herr_t, H5Fget_intent, (hid_t a, unsigned *b), (a, b), -1)
FAILING_H5(ssize_t, H5Fget_name, (hid_t a, char *b, size_t c), (a, b, c), -1)
FAILING_H5(herr_t, H5Fget_vfd_handle, (hid_t a, hid_t b, void **c), (a, b, c), -1)
FAILING_H5(hid_t, H5Fopen, (const char *a, unsigned b, hid_t c), (a, b, c), -1)
FAILING_H5(herr_t, H5Fstart_swmr_write, (hid_t a), (a), -1)
FAILING_CLOSE(herr_t, H5Gclose, (hid_t a), (a), -1)
FAILING_H5(hid_t, H5Gcreate2, (hid_t a, const char *b, hid_t c, hid_t d, hid_t e), (a, b, c, d, e),
           -1)
FAILING_H5(herr_t, H5Gget_info_by_name, (hid_t a, const char *b, H5G_info_t *c, hid_t d),
           (a, b, c, d), -1)
FAILING_H5(hid_t, H5Gopen2, (hid_t a, const char *b, hid_t c), (a, b, c), -1)
FAILING_CLOSE(int, H5Idec_ref, (hid_t a), (a), -1)
FAILING_H5(hid_t, H5Iget_file_id, (hid_t a), (a), -1)
FAILING_H5(ssize_t, H5Iget_name, (hid_t a, char *b, size_t c), (a, b, c), -1)
FAILING_H5(H5I_type_t, H5Iget_type, (hid_t a), (a), -1)
FAILING_H5(int, H5Iinc_ref, (hid_t a), (a), -1)
FAILING_H5(herr_t, H5Lcreate_hard,
           (hid_t a, const char *b, hid_t c, const char *d, hid_t e, hid_t f), (a, b, c, d, e, f),
           -1)
FAILING_H5(htri_t, H5Lexists, (hid_t a, const char *b, hid_t c), (a, b, c), -1)
FAILING_H5(herr_t, H5Lget_info, (hid_t a, const char *b, H5L_info_t *c, hid_t d), (a, b, c, d), -1)
FAILING_H5(ssize_t, H5Lget_name_by_idx,
           (hid_t a, const char *b, H5_index_t c, H5_iter_order_t d, hsize_t e, char *f, size_t g,
            hid_t h),
           (a, b, c, d, e, f, g, h), -1)
FAILING_H5(herr_t, H5Oget_info_by_name2,
           (hid_t a, const char *b, H5O_info_t *c, unsigned d, hid_t e), (a, b, c, d, e), -1)
FAILING_H5(herr_t, H5Ovisit, (hid_t a, H5_index_t b, H5_iter_order_t c, H5O_iterate_t d, void *e),
           (a, b, c, d, e), -1)
FAILING_H5(hid_t, H5Pcreate, (hid_t a), (a), -1)
FAILING_H5(int, H5Pget_chunk, (hid_t a, int b, hsize_t c[]), (a, b, c), -1)
FAILING_H5(hid_t, H5Pget_driver, (hid_t a), (a), -1)
FAILING_H5(const void *, H5Pget_driver_info, (hid_t a), (a), NULL)
FAILING_H5(int, H5Pget_external_count, (hid_t a), (a), -1)
FAILING_H5(H5Z_filter_t, H5Pget_filter2,
           (hid_t a, unsigned b, unsigned int *c, size_t *d, unsigned e[], size_t f, char g[],
            unsigned *h),
           (a, b, c, d, e, f, g, h), -1)
FAILING_H5(H5D_layout_t, H5Pget_layout, (hid_t a), (a), -1)
FAILING_H5(int, H5Pget_nfilters, (hid_t a), (a), -1)
FAILING_H5(herr_t, H5Pset_alloc_time, (hid_t a, H5D_alloc_time_t b), (a, b), -1)
FAILING_H5(herr_t, H5Pset_attr_phase_change, (hid_t a, unsigned b, unsigned c), (a, b, c), -1)
FAILING_H5(herr_t, H5Pset_chunk, (hid_t a, int b, const hsize_t c[]), (a, b, c), -1)
FAILING_H5(herr_t, H5Pset_chunk_cache, (hid_t a, size_t b, size_t c, double d), (a, b, c, d), -1)
FAILING_H5(herr_t, H5Pset_driver, (hid_t a, hid_t b, const void *c), (a, b, c), -1)
FAILING_H5(herr_t, H5Pset_fclose_degree, (hid_t a, H5F_close_degree_t b), (a, b), -1)
FAILING_H5(herr_t, H5Pset_file_locking, (hid_t a, hbool_t b, hbool_t c), (a, b, c), -1)
FAILING_H5(herr_t, H5Pset_fill_value, (hid_t a, hid_t b, const void *c), (a, b, c), -1)
FAILING_H5(herr_t, H5Pset_fletcher32, (hid_t a), (a), -1)
FAILING_H5(herr_t, H5Pset_layout, (hid_t a, H5D_layout_t b), (a, b), -1)
FAILING_H5(herr_t, H5Pset_libver_bounds, (hid_t a, H5F_libver_t b, H5F_libver_t c), (a, b, c), -1)
FAILING_H5(herr_t, H5Pset_link_phase_change, (hid_t a, unsigned b, unsigned c), (a, b, c), -1)
FAILING_H5(herr_t, H5Pset_metadata_read_attempts, (hid_t a, unsigned b), (a, b), -1)
FAILING_H5(herr_t, H5Pset_obj_track_times, (hid_t a, hbool_t b), (a, b), -1)
FAILING_H5(herr_t, H5Pset_sieve_buf_size, (hid_t a, size_t b), (a, b), -1)
FAILING_H5(herr_t, H5Rcreate, (void *a, hid_t b, const char *c, H5R_type_t d, hid_t e),
           (a, b, c, d, e), -1)
FAILING_H5(hid_t, H5Screate, (H5S_class_t a), (a), -1)
FAILING_H5(hid_t, H5Screate_simple, (int a, const hsize_t b[], const hsize_t c[]), (a, b, c), -1)
FAILING_H5(int, H5Sget_simple_extent_dims, (hid_t a, hsize_t b[], hsize_t c[]), (a, b, c), -1)
FAILING_H5(int, H5Sget_simple_extent_ndims, (hid_t a), (a), -1)
FAILING_H5(hssize_t, H5Sget_simple_extent_npoints, (hid_t a), (a), -1)
FAILING_H5(H5S_class_t, H5Sget_simple_extent_type, (hid_t a), (a), -1)
FAILING_H5(herr_t, H5Sselect_hyperslab,
           (hid_t a, H5S_seloper_t b, const hsize_t c[], const hsize_t d[], const hsize_t e[],
            const hsize_t f[]),
           (a, b, c, d, e, f), -1)
FAILING_H5(htri_t, H5Tcommitted, (hid_t a), (a), -1)
FAILING_H5(hid_t, H5Tcopy, (hid_t a), (a), -1)
FAILING_H5(hid_t, H5Tcreate, (H5T_class_t a, size_t b), (a, b), -1)
FAILING_H5(htri_t, H5Tequal, (hid_t a, hid_t b), (a, b), -1)
FAILING_H5(H5T_class_t, H5Tget_class, (hid_t a), (a), -1)
FAILING_H5(H5T_cset_t, H5Tget_cset, (hid_t a), (a), -1)
FAILING_H5(H5T_sign_t, H5Tget_sign, (hid_t a), (a), -1)
FAILING_H5(size_t, H5Tget_size, (hid_t a), (a), 0)
FAILING_H5(herr_t, H5Tinsert, (hid_t a, const char *b, size_t c, hid_t d), (a, b, c, d), -1)
FAILING_H5(htri_t, H5Tis_variable_str, (hid_t a), (a), -1)
FAILING_H5(herr_t, H5Tset_cset, (hid_t a, H5T_cset_t b), (a, b), -1)
FAILING_H5(herr_t, H5Tset_size, (hid_t a, size_t b), (a, b), -1)
FAILING_H5(herr_t, H5Tset_strpad, (hid_t a, H5T_str_t b), (a, b), -1)
FAILING_H5(hid_t, H5Tvlen_create, (hid_t a), (a), -1)
FAILING_H5(void *, H5allocate_memory, (size_t a, hbool_t b), (a, b), NULL)

#endif
