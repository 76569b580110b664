/* Sentence pairs, with and without dictionaries and merges of files.
 * Readers: src/data/readers/read_parallel.c
 *   src/data/sets/pair_text.c
 *   src/text/bpe/bpe_step.c */
#include "fuzz_data.h"

static void vary(data_options *o, unsigned bits) {
    if (bits & 1) strcpy(o->dictionary, "separate");
    if (bits & 2) snprintf(o->source_dictionary, DATA_TEXT, "%s", fuzz_path("dict"));
    if (bits & 4) snprintf(o->bpe_codes, DATA_TEXT, "%s", fuzz_path("codes"));
    if (bits & 8) o->bpe_merges = 6;
    o->shuffle_sources = bits & 16;
}

static const fuzz_reader reader = {
    "parallel", vary, {"train.de", "train.en", "valid.de", "valid.en", "dict", "codes"}};

FUZZ_DATA(reader)
