/* vectors_read.c -- reads vector files with HDF5. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vectors.h"

static void *keep(vector_case *c, void *p) {
    if (!p || c->pooled == VECTORS_POOL) {
        free(p);
        c->broken = true;
        return NULL;
    }
    return c->pool[c->pooled++] = p;
}

double *vector_zeros(vector_case *c, int64_t count) {
    return keep(c, calloc((size_t)count + 1, sizeof(double)));
}

bool vector_has(const vector_case *c, const char *path) {
    return H5Lexists(c->group, path, H5P_DEFAULT) > 0;
}

double *vector_read(vector_case *c, const char *path, int64_t *count) {
    hid_t set = vector_has(c, path) ? H5Dopen2(c->group, path, H5P_DEFAULT) : -1;
    if (set < 0) {
        fprintf(stderr, "%s: no dataset %s\n", c->where, path);
        c->broken = true;
        return NULL;
    }
    hid_t space = H5Dget_space(set);
    hssize_t n = H5Sget_simple_extent_npoints(space);
    double *x = n > 0 ? vector_zeros(c, n) : NULL;
    if (!x || H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, x) < 0) {
        c->broken = true;
        x = NULL;
    }
    if (count) *count = n;
    H5Sclose(space);
    H5Dclose(set);
    return x;
}

static bool read_number(hid_t object, const char *name, double *value) {
    if (H5Aexists(object, name) <= 0) return false;
    hid_t a = H5Aopen(object, name, H5P_DEFAULT);
    bool ok = a >= 0 && H5Aread(a, H5T_NATIVE_DOUBLE, value) >= 0;
    if (a >= 0) H5Aclose(a);
    return ok;
}

static bool read_text(hid_t object, const char *name, char *buf, size_t size) {
    memset(buf, 0, size);
    if (H5Aexists(object, name) <= 0) return false;
    hid_t a = H5Aopen(object, name, H5P_DEFAULT), type = H5Aget_type(a);
    bool ok = H5Tget_class(type) == H5T_STRING && !H5Tis_variable_str(type) &&
              H5Tget_size(type) < size && H5Aread(a, type, buf) >= 0;
    H5Tclose(type);
    H5Aclose(a);
    return ok;
}

double vector_number(const vector_case *c, const char *attribute, double absent) {
    double value;
    return read_number(c->group, attribute, &value) ? value : absent;
}

const char *vector_text(const vector_case *c, const char *attribute, char *buf, size_t size) {
    read_text(c->group, attribute, buf, size);
    return buf;
}

bool vector_case_open(vector_case *c, hid_t file, const char *file_name, const char *name) {
    char text[64];
    *c = (vector_case){.file = file, .group = H5Gopen2(file, name, H5P_DEFAULT)};
    if (c->group < 0) return false;
    snprintf(c->where, sizeof c->where, "%.60s %.30s", file_name, name);
    read_text(file, "norm", c->norm, sizeof c->norm);
    c->S = (int64_t)vector_number(c, "S", 1);
    c->B = (int64_t)vector_number(c, "B", 0);
    c->d = (int64_t)vector_number(c, "d", 0);
    c->padded = !strcmp(vector_text(c, "masked_rows", text, sizeof text), "as_computed");
    if (vector_has(c, "in/mask")) c->mask = vector_read(c, "in/mask", NULL);
    return true;
}

void vector_case_close(vector_case *c) {
    for (int i = 0; i < c->pooled; i++) free(c->pool[i]);
    if (c->group >= 0) H5Gclose(c->group);
}

bool vector_output(const vector_case *c, int64_t i, char *name, size_t size) {
    hid_t out = H5Gopen2(c->group, "out", H5P_DEFAULT);
    H5G_info_t info = {0};
    bool there = out >= 0 && H5Gget_info(out, &info) >= 0 && (hsize_t)i < info.nlinks &&
                 H5Lget_name_by_idx(out, ".", H5_INDEX_NAME, H5_ITER_INC, (hsize_t)i, name, size,
                                    H5P_DEFAULT) >= 0;
    if (out >= 0) H5Gclose(out);
    return there;
}

/* rtol and atol of one step. */
static bool read_tolerance(const vector_case *c, const char *path, int64_t step, double *rtol,
                           double *atol) {
    hid_t set = H5Dopen2(c->group, path, H5P_DEFAULT);
    if (set < 0) return false;
    bool ok = read_number(set, "rtol", rtol) && H5Aexists(set, "atol") > 0;
    if (ok) {
        hid_t a = H5Aopen(set, "atol", H5P_DEFAULT), space = H5Aget_space(a);
        hssize_t n = H5Sget_simple_extent_npoints(space);
        double *all = calloc((size_t)n + 1, sizeof *all);
        ok = all && H5Aread(a, H5T_NATIVE_DOUBLE, all) >= 0;
        if (ok) *atol = all[n > 1 ? step : 0];
        free(all);
        H5Sclose(space);
        H5Aclose(a);
    }
    H5Dclose(set);
    return ok;
}

