/* split_options.c -- options that have no effect without a validation or a test split: rejected if
 * the data have none, with the option that gives one. */
#include "train/trainer.h"

typedef struct split_option {
    const char *key;
    data_split split;
    bool (*given)(const train_config *c);
} split_option;

static bool stops_early(const train_config *c) {
    return c->patience > 0;
}

static bool keeps_best(const train_config *c) {
    return *c->keep_best;
}

static bool validates_batch(const train_config *c) {
    return c->validate_batch;
}

/* With --test it is computed for the test, too. */
static bool decodes_validation(const train_config *c) {
    return c->bleu_every > 0 && !c->test;
}

static bool tests(const train_config *c) {
    return c->test;
}

static const split_option rows[] = {{"patience", SPLIT_VALID, stops_early},
                                    {"keep-best", SPLIT_VALID, keeps_best},
                                    {"validate-batch", SPLIT_VALID, validates_batch},
                                    {"bleu-every", SPLIT_VALID, decodes_validation},
                                    {"test", SPLIT_TEST, tests}};

/* Options of data sets that make a split; the first one that the data set obeys is the hint. */
static const struct {
    data_split split;
    const char *key, *hint;
} sources[] = {
    {SPLIT_VALID, "validpref", "--validpref names its files"},
    {SPLIT_VALID, "valid-images", "--valid-images N takes it from the training images"},
    {SPLIT_VALID, "valid-share", "--valid-share X takes it from the training text"},
    {SPLIT_VALID, "valid-count", "--valid-count N takes it from the training text"},
    {SPLIT_TEST, "testpref", "--testpref names its files"},
    {SPLIT_TEST, "idx-test-images", "--idx-test-images names its file, which is missing"},
    {SPLIT_TEST, "valid-images",
     "--valid-images N holds training images out, and the test images are the test"},
    {SPLIT_TEST, "test-share", "--test-share X takes it from the training text"},
    {SPLIT_TEST, "test-count", "--test-count N takes it from the training text"},
};

static sr_status refuse(const trainer *r, const split_option *o, sr_failure *why) {
    const char *data = r->config->data.name;
    sr_fail(why, SR_USAGE, "--%s: %s has no %s split here", o->key, data,
            o->split == SPLIT_VALID ? "validation" : "test");
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        if (sources[i].split == o->split && data_obeys(data, sources[i].key)) {
            sr_hint(why, "%s", sources[i].hint);
            break;
        }
    return SR_USAGE;
}

sr_status trainer_check_splits(const trainer *r, sr_failure *why) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const split_option *o = &rows[i];
        /* a resumed run has the options that its version accepted */
        if (r->from && !train_resume_may_change(o->key)) continue;
        if (o->given(r->config) && !data_has_split(r->data, o->split)) return refuse(r, o, why);
    }
    return SR_OK;
}
