/* h5_attributes.c -- the index of an object's many attributes, before HDF5 looks: 1.10 follows an entry that says
 * "shared among objects" into a heap that a file without such a heap does not have, and crashes. No file
 * of ours has one.
 *
 * HDF5 File Format Specification 3.0, III.A.2: "BTLF" or "BTIN", version 0, type 8 (by name) or 9 (by order), the
 * entries: an id [8], flags [1], an order [4], by name a hash [4]; in an inner node behind n entries
 * n + 1 pointers of 9 bytes, where there are two levels; the sum [4]. How many entries there are stands elsewhere: their end is
 * where the sum is right. A sum that is right nowhere is left to HDF5, which refuses the node or reads it again.
 */
#include "h5_attributes.h"

#include <string.h>

#include "end_matter.h"
#include "h5_sum.h"

enum { HEAD = 6, SUM = 4, POINTER = 9, FLAGS = 8, SHARED = 2, BY_NAME = 8, BY_ORDER = 9 };

/* Entries of a node of `step` bytes for each and `more` for all; -1: the sum is right nowhere. */
static int64_t count_entries(const unsigned char *node, size_t size, size_t step, size_t more) {
    for (size_t end = HEAD + more, n = 0; end + SUM <= size; end += step, n++)
        if (h5_sum(node, end) == end_matter_number(node + end, SUM)) return (int64_t)n;
    return -1;
}

bool h5_attributes_are_own(const void *bytes, size_t size) {
    const unsigned char *node = bytes;
    if (size < HEAD + SUM || (node[5] != BY_NAME && node[5] != BY_ORDER)) return true;
    const bool leaf = !memcmp(node, "BTLF", 4), inner = !memcmp(node, "BTIN", 4);
    const size_t entry = node[5] == BY_NAME ? 17 : 13;
    if (!leaf && !inner) return true;
    const int64_t count =
        count_entries(node, size, entry + (inner ? POINTER : 0), inner ? POINTER : 0);
    for (int64_t i = 0; i < count; i++)
        if (node[HEAD + (size_t)i * entry + FLAGS] & SHARED) return false;
    return true;
}
