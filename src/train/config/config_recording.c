/* config_recording.c -- options of checkpoints, run files and what the command says. */
#include <string.h>

#include "train/config/config_rows.h"

static bool is_text(const void *values) {
    const train_config *c = values;
    return task_of(model_find(c->model.name)->task)->text;
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

static const option_use of_run_file = {.with = "output", .holds = has_run_file},
                        of_any_file = {.with = "output", .holds = has_any_file},
                        of_embedding = {.with = "model", .holds = is_text, .and = &of_run_file},
                        of_sites = {.with = "record", .holds = records_sites},
                        of_attention = {.with = "model",
                                        .obeys = config_model_lists,
                                        .and = &of_sites},
                        of_vectors = {.with = "record", .holds = records_vectors},
                        of_spacing = {.with = "vectors-every",
                                      .holds = spaces_vectors,
                                      .and = &of_vectors},
                        of_final = {.with = "final-tid", .holds = has_final_pass, .and = &of_sites},
                        of_dump = {.with = "dump-weights", .holds = has_dump},
                        of_checkpoints = {.with = "output", .holds = has_checkpoints};

static const option rows[] = {
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
         .use = &of_checkpoints, .value = "METRIC"),
    TEXT(CHECKPOINT, "checkpoint", checkpoint, "",
         "PREFIX of the files PREFIX-UPDATE.ckpt; empty: the run file's name without .h5",
         .value = "PREFIX"),

    {RECORD, "output", 'o', OPTION_TEXT, AT(output), "", 0, 0, "", "", .help = "run file to write",
     .value = "RUN.h5"},
    FLAG(RECORD, "force", force, "no", "replace an existing run file or dump", .use = &of_any_file),
    CHOICE(RECORD, "record", record, "all", "none|scalars|all",
           "per site and step: nothing, scalars, scalars and vectors"),
    TEXT(RECORD, "record-sites", record_sites, "*",
         "sites to record, separated by commas: globs, first, middle, last, last-bn, as in "
         "stem,stage1.*",
         .use = &of_sites, .value = "SITE,..."),
    CHOICE(RECORD, "observe", observe, "none", "none|batch",
           "batch: what bn and pnv would find at each recorded site, whatever its normalization; "
           "the training stays the same",
           .use = &of_sites),
    FLAG(
        RECORD, "attention-stats", attention_stats, "no",
        "largest logit and entropy of every attention and head, over all shares of a batch, at the "
        "site of its branch; the training stays the same",
        .use = &of_attention),
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
    INT(RECORD, "activations-every", activations_every, "0", 0, BIG, "updates",
        "three largest |x| and median of every recorded site's input, and how many are saturated, "
        "over all shares of a batch, in the first pass of every N-th update; 0: never",
        .use = &of_sites),
    INT(RECORD, "parameter-norms-every", parameter_norms_every, "0", 0, BIG, "updates",
        "norms of gradient, weights and change of each layer, and change over weights, of every "
        "N-th update; 0: never",
        .use = &of_sites),
    FLAG(RECORD, "final-tid", final_tid, "no",
         "after training: training batches once more with frozen running values, for the final "
         "train-inference discrepancy",
         .use = &of_sites),
    INT(RECORD, "final-batches", final_batches, "0", 0, BIG, "batches",
        "final-tid: so many batches; 0: all of an epoch", .use = &of_final),
    INT(RECORD, "pairs", pairs, "0", 0, 1000000, "pairs",
        "final-tid: so many entries of every recorded site's input, drawn at random from all "
        "shares "
        "of its first batch, with the output before gain and bias; 1000 draw a curve; 0: none",
        .use = &of_final),
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
        "update of the first dump-steps steps",
        .value = "FILE"),
    TEXT(RECORD, "dump-batches", dump_batches, "",
         "NumPy archive (.npz) of the batches of these steps, with loss and learning rate",
         .value = "FILE"),
    INT(RECORD, "dump-steps", dump_steps, "1", 1, 1000, "steps",
        "of --dump-weights and --dump-batches, which stay in memory for so long", .use = &of_dump),
    CHOICE(RECORD, "sync", sync, "flush", "flush|close|none",
           "when rows are made to be on the disk: a power failure costs what came after",
           .use = &of_run_file),
    CHOICE(RECORD, "on-write-error", on_write_error, "stop", "stop|continue",
           "when the run file cannot be written; exit status 1 either way", .use = &of_run_file),
    {RECORD, "config", 'c', OPTION_TEXT, AT(conf), "", 0, 0, "", "",
     .help = "file of `key = value` lines, obeyed where it stands", .value = "FILE"},
    FLAG(RECORD, "quiet", quiet, "no", "no progress line"),
    FLAG(RECORD, "profile", profile, "no", "print where the time went"),
};

const option_table config_recording = {rows, sizeof rows / sizeof rows[0]};
