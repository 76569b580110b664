/* Sentence polarity: a file of each class.
 * Readers: src/data/readers/read_polarity.c */
#include "fuzz_data.h"

static void vary(data_options *o, unsigned bits) {
    if (bits & 1) strcpy(o->encoding, "latin-1");
    if (bits & 2) strcpy(o->batch_by, "tokens");
    o->mark_start = bits & 4, o->mark_end = bits & 8;
    o->valid_count = o->test_count = 1; /* the published counts need 2,000 lines */
    if (bits & 16) strcpy(o->fold, bits & 4 ? "2/3" : "4/3");
}

static const fuzz_reader reader = {"polarity", vary, {"train.neg", "train.pos"}};

FUZZ_DATA(reader)
