/* Running text byte by byte.
 * Readers: src/data/readers/read_bytes.c */
#include "fuzz_data.h"

static void vary(data_options *o, unsigned bits) {
    strcpy(o->file, "all");
    if (bits & 1) o->valid_bytes = 7, o->test_bytes = 9;
}

static const fuzz_reader reader = {"bytes", vary, {"all"}};

FUZZ_DATA(reader)
