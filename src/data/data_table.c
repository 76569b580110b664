/* data_table.c -- the table of data sets and the functions of data.h, which choose by task. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/options/options.h"
#include "data/dataset.h"

#define IMAGES      "batch-size augment"
#define IMAGE_FILES IMAGES " valid-images"
#define PAIRS       "max-tokens max-tokens-of batching dictionary vocab-size shuffle-sources"
#define PAIR_FILES                                                                                 \
    " source target tokenize lowercase bpe-merges bpe-codes source-dictionary target-dictionary"   \
    " bleu-every bleu-beam"
#define TREES "batch-size lowercase min-count tree-format pos-column punctuation subtypes"

#define SENTENCES                                                                                  \
    "batch-by batch-size max-tokens max-tokens-of batching pad-to max-length mark-start mark-end"  \
    " min-count vocab-size"
#define CLASSIFIED SENTENCES " encoding tokenize lowercase"

static const dataset_row table[] = {
    {"cifar10", "CIFAR-10 binary batches in --data-dir, plain or .gz, any of the official names",
     TASK_IMAGES, true, IMAGE_FILES, cifar10_open},
    {"cifar100", "CIFAR-100 binary files in --data-dir, plain or .gz, fine labels", TASK_IMAGES,
     true, IMAGE_FILES, cifar100_open},
    {"idx", "images and labels in MNIST's format in --data-dir, plain or .gz: MNIST, EMNIST ...",
     TASK_IMAGES, true,
     IMAGE_FILES " idx-train-images idx-train-labels idx-test-images idx-test-labels idx-transpose "
                 "idx-classes",
     idx_open},
    {"parallel", "sentence pairs PREFIX.LANG in --data-dir, plain or .gz", TASK_PAIRS, true,
     PAIRS PAIR_FILES " trainpref validpref testpref", parallel_open},
    {"tabbed",
     "sentence pairs in the columns of one file in --data-dir, plain or .gz, as Tatoeba's",
     TASK_PAIRS, true, PAIRS PAIR_FILES " data-file columns valid-share test-share", tabbed_open},
    {"labelled",
     "classified texts, `label text` lines in --data-dir, one file for each split, plain or .gz",
     TASK_SENTENCES, true, CLASSIFIED " trainpref validpref testpref valid-share labels",
     labelled_open},
    {"labelled-csv", "the same in columns, \"label\",\"title\",\"text\"", TASK_SENTENCES, true,
     CLASSIFIED " trainpref validpref testpref valid-share", labelled_csv_open},
    {"polarity", "sentence polarity in --data-dir, PREFIX.neg and PREFIX.pos, plain or .gz",
     TASK_SENTENCES, true, CLASSIFIED " trainpref valid-count test-count fold", polarity_open},
    {"conll",
     "words with tags of entities, columns in --data-dir, one file for each split, plain or .gz",
     TASK_TAGS, true,
     "batch-by batch-size max-tokens max-tokens-of batching min-count vocab-size encoding lowercase"
     " trainpref validpref testpref tag-scheme file-tag-scheme word-column tag-column delimiter "
     "zero-digits",
     conll_open},
    {"synth-images", "generated: striped shapes in ten classes, 6400 and 1000 images of 32 x 32",
     TASK_IMAGES, false, IMAGES, synth_images_open},
    {"synth-pairs", "generated: translation pairs of known entropy, 8000 and 500 sentences",
     TASK_PAIRS, false, PAIRS, synth_pairs_open},
    {"bytes", "running text byte by byte: one file in --data-dir, plain or .gz, as enwik8 or text8",
     TASK_LM, true,
     "batch-size eval-batch-size tgt-len eval-tgt-len data-file valid-share test-share valid-bytes "
     "test-bytes",
     bytes_open},
    {"text", "running text in --data-dir, one file for each split, plain or .gz, <eos> after lines",
     TASK_LM, true,
     "batch-size eval-batch-size tgt-len eval-tgt-len eos-on-empty-lines vocab-size trainpref "
     "validpref "
     "testpref",
     text_open},
    {"trees", "dependency trees in --data-dir, CoNLL-X, CoNLL-U or malt-tab, plain or .gz",
     TASK_TREES, true, TREES " trainpref validpref testpref", trees_open},
    {"trees-cut", "the same in one file that is cut into splits, the test last", TASK_TREES, true,
     TREES " data-file valid-count test-count valid-share test-share", trees_cut_open},
};
enum { ROWS = sizeof table / sizeof table[0] };

const char *data_name(int i) {
    return i >= 0 && i < ROWS ? table[i].name : NULL;
}

const char *data_summary(int i) {
    return i >= 0 && i < ROWS ? table[i].summary : NULL;
}

task data_task(int i) {
    return i >= 0 && i < ROWS ? table[i].task : TASK_IMAGES;
}

const char *data_option_keys(int i) {
    return i >= 0 && i < ROWS ? table[i].options : NULL;
}

static const dataset_row *find_row(const char *name) {
    for (int i = 0; i < ROWS; i++)
        if (strcmp(table[i].name, name) == 0) return &table[i];
    return NULL;
}

bool data_reads_files(const char *name) {
    const dataset_row *row = find_row(name);
    return row && row->files;
}

const char *data_split_name(data_split split) {
    static const char *const names[] = {
        [SPLIT_TRAIN] = "train", [SPLIT_VALID] = "valid", [SPLIT_TEST] = "test"};
    return names[split];
}

bool data_obeys(const char *name, const char *key) {
    const dataset_row *row = find_row(name);
    return row && options_lists(row->options, key);
}

static sr_status open_row(dataset *d, const data_options *o, sr_failure *why) {
    struct stat s;
    if (o->limit < 0) return sr_fail(why, SR_USAGE, "limit %lld is negative", (long long)o->limit);
    d->row = find_row(o->name);
    if (!d->row) {
        sr_fail(why, SR_USAGE, "no data set is called '%s'", o->name);
        sr_hint(why, "`statrec list data` names them");
        return SR_USAGE;
    }
    if (d->row->files && *o->dir) {
        /* a missing directory; other faults appear when a file is read */
        const int wrong = stat(o->dir, &s) != 0 ? errno : S_ISDIR(s.st_mode) ? 0 : ENOTDIR;
        if (wrong == ENOENT || wrong == ENOTDIR)
            return sr_fail(why, SR_IO, "%s: %s", o->dir, strerror(wrong));
    }
    sr_status status = d->row->open(d, o, why);
    if (status == SR_FORMAT && why && !*why->hint && *d->warnings) /* it may be the reason */
        sr_hint(why, "%.*s", (int)strcspn(d->warnings, "\n"), d->warnings);
    if (status != SR_OK) return status;
    const set_kind *kind = &set_kinds[d->row->task];
    if (d->row->files) status = dataset_check(d, why);
    for (int i = 0; i < DATA_SPLITS && kind->lines && !o->survey; i++)
        line_hashes_free(kind->lines(d, (data_split)i));
    return status;
}

