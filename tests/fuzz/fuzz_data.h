/* fuzz_data.h -- targets that open a data set. An input is a letter, its bits options, and the
 * files of the data set between lines "%%%%"; bit 32 (small letters) gives the files names that end
 * in .gz. */
#ifndef TESTS_FUZZ_DATA_H
#define TESTS_FUZZ_DATA_H

#include <string.h>

#include "data/data.h"
#include "fuzz.h"

typedef struct fuzz_reader {
    const char *name;                             /* of the data set */
    void (*vary)(data_options *o, unsigned bits); /* by the letter's lowest five; or NULL */
    const char *file[FUZZ_PARTS];                 /* that the parts become */
} fuzz_reader;

/* Opens it and looks at batches of each split: numbers that a model would take for an index are
 * below what the data set says of them. */
int fuzz_read_data(const fuzz_reader *r, const uint8_t *data, size_t size);
/* The same of a folder whose files are named by the input (fuzz_store_named). */
int fuzz_read_folder(const fuzz_reader *r, const uint8_t *data, size_t size);

#define FUZZ_DATA(reader)                                                                          \
    int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {                                 \
        return fuzz_read_data(&(reader), data, size);                                              \
    }

#endif
