/* How much of a file's columns the analyses keep in memory. In a file of its own, so that a test can
 * link another room and take long columns' way with short ones. */
#include "analysis/columns/column_summary.h"

int64_t column_memory_limit(void) {
    return 64 << 20;
}
