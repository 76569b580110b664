/* Images and labels in the format of MNIST.
 * Readers: src/data/readers/read_idx.c */
#include "fuzz_data.h"

static void vary(data_options *o, unsigned bits) {
    o->augment = bits & 1;
    if (bits & 2) o->valid_images = 1;
    o->idx_transpose = bits & 4;
    if (bits & 8) o->idx_classes = 3;
}

static const fuzz_reader reader = {"idx", vary, {"images", "labels", "test-images", "test-labels"}};

FUZZ_DATA(reader)
