/* Classified texts, a folder for each class: each file a line with its name and then the bytes.
 * Readers: src/data/readers/labelled_layouts.c src/data/readers/read_labelled.c */
#include "fuzz_data.h"

static void vary(data_options *o, unsigned bits) {
    if (bits & 1) strcpy(o->encoding, "latin-1");
    if (bits & 2) strcpy(o->encoding, "no encoding");
    if (bits & 4) strcpy(o->trainpref, "train.txt");
    if (bits & 8) *o->validpref = 0, o->valid_share = 0.5;
    if (bits & 16) strcpy(o->testpref, "valid");
}

static const fuzz_reader reader = {.name = "labelled", .vary = vary};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    return fuzz_read_folder(&reader, data, size);
}
