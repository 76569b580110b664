/* options_renamed.c -- keys that options had in earlier versions. Command lines, .conf files and
 * stored configurations may contain them for ever. */
#include <string.h>

#include "base/options/options.h"

static const struct {
    const char *was, *is;
} renamed[] = {
    {"rmsnorm-placement", "norm-placement"},
    {"shares", "shards"},
    {"record-ranks", "record-shards"},
    {"rank-seconds", "rank-timeout"},
    {"layer-norms-every", "parameter-norms-every"},
    {"eos-of-empty-lines", "eos-on-empty-lines"},
    {"startup", "burn-in"},
    {"kept-in", "running-dtype"},
    {"each", "max-runs"},
};

const char *options_renamed(const char *key, size_t length) {
    for (size_t i = 0; i < sizeof renamed / sizeof renamed[0]; i++)
        if (strlen(renamed[i].was) == length && memcmp(renamed[i].was, key, length) == 0)
            return renamed[i].is;
    return NULL;
}
