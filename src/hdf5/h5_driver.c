/* h5_driver.c -- the parts that the two file drivers share: space, end and handle of a file. */
#include <errno.h>
#include <string.h>

#include "hdf5/h5_private.h"

herr_t h5_driver_fail(bool write, const char *action) {
    const int failed = errno;
    /* the words of HDF5's own driver, which h5_errors.c parses */
    H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_VFL,
             write ? H5E_WRITEERROR : H5E_READERROR,
             "file %s failed: errno = %d, error message = '%s'", action, failed, strerror(failed));
    return -1;
}

haddr_t h5_driver_get_eoa(const H5FD_t *file, H5FD_mem_t type) {
    (void)type;
    return ((const h5_file *)file)->end_of_space;
}

herr_t h5_driver_set_eoa(H5FD_t *file, H5FD_mem_t type, haddr_t end) {
    (void)type;
    ((h5_file *)file)->end_of_space = end;
    return 0;
}

haddr_t h5_driver_get_eof(const H5FD_t *file, H5FD_mem_t type) {
    (void)type;
    return ((const h5_file *)file)->end_of_file;
}

herr_t h5_driver_handle(H5FD_t *file, hid_t access, void **handle) {
    (void)access;
    *handle = ((h5_file *)file)->descriptor;
    return 0;
}
