/* globs.h -- names against lists of shell patterns, as in `--site 'encoder.*,stem'`. */
#ifndef STATNET_GLOBS_H
#define STATNET_GLOBS_H

#include <stdbool.h>

/* True when the name fits one of the globs (fnmatch: * ? [...]), which commas separate. Empty ones
 * fit nothing. */
bool globs_match(const char *globs, const char *name);

#endif
