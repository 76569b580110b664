/* vectors_case.c -- see model_vectors.h. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_vectors.h"

struct kept {
    kept *next;
    max_align_t memory[];
};

/* -- the case */

__attribute__((format(printf, 2, 0))) static void tell(const model_case *c, const char *format,
                                                       va_list args) {
    char text[512];
    vsnprintf(text, sizeof text, format, args);
    fprintf(stderr, "%s: %s\n", c->where, text);
}

void case_fail(model_case *c, const char *format, ...) {
    va_list args;
    va_start(args, format);
    tell(c, format, args);
    va_end(args);
    c->broken = true;
}

void case_skip(model_case *c, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(c->skipped, sizeof c->skipped, format, args);
    va_end(args);
}

bool case_fine(const model_case *c) {
    return !c->broken && !c->skipped[0];
}

/* malloc'd memory after a link of the list. */
static void *keep(model_case *c, kept **list, size_t bytes) {
    kept *k = calloc(1, sizeof *k + bytes);
    if (!k) {
        case_fail(c, "out of memory");
        return NULL;
    }
    k->next = *list;
    *list = k;
    return k->memory;
}

void *case_alloc(model_case *c, int64_t count, size_t size) {
    return keep(c, &c->kept, ((size_t)count + 1) * size);
}

static void forget(kept *list) {
    while (list) {
        kept *next = list->next;
        free(list);
        list = next;
    }
}

bool vectors_read_text(hid_t at, const char *name, char *text, size_t size) {
    char *own = NULL; /* for a text of variable length */
    memset(text, 0, size);
    hid_t a = H5Aexists(at, name) > 0 ? H5Aopen(at, name, H5P_DEFAULT) : -1;
    if (a < 0) return false;
    hid_t type = H5Aget_type(a);
    bool ok = H5Tget_class(type) == H5T_STRING;
    if (ok && H5Tis_variable_str(type) > 0) {
        ok = H5Aread(a, type, &own) >= 0 && own && snprintf(text, size, "%s", own) < (int)size;
        H5free_memory(own);
    } else if (ok) {
        ok = H5Tget_size(type) < size && H5Aread(a, type, text) >= 0;
    }
    H5Tclose(type);
    H5Aclose(a);
    return ok;
}

bool case_open(model_case *c, hid_t file, const char *file_name, int number) {
    char name[32], label[128];
    *c = (model_case){.number = number};
    snprintf(name, sizeof name, "case%d", number);
    snprintf(c->where, sizeof c->where, "%.80s: %s", file_name, name);
    const bool there = H5Lexists(file, name, H5P_DEFAULT) > 0;
    c->group = there ? H5Gopen2(file, name, H5P_DEFAULT) : -1;
    if (c->group < 0) {
        case_fail(c, "the group is missing");
        return false;
    }
    if (vectors_read_text(c->group, "label", label, sizeof label))
        snprintf(c->where, sizeof c->where, "%.80s: %s (%s)", file_name, name, label);
    return true;
}

static bool was_compared(const model_case *c, const char *name) {
    for (const kept *k = c->outputs; k; k = k->next)
        if (!strcmp((const char *)k->memory, name)) return true;
    return false;
}

/* The i-th name of a group of the case; false past the end. */
static bool name_in(const model_case *c, const char *group, int i, char *name, size_t size) {
    return H5Lexists(c->group, group, H5P_DEFAULT) > 0 &&
           H5Lget_name_by_idx(c->group, group, H5_INDEX_NAME, H5_ITER_INC, (hsize_t)i, name, size,
                              H5P_DEFAULT) > 0;
}

bool case_input(const model_case *c, int i, char *name, size_t size) {
    return name_in(c, "in", i, name, size);
}

/* Without this check, a result without a checker would pass unnoticed. */
static void check_all_compared(model_case *c) {
    char name[128];
    int i = 0;
    for (; name_in(c, "out", i, name, sizeof name); i++)
        if (!was_compared(c, name)) case_fail(c, "out/%s: nothing here gives this result", name);
    if (i == 0) case_fail(c, "no results in out");
}

void case_close(model_case *c) {
    if (c->group >= 0 && case_fine(c)) check_all_compared(c);
    forget(c->kept);
    forget(c->outputs);
    if (c->group >= 0) H5Gclose(c->group);
}

