/* config.c -- the option table of a training run: the rows of its parts, and between them those of the
 * normalizations' own parameters. */
#include <string.h>

#include "config_rows.h"

enum { MOST = 256 };

static void append(option all[MOST], int *count, option_table part) {
    memcpy(all + *count, part.row, (size_t)part.count * sizeof *all);
    *count += part.count;
}

static bool is_text(const void *values) {
    return task_in(values)->text;
}

/* The model, the data set and the options that their rows list. */
static bool model_lists(const void *values, const char *key) {
    const train_config *c = values;
    return model_obeys(c->model.name, key);
}

static bool data_lists(const void *values, const char *key) {
    const train_config *c = values;
    return data_obeys(c->data.name, key);
}

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

static bool wants_bleu(const void *values) {
    const train_config *c = values;
    return c->bleu_every > 0;
}

static bool is_smoothed(const void *values) {
    const train_config *c = values;
    return (isnan(c->label_smoothing) ? task_in(c)->label_smoothing : c->label_smoothing) > 0;
}

static bool is_sgd(const void *values) {
    const train_config *c = values;
    return !strcmp(c->optimizer, "sgd");
}

static bool is_adam(const void *values) {
    return !is_sgd(values);
}

static bool has_momentum(const void *values) {
    const train_config *c = values;
    return c->optim.momentum > 0;
}

static bool is_stepped(const void *values) {
    const train_config *c = values;
    return !strcmp(c->scheduler, "step");
}

static bool is_cosine(const void *values) {
    const train_config *c = values;
    return !strcmp(c->scheduler, "cosine");
}

static bool has_milestones(const void *values) {
    const train_config *c = values;
    return *c->lr_steps;
}

static bool warms_up(const void *values) {
    const train_config *c = values;
    return c->warmup_updates > 0;
}

static bool has_patience(const void *values) {
    const train_config *c = values;
    return c->patience > 0;
}

static bool has_run_file(const void *values) {
    const train_config *c = values;
    return *c->output;
}

static bool has_dump(const void *values) {
    const train_config *c = values;
    return *c->dump_weights || *c->dump_batches;
}

static bool has_any_file(const void *values) {
    return has_run_file(values) || has_dump(values);
}

static bool has_checkpoints(const void *values) {
    const train_config *c = values;
    return *c->output || *c->checkpoint;
}

static bool records_sites(const void *values) {
    const train_config *c = values;
    return strcmp(c->record, "none") != 0;
}

static bool records_vectors(const void *values) {
    const train_config *c = values;
    return !strcmp(c->record, "all");
}

static bool spaces_vectors(const void *values) {
    const train_config *c = values;
    return c->vectors_every < 0;
}

static bool has_final_pass(const void *values) {
    const train_config *c = values;
    return c->final_tid;
}

static bool has_presets(const void *values) {
    const train_config *c = values;
    return *model_find(c->model.name)->presets;
}

static const option_use
    of_presets = {.with = "model", .holds = has_presets},
    of_model = {.with = "model", .obeys = model_lists},
    of_data = {.with = "data", .obeys = data_lists},
    of_files = {.with = "data", .holds = reads_files},
    of_counting = {.with = "source-dictionary", .holds = counts_words, .and = &of_data},
    of_bleu = {.with = "bleu-every", .holds = wants_bleu, .and = &of_data},
    of_smoothing = {.with = "label-smoothing", .holds = is_smoothed},
    of_sgd = {.with = "optimizer", .holds = is_sgd},
    of_momentum = {.with = "momentum", .holds = has_momentum, .and = &of_sgd},
    of_adam = {.with = "optimizer", .holds = is_adam},
    of_steps = {.with = "lr-scheduler", .holds = is_stepped},
    of_milestones = {.with = "lr-steps", .holds = has_milestones, .and = &of_steps},
    of_cosine = {.with = "lr-scheduler", .holds = is_cosine},
    of_warmup = {.with = "warmup-updates", .holds = warms_up},
    of_patience = {.with = "patience", .holds = has_patience},
    of_run_file = {.with = "output", .holds = has_run_file},
    of_any_file = {.with = "output", .holds = has_any_file},
    of_embedding = {.with = "model", .holds = is_text, .and = &of_run_file},
    of_sites = {.with = "record", .holds = records_sites},
    of_vectors = {.with = "record", .holds = records_vectors},
    of_spacing = {.with = "vectors-every", .holds = spaces_vectors, .and = &of_vectors},
    of_final = {.with = "final-tid", .holds = has_final_pass, .and = &of_sites},
    of_dump = {.with = "dump-weights", .holds = has_dump},
    of_checkpoints = {.with = "output", .holds = has_checkpoints};

