/* config_recording.c -- options of checkpoints, run files and output. */
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
         "write checkpoints every N updates (500), seconds (600s) or epochs (1e); end: only after "
         "the last update; none: only after signals",
         .use = &of_checkpoints, .common = true),
    INT(CHECKPOINT, "keep", keep, "2", 1, BIG, "checkpoints", "keep the N newest checkpoints",
        .use = &of_checkpoints),
    TEXT(CHECKPOINT, "keep-best", keep_best, "",
         "keep the checkpoint with the best value of this validation metric, too, as "
         "PREFIX-best.ckpt",
         .use = &of_checkpoints, .value = "METRIC"),
    TEXT(CHECKPOINT, "checkpoint", checkpoint, "",
         "name checkpoints PREFIX-UPDATE.ckpt; empty: the run file's name without .h5",
         .value = "PREFIX"),

    {RECORD, "output", 'o', OPTION_TEXT, AT(output), "", 0, 0, "", "",
     .help = "write this run file", .value = "RUN.h5", .common = true},
    FLAG(RECORD, "force", force, "no", "replace an existing run file or dump", .use = &of_any_file,
         .common = true),
    CHOICE(RECORD, "record", record, "all", "none|scalars|all",
           "record nothing, scalars, or scalars and vectors, per site and step", .common = true),
    TEXT(RECORD, "record-sites", record_sites, "*",
         "record these sites: globs, first, middle, last, last-bn, separated by commas, as in "
         "stem,stage1.*",
         .use = &of_sites, .value = "SITE,...", .common = true),
    CHOICE(RECORD, "observe", observe, "none", "none|batch",
           "record the statistics of bn and pnv at every site, without an effect on the training",
           .use = &of_sites, .common = true),
    FLAG(RECORD, "attention-stats", attention_stats, "no",
         "record largest logit and entropy of every attention head, over all shards",
         .use = &of_attention),
    INT(RECORD, "vectors-every", vectors_every, "-1", 0, BIG, "steps",
        "record vectors every N steps; -1: as often as size-limit allows; 0: never",
        .use = &of_vectors, .common = true),
    INT(RECORD, "size-limit", size_limit, "2000000000", 1, 9007199254740992.0, "bytes",
        "record vectors less often where the projected size exceeds N bytes", .use = &of_spacing),
    INT(RECORD, "spectra-every", spectra_every, "0", 0, BIG, "updates",
        "record singular values of site inputs and gradients every N updates; 0: never",
        .use = &of_sites),
    INT(RECORD, "activations-every", activations_every, "0", 0, BIG, "updates",
        "record the largest |x|, median and saturation of site inputs every N updates; 0: never",
        .use = &of_sites),
    INT(RECORD, "parameter-norms-every", parameter_norms_every, "0", 0, BIG, "updates",
        "record norms of gradient, weights and update of each layer every N updates; 0: never",
        .use = &of_sites),
    INT(RECORD, "theorems-every", theorems_every, "0", 0, BIG, "updates",
        "record what theorems on AdaNorm, PN and PN-V assume and conclude every N updates; 0: "
        "never",
        .use = &of_sites),
    FLAG(RECORD, "final-tid", final_tid, "no",
         "measure the final training-inference discrepancy: pass training batches once more with "
         "frozen running statistics",
         .use = &of_sites, .common = true),
    INT(RECORD, "final-batches", final_batches, "0", 0, BIG, "batches",
        "final-tid: pass N batches; 0: all of an epoch", .use = &of_final),
    INT(RECORD, "pairs", pairs, "0", 0, 1000000, "pairs",
        "final-tid: record N random entries of site inputs and outputs; 1000 draw a curve; 0: none",
        .use = &of_final),
    INT(RECORD, "svd-every", svd_every, "0", 1, BIG, "updates",
        "record singular values of the embedding every N updates; 0: only at the end",
        .use = &of_embedding),
    INT(RECORD, "flush-steps", flush_steps, "64", 1, BIG, "steps",
        "flush every N steps; a crash loses at most N", .use = &of_run_file),
    REAL(RECORD, "flush-seconds", flush_seconds, "5", 0, 86400, "s", "flush every X seconds",
         .use = &of_run_file),
    TEXT(RECORD, "dump-weights", dump_weights, "",
         "write weights and running statistics before and after each of the first dump-steps steps "
         "(.npz)",
         .value = "FILE"),
    TEXT(RECORD, "dump-batches", dump_batches, "",
         "write the batches of these steps, with loss and learning rate (.npz)", .value = "FILE"),
    INT(RECORD, "dump-steps", dump_steps, "1", 1, 1000, "steps",
        "keep N steps in memory for --dump-weights and --dump-batches", .use = &of_dump),
    CHOICE(RECORD, "sync", sync, "flush", "flush|close|none",
           "choose when to fsync; a power failure loses later rows", .use = &of_run_file),
    CHOICE(RECORD, "on-write-error", on_write_error, "stop", "stop|continue",
           "stop or continue when the run file cannot be written; exit status 1 anyway",
           .use = &of_run_file),
    {RECORD, "config", 'c', OPTION_TEXT, AT(conf), "", 0, 0, "", "",
     .help = "read options from `key = value` lines, at this place of the command line",
     .value = "FILE", .common = true},
    FLAG(RECORD, "quiet", quiet, "no", "print no progress line", .common = true),
    FLAG(RECORD, "profile", profile, "no", "print the time of each part"),
};

const option_table config_recording = {rows, sizeof rows / sizeof rows[0]};
