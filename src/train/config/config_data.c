/* config_data.c -- options of data sets in the table of a training run. */
#include <string.h>

#include "parse/trees.h"
#include "text/tag_column.h"
#include "train/config/config_rows.h"

static bool reads_files(const void *values) {
    const train_config *c = values;
    return data_reads_files(c->data.name);
}

/* Words are counted for a dictionary: not where each one is read. */
static bool counts_words(const void *values) {
    const train_config *c = values;
    const bool source = *c->data.source_dictionary, target = *c->data.target_dictionary;
    if (!data_reads_files(c->data.name)) return true;
    return strcmp(c->data.dictionary, "separate") ? !source && !target : !source || !target;
}

static bool by_number(const void *values) {
    const train_config *c = values;
    return strcmp(c->data.batch_by, "tokens") != 0;
}

/* Always for pairs. */
static bool by_tokens(const void *values) {
    return !config_data_lists(values, "batch-by") || !by_number(values);
}

/* "tabbed" lists no validpref. */
static bool has_no_valid(const void *values) {
    const train_config *c = values;
    return !config_data_lists(values, "validpref") || !*c->data.validpref;
}

/* A share has no effect where the sentences or the bytes of the split are given. */
static bool has_no_valid_count(const void *values) {
    const train_config *c = values;
    return !config_data_lists(values, "valid-count") || c->data.valid_count < 0;
}

static bool has_no_valid_bytes(const void *values) {
    const train_config *c = values;
    return !config_data_lists(values, "valid-bytes") || c->data.valid_bytes == 0;
}

static bool has_no_test_count(const void *values) {
    const train_config *c = values;
    return !config_data_lists(values, "test-count") || c->data.test_count < 0;
}

static bool has_no_test_bytes(const void *values) {
    const train_config *c = values;
    return !config_data_lists(values, "test-bytes") || c->data.test_bytes == 0;
}

static bool counts_lines(const void *values) {
    const train_config *c = values;
    return !*c->data.fold;
}

static const option_use
    of_data = {.with = "data", .obeys = config_data_lists},
    of_evaluation = {.with = "model", .obeys = config_model_lists, .and = &of_data},
    of_tokens = {.with = "batch-by", .holds = by_tokens, .and = &of_data},
    of_number = {.with = "batch-by", .holds = by_number, .and = &of_data},
    of_uncounted_valid = {.with = "valid-count", .holds = has_no_valid_count, .and = &of_data},
    of_unmeasured_valid = {.with = "valid-bytes",
                           .holds = has_no_valid_bytes,
                           .and = &of_uncounted_valid},
    of_valid_share = {.with = "validpref", .holds = has_no_valid, .and = &of_unmeasured_valid},
    of_uncounted_test = {.with = "test-count", .holds = has_no_test_count, .and = &of_data},
    of_test_share = {.with = "test-bytes", .holds = has_no_test_bytes, .and = &of_uncounted_test},
    of_files = {.with = "data", .holds = reads_files},
    of_counting = {.with = "source-dictionary", .holds = counts_words, .and = &of_data},
    of_counts = {.with = "fold", .holds = counts_lines, .and = &of_data};