/* -- attributes */

static bool read_number(hid_t at, const char *name, double *value) {
    if (H5Aexists(at, name) <= 0) return false;
    hid_t a = H5Aopen(at, name, H5P_DEFAULT), space = H5Aget_space(a);
    bool ok = H5Sget_simple_extent_npoints(space) == 1 && H5Aread(a, H5T_NATIVE_DOUBLE, value) >= 0;
    H5Sclose(space);
    H5Aclose(a);
    return ok;
}

double case_number_or(model_case *c, const char *name, double otherwise) {
    double value;
    return read_number(c->group, name, &value) ? value : otherwise;
}

double case_number(model_case *c, const char *name) {
    double value = case_number_or(c, name, NAN);
    if (isnan(value)) case_fail(c, "no attribute %s", name);
    return value;
}

int64_t case_whole(model_case *c, const char *name, int64_t least, int64_t most) {
    const double value = case_number(c, name);
    if (value >= (double)least && value <= (double)most && value == floor(value))
        return (int64_t)value;
    if (!isnan(value))
        case_fail(c, "%s %g is no whole number from %lld to %lld", name, value, (long long)least,
                  (long long)most);
    return least;
}

const char *case_text(model_case *c, const char *name) {
    enum { SIZE = 128 };
    char *text = case_alloc(c, SIZE, 1);
    if (text && vectors_read_text(c->group, name, text, SIZE)) return text;
    case_fail(c, "no attribute %s", name);
    return "";
}

/* -- datasets */

enum { LARGEST = 1 << 28 }; /* numbers of a dataset; a damaged file may declare more */

bool case_has(const model_case *c, const char *path) {
    char folder[16];
    const char *slash = strchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) : 0, path);
    if (slash && H5Lexists(c->group, folder, H5P_DEFAULT) <= 0) return false;
    return H5Lexists(c->group, path, H5P_DEFAULT) > 0;
}

/* The dataset's sizes, up to four; the number of its elements, -1 when they are not for us. */
static int64_t read_shape(model_case *c, const char *path, hid_t set, int rank, int64_t dim[4]) {
    hsize_t size[H5S_MAX_RANK] = {0};
    hid_t space = H5Dget_space(set);
    int own = H5Sget_simple_extent_dims(space, size, NULL);
    int64_t count = 1;
    H5Sclose(space);
    if (own > 4 || (rank && own != rank)) {
        case_fail(c, "%s: rank %d, not %d", path, own, rank ? rank : 4);
        return -1;
    }
    for (int i = 0; i < own; i++)
        if (size[i] > LARGEST || (hsize_t)count * size[i] > LARGEST) {
            case_fail(c, "%s says that it has more than %d numbers", path, LARGEST);
            return -1;
        } else {
            count *= (int64_t)size[i];
        }
    for (int i = 0; i < 4; i++) dim[i] = i < own ? (int64_t)size[i] : 1;
    return count;
}

/* Opens a dataset; -1, reported, on failure. */
static hid_t open_set(model_case *c, const char *path) {
    hid_t set = case_has(c, path) ? H5Dopen2(c->group, path, H5P_DEFAULT) : -1;
    if (set < 0) case_fail(c, "no dataset %s", path);
    return set;
}

static double *read_set(model_case *c, const char *path, hid_t set, int rank, int64_t dim[4]) {
    int64_t count = read_shape(c, path, set, rank, dim);
    if (count == 0) case_fail(c, "%s is empty", path);
    double *value = count > 0 ? case_alloc(c, count, sizeof *value) : NULL;
    if (!value) return NULL;
    if (H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, value) >= 0) return value;
    case_fail(c, "%s: cannot be read", path);
    return NULL;
}

double *case_read(model_case *c, const char *path, int rank, int64_t *dim) {
    int64_t own[4];
    hid_t set = open_set(c, path);
    if (set < 0) return NULL;
    double *value = read_set(c, path, set, rank, dim ? dim : own);
    H5Dclose(set);
    return value;
}

int32_t *case_ints(model_case *c, const char *path, int rank, int64_t *dim) {
    int64_t own[4];
    if (!dim) dim = own;
    double *value = case_read(c, path, rank, dim);
    int64_t count = value ? dim[0] * dim[1] * dim[2] * dim[3] : 0;
    int32_t *whole = value ? case_alloc(c, count, sizeof *whole) : NULL;
    for (int64_t i = 0; whole && i < count; i++) whole[i] = (int32_t)value[i];
    return whole;
}

