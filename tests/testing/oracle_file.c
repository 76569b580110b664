#include "testing/oracle_file.h"

#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing/check.h"

struct oracle_file {
    hid_t id;
    int cases;
};

static int read_int_attribute(hid_t at, const char *name) {
    int value = 0;
    hid_t a = H5Aopen(at, name, H5P_DEFAULT);
    if (a < 0) return 0;
    H5Aread(a, H5T_NATIVE_INT, &value);
    H5Aclose(a);
    return value;
}

oracle_file *oracle_open(const char *path) {
    oracle_file *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    f->id = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (f->id < 0) {
        free(f);
        return NULL;
    }
    f->cases = read_int_attribute(f->id, "cases");
    return f;
}

void oracle_close(oracle_file *f) {
    if (!f) return;
    H5Fclose(f->id);
    free(f);
}

int oracle_cases(const oracle_file *f) {
    return f->cases;
}

static hid_t open_dataset(const oracle_file *f, int k, const char *name) {
    char path[256];
    snprintf(path, sizeof path, "/case%d/%s", k, name);
    char *slash = strrchr(path, '/');
    *slash = 0;
    bool there = H5Lexists(f->id, path, H5P_DEFAULT) > 0;
    *slash = '/';
    if (!there || H5Lexists(f->id, path, H5P_DEFAULT) <= 0) return -1;
    return H5Dopen2(f->id, path, H5P_DEFAULT);
}

static int64_t dataset_count(hid_t set, int64_t dim[4]) {
    hid_t space = H5Dget_space(set);
    hsize_t size[32] = {0};
    int rank = H5Sget_simple_extent_dims(space, size, NULL);
    H5Sclose(space);
    int64_t count = 1;
    for (int i = 0; i < 4; i++) dim[i] = i < rank ? (int64_t)size[i] : 1;
    for (int i = 0; i < rank; i++) count *= (int64_t)size[i];
    return count;
}

double *oracle_read(const oracle_file *f, int k, const char *name, int64_t dim[4], int64_t *count) {
    int64_t own[4];
    hid_t set = open_dataset(f, k, name);
    if (set < 0) return NULL;
    int64_t n = dataset_count(set, dim ? dim : own);
    double *value = malloc((size_t)(n > 0 ? n : 1) * sizeof *value);
    if (value) H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, value);
    if (count) *count = n;
    H5Dclose(set);
    return value;
}

static hid_t open_case_attribute(const oracle_file *f, int k, const char *name) {
    char path[64];
    snprintf(path, sizeof path, "/case%d", k);
    if (H5Aexists_by_name(f->id, path, name, H5P_DEFAULT) <= 0) return -1;
    return H5Aopen_by_name(f->id, path, name, H5P_DEFAULT, H5P_DEFAULT);
}

double oracle_number(const oracle_file *f, int k, const char *name, double otherwise) {
    hid_t a = open_case_attribute(f, k, name);
    if (a < 0) return otherwise;
    double value = otherwise;
    H5Aread(a, H5T_NATIVE_DOUBLE, &value);
    H5Aclose(a);
    return value;
}

const char *oracle_text(const oracle_file *f, int k, const char *name) {
    static char text[256];
    memset(text, 0, sizeof text);
    hid_t a = open_case_attribute(f, k, name);
    if (a < 0) return text;
    hid_t type = H5Aget_type(a);
    if (H5Tget_size(type) < sizeof text) H5Aread(a, type, text);
    H5Tclose(type);
    H5Aclose(a);
    return text;
}

/* First number of an attribute that may be an array. */
static double tolerance(hid_t set, const char *name) {
    double value[4096] = {0};
    hid_t a = H5Aopen(set, name, H5P_DEFAULT);
    if (a < 0) return 0;
    H5Aread(a, H5T_NATIVE_DOUBLE, value);
    H5Aclose(a);
    return value[0];
}

bool oracle_check(const oracle_file *f, int k, const char *name, const double *got, int64_t count,
                  const uint8_t *mask, int64_t width) {
    char path[128], label[192];
    snprintf(path, sizeof path, "out/%s", name);
    snprintf(label, sizeof label, "case%d/%s", k, path);
    int64_t n;
    double *want = oracle_read(f, k, path, NULL, &n);
    if (!want || n != count) {
        fprintf(stderr, "%s: absent, or %lld numbers instead of %lld\n", label,
                (long long)(want ? n : 0), (long long)count);
        free(want);
        return false;
    }
    hid_t set = open_dataset(f, k, path);
    double rtol = tolerance(set, "rtol"), atol = tolerance(set, "atol");
    H5Dclose(set);
    if (mask)
        for (int64_t i = 0; i < n; i++)
            if (!mask[i / width]) want[i] = got[i];
    bool same = check_close(label, got, want, n, rtol, atol);
    free(want);
    return same;
}
