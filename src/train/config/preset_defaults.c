/* preset_defaults.c -- the settings of the sources for each model and preset: defaults that follow them. */
#include "train/trainer.h"

/* What the language models share: the tensorized transformer's scripts (docs/models.md 3.2), and
 * versions for two cores (11.3). The files are those of PTB unless the preset is another's. */
#define LM_RECIPE(model)                                                                           \
    {model, "", "data", "text"}, {model, "", "trainpref", "ptb.train.txt"},                        \
        {model, "", "validpref", "ptb.valid.txt"}, {model, "", "testpref", "ptb.test.txt"},        \
        {model, "", "norm", "ln"}, {model, "", "optimizer", "adam"},                               \
        {model, "", "adam-beta2", "0.999"}, {model, "", "weight-decay", "0"},                      \
        {model, "", "lr", "0.00025"}, {model, "", "lr-scheduler", "cosine"},                       \
        {model, "", "clip-norm", "0.25"}, {model, "", "batch-size", "120"},                        \
        {model, "", "tgt-len", "32"}, {model, "", "epochs", "83"},                                 \
        {model, "", "max-steps", "20000"}, {model, "ptb-mini", "batch-size", "64"},                \
        {model, "ptb-mini", "tgt-len", "20"}, {model, "ptb-mini", "lr", "0.001"},                  \
        {model, "ptb-mini", "epochs", "7"}, {model, "ptb-mini", "max-steps", "5000"},              \
        {model, "wikitext-2", "trainpref", "wiki.train.tokens"},                                   \
        {model, "wikitext-2", "validpref", "wiki.valid.tokens"},                                   \
        {model, "wikitext-2", "testpref", "wiki.test.tokens"},                                     \
        {model, "wikitext-2", "batch-size", "40"}, {model, "wikitext-2", "tgt-len", "32"},         \
        {model, "wikitext-2", "lr", "0.001"}, {model, "wikitext-2", "epochs", "3"}, {              \
        model, "wikitext-2", "max-steps", "4000"                                                   \
    }

/* One layer on reviews, so many tokens of each, <cls> and <sep> among them. */
#define IMDB_RECIPE(preset, length)                                                                \
    {"transformer_classifier", preset, "data", "labelled"},                                        \
        {"transformer_classifier", preset, "placement", "post"},                                   \
        {"transformer_classifier", preset, "trainpref", "train.tsv"},                              \
        {"transformer_classifier", preset, "validpref", ""},                                       \
        {"transformer_classifier", preset, "testpref", "test.tsv"},                                \
        {"transformer_classifier", preset, "valid-share", "0.3"},                                  \
        {"transformer_classifier", preset, "tokenize", "basic_english"},                           \
        {"transformer_classifier", preset, "vocab-size", "100000"},                                \
        {"transformer_classifier", preset, "min-count", "1"},                                      \
        {"transformer_classifier", preset, "mark-start", "yes"},                                   \
        {"transformer_classifier", preset, "mark-end", "yes"},                                     \
        {"transformer_classifier", preset, "max-length", length},                                  \
        {"transformer_classifier", preset, "pad-to", length},                                      \
        {"transformer_classifier", preset, "batch-by", "sentences"},                               \
        {"transformer_classifier", preset, "batch-size", "64"},                                    \
        {"transformer_classifier", preset, "batching", "random"},                                  \
        {"transformer_classifier", preset, "optimizer", "adamw"},                                  \
        {"transformer_classifier", preset, "adam-beta2", "0.999"},                                 \
        {"transformer_classifier", preset, "weight-decay", "0.01"},                                \
        {"transformer_classifier", preset, "lr-scheduler", "fixed"},                               \
        {"transformer_classifier", preset, "warmup-updates", "0"}, {                               \
        "transformer_classifier", preset, "epochs", "10"                                           \
    }

