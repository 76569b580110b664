#include "statnet/globs.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

bool globs_match(const char *globs, const char *name) {
    char glob[1024]; /* a longer one fits no name of a run file */
    for (const char *at = globs; *at; at += *at == ',') {
        const size_t length = strcspn(at, ",");
        snprintf(glob, sizeof glob, "%.*s", (int)length, at);
        if (length > 0 && length < sizeof glob && fnmatch(glob, name, 0) == 0) return true;
        at += length;
    }
    return false;
}
