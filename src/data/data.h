/* data.h -- data sets: one file read_*.c or synth_*.c and one row of the table each.
 *
 * A batch is a function of (options, seed, split, epoch, index) alone: the same bytes whatever was
 * asked before and on any number of threads.
 */
#ifndef DATA_DATA_H
#define DATA_DATA_H

#include <stdbool.h>

#include "batch/batch.h"
#include "statrec/base.h"
#include "text/bpe/text_codec.h"
#include "text/vocab.h"

typedef enum { SPLIT_TRAIN, SPLIT_VALID, SPLIT_TEST } data_split;
typedef enum { SIDE_SOURCE, SIDE_TARGET, SIDES } data_side;
enum { DATA_TEXT = 512 };

typedef struct data_options {
    char name[DATA_TEXT];    /* row of the table: "cifar10" */
    char dir[DATA_TEXT];     /* "" for embedded sets */
    int64_t batch_size;      /* images, sentences, transitions; running text: sequences */
    int64_t eval_batch_size; /* running text: the same in evaluation */
    int64_t window;          /* running text: tokens of a sequence in a batch */
    int64_t eval_window;     /* running text: the same in evaluation; 0: window */
    bool eos_of_empty;       /* running text: empty lines give an <eos> too */
    int64_t valid_images; /* images: so many training images, the last ones, to validate on; -1: as
                             the format wants it */
    /* "idx": files of the images and of their labels; testing ones may be missing */
    char idx_train_images[DATA_TEXT], idx_train_labels[DATA_TEXT];
    char idx_test_images[DATA_TEXT], idx_test_labels[DATA_TEXT];
    bool idx_transpose;  /* "idx": rows of the file are columns of the image, as EMNIST's */
    int64_t idx_classes; /* "idx": 0: counted */
    bool augment;        /* images: pad-4 random crop and mirror in training */
    int64_t max_tokens;  /* texts: padded positions of a batch, of pairs on the longer side */
    char max_tokens_of[DATA_TEXT]; /* texts: "padded" (or ""), "valid": without padding */
    char batching[DATA_TEXT];      /* texts: "bucketed" (or ""), "sorted", "random" */
    char dictionary[DATA_TEXT];    /* pairs: "joint" (or ""), "separate": one for each side */
    int64_t vocab_size;            /* of a dictionary, with specials; 0 = every word */
    /* pairs from files: dictionaries in fairseq's form instead of counting words; "" none */
    char source_dictionary[DATA_TEXT], target_dictionary[DATA_TEXT];
    char bpe_codes[DATA_TEXT]; /* pairs from files: byte-pair encoding with the merges of a file, */
    int64_t bpe_merges;        /* or with so many learnt from the training text; 0: none */
    const line_transform
        *tokenizer; /* texts from files: done to every line, of tags and trees to every
                                   word; NULL: nothing. Lives as long as the data set */
    char source[DATA_TEXT], target[DATA_TEXT]; /* pairs: "de", "en" */
    char trainpref[DATA_TEXT], validpref[DATA_TEXT], testpref[DATA_TEXT];
    /* "tabbed", "bytes", "trees-cut": the file. "tabbed": languages of its columns, "en,de" */
    char file[DATA_TEXT], columns[DATA_TEXT];
    double valid_share, test_share;  /* of its lines, bytes or sentences; NaN: the data set's */
    int64_t valid_bytes, test_bytes; /* "bytes": instead of the shares; 0: by share */
    int64_t min_count; /* sentences, tags, trees: rarer words of the training text are <unk> */
    int64_t valid_count, test_count; /* "polarity", "trees-cut": sentences of these splits; -1: the
                                        data set's */
    /* trees: words of parse/trees.h, "" is auto */
    char tree_format[DATA_TEXT], pos_column[DATA_TEXT], punctuation[DATA_TEXT], subtypes[DATA_TEXT];
    /* sentences */
    char batch_by[DATA_TEXT];  /* "sentences" (or ""): batch_size of them; "tokens": max_tokens */
    char encoding[DATA_TEXT];  /* "auto" (or ""), "utf-8", "latin-1" */
    int64_t max_length;        /* words, marks included; the rest is cut off; 0: no bound */
    int64_t pad_to;            /* length of every batch; 0: its longest sentence's */
    bool mark_start, mark_end; /* <s> in front of a sentence, </s> behind */
    char fold[DATA_TEXT];      /* "polarity": "3/10", instead of the counts; "" none */
    /* tags: the scheme of training, "bioes" (or ""); that of the files, "auto" (or "") */
    char tag_scheme[DATA_TEXT], file_tag_scheme[DATA_TEXT];
    int64_t word_column, tag_column; /* from 1; 0: the last one, both 0: the first and the last */
    bool zero_digits;                /* every digit of a word is 0 */
    bool shuffle_sources; /* pairs: control experiment, sources permuted among training pairs */
    bool prefetch;        /* a thread makes the next training batch; the batches are the same */
    int64_t limit;        /* use the first N training records only; 0 = all */
    uint64_t seed;
} data_options;

typedef struct dataset dataset;

/* Reads (or generates) everything; NULL and *why ("DIR/data_batch_1.bin: byte 30730: ...") on
 * failure. */
dataset *data_open(const data_options *options, sr_failure *why);
void data_close(dataset *d);

const data_shape *data_get_shape(const dataset *d);
/* One line: counts, vocabulary, share of <unk> per split, file names. */
const char *data_describe(const dataset *d);
bool data_has_split(const dataset *d, data_split split);
/* Running text: tokens of the split that no batch has as a target, of how many (*tokens); else 0. */
int64_t data_left_out(const dataset *d, data_split split, int64_t *tokens);
/* Running text: sequences side by side in every batch of the split; else 0. */
int64_t data_sequences(const dataset *d, data_split split);
/* One dictionary for both sides where it is joint; NULL for images. */
const vocab *data_dictionary(const dataset *d, data_side side);

/* -- pairs: from lines to tokens and back */

/* How lines become ids: dictionaries and steps of the data set, valid as long as it is. */
text_codec data_codec(const dataset *d);
/* Pairs of a split that were not dropped; batches have their numbers, which follow the lines of the
 * files. */
int64_t data_pairs(const dataset *d, data_split split);
/* The pair's line in the text of its split, from 0: the number of the files' line, but where one file
 * holds all splits. */
int64_t data_line_of(const dataset *d, data_split split, int64_t pair);
/* A line as it stands in its file, without its end (a newline and a CR before it). */
typedef struct data_line {
    const char *byte; /* NULL: none, as of training text, which is not kept */
    size_t length;
} data_line;
data_line data_source(const dataset *d, data_split split, int64_t pair);
data_line data_reference(const dataset *d, data_split split, int64_t pair);

/* -- tags */

/* What the tags of batches are called; NULL: none have. */
const struct tag_set *data_tags(const dataset *d);
/* A word of sentence `pair` of a batch as it stands in its file (made UTF-8). */
data_line data_tagged_word(const dataset *d, data_split split, int64_t sentence, int64_t word);

/* Batches of one pass; SPLIT_TRAIN is shuffled by (seed, epoch), but for running
 * text; the others keep their order. */
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
/* Keys of the options that it obeys, between blanks; NULL past the end. */
const char *data_option_keys(int i);
/* True when the data set obeys the option with this key. */
bool data_obeys(const char *name, const char *key);

#endif
