/* memory_limit.c -- how much of a file's columns the analyses keep in memory at once.
 *
 * 25 columns of a million steps: a table of 61 sites reads its file three times and stays below 256
 * MiB. Tests link a smaller limit instead of this file. */
#include "analysis/columns/column_summary.h"

int64_t column_memory_limit(void) {
    return 192 << 20;
}
