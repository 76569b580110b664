/* h5_heaps.c -- checks the heap of an object with many links or attributes. HDF5 allocates a block
 * of any size in the heap's header.
 *
 * HDF5 File Format Specification 3.0, III.G: "FRHP", version 0. From byte 110: the width of a row
 * of blocks [2], the size of the first block [8], the size of the largest block [8]. All are powers
 * of two. HDF5 writes first blocks of 512 or 1,024 bytes and largest blocks of 64 KiB.
 */
#include "hdf5/v1_10/h5_checks.h"

#include <string.h>

#include "journal/positional_io.h"

enum { WIDTH_AT = 110, FIRST_AT = 112, LARGEST_AT = 120, END = 128, LARGEST = 1 << 24 };

static bool is_power(uint64_t n) {
    return n > 0 && !(n & (n - 1));
}

bool h5_heap_is_small(const void *bytes, size_t size) {
    const unsigned char *heap = bytes;
    if (size < END || memcmp(heap, "FRHP", 5) != 0) return true;
    const uint64_t first = positional_io_number(heap + FIRST_AT, 8),
                   largest = positional_io_number(heap + LARGEST_AT, 8);
    return is_power(positional_io_number(heap + WIDTH_AT, 2)) && is_power(first) &&
           is_power(largest) && first <= largest && largest <= LARGEST;
}
