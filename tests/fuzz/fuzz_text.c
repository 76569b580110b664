/* Running text word by word.
 * Readers: src/data/readers/read_text.c */
#include "fuzz_data.h"

static void vary(data_options *o, unsigned bits) {
    o->eos_of_empty = bits & 1;
    if (bits & 2) o->vocab_size = 4;
}

static const fuzz_reader reader = {"text", vary, {"train", "valid", "test"}};

FUZZ_DATA(reader)
