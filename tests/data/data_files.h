/* data_files.h -- small files for the tests of data sets. */
#ifndef TESTS_DATA_FILES_H
#define TESTS_DATA_FILES_H

#include "data/data.h"
#include "testing/check.h"

/* A fresh directory below check_temporary(). Static storage for a few results. */
const char *make_folder(void);
/* Writes DIR/NAME with these bytes; compresses it if the name ends in .gz. Returns the path
 * (static). */
const char *write_bytes(const char *dir, const char *name, const void *bytes, size_t size);
/* Writes the bytes unchanged, whatever the name. */
const char *write_raw(const char *dir, const char *name, const void *bytes, size_t size);
const char *write_text(const char *dir, const char *name, const char *text);
/* Writes DIR/FOLDER/NAME; makes the folders. */
void write_in(const char *dir, const char *folder, const char *name, const char *text);
/* Returns the malloc'd bytes of a file. */
unsigned char *read_raw(const char *path, size_t *size);

/* Options with usable defaults. */
data_options default_options(const char *name, const char *dir);
/* Opens the data or fails the test. refuse_data: opening must fail with this status and text. */
dataset *open_data(const data_options *o);
void refuse_data(const data_options *o, sr_status status, const char *part);

/* Spelling of a token; NULL without a dictionary, and past its end. */
const char *data_word(const dataset *d, data_side side, int64_t id);
/* Fraction of the split's target tokens that are <unk>; NaN for images. */
double data_unknown_share(const dataset *d, data_split split);
/* Entropy of the target given the source, nats per token, of generated pairs; else NaN. */
double data_entropy(const dataset *d);

/* FNV-1a over all contents of a batch. */
uint64_t digest_batch(const batch *b);
/* Reads every batch of the pass in order, then some in another order and after another pass. All
 * must have the same bytes. */
void check_pure(const data_options *o, data_split split);

#endif
