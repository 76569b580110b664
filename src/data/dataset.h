/* dataset.h -- shared declarations of the files of src/data. */
#ifndef DATA_DATASET_H
#define DATA_DATASET_H

#include "data/data.h"
#include "data/sets/image_set.h"
#include "data/sets/pair_set.h"
#include "data/sets/running_set.h"
#include "data/sets/sentence_set.h"
#include "data/sets/tree_set.h"
#include "text/tag_set.h"

enum { DATA_SPLITS = 3, DATA_DESCRIBE = 4096, DATA_WARNINGS = 4096 };

/* A row of the table: one data set. open fills images, pairs or running, shape and the description.
 * Its caller frees the memory after a failure. */
typedef struct dataset_row {
    const char *name, *summary;
    task task;
    bool files;          /* read from --data-dir */
    const char *options; /* keys of the options that it obeys, between blanks */
    sr_status (*open)(dataset *d, const data_options *o, sr_failure *why);
} dataset_row;

/* Functions of the set of a task. */
typedef struct set_kind {
    void (*free)(dataset *d);
    int64_t (*batches)(const dataset *d, data_split split);
    void (*make)(dataset *d, int slot, batch_place at, batch *b); /* in the buffers of a slot */
    const vocab *(*words)(const dataset *d, data_side side);      /* their dictionary; NULL: none */
    line_hashes *(*lines)(dataset *d, data_split split);          /* its sentences; NULL: none */
} set_kind;
extern const set_kind set_kinds[]; /* by task */

/* The first text with a character beyond ASCII, and how many texts were warned of. */
typedef struct text_encodings {
    char path[FILE_PATH]; /* "": none yet */
    bool recoded;
    int warned;
} text_encodings;

struct dataset {
    const dataset_row *row;
    data_shape shape;
    image_set images;       /* TASK_IMAGES */
    pair_set pairs;         /* TASK_PAIRS */
    running_set running;    /* TASK_LM */
    tree_set trees;         /* TASK_TREES */
    sentence_set sentences; /* TASK_SENTENCES, TASK_TAGS */
    /* TASK_TAGS: files of the splits, whose words are written with their tags */
    file_bytes tagged_file[SENTENCE_SPLITS];
    int64_t word_column;
    bool tabs; /* only they separate its columns */
    tag_set *tags;
    prefetch *ahead;         /* training batches; NULL: each is made on request */
    int64_t classes_meaning; /* digest of the names of classes; 0: they have none */
    text_encodings encodings;
    char describe[DATA_DESCRIBE];
    char warnings[DATA_WARNINGS];
};

/* label_digest.c: adds names of classes in their order; returns the digest in data_shape. */
void dataset_add_class(dataset *d, const char *name);
int64_t dataset_meaning(const dataset *d);

/* Adds to the description, truncated to its size. */
void dataset_note(dataset *d, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds a line to the warnings, truncated to their size. */
void dataset_warn(dataset *d, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Notes CR LF of a text, and warns about CR alone. */
void dataset_check_ends(dataset *d, const file_bytes *f);
/* Warns about a text that is UTF-8 but for some bytes, or in another encoding than the first. */
void dataset_check_encoding(dataset *d, const char *path, const text_decoding *how);
/* data_checks.c: warns about splits of one sentence, of one word in each, or of one class. Also
 * about unknown words, sentences that are too long, and sentences that training has, too. */
sr_status dataset_check(dataset *d, sr_failure *why);
/* Warns about labels that occur once or nowhere. what: "labels"; times, name: the count and the
 * name of each of [count] labels. */
void dataset_check_labels(dataset *d, const char *what, const int64_t *times, int64_t count,
                          const char *(*name)(const void *names, int64_t i), const void *names);
/* `given` unless it is NaN. */
double dataset_share(double given, double otherwise);
/* The last step of opening a set of each task: the shape, and its numbers in the description. */
extern const char *const dataset_split_titles[]; /* "training" ... by split */
sr_status dataset_finish_images(dataset *d, sr_failure *why);
void dataset_finish_pairs(dataset *d);
/* Opens pairs from files: `read` reads the texts. */
typedef sr_status pair_reader(dataset *d, const data_options *o, pair_text text[PAIR_SPLITS],
                              sr_failure *why);
sr_status dataset_open_pairs(dataset *d, const data_options *o, pair_reader *read, sr_failure *why);
void dataset_finish_running(dataset *d);
void dataset_finish_sentences(dataset *d, int64_t classes);

sr_status cifar10_open(dataset *d, const data_options *o, sr_failure *why);
sr_status cifar100_open(dataset *d, const data_options *o, sr_failure *why);
sr_status idx_open(dataset *d, const data_options *o, sr_failure *why);
sr_status parallel_open(dataset *d, const data_options *o, sr_failure *why);
sr_status tabbed_open(dataset *d, const data_options *o, sr_failure *why);
sr_status bytes_open(dataset *d, const data_options *o, sr_failure *why);
sr_status trees_open(dataset *d, const data_options *o, sr_failure *why);
sr_status trees_cut_open(dataset *d, const data_options *o, sr_failure *why);
sr_status polarity_open(dataset *d, const data_options *o, sr_failure *why);
sr_status labelled_open(dataset *d, const data_options *o, sr_failure *why);
sr_status labelled_csv_open(dataset *d, const data_options *o, sr_failure *why);
sr_status conll_open(dataset *d, const data_options *o, sr_failure *why);
sr_status text_open(dataset *d, const data_options *o, sr_failure *why);
sr_status synth_images_open(dataset *d, const data_options *o, sr_failure *why);
sr_status synth_pairs_open(dataset *d, const data_options *o, sr_failure *why);

/* Streams of random numbers of one seed, so that no two uses share one. */
enum {
    STREAM_ORDER = 1, /* split again by epoch */
    STREAM_AUGMENT,   /* split again by epoch; position = image number */
    STREAM_PLAN,      /* split again by split: order before sorting into batches */
    STREAM_SOURCES,   /* split again by split: permutation of sources */
    STREAM_GENERATE,  /* split again by split, then by record */
    STREAM_GRAMMAR,
    STREAM_SPLITS, /* lines of a file into splits */
};

#endif
