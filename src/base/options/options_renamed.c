/* options_renamed.c -- keys that options had in earlier versions. Command lines, .conf files and the
 * options stored in run files and checkpoints may have them for good. */
#include <string.h>

#include "base/options/options.h"

static const struct {
    const char *was, *is;
} renamed[] = {
    {"rmsnorm-placement", "norm-placement"},
};

const char *options_renamed(const char *key, size_t length) {
    for (size_t i = 0; i < sizeof renamed / sizeof renamed[0]; i++)
        if (strlen(renamed[i].was) == length && memcmp(renamed[i].was, key, length) == 0)
            return renamed[i].is;
    return NULL;
}