static sr_status make_batch(void *self, int slot, batch_place at, batch *b, sr_failure *why) {
    dataset *d = self;
    (void)why; /* everything is in memory */
    set_kinds[d->row->task].make(d, slot, at, b);
    return SR_OK;
}

dataset *data_open(const data_options *options, sr_failure *why) {
    dataset *d = calloc(1, sizeof *d);
    sr_status status =
        d ? open_row(d, options, why) : sr_fail(why, SR_MEMORY, "out of memory for a data set");
    if (status == SR_OK && options->prefetch && !(d->ahead = prefetch_create(make_batch, d)))
        status = sr_fail(why, SR_MEMORY, "out of memory for the prefetch thread");
    if (status == SR_OK) {
        d->shape.meaning = dataset_meaning(d);
        return d;
    }
    data_close(d);
    return NULL;
}

void data_close(dataset *d) {
    if (!d) return;
    prefetch_free(d->ahead); /* first of all: its thread reads the rest */
    if (d->row) set_kinds[d->row->task].free(d);
    free(d);
}

const data_shape *data_get_shape(const dataset *d) {
    return &d->shape;
}

const char *data_describe(const dataset *d) {
    return d->describe;
}

const char *data_warnings(const dataset *d) {
    return d->warnings;
}

bool data_has_split(const dataset *d, data_split split) {
    return data_batches(d, split) > 0;
}

int64_t data_batches(const dataset *d, data_split split) {
    if ((unsigned)split > SPLIT_TEST) return 0;
    return set_kinds[d->row->task].batches(d, split);
}

sr_status data_batch(dataset *d, data_split split, int64_t epoch, int64_t index, batch *b,
                     sr_failure *why) {
    int64_t batches = data_batches(d, split);
    if (index < 0 || index >= batches)
        return sr_fail(why, SR_USAGE, "%s: batch %lld is not one of %lld", d->row->name,
                       (long long)index, (long long)batches);
    const batch_place at = {split, epoch, index};
    if (!d->ahead) return make_batch(d, 0, at, b, why);
    const bool last = index == batches - 1;
    const batch_place next = {split, epoch + last, last ? 0 : index + 1};
    return prefetch_get(d->ahead, at, split == SPLIT_TRAIN ? &next : NULL, b, why);
}

const vocab *data_dictionary(const dataset *d, data_side side) {
    const set_kind *kind = &set_kinds[d->row->task];
    return kind->words ? kind->words(d, side) : NULL;
}

bool data_trees_of(const dataset *d, data_split split, data_trees *t) {
    return d->row->task == TASK_TREES && tree_set_trees(&d->trees, split, t);
}

/* -- pairs and their lines */

text_codec data_codec(const dataset *d) {
    return d->row->task == TASK_PAIRS ? pair_set_codec(&d->pairs) : (text_codec){0};
}

/* NULL when there is no such pair. */
static const pair_split *split_of(const dataset *d, data_split split, int64_t pair) {
    const pair_split *p = &d->pairs.split[split];
    return pair >= 0 && pair < p->count ? p : NULL;
}

int64_t data_pairs(const dataset *d, data_split split) {
    return d->pairs.split[split].count;
}

int64_t data_line_of(const dataset *d, data_split split, int64_t pair) {
    const pair_split *p = split_of(d, split, pair);
    return p ? p->record[pair] : -1;
}

data_line data_source(const dataset *d, data_split split, int64_t pair) {
    const pair_split *p = split_of(d, split, pair);
    if (!p) return (data_line){0};
    return pair_split_line(p, SIDE_SOURCE, p->record[p->partner[pair]]);
}

data_line data_reference(const dataset *d, data_split split, int64_t pair) {
    const pair_split *p = split_of(d, split, pair);
    return p ? pair_split_line(p, SIDE_TARGET, p->record[pair]) : (data_line){0};
}
