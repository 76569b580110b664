/* abi_struct.c -- copies structs of callers that were built with another version. */
#include "runfile/abi_struct.h"

#include <string.h>

/* Larger than any version of a struct: an uninitialized size. */
enum { SIZE_MOST = 1 << 16 };

static sr_status check_size(const void *from, const char *name, size_t *size, sr_failure *why) {
    *size = 0;
    if (!from) return sr_fail(why, SR_USAGE, "%s: NULL", name);
    memcpy(size, from, sizeof *size);
    if (*size >= sizeof *size && *size <= SIZE_MOST) return SR_OK;
    return sr_fail(why, SR_USAGE, "%s: its size is not filled in: %zu", name, *size);
}

sr_status abi_struct_take(void *to, size_t size, const void *from, const char *name,
                          sr_failure *why) {
    size_t given;
    sr_status status = check_size(from, name, &given, why);
    if (status != SR_OK) return status;
    const unsigned char *bytes = from;
    for (size_t i = size; i < given; i++)
        if (bytes[i] != 0)
            return sr_fail(why, SR_USAGE, "%s: byte %zu of %zu is set; the older library has %zu",
                           name, i, given, size);
    memcpy(to, from, given < size ? given : size);
    memcpy(to, &size, sizeof size);
    return SR_OK;
}

sr_status abi_struct_give(void *to, const void *ours, size_t size, const char *name,
                          sr_failure *why) {
    size_t given;
    sr_status status = check_size(to, name, &given, why);
    if (status != SR_OK) return status;
    memcpy(to, ours, given < size ? given : size);
    memcpy(to, &given, sizeof given);
    return SR_OK;
}
