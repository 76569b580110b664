/* config_data.c -- options of data sets in the table of a training run. */
#include <string.h>

#include "parse/trees.h"
#include "text/tags.h"
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

/* Of pairs always. */
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
    TEXT(DATA, "data", data.name, "synth-images", "data set, see `statrec list data`",
         .value = "DATA"),
    TEXT(DATA, "data-dir", data.dir, "", "directory of its files", .use = &of_files,
         .value = "DIRECTORY"),
    INT(DATA, "limit", data.limit, "0", 1, BIG, "records",
        "the first training records alone; 0: all"),

    TEXT(DATA, "trainpref", data.trainpref, "train",
         "training: pairs: files PREFIX.LANG[.gz]; polarity: PREFIX.neg[.gz] and .pos; other "
         "texts: file PREFIX[.gz]",
         .use = &of_data, .value = "PREFIX"),
    TEXT(DATA, "validpref", data.validpref, "valid", "the same of validation", .use = &of_data,
         .value = "PREFIX"),
    TEXT(DATA, "testpref", data.testpref, "test", "the same of the test (may be absent)",
         .use = &of_data, .value = "PREFIX"),
    TEXT(DATA, "data-file", data.file, "deu.txt",
         "tabbed, bytes, trees-cut: the file, plain or with .gz behind", .use = &of_data,
         .value = "FILE"),
    TEXT(DATA, "columns", data.columns, "en,de",
         "tabbed: languages of its columns; a line's first one decides its split", .use = &of_data),
    TEXT(DATA, "source", data.source, "de", "pairs: source language, the suffix of its files",
         .use = &of_data),
    TEXT(DATA, "target", data.target, "en", "pairs: target language", .use = &of_data),
    REAL(DATA, "valid-share", data.valid_share, "nan", 0, 0.9, "",
         "tabbed, labelled, bytes, trees-cut: share of the lines, bytes or sentences for "
         "validation; nan: 0.01, of labelled texts 0.1, of bytes 0.05",
         .use = &of_valid_share),
    REAL(DATA, "test-share", data.test_share, "nan", 0, 0.9, "", "the same for the test",
         .use = &of_test_share),
    INT(DATA, "valid-count", data.valid_count, "-1", 0, BIG, "sentences",
        "polarity, trees-cut: sentences of validation; -1: 964 of polarity, of trees by "
        "valid-share",
        .use = &of_counts),
    INT(DATA, "test-count", data.test_count, "-1", 0, BIG, "sentences",
        "the same for the test; -1: 1,090 of polarity, of trees by test-share", .use = &of_counts),
    INT(DATA, "valid-bytes", data.valid_bytes, "0", 1, 9007199254740992.0, "bytes",
        "bytes: of the validation, in front of the test; 0: by valid-share", .use = &of_data),
    INT(DATA, "test-bytes", data.test_bytes, "0", 1, 9007199254740992.0, "bytes",
        "bytes: of the test, at the end; 0: by test-share", .use = &of_data),
    TEXT(DATA, "fold", data.fold, "",
         "polarity: K/N, instead of the counts: part K is the test, the next one validation",
         .use = &of_data),

    INT(DATA, "valid-images", data.valid_images, "-1", 0, BIG, "images",
        "images: the last N training images are held out to validate on; 0: none; -1: idx: a "
        "twelfth, as MNIST's 5,000 of 60,000; CIFAR: none, the test batch is validated on",
        .use = &of_data),
    FLAG(DATA, "augment", data.augment, "yes", "images: random crop of the padded image, mirror",
         .use = &of_data),
    TEXT(DATA, "idx-train-images", data.idx_train_images, "train-images-idx3-ubyte",
         "idx: file of the training images", .use = &of_data, .value = "FILE"),
    TEXT(DATA, "idx-train-labels", data.idx_train_labels, "train-labels-idx1-ubyte",
         "idx: of their labels", .use = &of_data, .value = "FILE"),
    TEXT(DATA, "idx-test-images", data.idx_test_images, "t10k-images-idx3-ubyte",
         "idx: of the test images (may be absent)", .use = &of_data, .value = "FILE"),
    TEXT(DATA, "idx-test-labels", data.idx_test_labels, "t10k-labels-idx1-ubyte",
         "idx: of their labels", .use = &of_data, .value = "FILE"),
    FLAG(DATA, "idx-transpose", data.idx_transpose, "no",
         "idx: rows of the file are columns of the image, as EMNIST has them", .use = &of_data),
    INT(DATA, "idx-classes", data.idx_classes, "0", 2, 256, "classes",
        "idx: labels go from the least one on; 0: up to the largest one, each of them there",
        .use = &of_data),

    CHOICE(DATA, "encoding", data.encoding, "auto", ENCODING_WORDS,
           "of text files; latin-1: Windows-1252; auto: that where a file is not UTF-8",
           .use = &of_data),
    CHOICE(
        DATA, "tokenize", tokenize, "none", "none|13a|intl|basic_english",
        "how lines are cut into words, as the tokenizers of BLEU do, or as torchtext's, in small "
        "letters; none: at blanks alone",
        .use = &of_data),
    FLAG(DATA, "lowercase", lowercase, "no", "words in small letters", .use = &of_data),
    INT(DATA, "bpe-merges", data.bpe_merges, "0", 1, BIG, "merges",
        "pairs: byte-pair encoding, so many merges learnt from the training text of both "
        "languages; 0: none",
        .use = &of_data),
    TEXT(DATA, "bpe-codes", data.bpe_codes, "",
         "pairs: byte-pair encoding with the merges of this file, of `statrec bpe learn` or "
         "subword-nmt",
         .use = &of_data, .value = "FILE"),
    CHOICE(DATA, "dictionary", data.dictionary, "joint", "joint|separate",
           "pairs: of both languages together, with one embedding, or one of each",
           .use = &of_data),
    INT(DATA, "vocab-size", data.vocab_size, "0", 8, BIG, "words",
        "size of a dictionary, specials included; 0: every word", .use = &of_counting),
    INT(DATA, "min-count", data.min_count, "1", 1, BIG, "",
        "classified or tagged sentences, trees: words that the training text has less often are "
        "<unk>",
        .use = &of_data),
    TEXT(DATA, "source-dictionary", data.source_dictionary, "",
         "pairs: file of `word count` lines, as `statrec dictionary` and fairseq write it, instead "
         "of counting; of both languages when the dictionary is joint",
         .use = &of_data, .value = "FILE"),
    TEXT(DATA, "target-dictionary", data.target_dictionary, "", "the same of the target language",
         .use = &of_data, .value = "FILE"),

    INT(DATA, "batch-size", data.batch_size, "128", 1, 65536, "",
        "images, sentences or transitions per step; running text: sequences side by side",
        .use = &of_number),
    CHOICE(DATA, "batch-by", data.batch_by, "sentences", "sentences|tokens",
           "classified or tagged sentences: a batch is batch-size of them, or as many as "
           "max-tokens allows",
           .use = &of_data),
    INT(DATA, "max-tokens", data.max_tokens, "2048", 8, 1 << 20, "tokens",
        "texts: padded tokens per step, of pairs on the longer side", .use = &of_tokens),
    CHOICE(DATA, "max-tokens-of", data.max_tokens_of, "padded", "padded|valid",
           "what max-tokens counts: padded positions, or words and </s> alone: then it bounds the "
           "rows of a batch whatever --batching, but neither its padding nor its memory",
           .use = &of_tokens),
    CHOICE(DATA, "batching", data.batching, "bucketed", "bucketed|sorted|random",
           "texts: sentences or pairs of like length together, batches in random order; the same, "
           "shortest first; drawn at random",
           .use = &of_data),
    INT(DATA, "max-length", data.max_length, "0", 1, 1 << 20, "tokens",
        "classified sentences: words and marks of one, the rest is cut off; 0: nothing is",
        .use = &of_data),
    INT(DATA, "pad-to", data.pad_to, "0", 1, 1 << 20, "tokens",
        "classified sentences: length of every batch; 0: that of its longest sentence",
        .use = &of_data),
    FLAG(DATA, "mark-start", data.mark_start, "no",
         "classified sentences: <s> in front, which serves as <cls>", .use = &of_data),
    FLAG(DATA, "mark-end", data.mark_end, "no", "classified sentences: </s> behind",
         .use = &of_data),

    INT(DATA, "eval-batch-size", data.eval_batch_size, "10", 1, 65536, "sequences",
        "running text: sequences side by side in evaluation", .use = &of_data),
    INT(DATA, "tgt-len", data.window, "32", 1, 65536, "tokens",
        "running text: tokens of each sequence per step", .use = &of_data),
    INT(DATA, "eval-tgt-len", data.eval_window, "0", 1, 65536, "tokens",
        "running text: the same in evaluation; 0: tgt-len", .use = &of_evaluation),
    FLAG(DATA, "eos-on-empty-lines", data.eos_of_empty, "yes",
         "running text: an empty line gives an <eos> too", .use = &of_data),

    INT(DATA, "word-column", data.word_column, "1", 1, 1000, "",
        "tags: column of the words, from 1", .use = &of_data),
    INT(DATA, "tag-column", data.tag_column, "0", 1, 1000, "",
        "tags: column of the tags; 0: the last one", .use = &of_data),
    CHOICE(DATA, "tag-scheme", data.tag_scheme, "bioes", TAG_SCHEME_WORDS,
           "tags: the scheme that is learnt", .use = &of_data),
    CHOICE(DATA, "file-tag-scheme", data.file_tag_scheme, "auto", "auto|" TAG_SCHEME_WORDS,
           "tags: the scheme of the files, which decides what is refused; auto: recognised in each",
           .use = &of_data),
    FLAG(DATA, "zero-digits", data.zero_digits, "yes", "tags: digits of words become 0",
         .use = &of_data),

    CHOICE(DATA, "tree-format", data.tree_format, "auto", TREE_FORMAT_WORDS,
           "trees: format of the files; auto: by their columns", .use = &of_data),
    CHOICE(DATA, "pos-column", data.pos_column, "auto", TREE_POS_WORDS,
           "trees: column of the POS tags, CPOSTAG or UPOS, POSTAG or XPOS; auto: coarse of "
           "conllu, else fine",
           .use = &of_data),
    CHOICE(
        DATA, "punctuation", data.punctuation, "auto", TREE_PUNCTUATION_WORDS,
        "trees: what scores without punctuation leave out, see `statrec score dep --help`; auto: "
        "ptb-tags of malt-tab, else unicode",
        .use = &of_data),
    CHOICE(
        DATA, "subtypes", data.subtypes, "auto", TREE_SUBTYPES_WORDS,
        "trees: what scores make of what follows a colon in a label; auto: ignored of conllu alone",
        .use = &of_data),

    FLAG(DATA, "shuffle-sources", data.shuffle_sources, "no",
         "pairs: control experiment, sources permuted among the pairs", .use = &of_data),
    FLAG(DATA, "prefetch", data.prefetch, "yes",
         "a thread makes the next training batch while the last one is computed with; the result "
         "does not depend on it"),
};

const option_table config_data = {rows, sizeof rows / sizeof rows[0]};