uint8_t *case_mask(model_case *c, const char *path, int64_t rows) {
    int64_t dim[4];
    double *value = case_read(c, path, 0, dim);
    uint8_t *mask = value ? case_alloc(c, rows, 1) : NULL;
    if (!mask) return NULL;
    if (dim[0] * dim[1] * dim[2] * dim[3] != rows) {
        case_fail(c, "%s: [%lld, %lld] does not fit the input", path, (long long)dim[0],
                  (long long)dim[1]);
        return NULL;
    }
    for (int64_t i = 0; i < rows; i++) mask[i] = value[i] != 0;
    return mask;
}

char *case_bytes(model_case *c, const char *path, int64_t *size) {
    int64_t dim[4];
    hid_t set = open_set(c, path);
    if (set < 0) return NULL;
    *size = read_shape(c, path, set, 1, dim);
    char *byte = *size >= 0 ? case_alloc(c, *size, 1) : NULL;
    if (byte && *size > 0 &&
        H5Dread(set, H5T_NATIVE_UCHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT, byte) < 0) {
        case_fail(c, "%s: cannot be read", path);
        byte = NULL;
    }
    H5Dclose(set);
    return byte;
}

void case_fill(model_case *c, const char *path, tensor *x) {
    int64_t dim[4];
    if (!x || !case_fine(c)) return;
    double *value = case_read(c, path, 0, dim);
    if (!value) return;
    for (int i = 0; i < 4; i++)
        if (dim[i] != (i < x->rank ? x->dim[i] : 1)) {
            case_fail(c, "%s: size %lld along axis %d, not %lld", path, (long long)dim[i], i,
                      (long long)(i < x->rank ? x->dim[i] : 1));
            return;
        }
    for (int64_t i = 0; i < x->count; i++) x->value[i] = (real)value[i];
}

/* -- tapes */

tape *case_tape(model_case *c) {
    sr_failure why = {0};
    tape *t = tape_create(1 + c->number % 3, &why);
    if (!t) case_fail(c, "%s", why.text);
    if (t) tape_reset(t, rng_create(1), true, true);
    return t;
}

bool case_tape_fine(model_case *c, const tape *t) {
    if (t && tape_failure(t)) case_fail(c, "%s", tape_failure(t)->text);
    return t && !tape_failure(t) && case_fine(c);
}

tensor *case_tensor(model_case *c, tape *t, const char *path, int rank) {
    int64_t dim[4];
    double *value = t ? case_read(c, path, rank, dim) : NULL;
    tensor *x = value ? tape_tensor(t, rank, dim) : NULL;
    if (!x) return NULL;
    for (int64_t i = 0; i < x->count; i++) x->value[i] = (real)value[i];
    x->wants_grad = true;
    return x;
}

void case_backward(model_case *c, tape *t, tensor *y, const uint8_t *mask) {
    int64_t dim[4], one = 1;
    bool add;
    double *dy = case_tape_fine(c, t) ? case_read(c, "in/dy", 0, dim) : NULL;
    if (!dy) return;
    if (dim[0] * dim[1] * dim[2] * dim[3] != y->count) {
        case_fail(c, "in/dy: not the size of the output, %lld numbers", (long long)y->count);
        return;
    }
    tensor *loss = tape_tensor(t, 1, &one);
    real *g = loss ? tape_grad(t, y, &add) : NULL;
    for (int64_t i = 0; g && i < y->count; i++)
        g[i] = mask && !mask[i / tensor_features(y)] ? 0 : (real)dy[i];
    if (g) loss->wants_grad = true;
    if (g) tape_backward(t, loss, 1);
    case_tape_fine(c, t);
}

/* -- comparing */

typedef struct tolerance {
    double rtol, atol;
} tolerance;

static tolerance read_tolerance(model_case *c, const char *path, hid_t set) {
    tolerance t = {0, 0};
    hid_t type = H5Dget_type(set);
    const bool whole = H5Tget_class(type) == H5T_INTEGER;
    H5Tclose(type);
    const bool both = read_number(set, "rtol", &t.rtol) && read_number(set, "atol", &t.atol);
    if (!both && !whole) case_fail(c, "%s: no attributes rtol and atol", path);
    return t;
}

