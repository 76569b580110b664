/* Sentence pairs in the columns of one file.
 * Readers: src/data/readers/read_tabbed.c */
#include "fuzz_data.h"

static void vary(data_options *o, unsigned bits) {
    strcpy(o->file, "pairs");
    strcpy(o->columns, bits & 1 ? "de,en" : "en,de");
    if (bits & 8) strcpy(o->columns, bits & 1 ? "fr,de" : "en,fr,de,x");
    if (bits & 16) strcpy(o->target, "de");
    o->valid_share = bits & 2 ? 0.5 : 0.1, o->test_share = bits & 4 ? 0.4 : 0;
}

static const fuzz_reader reader = {"tabbed", vary, {"pairs"}};

FUZZ_DATA(reader)
