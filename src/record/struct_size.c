/* struct_size.c -- see struct_size.h. */
#include "struct_size.h"

#include <string.h>

sr_status struct_take(void *to, size_t size, const void *from, const char *name, sr_failure *why) {
    size_t given = 0;
    if (from) memcpy(&given, from, sizeof given);
    if (given < sizeof given)
        return sr_fail(why, SR_USAGE, "%s: %s", name, from ? "its size is not filled in" : "NULL");
    const unsigned char *bytes = from;
    for (size_t i = size; i < given; i++)
        if (bytes[i] != 0)
            return sr_fail(why, SR_USAGE,
                           "%s: of %zu bytes, byte %zu is not 0, but the library knows %zu: it is "
                           "older than the program",
                           name, given, i, size);
    memcpy(to, from, given < size ? given : size);
    memcpy(to, &size, sizeof size);
    return SR_OK;
}

sr_status struct_give(void *to, const void *ours, size_t size, const char *name, sr_failure *why) {
    size_t given;
    memcpy(&given, to, sizeof given);
    if (given < sizeof given) return sr_fail(why, SR_USAGE, "%s: its size is not filled in", name);
    memcpy(to, ours, given < size ? given : size);
    memcpy(to, &given, sizeof given);
    return SR_OK;
}
