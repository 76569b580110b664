/* npz_format.c -- .npy headers (NumPy, numpy.lib.format), written in format 1.0:
 *
 *   6 bytes "\x93NUMPY"   2 bytes version 1 0   2 bytes little-endian length of what follows
 *   "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", spaces, "\n"
 *
 * All of it a multiple of 64 bytes. Format 2.0, which differs in a length of 4 bytes, is read too.
 */
#include "base/npz/npz_format.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are written as they are");

typedef struct npy_type {
    const char *descr;
    int64_t bytes;
} npy_type;

static const npy_type types[NPZ_TYPES] = {
    [NPZ_FLOAT32] = {"<f4", 4}, [NPZ_FLOAT64] = {"<f8", 8}, [NPZ_INT32] = {"<i4", 4},
    [NPZ_INT64] = {"<i8", 8},   [NPZ_UINT8] = {"|u1", 1},   [NPZ_TEXT64] = {"|S64", 64},
};

int64_t npy_item_bytes(npz_type type) {
    return types[type].bytes;
}

/* -- writing */

/* More text at out[at]; the new end. Everything there is fits NPY_HEADER_MAX. */
__attribute__((format(printf, 3, 4))) static size_t put(char *out, size_t at, const char *format,
                                                        ...) {
    va_list args;
    va_start(args, format);
    int written = vsnprintf(out + at, NPY_HEADER_MAX - at, format, args);
    va_end(args);
    return at + (size_t)written;
}

size_t npy_write_header(char out[NPY_HEADER_MAX], const npz_array *a) {
    memcpy(out, "\x93NUMPY\x01", 8); /* its terminator is the minor version */
    size_t at = put(out, NPY_PREFIX, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                    types[a->type].descr);
    for (int i = 0; i < a->rank; i++) /* one dimension is a tuple by its comma */
        at = put(out, at, "%lld%s", (long long)a->dim[i],
                 a->rank == 1      ? ","
                 : i + 1 < a->rank ? ", "
                                   : "");
    at = put(out, at, "), }");
    size_t whole = (at + 1 + 63) / 64 * 64;
    memset(out + at, ' ', whole - at - 1);
    out[whole - 1] = '\n';
    out[8] = (char)((whole - NPY_PREFIX) & 0xff);
    out[9] = (char)((whole - NPY_PREFIX) >> 8);
    return whole;
}

/* -- reading */

/* The text after "'key':" in a header, or NULL. */
static const char *value_of(const char *header, const char *key) {
    const char *at = strstr(header, key);
    if (!at) return NULL;
    at += strlen(key);
    at += strspn(at, " ");
    if (*at++ != ':') return NULL;
    return at + strspn(at, " ");
}

static sr_status read_type(const char *header, const char *what, npz_array *a, sr_failure *why) {
    const char *at = value_of(header, "'descr'");
    if (!at || *at != '\'') return sr_fail(why, SR_FORMAT, "%s: no number type", what);
    size_t length = strcspn(++at, "'");
    for (int i = 0; i < NPZ_TYPES; i++) {
        if (strlen(types[i].descr) != length || memcmp(types[i].descr, at, length) != 0) continue;
        a->type = (npz_type)i;
        return SR_OK;
    }
    return sr_fail(why, SR_FORMAT, "%s: numbers of type '%.*s'; read are <f4, <f8, <i4, <i8, |u1",
                   what, length < 32 ? (int)length : 32, at);
}

/* One dimension of the tuple at *at; false without one. */
static bool read_dimension(const char **at, int64_t *dim) {
    if (**at < '0' || **at > '9') return false;
    char *end;
    long long value = strtoll(*at, &end, 10);
    *dim = value;
    *at = end + strspn(end, " ");
    if (**at == ',') *at += 1;
    *at += strspn(*at, " ");
    return true;
}

static sr_status read_shape(const char *header, const char *what, npz_array *a, sr_failure *why) {
    const char *at = value_of(header, "'shape'");
    if (!at || *at++ != '(') return sr_fail(why, SR_FORMAT, "%s: no shape", what);
    at += strspn(at, " ");
    int64_t capacity = INT64_MAX / types[a->type].bytes; /* for the product */
    for (a->rank = 0; *at != ')'; a->rank++) {
        if (a->rank == NPZ_RANK)
            return sr_fail(why, SR_FORMAT, "%s: more than %d dimensions", what, NPZ_RANK);
        int64_t *dim = &a->dim[a->rank];
        if (!read_dimension(&at, dim)) return sr_fail(why, SR_FORMAT, "%s: malformed shape", what);
        if (*dim > capacity) return sr_fail(why, SR_FORMAT, "%s: shape is too large", what);
        if (*dim > 0) capacity /= *dim;
    }
    return SR_OK;
}

/* Finds the start of the dictionary and its bytes. False when malformed. */
static bool find_header(const char *bytes, int64_t count, int64_t *start, int64_t *length) {
    const unsigned char *b = (const unsigned char *)bytes;
    if (count < NPY_PREFIX + 2 || memcmp(bytes, "\x93NUMPY", 6) != 0) return false;
    if (b[6] != 1 && b[6] != 2) return false;
    *start = b[6] == 1 ? NPY_PREFIX : NPY_PREFIX + 2;
    *length = b[8] | b[9] << 8;
    if (b[6] == 2) *length |= (int64_t)b[10] << 16 | (int64_t)b[11] << 24;
    return *length <= count - *start;
}

sr_status npy_read_header(const char *bytes, int64_t count, const char *what, npz_array *a,
                          int64_t *data, sr_failure *why) {
    int64_t start, length;
    if (!find_header(bytes, count, &start, &length))
        return sr_fail(why, SR_FORMAT, "%s: no .npy header of version 1 or 2", what);
    char *text = strndup(bytes + start, (size_t)length);
    if (!text) return sr_fail(why, SR_MEMORY, "%s: out of memory for its header", what);
    *data = start + length;
    const char *order = value_of(text, "'fortran_order'");
    sr_status status = read_type(text, what, a, why);
    if (status == SR_OK) status = read_shape(text, what, a, why);
    if (status == SR_OK && (!order || (strncmp(order, "False", 5) != 0 && a->rank > 1)))
        status = sr_fail(why, SR_FORMAT, "%s: column-major (Fortran) order is not read", what);
    free(text);
    return status;
}
