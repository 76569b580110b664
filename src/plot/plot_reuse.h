/* plot_reuse.h -- drawings of an earlier report that gnuplot would draw again. */
#ifndef PLOT_PLOT_REUSE_H
#define PLOT_PLOT_REUSE_H

#include <stdbool.h>
#include <stdint.h>

#include "statrec/base.h"

typedef struct plot_key {
    uint64_t inputs, bytes; /* hash and number of the bytes that gnuplot reads */
} plot_key;

/* The key of the script and data files in a directory. */
sr_status plot_key_make(plot_key *k, const char *directory, sr_failure *why);
/* Whether the drawing was made from these inputs, and not changed since. */
bool plot_key_fits(const plot_key *k, const char *drawing);
/* Appends the key to an SVG, as a comment. */
sr_status plot_key_append(const plot_key *k, const char *drawing, sr_failure *why);

#endif
