/* config_sentences.c -- options of classifiers and of data sets of sentences and of tags in the table of a training
 * run. */
#include "config_rows.h"
#include "statnet/tags.h"

static bool counts_lines(const void *values) {
    const train_config *c = values;
    return !*c->data.fold;
}

static const option_use of_model = {.with = "model", .obeys = config_model_lists},
                        of_data = {.with = "data", .obeys = config_data_lists},
                        of_counts = {.with = "fold", .holds = counts_lines, .and = &of_data};

const option config_classifier[CLASSIFIER_OPTIONS] = {
    INT(MODEL, "key-size", model.key_size, "0", 1, 1024, "",
        "features of a head's queries and keys; 0: the preset's", .use = &of_model),
    INT(MODEL, "value-size", model.value_size, "0", 1, 1024, "", "of its values; 0: the preset's",
        .use = &of_model),
    CHOICE(MODEL, "pooling", model.pooling, "", "mean|cls",
           "sentences: mean over the words, or row of <s> (--mark-start); empty: the preset's",
           .use = &of_model),
    CHOICE(MODEL, "positions", model.positions, "", "sinusoidal|none",
           "sentences: what is added to the embedding; empty: the preset's", .use = &of_model),
    CHOICE(MODEL, "linear-init", model.linear_init, "", "xavier|fan-in",
           "linear layers: Xavier's rule, or U(1/sqrt(fan_in)); empty: the preset's, else xavier",
           .use = &of_model),
};

const option config_sentences[SENTENCE_OPTIONS] = {
    CHOICE(DATA, "batch-by", data.batch_by, "sentences", "sentences|tokens",
           "sentences: a batch is batch-size of them, or as many as max-tokens allows",
           .use = &of_data),
    INT(DATA, "pad-to", data.pad_to, "0", 1, 1 << 20, "tokens",
        "sentences: length of every batch; 0: that of its longest sentence", .use = &of_data),
    INT(DATA, "max-length", data.max_length, "0", 1, 1 << 20, "tokens",
        "sentences: of words and marks, the rest is cut off; 0: nothing is", .use = &of_data),
    FLAG(DATA, "mark-start", data.mark_start, "no",
         "sentences: <s> in front, which serves as <cls>", .use = &of_data),
    FLAG(DATA, "mark-end", data.mark_end, "no", "sentences: </s> behind", .use = &of_data),
    INT(DATA, "min-count", data.min_count, "1", 1, BIG, "",
        "sentences: words that the training text has less often are <unk>", .use = &of_data),
    CHOICE(DATA, "encoding", data.encoding, "auto", ENCODING_WORDS,
           "of the files; latin-1: Windows-1252; auto: that where a file is no UTF-8",
           .use = &of_data),
    INT(DATA, "valid-count", data.valid_count, "964", 0, BIG, "lines",
        "polarity: drawn for validation", .use = &of_counts),
    INT(DATA, "test-count", data.test_count, "1090", 0, BIG, "lines", "polarity: for the test",
        .use = &of_counts),
    TEXT(DATA, "fold", data.fold, "",
         "polarity: K/N, instead of the counts: part K is the test, the next one validation",
         .use = &of_data),
    CHOICE(DATA, "tag-scheme", data.tag_scheme, "bioes", TAG_SCHEME_WORDS,
           "tags: the scheme that they are converted to for training", .use = &of_data),
    CHOICE(DATA, "file-tag-scheme", data.file_tag_scheme, "auto", "auto|" TAG_SCHEME_WORDS,
           "tags: the scheme of the files; auto: recognised in each; it decides what is refused",
           .use = &of_data),
    INT(DATA, "word-column", data.word_column, "1", 1, 1000, "", "tags: column of the words",
        .use = &of_data),
    INT(DATA, "tag-column", data.tag_column, "0", 1, 1000, "", "tags: of the tags; 0: the last one",
        .use = &of_data),
    FLAG(DATA, "zero-digits", data.zero_digits, "yes", "tags: digits of words are read as 0",
         .use = &of_data),
};
