/* data.h -- data sets: one file read_*.c or synth_*.c and one row of the table each.
 *
 * A batch depends on (options, seed, split, epoch, index) alone. Earlier calls and the number of
 * threads change no byte.
 */
#ifndef DATA_DATA_H
#define DATA_DATA_H

#include <stdbool.h>

#include "batch/batch.h"
#include "data/data_options.h"
#include "statrec/base.h"
#include "text/bpe/text_codec.h"
#include "text/vocab.h"

typedef struct dataset dataset;

/* Reads (or generates) everything; NULL and *why ("DIR/data_batch_1.bin: byte 30730: ...") on
 * failure. */
dataset *data_open(const data_options *options, sr_failure *why);
void data_close(dataset *d);

const data_shape *data_get_shape(const dataset *d);
/* One line: counts, vocabulary, share of <unk> per split, file names. */
const char *data_describe(const dataset *d);
/* Warnings about the data, one per line; "": none. */
const char *data_warnings(const dataset *d);
bool data_has_split(const dataset *d, data_split split);
/* Running text: tokens of the split that are no target of any batch, of *tokens in all; else 0. */
int64_t data_left_out(const dataset *d, data_split split, int64_t *tokens);
/* The part of the split that an evaluation covers, if it is not all: "47 of 50 pairs (left out: 2
 * with an empty side, 1 too long)". "": everything. Running text: data_left_out. */
enum { DATA_COVERAGE = 160 };
void data_coverage(const dataset *d, data_split split, char text[DATA_COVERAGE]);
/* Tokens, words or images of one pass over the split, for ratios between splits. */
int64_t data_tokens(const dataset *d, data_split split);
/* Running text: sequences side by side in every batch of the split; else 0. */
int64_t data_sequences(const dataset *d, data_split split);
/* A checksum of the training data in the form of batches: ids, labels, pixels, order. */
int64_t data_training_digest(const dataset *d);
/* A joint dictionary is the same for both sides; NULL for images. */
const vocab *data_dictionary(const dataset *d, data_side side);

/* -- pairs: from lines to tokens and back */

/* Dictionaries and line steps of the data set, valid as long as it is. */
text_codec data_codec(const dataset *d);
/* Pairs of a split that were not dropped. Batches use their numbers, which follow the lines of the
 * files. */
int64_t data_pairs(const dataset *d, data_split split);
/* The pair's line in the text of its split, from 0. It is the line of the file unless one file
 * holds all splits. */
int64_t data_line_of(const dataset *d, data_split split, int64_t pair);
/* A line of its file, without its end (a newline and a CR before it). */
typedef struct data_line {
    const char *byte; /* NULL: none, as of training text, which is not kept */
    size_t length;
} data_line;
data_line data_source(const dataset *d, data_split split, int64_t pair);
data_line data_reference(const dataset *d, data_split split, int64_t pair);

/* -- tags */

/* Names of the tags in batches; NULL: none. */
const struct tag_set *data_tags(const dataset *d);
/* The separator of columns in its files. */
char data_tag_separator(const dataset *d);
/* A word of sentence `pair` of a batch, from its file (made UTF-8). */
data_line data_tagged_word(const dataset *d, data_split split, int64_t sentence, int64_t word);

/* Batches of one epoch. (seed, epoch) shuffles SPLIT_TRAIN, except running text; other splits keep
 * their order. */
int64_t data_batches(const dataset *d, data_split split);
/* Makes batch `index` (0 .. data_batches-1) of the given pass. */
sr_status data_batch(dataset *d, data_split split, int64_t epoch, int64_t index, batch *b,
                     sr_failure *why);

/* "valid", "test", "train". */
const char *data_split_name(data_split split);

/* Table: names and one-line descriptions for `statrec list data`. */
const char *data_name(int i); /* NULL past the end */
const char *data_summary(int i);
task data_task(int i);
bool data_reads_files(const char *name); /* from a directory, not generated */
/* Keys of the options that a row obeys, between blanks; NULL past the end. */
const char *data_option_keys(int i);
/* True when the data set obeys the option with this key. */
bool data_obeys(const char *name, const char *key);

#endif