static double excess(double got, double want, double rtol, double atol) {
    if (isnan(want) || isnan(got)) return isnan(want) && isnan(got) ? 0 : INFINITY;
    if (isinf(want) || isinf(got)) return want == got ? 0 : INFINITY;
    double allowed = atol + rtol * fabs(want), error = fabs(got - want);
    return allowed > 0 ? error / allowed : error > 0 ? INFINITY : 0;
}

/* Returns out/NAME and its tolerances at this step; NULL when one is missing. */
static const double *expected(vector_case *c, const char *name, int64_t step, int64_t *count,
                              double *rtol, double *atol) {
    char path[128];
    snprintf(path, sizeof path, "out/%s", name);
    const double *want = vector_read(c, path, count);
    if (want && read_tolerance(c, path, step, rtol, atol)) return want;
    c->broken = true;
    return NULL;
}

static void judge(vector_case *c, const char *name, int64_t step, int64_t at, double got,
                  double worst) {
    c->compared++;
    free(c->pool[--c->pooled]); /* the last array read */
    if (worst <= 1) return;
    c->wrong++;
    fprintf(stderr, "%s: %s step %lld [%lld]: got %.17g, %.3g times the tolerance\n", c->where,
            name, (long long)step, (long long)at, got, worst);
}

/* Padded rows do not count in arrays with one or d numbers per row. */
static bool leaves_padding_out(const vector_case *c, const char *name, int64_t width) {
    bool per_row = width == c->B * c->d || width == c->B;
    if (width == c->d)
        per_row = !strcmp(name, "y_eval") || !strncmp(name, "rec_row_", 8) ||
                  (c->B == 1 && (!strcmp(name, "y") || !strcmp(name, "dx")));
    return per_row && c->mask && !c->padded;
}

void vector_compare(vector_case *c, const char *name, int64_t step, const double *got,
                    int64_t width) {
    int64_t count = 0, worst = 0;
    double rtol, atol, most = -1;
    const double *want = expected(c, name, step, &count, &rtol, &atol);
    if (!want) return;
    bool whole = count == width; /* one array for the case: the last step's */
    bool skip_padding = leaves_padding_out(c, name, width);
    const double *mask = c->mask ? c->mask + (whole ? c->S - 1 : step) * c->B : NULL;
    if (!whole) want += step * width;
    for (int64_t i = 0; i < width; i++) {
        if (skip_padding && mask[i / (width / c->B)] == 0) continue;
        double e = excess(got[i], want[i], rtol, atol);
        if (e > most) most = e, worst = i;
    }
    judge(c, name, step, worst, got[worst], most);
}

void vector_compare_mean(vector_case *c, const char *name, int64_t step, double got) {
    int64_t count = 0;
    double rtol, atol, sum = 0, size = 0, n = 0;
    const double *want = expected(c, name, step, &count, &rtol, &atol);
    if (!want) return;
    for (int64_t i = 0; i < c->B; i++) {
        if (c->mask && c->mask[step * c->B + i] == 0) continue;
        sum += want[step * c->B + i];
        size += fabs(want[step * c->B + i]);
        n++;
    }
    judge(c, name, step, 0, got, excess(got, sum / n, 0, atol + rtol * size / n));
}