static const option first_rows[] = {
    TEXT(MODEL, "model", model.name, "resnet20", "model, see `statrec list models`"),
    TEXT(MODEL, "preset", model.preset, "",
         "sizes of a model and what goes with them, see `statrec list presets`",
         .use = &of_presets),
    TEXT(MODEL, "preset", model.preset, "", "sizes of a model, see `statrec list models`",
         .use = &of_model),
    TEXT(MODEL, "norm", model.norm, "bn",
         "normalization of all sites; of a transformer: of its encoder; METHOD+ls: behind a layer "
         "scale"),
    TEXT(MODEL, "decoder-norm", model.decoder_norm, "ln",
         "normalization of a transformer's decoder", .use = &of_model),
    TEXT(MODEL, "norm-at", model.norm_at, "",
         "normalization by site, globs as in 'encoder.0.*=bn,encoder.*=ln': first match wins"),
    REAL(MODEL, "norm-eps", model.norm_eps, "nan", 0, 1, "",
         "added to the variance or mean square; nan: the method's, see `statrec list norms`"),
    REAL(MODEL, "norm-alpha", model.norm_alpha, "nan", 0, 1, "",
         "weight of the OLD running value; nan: the method's (0.95, for images 0.9)"),
    INT(MODEL, "layer-scale", model.layer_scale, "0", 0, 4096, "groups",
        "layer scale in front of every normalization; 0: where METHOD+ls or the method has one"),
};
/* Here stand the options of the methods' own parameters, from norm_option_at. */
static const option rows[] = {
    INT(MODEL, "embed-dim", model.embed_dim, "0", 1, 65536, "", "width d; 0: the preset's",
        .use = &of_model),
    INT(MODEL, "ffn-dim", model.ffn_dim, "0", 1, 65536, "",
        "inner width of the FFN; 0: the preset's", .use = &of_model),
    INT(MODEL, "heads", model.heads, "0", 1, 1024, "", "attention heads; 0: the preset's",
        .use = &of_model),
    INT(MODEL, "encoder-layers", model.encoder_layers, "0", 1, 64, "", "0: the preset's",
        .use = &of_model),
    INT(MODEL, "decoder-layers", model.decoder_layers, "0", 1, 64, "", "0: the preset's",
        .use = &of_model),
    INT(MODEL, "layers", model.layers, "0", 1, 110, "",
        "of a language model; 0: the preset's; of resnet20: 32, 44, 56, 110 too; 0: 20",
        .use = &of_model),
    CHOICE(MODEL, "lm-mask", model.lm_mask, "causal", "causal|released",
           "language models: what a position sees; released: no mask, as the released tensorized "
           "transformer, so that every position sees its own target",
           .use = &of_model),
    INT(MODEL, "head-dim", model.head_dim, "0", 1, 1024, "",
        "tensorized: width R of its one head; 0: the preset's", .use = &of_model),
    INT(MODEL, "core-number", model.core_number, "0", 1, 64, "cores",
        "tensorized: core vectors, whose mean counts; 0: the preset's", .use = &of_model),
    TEXT(
        MODEL, "adaptive-cutoffs", model.adaptive_cutoffs, "",
        "tensorized: softmax in clusters of the dictionary, as in 4000,12000; none: in one; empty: "
        "the preset's",
        .use = &of_model),
    INT(MODEL, "word-dim", model.word_dim, "0", 1, 65536, "",
        "tener: width of a word's vector; 0: the preset's", .use = &of_model),
    TEXT(MODEL, "word-vectors", model.word_vectors, "",
         "tener: file of pretrained vectors, plain or .gz, a word and word-dim numbers on each line "
         "as in GloVe's; empty: random ones",
         .use = &of_model),
    CHOICE(MODEL, "char-encoder", model.char_encoder, "", "cnn|transformer|none",
           "tener: what makes features of a word's characters; empty: the preset's",
           .use = &of_model),
    CHOICE(MODEL, "placement", model.placement, "", "pre|post",
           "where norms stand; empty: the preset's", .use = &of_model),
    REAL(MODEL, "dropout", model.dropout, "nan", 0, 0.99, "", "residual dropout; nan: the preset's",
         .use = &of_model),
    REAL(MODEL, "attention-dropout", model.attention_dropout, "nan", 0, 0.99, "",
         "nan: the preset's", .use = &of_model),
    REAL(MODEL, "relu-dropout", model.relu_dropout, "nan", 0, 0.99, "", "nan: the preset's",
         .use = &of_model),
    FLAG(MODEL, "count-padding", model.count_padding, "no",
         "text: control experiment, padded rows take part in every normalization",
         .use = &of_model),
    CHOICE(MODEL, "init", model.init, "he", "he|pytorch",
           "images: convolutions by He's rule N(sqrt(2/fan_in)), or all layers as PyTorch has them "
           "by default, uniform within 1/sqrt(fan_in)",
           .use = &of_model),
    FLAG(MODEL, "conv-norms", model.conv_norms, "no",
         "mnist_cnn: normalizations behind its convolutions too", .use = &of_model),
    TEXT(MODEL, "weights", weights, "",
         "checkpoint X.ckpt or NumPy archive X.npz whose weights the run starts from"),
    REAL(MODEL, "label-smoothing", label_smoothing, "nan", 0, 0.99, "",
         "nan: 0.1 for sentence pairs, else 0"),
    CHOICE(MODEL, "smoothing-form", smoothing_form, "all", "all|others",
           "smoothing mass on all classes (eps/V) or on the others (eps/(V-1))",
           .use = &of_smoothing),

    TEXT(DATA, "data", data.name, "synth-images", "data set, see `statrec list data`"),
    TEXT(DATA, "data-dir", data.dir, "", "directory of its files", .use = &of_files),
    INT(DATA, "batch-size", data.batch_size, "128", 1, 65536, "",
        "images per step; running text: sequences side by side", .use = &of_data),
    INT(DATA, "eval-batch-size", data.eval_batch_size, "10", 1, 65536, "sequences",
        "running text: the same in evaluation", .use = &of_data),
    INT(DATA, "tgt-len", data.window, "32", 1, 65536, "tokens",
        "running text: of each sequence per step", .use = &of_data),
    FLAG(DATA, "eos-of-empty-lines", data.eos_of_empty, "yes",
         "running text: an empty line gives an <eos> too", .use = &of_data),
    FLAG(DATA, "augment", data.augment, "yes", "images: random crop of the padded image, mirror",
         .use = &of_data),
    INT(DATA, "valid-images", data.valid_images, "-1", 0, BIG, "images",
        "the last N training images are held out to validate on; 0: none; -1: idx: a twelfth, as "
        "MNIST's 5,000 of 60,000; CIFAR: none, the test batch is validated on",
        .use = &of_data),
    TEXT(DATA, "idx-train-images", data.idx_train_images, "train-images-idx3-ubyte",
         "idx: file of the training images", .use = &of_data),
    TEXT(DATA, "idx-train-labels", data.idx_train_labels, "train-labels-idx1-ubyte",
         "idx: of their labels", .use = &of_data),
    TEXT(DATA, "idx-test-images", data.idx_test_images, "t10k-images-idx3-ubyte",
         "idx: of the test images (may be absent)", .use = &of_data),
    TEXT(DATA, "idx-test-labels", data.idx_test_labels, "t10k-labels-idx1-ubyte",
         "idx: of their labels", .use = &of_data),
    FLAG(DATA, "idx-transpose", data.idx_transpose, "no",
         "idx: rows of the file are columns of the image, as EMNIST has them", .use = &of_data),
    INT(DATA, "idx-classes", data.idx_classes, "0", 2, 256, "classes",
        "idx: labels go from the least one on; 0: up to the largest one, each of them there",
        .use = &of_data),
    INT(DATA, "max-tokens", data.max_tokens, "2048", 8, 1 << 20, "tokens",
        "padded tokens of the longer side per step", .use = &of_data),
    CHOICE(DATA, "max-tokens-of", data.max_tokens_of, "padded", "padded|valid",
           "what max-tokens counts: padded positions, or words and </s> alone: then it bounds the "
           "rows of a batch whatever --batching, but neither its padding nor its memory",
           .use = &of_data),
    CHOICE(
        DATA, "batching", data.batching, "bucketed", "bucketed|sorted|random",
        "text: pairs of like length together, batches in random order; the same, shortest first; "
        "pairs drawn at random",
        .use = &of_data),
    CHOICE(DATA, "tokenize", tokenize, "none", "none|13a|intl",
           "how lines are cut into words, as the tokenizers of BLEU do; none: at blanks alone",
           .use = &of_data),
    FLAG(DATA, "lowercase", lowercase, "no", "small letters alone", .use = &of_data),
    INT(DATA, "bpe-merges", data.bpe_merges, "0", 1, BIG, "merges",
        "byte-pair encoding: so many merges learnt from the training text of both languages; 0: "
        "none",
        .use = &of_data),
    TEXT(DATA, "bpe-codes", data.bpe_codes, "",
         "byte-pair encoding with the merges of this file, of `statrec bpe learn` or subword-nmt",
         .use = &of_data),
    CHOICE(DATA, "dictionary", data.dictionary, "joint", "joint|separate",
           "of both languages together, with one embedding, or one of each", .use = &of_data),
    INT(DATA, "vocab-size", data.vocab_size, "0", 8, BIG, "words",
        "size of a dictionary, specials included; 0: every word", .use = &of_counting),
    TEXT(DATA, "source-dictionary", data.source_dictionary, "",
         "file of `word count` lines, as `statrec dictionary` and fairseq write it, instead of "
         "counting; of both languages when the dictionary is joint",
         .use = &of_data),
    TEXT(DATA, "target-dictionary", data.target_dictionary, "", "the same of the target language",
         .use = &of_data),
    TEXT(DATA, "source", data.source, "de", "source language: the files' suffix", .use = &of_data),
    TEXT(DATA, "target", data.target, "en", "target language", .use = &of_data),
    TEXT(DATA, "trainpref", data.trainpref, "train",
         "files PREFIX.LANG[.gz] of the training pairs; file PREFIX[.gz] of the running text",
         .use = &of_data),
    TEXT(DATA, "validpref", data.validpref, "valid", "of validation", .use = &of_data),
    TEXT(DATA, "testpref", data.testpref, "test", "of the test (may be absent)", .use = &of_data),
    TEXT(DATA, "data-file", data.file, "deu.txt", "tabbed: the file, plain or with .gz behind",
         .use = &of_data),
    TEXT(DATA, "columns", data.columns, "en,de",
         "tabbed: languages of its columns; a line's first one decides its split", .use = &of_data),
    REAL(DATA, "valid-share", data.valid_share, "0.01", 0, 0.9, "",
         "tabbed: share of the sentences for validation", .use = &of_data),
    REAL(DATA, "test-share", data.test_share, "0.01", 0, 0.9, "", "tabbed: for the test",
         .use = &of_data),
    FLAG(DATA, "shuffle-sources", data.shuffle_sources, "no",
         "control experiment: sources permuted among the pairs", .use = &of_data),
    FLAG(DATA, "prefetch", data.prefetch, "yes",
         "a thread makes the next training batch while the last one is computed with; the result "
         "does not depend on it"),
    INT(DATA, "limit", data.limit, "0", 1, BIG, "records", "first training records only; 0: all"),

    CHOICE(TRAIN, "optimizer", optimizer, "sgd", "sgd|adam|adamw|adam-fairseq",
           "how gradients move the weights"),
    REAL(TRAIN, "lr", lr, "0.1", 0, 1e6, "", "learning rate (peak)"),
    CHOICE(TRAIN, "lr-scheduler", scheduler, "step",
           "fixed|step|cosine|linear|inverse_sqrt|inverse_sqrt_xl",
           "course of the learning rate after the warm-up"),
    TEXT(TRAIN, "lr-steps", lr_steps, "", "step: milestones, as in 6,9", .use = &of_steps),
    CHOICE(TRAIN, "lr-steps-in", lr_steps_in, "epochs", "epochs|updates", "unit of the milestones",
           .use = &of_milestones),
    REAL(TRAIN, "lr-factor", lr_factor, "0.1", 0, 1, "", "step: factor at each milestone",
         .use = &of_milestones),
    REAL(TRAIN, "lr-min", lr_min, "0", 0, 1e6, "", "cosine: learning rate at the end",
         .use = &of_cosine),
    INT(TRAIN, "warmup-updates", warmup_updates, "0", 0, BIG, "updates", "linear warm-up; 0: none"),
    REAL(TRAIN, "warmup-init-lr", warmup_init, "0", 0, 1e6, "", "learning rate of the first update",
         .use = &of_warmup),
    REAL(TRAIN, "momentum", optim.momentum, "0.9", 0, 1, "", "sgd", .use = &of_sgd),
    FLAG(TRAIN, "nesterov", optim.nesterov, "no", "sgd", .use = &of_momentum),
    REAL(TRAIN, "adam-beta1", optim.beta1, "0.9", 0, 1, "", "adam", .use = &of_adam),
    REAL(TRAIN, "adam-beta2", optim.beta2, "0.98", 0, 1, "", "adam", .use = &of_adam),
    REAL(TRAIN, "adam-eps", optim.eps, "1e-8", 0, 1, "", "adam", .use = &of_adam),
    REAL(TRAIN, "weight-decay", optim.weight_decay, "1e-4", 0, 1, "", "on every parameter"),
    REAL(TRAIN, "clip-norm", clip_norm, "0", 0, 1e9, "",
         "bound of the global gradient norm; 0: off"),
    REAL(TRAIN, "clip-value", clip_value, "0", 0, 1e9, "",
         "bound of every entry of the gradient, before clip-norm; 0: off"),
    INT(TRAIN, "update-freq", update_freq, "1", 1, 65536, "steps",
        "forward/backward passes per update"),
    INT(TRAIN, "epochs", epochs, "10", 1, BIG, "epochs", "passes over the training data"),
    INT(TRAIN, "max-steps", max_steps, "0", 1, BIG, "updates",
        "stop after so many updates; 0: no bound"),
    INT(TRAIN, "validate-interval-updates", validate_updates, "0", 1, BIG, "updates",
        "validate every N updates too; 0: after epochs only"),
    INT(TRAIN, "patience", patience, "0", 1, BIG, "evaluations",
        "stop after N evaluations in a row without a better patience-metric; 0: never"),
    TEXT(TRAIN, "patience-metric", patience_metric, "valid_loss",
         "metric of the validation, as the table's columns call it", .use = &of_patience),
    FLAG(TRAIN, "validate-batch", validate_batch, "no",
         "validate a second time with the statistics of each validation batch"),
    INT(TRAIN, "bleu-every", bleu_every, "0", 1, BIG, "validations",
        "BLEU of the validation pairs in every N-th validation, of the test pairs with --test; 0: "
        "never",
        .use = &of_data),
    INT(TRAIN, "bleu-beam", bleu_beam, "5", 1, 1000, "hypotheses", "of a sentence that go on",
        .use = &of_bleu),
    FLAG(TRAIN, "test", test, "no", "evaluate the test split too, after training"),
    INT(TRAIN, "seed", seed, "1", 0, 9007199254740992.0, "",
        "of initialisation, order, dropout, generated data"),
    INT(TRAIN, "threads", threads, "0", 1, 1024, "threads",
        "0: every core; the result does not depend on it"),

    TEXT(CHECKPOINT, "checkpoint-every", checkpoint_every, "none",
         "write one after so many updates (500), seconds (600s) or epochs (1e), and at the end; "
         "end: "
         "only then; none: only when a signal ends the run",
         .use = &of_checkpoints),
    INT(CHECKPOINT, "keep", keep, "2", 1, BIG, "checkpoints", "newest ones that stay",
        .use = &of_checkpoints),
    TEXT(CHECKPOINT, "keep-best", keep_best, "",
         "metric of a validation, as valid_loss: the checkpoint of its best value stays too, as "
         "PREFIX-best.ckpt",
         .use = &of_checkpoints),
    TEXT(CHECKPOINT, "checkpoint", checkpoint, "",
         "PREFIX of the files PREFIX-UPDATE.ckpt; empty: the run file's name without .h5"),

    {RECORD, "output", 'o', OPTION_TEXT, AT(output), "", 0, 0, "", "", .help = "run file to write"},
    FLAG(RECORD, "force", force, "no", "replace an existing run file or dump", .use = &of_any_file),
    CHOICE(RECORD, "record", record, "all", "none|scalars|all",
           "per site and step: nothing, scalars, scalars and vectors"),
    TEXT(RECORD, "record-sites", record_sites, "*",
         "sites to record, separated by commas: globs, first, last, last-bn, as in stem,stage1.*",
         .use = &of_sites),
    CHOICE(RECORD, "observe", observe, "none", "none|batch",
           "batch: what bn and pnv would find at each recorded site, whatever its normalization; "
           "the training stays the same",
           .use = &of_sites),
    INT(RECORD, "vectors-every", vectors_every, "-1", 0, BIG, "steps",
        "spacing of vectors; -1: every step while the file stays under size-limit, else spaced; 0: "
        "never",
        .use = &of_vectors),
    INT(RECORD, "size-limit", size_limit, "2000000000", 1, 9007199254740992.0, "bytes",
        "projected size that spaces the vectors", .use = &of_spacing),
    INT(RECORD, "spectra-every", spectra_every, "0", 0, BIG, "updates",
        "singular values of every recorded site's input and of its gradient, in the first pass of "
        "every N-th update; 0: never",
        .use = &of_sites),
    FLAG(RECORD, "final-tid", final_tid, "no",
         "after training: training batches once more with frozen running values, for the final "
         "train-inference discrepancy",
         .use = &of_sites),
    INT(RECORD, "final-batches", final_batches, "0", 0, BIG, "batches",
        "final-tid: so many batches; 0: all of an epoch", .use = &of_final),
    INT(RECORD, "svd-every", svd_every, "0", 1, BIG, "updates",
        "singular values of the word embedding every N updates; 0: at the end only",
        .use = &of_embedding),
    INT(RECORD, "flush-steps", flush_steps, "64", 1, BIG, "steps",
        "rows at most that a crash can lose", .use = &of_run_file),
    REAL(RECORD, "flush-seconds", flush_seconds, "5", 0, 86400, "s", "time at most between flushes",
         .use = &of_run_file),
    TEXT(
        RECORD, "dump-weights", dump_weights, "",
        "NumPy archive (.npz) of weights and running values, before the first step and after every "
        "update of the first dump-steps steps"),
    TEXT(RECORD, "dump-batches", dump_batches, "",
         "NumPy archive (.npz) of the batches of these steps, with loss and learning rate"),
    INT(RECORD, "dump-steps", dump_steps, "1", 1, 1000, "steps",
        "of --dump-weights and --dump-batches, which stay in memory for so long", .use = &of_dump),
    CHOICE(RECORD, "on-write-error", on_write_error, "stop", "stop|continue",
           "when the run file cannot be written; exit status 1 either way", .use = &of_run_file),
    {RECORD, "config", 'c', OPTION_TEXT, AT(conf), "", 0, 0, "", "",
     .help = "file of `key = value` lines, obeyed where it stands"},
    FLAG(RECORD, "quiet", quiet, "no", "no progress line"),
    FLAG(RECORD, "profile", profile, "no", "print where the time went"),
};

enum {
    FIRST = sizeof first_rows / sizeof first_rows[0],
    ROWS = sizeof rows / sizeof rows[0],
};

option_table train_options(void) {
    static option all[MOST];
    static int count;
    const norm_option *o;
    if (count) return (option_table){all, count};
    append(all, &count, config_model_first);
    for (int i = 0; (o = norm_option_at(i)); i++)
        all[count++] = (option)TEXT_OPTION(
            MODEL, o->key, AT(model.norm_param) + (size_t)i * MODEL_TEXT, "", o->help);
    append(all, &count, config_model);
    append(all, &count, config_data);
    append(all, &count, config_training);
    append(all, &count, config_recording);
    return (option_table){all, count};
}