static const option rows[] = {
    TEXT(DATA, "data", data.name, "synth-images", "set the data set; `statrec list data`",
         .value = "DATA", .common = true),
    TEXT(DATA, "data-dir", data.dir, "", "read its files in this directory", .use = &of_files,
         .value = "DIRECTORY", .common = true),
    INT(DATA, "limit", data.limit, "0", 1, BIG, "records",
        "use the first N training records; 0: all"),

    TEXT(DATA, "trainpref", data.trainpref, "train",
         "training files: pairs: PREFIX.LANG[.gz]; polarity: PREFIX.neg[.gz] and .pos; other "
         "texts: PREFIX[.gz]",
         .use = &of_data, .value = "PREFIX"),
    TEXT(DATA, "validpref", data.validpref, "valid", "validation files, named as by trainpref",
         .use = &of_data, .value = "PREFIX"),
    TEXT(DATA, "testpref", data.testpref, "test",
         "test files, named as by trainpref (may be missing)", .use = &of_data, .value = "PREFIX"),
    TEXT(DATA, "data-file", data.file, "deu.txt",
         "tabbed, bytes, trees-cut: read this file, plain or .gz", .use = &of_data,
         .value = "FILE"),
    TEXT(DATA, "columns", data.columns, "en,de",
         "tabbed: name the languages of the columns; a line's first column decides its split",
         .use = &of_data),
    TEXT(DATA, "source", data.source, "de",
         "pairs: set the source language, the suffix of its files", .use = &of_data),
    TEXT(DATA, "target", data.target, "en", "pairs: set the target language", .use = &of_data),
    REAL(DATA, "valid-share", data.valid_share, "nan", 0, 0.9, "",
         "tabbed, labelled, bytes, trees-cut: use the fraction X of lines, bytes or sentences for "
         "validation; nan: 0.01, labelled texts 0.1, bytes 0.05",
         .use = &of_valid_share),
    REAL(DATA, "test-share", data.test_share, "nan", 0, 0.9, "",
         "use the fraction X for the test, as valid-share", .use = &of_test_share),
    INT(DATA, "valid-count", data.valid_count, "-1", 0, BIG, "sentences",
        "polarity, trees-cut: validate on N sentences; -1: polarity 964, trees by valid-share",
        .use = &of_counts),
    INT(DATA, "test-count", data.test_count, "-1", 0, BIG, "sentences",
        "polarity, trees-cut: test on N sentences; -1: polarity 1,090, trees by test-share",
        .use = &of_counts),
    INT(DATA, "valid-bytes", data.valid_bytes, "0", 1, 9007199254740992.0, "bytes",
        "bytes: validate on the N bytes before the test; 0: by valid-share", .use = &of_data),
    INT(DATA, "test-bytes", data.test_bytes, "0", 1, 9007199254740992.0, "bytes",
        "bytes: test on the last N bytes; 0: by test-share", .use = &of_data),
    TEXT(DATA, "fold", data.fold, "",
         "polarity: K/N replaces the counts: part K is the test, the next one validation",
         .use = &of_data),

    INT(DATA, "valid-images", data.valid_images, "-1", 0, BIG, "images",
        "images: validate on the last N training images; -1: idx a twelfth, CIFAR the test batch",
        .use = &of_data),
    FLAG(DATA, "augment", data.augment, "yes", "images: crop the padded image at random, mirror it",
         .use = &of_data),
    TEXT(DATA, "idx-train-images", data.idx_train_images, "train-images-idx3-ubyte",
         "idx: file of the training images", .use = &of_data, .value = "FILE"),
    TEXT(DATA, "idx-train-labels", data.idx_train_labels, "train-labels-idx1-ubyte",
         "idx: file of the training labels", .use = &of_data, .value = "FILE"),
    TEXT(DATA, "idx-test-images", data.idx_test_images, "t10k-images-idx3-ubyte",
         "idx: file of the test images (may be missing)", .use = &of_data, .value = "FILE"),
    TEXT(DATA, "idx-test-labels", data.idx_test_labels, "t10k-labels-idx1-ubyte",
         "idx: file of the test labels", .use = &of_data, .value = "FILE"),
    FLAG(DATA, "idx-transpose", data.idx_transpose, "no",
         "idx: transpose images, whose columns are rows of the file, as in EMNIST",
         .use = &of_data),
    INT(DATA, "idx-classes", data.idx_classes, "0", 2, 256, "classes",
        "idx: set the classes, from the least label; 0: count them", .use = &of_data),

    CHOICE(DATA, "labels", data.labels, "single", "single|first",
           "labelled: refuse lines with several __label__ words of fastText, or take the first",
           .use = &of_data),
    CHOICE(DATA, "encoding", data.encoding, "auto", ENCODING_WORDS,
           "decode text files; latin-1: Windows-1252; auto: Windows-1252 where a file is not UTF-8",
           .use = &of_data),
    CHOICE(DATA, "tokenize", tokenize, "none", "none|13a|intl|basic_english",
           "split lines into words by a tokenizer of BLEU or by basic_english (lower case); none: "
           "at blanks",
           .use = &of_data),
    FLAG(DATA, "lowercase", lowercase, "no", "write words in small letters", .use = &of_data),
    INT(DATA, "bpe-merges", data.bpe_merges, "0", 1, BIG, "merges",
        "pairs: learn N merges of byte-pair encoding for both languages; 0: none", .use = &of_data),
    TEXT(DATA, "bpe-codes", data.bpe_codes, "",
         "pairs: apply the merges in this file of `statrec bpe learn` or subword-nmt",
         .use = &of_data, .value = "FILE"),
    CHOICE(DATA, "dictionary", data.dictionary, "joint", "joint|separate",
           "pairs: joint: one dictionary and embedding; separate: one per language",
           .use = &of_data),
    INT(DATA, "vocab-size", data.vocab_size, "0", 8, BIG, "words",
        "limit a dictionary to N words, specials included; of pairs, padding to a multiple of 8 is "
        "added; 0: every word",
        .use = &of_counting),
    INT(DATA, "min-count", data.min_count, "1", 1, BIG, "",
        "classified or tagged sentences, trees: replace words with fewer than N occurrences by "
        "<unk>",
        .use = &of_data),
    TEXT(DATA, "source-dictionary", data.source_dictionary, "",
         "pairs: read `word count` lines instead of counting; joint dictionary: of both languages",
         .use = &of_data, .value = "FILE"),
    TEXT(DATA, "target-dictionary", data.target_dictionary, "",
         "pairs: read the dictionary of the target language", .use = &of_data, .value = "FILE"),

    INT(DATA, "batch-size", data.batch_size, "128", 1, 65536, "",
        "put N images, sentences or transitions into a step; running text: N sequences",
        .use = &of_number, .common = true),
    CHOICE(DATA, "batch-by", data.batch_by, "sentences", "sentences|tokens",
           "classified or tagged sentences: fill a batch with batch-size sentences, or with "
           "max-tokens tokens",
           .use = &of_data),
    INT(DATA, "max-tokens", data.max_tokens, "2048", 8, 1 << 20, "tokens",
        "texts: limit a step to N padded tokens; pairs: tokens of the longer side",
        .use = &of_tokens, .common = true),
    CHOICE(DATA, "max-tokens-of", data.max_tokens_of, "padded", "padded|valid",
           "count padded positions, or only valid ones (which limits rows, not memory)",
           .use = &of_tokens),
    CHOICE(DATA, "batching", data.batching, "bucketed", "bucketed|sorted|random",
           "texts: bucketed: similar lengths, shuffled batches; sorted: shortest first; random: no "
           "order",
           .use = &of_data),
    INT(DATA, "max-length", data.max_length, "0", 1, 1 << 20, "tokens",
        "classified sentences: cut after N words and marks; 0: no limit", .use = &of_data),
    INT(DATA, "pad-to", data.pad_to, "0", 1, 1 << 20, "tokens",
        "classified sentences: pad every batch to length N, and cut longer sentences; 0: pad to "
        "its longest sentence",
        .use = &of_data),
    FLAG(DATA, "mark-start", data.mark_start, "no",
         "classified sentences: put <s> first, which serves as <cls>", .use = &of_data),
    FLAG(DATA, "mark-end", data.mark_end, "no", "classified sentences: put </s> last",
         .use = &of_data),

    INT(DATA, "eval-batch-size", data.eval_batch_size, "10", 1, 65536, "sequences",
        "running text: evaluate N sequences side by side", .use = &of_data),
    INT(DATA, "tgt-len", data.window, "32", 1, 65536, "tokens",
        "running text: use N tokens of each sequence per step", .use = &of_data),
    INT(DATA, "eval-tgt-len", data.eval_window, "0", 1, 65536, "tokens",
        "running text: use N tokens in evaluation; 0: tgt-len", .use = &of_evaluation),
    FLAG(DATA, "eos-on-empty-lines", data.eos_of_empty, "yes",
         "running text: append <eos> to empty lines, too", .use = &of_data),

    INT(DATA, "word-column", data.word_column, "1", 1, 1000, "",
        "tags: read words in column N, from 1", .use = &of_data),
    INT(DATA, "tag-column", data.tag_column, "0", 1, 1000, "",
        "tags: read tags in column N; 0: the last one", .use = &of_data),
    CHOICE(DATA, "delimiter", data.delimiter, "blank", "blank|tab",
           "tags: cut lines into columns at spaces and tabs, or at tabs alone", .use = &of_data),
    CHOICE(DATA, "tag-scheme", data.tag_scheme, "bioes", TAG_SCHEME_WORDS,
           "tags: learn tags in this scheme", .use = &of_data),
    CHOICE(DATA, "file-tag-scheme", data.file_tag_scheme, "auto", "auto|" TAG_SCHEME_WORDS,
           "tags: reject letters that this scheme lacks; auto: recognize the scheme of a file",
           .use = &of_data),
    FLAG(DATA, "zero-digits", data.zero_digits, "yes", "tags: replace digits in words by 0",
         .use = &of_data),

    CHOICE(DATA, "tree-format", data.tree_format, "auto", TREE_FORMAT_WORDS,
           "trees: read files in this format; auto: by their columns", .use = &of_data),
    CHOICE(DATA, "pos-column", data.pos_column, "auto", TREE_POS_WORDS,
           "trees: read POS tags in this column; auto: coarse for conllu, else fine",
           .use = &of_data),
    CHOICE(DATA, "punctuation", data.punctuation, "auto", TREE_PUNCTUATION_WORDS,
           "trees: skip this punctuation in scores; auto: ptb-tags for malt-tab, else unicode",
           .use = &of_data),
    CHOICE(DATA, "subtypes", data.subtypes, "auto", TREE_SUBTYPES_WORDS,
           "trees: treat label parts after a colon in scores; auto: ignored for conllu only",
           .use = &of_data),

    FLAG(DATA, "shuffle-sources", data.shuffle_sources, "no",
         "pairs: permute sources among the pairs (control experiment)", .use = &of_data),
    FLAG(DATA, "prefetch", data.prefetch, "yes",
         "build the next training batch in a thread, with the same result"),
};

const option_table config_data = {rows, sizeof rows / sizeof rows[0]};
