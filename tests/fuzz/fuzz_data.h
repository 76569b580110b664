/* fuzz_data.h -- targets that open a data set. An input is a letter, whose bits set options, and
 * the files of the data set between lines "%%%%". With bit 32 (lowercase letters) the names of the
 * files end in .gz. */
#ifndef TESTS_FUZZ_DATA_H
#define TESTS_FUZZ_DATA_H

#include <string.h>

#include "data/data.h"
#include "fuzz.h"

typedef struct fuzz_reader {
    const char *name;                             /* data set */
    void (*vary)(data_options *o, unsigned bits); /* the letter's lowest five bits; or NULL */
    const char *file[FUZZ_PARTS];                 /* files made of the parts */
} fuzz_reader;

/* Opens it and reads batches of each split: values used as indices must be below the data set's
 * declared sizes. */
int fuzz_read_data(const fuzz_reader *r, const uint8_t *data, size_t size);
/* The same for a folder; the input names its files (fuzz_store_named). */
int fuzz_read_folder(const fuzz_reader *r, const uint8_t *data, size_t size);

#define FUZZ_DATA(reader)                                                                          \
    int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {                                 \
        return fuzz_read_data(&(reader), data, size);                                              \
    }

#endif