/* Error divided by the tolerance: above 1 is too much. */
static double excess(double got, double want, tolerance t) {
    if (isnan(got) || isnan(want)) return isnan(got) && isnan(want) ? 0 : INFINITY;
    if (isinf(got) || isinf(want)) return got == want ? 0 : INFINITY;
    const double allowed = t.atol + t.rtol * fabs(want), error = fabs(got - want);
    return error <= allowed ? 0 : allowed > 0 ? error / allowed : INFINITY;
}

static void judge(model_case *c, const char *name, const double *got, const double *want,
                  int64_t count, tolerance t, const uint8_t *mask, int64_t width) {
    int64_t bad = 0, worst = -1;
    double most = 0;
    for (int64_t i = 0; i < count; i++) {
        const double e = mask && !mask[i / width] ? 0 : excess(got[i], want[i], t);
        bad += e > 0;
        if (e > most) most = e, worst = i;
    }
    c->compared++;
    if (!bad) return;
    c->wrong++;
    case_fail(c, "%s [%lld]: got %.9g, want %.9g, tolerance %.3g (%lld of %lld numbers differ)",
              name, (long long)worst, got[worst], want[worst], t.atol + t.rtol * fabs(want[worst]),
              (long long)bad, (long long)count);
}

/* The result's path; false when there is nothing to compare with. */
static bool begin_comparing(model_case *c, const char *name, char *path, size_t size) {
    if (c->skipped[0]) return false;
    snprintf(path, size, "out/%s", name);
    char *done = keep(c, &c->outputs, strlen(name) + 1);
    if (done) memcpy(done, name, strlen(name) + 1);
    return done;
}

void case_compare(model_case *c, const char *name, const double *got, int64_t count,
                  const uint8_t *mask, int64_t width) {
    char path[160];
    int64_t dim[4];
    hid_t set = begin_comparing(c, name, path, sizeof path) ? open_set(c, path) : -1;
    if (set < 0) return;
    const double *want = read_set(c, path, set, 0, dim);
    const tolerance t = read_tolerance(c, path, set);
    H5Dclose(set);
    if (!want || !got) return;
    const int64_t there = dim[0] * dim[1] * dim[2] * dim[3];
    if (there == count)
        judge(c, name, got, want, count, t, mask, width);
    else
        case_fail(c, "%s: %lld numbers, not %lld", path, (long long)there, (long long)count);
}

void case_compare_reals(model_case *c, const char *name, const real *got, int64_t count,
                        const uint8_t *mask, int64_t width) {
    double *wide = got ? case_alloc(c, count, sizeof *wide) : NULL;
    for (int64_t i = 0; wide && i < count; i++) wide[i] = (double)got[i];
    if (wide)
        case_compare(c, name, wide, count, mask, width);
    else
        case_fail(c, "%s: nothing was computed", name);
}

/* The line of byte `at`, as far as it is printed: returns its start, and its length in *size. */
static const char *line_at(const char *text, int64_t count, int64_t at, int *size) {
    enum { TOLD = 100 };
    int64_t begin = at, end = at;
    while (begin > 0 && text[begin - 1] != '\n' && at - begin < TOLD) begin--;
    while (end < count && text[end] != '\n' && end - begin < 2 * TOLD) end++;
    *size = (int)(end - begin);
    return text + begin;
}

void case_compare_text(model_case *c, const char *name, const char *got, int64_t size) {
    char path[160];
    int64_t count, at = 0;
    const char *want =
        begin_comparing(c, name, path, sizeof path) ? case_bytes(c, path, &count) : NULL;
    if (!want) return;
    c->compared++;
    while (at < size && at < count && got[at] == want[at]) at++;
    if (at == size && at == count) return;
    int got_size, want_size;
    const char *got_line = line_at(got, size, at, &got_size);
    const char *want_line = line_at(want, count, at, &want_size);
    c->wrong++;
    case_fail(c, "%s, byte %lld: got '%.*s', want '%.*s' (%lld bytes, %lld)", name, (long long)at,
              got_size, got_line, want_size, want_line, (long long)size, (long long)count);
}
