/* Classified texts, a label before each line.
 * Readers: src/data/readers/read_labelled.c src/data/readers/labelled_layouts.c */
#include "fuzz_data.h"

static void vary(data_options *o, unsigned bits) {
    if (bits & 1) strcpy(o->encoding, "latin-1");
    if (bits & 2) strcpy(o->batch_by, "tokens");
    o->mark_start = bits & 4, o->mark_end = bits & 8;
    if (bits & 16) o->max_length = 3, o->min_count = 2, o->valid_share = 0.5, *o->validpref = 0;
}

static const fuzz_reader reader = {"labelled", vary, {"train", "valid", "test"}};

FUZZ_DATA(reader)
