/* CIFAR-100: a file of training images, one of test images.
 * Readers: src/data/readers/read_cifar.c */
#include "fuzz_data.h"

static void vary(data_options *o, unsigned bits) {
    o->augment = bits & 1;
    if (bits & 2) o->valid_images = 1;
}

static const fuzz_reader reader = {"cifar100", vary, {"train.bin", "test.bin"}};

FUZZ_DATA(reader)