static const train_recipe recipes[] = {
    {"resnet18", "", "epochs", "200"}, /* docs/models.md 1.1: the common version's */
    {"resnet18", "", "lr-steps", "100,150"},
    {"resnet18", "mini", "epochs", "10"},
    {"resnet18", "mini", "lr-steps", "6,9"},
    {"mnist_cnn", "", "data", "idx"}, /* docs/models.md 7 */
    {"mnist_cnn", "", "norm", "ln"},
    {"mnist_cnn", "", "init", "pytorch"},
    {"mnist_cnn", "", "optimizer", "adam"},
    {"mnist_cnn", "", "adam-beta2", "0.999"},
    {"mnist_cnn", "", "lr", "0.001"},
    {"mnist_cnn", "", "lr-scheduler", "fixed"},
    {"mnist_cnn", "", "weight-decay", "0"},
    {"mnist_cnn", "", "batch-size", "32"},
    {"mnist_cnn", "", "epochs", "20"},
    {"mnist_cnn", "", "augment", "no"},
    {"transformer", "", "data", "synth-pairs"},
    {"transformer", "", "norm", "ln"},
    {"transformer", "", "optimizer", "adam-fairseq"}, /* docs/models.md 2.6 */
    {"transformer", "", "lr-scheduler", "inverse_sqrt"},
    {"transformer", "", "warmup-init-lr", "1e-7"},
    {"transformer", "", "warmup-updates", "8000"},
    {"transformer", "", "max-tokens", "4096"},
    {"transformer", "", "lr", "0.001"},
    {"transformer", "transformer_iwslt_de_en", "lr", "0.0005"},
    {"transformer", "transformer_big", "lr", "0.003"},
    {"transformer", "transformer_big", "weight-decay", "0"},
    {"transformer", "mini", "lr", "0.002"}, /* docs/models.md 11.3 */
    {"transformer", "mini", "warmup-updates", "400"},
    {"transformer", "mini", "max-tokens", "2048"},
    LM_RECIPE("tensorized"),
    {"tensorized", "", "placement", "post"},
    {"tensorized", "wikitext-103", "trainpref", "wiki.train.tokens"},
    {"tensorized", "wikitext-103", "validpref", "wiki.valid.tokens"},
    {"tensorized", "wikitext-103", "testpref", "wiki.test.tokens"},
    {"tensorized", "wikitext-103", "batch-size", "60"},
    {"tensorized", "wikitext-103", "tgt-len", "80"},
    {"tensorized", "wikitext-103", "epochs", "10"},
    {"tensorized", "wikitext-103", "max-steps", "200000"},
    {"transformer_xl", "", "data", "bytes"}, /* docs/models.md 4 */
    {"transformer_xl", "", "data-file", "enwik8"},
    {"transformer_xl", "", "norm", "ln"},
    {"transformer_xl", "", "placement", "post"},
    {"transformer_xl", "", "optimizer", "adam"},
    {"transformer_xl", "", "adam-beta2", "0.999"},
    {"transformer_xl", "", "weight-decay", "0"},
    {"transformer_xl", "", "lr", "0.00025"},
    {"transformer_xl", "", "lr-scheduler", "cosine"},
    {"transformer_xl", "", "clip-norm", "0.25"},
    {"transformer_xl", "", "batch-size", "22"},
    {"transformer_xl", "", "tgt-len", "512"},
    {"transformer_xl", "", "mem-len", "512"},
    {"transformer_xl", "", "eval-tgt-len", "80"},
    {"transformer_xl", "", "eval-mem-len", "2100"},
    {"transformer_xl", "", "eval-clamp-len", "820"},
    {"transformer_xl", "", "same-length", "yes"},
    {"transformer_xl", "", "epochs", "51"},
    {"transformer_xl", "", "max-steps", "400000"},
    {"transformer_xl", "enwik8-mini", "data-file", "enwik8.first4000000"}, /* docs/models.md 11.3 */
    {"transformer_xl", "enwik8-mini", "batch-size", "16"},
    {"transformer_xl", "enwik8-mini", "tgt-len", "64"},
    {"transformer_xl", "enwik8-mini", "mem-len", "64"},
    {"transformer_xl", "enwik8-mini", "eval-tgt-len", "64"},
    {"transformer_xl", "enwik8-mini", "eval-mem-len", "64"},
    {"transformer_xl", "enwik8-mini", "eval-clamp-len", "0"},
    {"transformer_xl", "enwik8-mini", "same-length", "no"},
    {"transformer_xl", "enwik8-mini", "lr", "0.002"},
    {"transformer_xl", "enwik8-mini", "epochs", "2"},
    {"transformer_xl", "enwik8-mini", "max-steps", "6000"},
    {"transformer_classifier", "", "data", "polarity"}, /* docs/models.md 6 */
    {"transformer_classifier", "", "trainpref", "rt-polarity"},
    {"transformer_classifier", "", "norm", "ln"},
    {"transformer_classifier", "", "placement", "pre"},
    {"transformer_classifier", "", "optimizer", "adam"},
    {"transformer_classifier", "", "adam-beta2", "0.998"},
    {"transformer_classifier", "", "weight-decay", "0"},
    {"transformer_classifier", "", "lr", "0.001"},
    {"transformer_classifier", "", "lr-scheduler", "inverse_sqrt"},
    {"transformer_classifier", "", "warmup-updates", "400"},
    {"transformer_classifier", "", "batch-by", "tokens"},
    {"transformer_classifier", "", "max-tokens", "4096"},
    {"transformer_classifier", "", "min-count", "2"},
    {"transformer_classifier", "", "epochs", "20"},
    {"transformer_classifier", "sst5", "data", "labelled"},
    {"transformer_classifier", "sst5", "trainpref", "stsa.fine.train"},
    {"transformer_classifier", "sst5", "validpref", "stsa.fine.dev"},
    {"transformer_classifier", "sst5", "testpref", "stsa.fine.test"},
    IMDB_RECIPE("imdb", "512"),
    IMDB_RECIPE("imdb-mini", "256"),
    LM_RECIPE("transformer_lm"),
    {"transformer_lm", "", "placement", "pre"},
    {"mlp_parser", "", "data", "trees"}, /* docs/models.md 8 */
    {"mlp_parser", "", "min-count", "2"},
    {"mlp_parser", "", "norm", "ln"},
    {"mlp_parser", "", "batch-size", "1024"},
    {"mlp_parser", "", "optimizer", "adam"},
    {"mlp_parser", "", "adam-beta2", "0.999"},
    {"mlp_parser", "", "weight-decay", "0"},
    {"mlp_parser", "", "lr", "0.001"},
    {"mlp_parser", "", "lr-scheduler", "fixed"},
    {"mlp_parser", "", "epochs", "20"},
    {"mlp_parser", "chen-manning", "norm", "none"},
    {"mlp_parser", "chen-manning", "optimizer", "adagrad"},
    {"mlp_parser", "chen-manning", "lr", "0.01"},
    {"mlp_parser", "chen-manning", "weight-decay", "1e-8"},
    {"mlp_parser", "ptb-sample", "data", "trees-cut"},
    {"mlp_parser", "ptb-sample", "data-file", "wsj_0001-0199.dp"},
    {"mlp_parser", "ptb-sample", "valid-count", "391"},
    {"mlp_parser", "ptb-sample", "test-count", "391"},
    {"mlp_parser", "ud-ewt", "trainpref", "en_ewt-ud-train.conllu"},
    {"mlp_parser", "ud-ewt", "validpref", "en_ewt-ud-dev.conllu"},
    {"mlp_parser", "ud-ewt", "testpref", "en_ewt-ud-test.conllu"},
    {"tener", "", "data", "conll"}, /* docs/models.md 5 */
    {"tener", "", "trainpref", "eng.train"},
    {"tener", "", "validpref", "eng.testa"},
    {"tener", "", "testpref", "eng.testb"},
    {"tener", "", "lowercase", "yes"},
    {"tener", "", "norm", "ln"},
    {"tener", "", "placement", "post"},
    {"tener", "", "batch-size", "16"},
    {"tener", "", "optimizer", "sgd"},
    {"tener", "", "lr", "0.0009"},
    {"tener", "", "lr-scheduler", "linear"},
    {"tener", "", "warmup-updates", "878"}, /* 1 % of 100 epochs of 878 updates */
    {"tener", "", "epochs", "100"},
    {"tener", "", "clip-value", "5"},
    {"tener", "", "weight-decay", "0"},
    {"tener", "resume", "trainpref", "train.char.bmes"},
    {"tener", "resume", "validpref", "dev.char.bmes"},
    {"tener", "resume", "testpref", "test.char.bmes"},
    {"tener", "resume", "tag-scheme", "bmes"},
    {"tener", "resume", "lr", "0.0007"},
    {"tener", "resume", "warmup-updates", "120"}, /* of 50 epochs of 239 updates */
    {"tener", "resume", "epochs", "50"},
    {"tener", "conll2003-mini", "optimizer", "adam"}, /* docs/models.md 11.3 */
    {"tener", "conll2003-mini", "adam-beta2", "0.999"},
    {"tener", "conll2003-mini", "lr", "0.001"},
    {"tener", "conll2003-mini", "warmup-updates", "132"}, /* of 15 epochs of 878 updates */
    {"tener", "conll2003-mini", "epochs", "15"},
};

const train_recipe *train_recipe_at(int i) {
    return i >= 0 && i < (int)(sizeof recipes / sizeof recipes[0]) ? &recipes[i] : NULL;
}
