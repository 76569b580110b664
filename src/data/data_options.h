/* data_options.h -- options of data sets. */
#ifndef DATA_DATA_OPTIONS_H
#define DATA_DATA_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "text/line_transform.h"

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
    int64_t valid_images;    /* images: validate on the last N training images; -1: by format */
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
    int64_t vocab_size;            /* size of a dictionary, with specials; 0 = every word */
    /* pairs from files: dictionaries in fairseq's form instead of counting words; "" none */
    char source_dictionary[DATA_TEXT], target_dictionary[DATA_TEXT];
    char bpe_codes[DATA_TEXT]; /* pairs from files: file with merges of byte-pair encoding, */
    int64_t bpe_merges;        /* or merges to learn from the training text; 0: none */
    /* texts from files: applied to every line, for tags and trees to every word; NULL: nothing.
       Must live as long as the data set */
    const line_transform *tokenizer;
    char source[DATA_TEXT], target[DATA_TEXT]; /* pairs: "de", "en" */
    char trainpref[DATA_TEXT], validpref[DATA_TEXT], testpref[DATA_TEXT];
    /* "tabbed", "bytes", "trees-cut": the file. "tabbed": languages of its columns, "en,de" */
    char file[DATA_TEXT], columns[DATA_TEXT];
    double valid_share, test_share;  /* fraction of lines, bytes or sentences; NaN: the set's */
    int64_t valid_bytes, test_bytes; /* "bytes": instead of the shares; 0: by share */
    int64_t min_count; /* sentences, tags, trees: rarer words of the training text are <unk> */
    int64_t valid_count, test_count; /* "polarity", "trees-cut": sentences of these splits; -1: the
                                        data set's */
    /* trees: words of parse/trees.h, "" is auto */
    char tree_format[DATA_TEXT], pos_column[DATA_TEXT], punctuation[DATA_TEXT], subtypes[DATA_TEXT];
    char labels[DATA_TEXT]; /* "labelled": "single" (or ""); "first" of several of fastText */
    /* sentences */
    char batch_by[DATA_TEXT];  /* "sentences" (or ""): batch_size of them; "tokens": max_tokens */
    char encoding[DATA_TEXT];  /* "auto" (or ""), "utf-8", "latin-1" */
    int64_t max_length;        /* words, marks included; the rest is cut off; 0: no bound */
    int64_t pad_to;            /* length of every batch; 0: its longest sentence's */
    bool mark_start, mark_end; /* <s> before a sentence, </s> after it */
    char fold[DATA_TEXT];      /* "polarity": "3/10", instead of the counts; "" none */
    /* tags: the scheme of training, "bioes" (or ""); of the files, "auto" (or "") */
    char tag_scheme[DATA_TEXT], file_tag_scheme[DATA_TEXT];
    int64_t word_column, tag_column; /* from 1; 0: the last one, both 0: the first and the last */
    char delimiter[DATA_TEXT];       /* between columns: "blank" (or ""): spaces and tabs; "tab" */
    bool zero_digits;                /* every digit of a word is 0 */
    bool shuffle_sources; /* pairs: control experiment, sources permuted among training pairs */
    bool survey;          /* keeps data for data_count */
    bool prefetch;        /* a thread makes the next training batch; the batches are the same */
    int64_t limit;        /* use the first N training records only; 0 = all */
    uint64_t seed;
} data_options;

#endif
