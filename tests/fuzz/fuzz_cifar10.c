/* CIFAR-10: two files of training images, one of test images.
 * Readers: src/data/readers/read_cifar.c */
#include "fuzz_data.h"

static void vary(data_options *o, unsigned bits) {
    o->augment = bits & 1;
    if (bits & 2) o->valid_images = 1;
    o->limit = bits & 4 ? 1 : 0;
}

static const fuzz_reader reader = {
    "cifar10", vary, {"data_batch_1.bin", "data_batch_2.bin", "test_batch.bin"}};

FUZZ_DATA(reader)
