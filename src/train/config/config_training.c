/* config_training.c -- options of the loop, optimizers and schedules. */
#include <string.h>

#include "train/config/config_rows.h"
#include "train/optim/optim_rows.h"

#define BELOW_ONE 0.999999 /* with 1 the mean keeps its initial zero for ever */

static bool wants_bleu(const void *values) {
    const train_config *c = values;
    return c->bleu_every > 0;
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

static const option_use of_data = {.with = "data", .obeys = config_data_lists},
                        of_bleu = {.with = "bleu-every", .holds = wants_bleu, .and = &of_data},
                        of_optimizer = {.with = "optimizer", .obeys = config_optim_lists},
                        of_momentum = {.with = "momentum",
                                       .holds = has_momentum,
                                       .and = &of_optimizer},
                        of_steps = {.with = "lr-scheduler", .holds = is_stepped},
                        of_milestones = {.with = "lr-steps",
                                         .holds = has_milestones,
                                         .and = &of_steps},
                        of_cosine = {.with = "lr-scheduler", .holds = is_cosine},
                        of_warmup = {.with = "warmup-updates", .holds = warms_up},
                        of_patience = {.with = "patience", .holds = has_patience};

static const option rows[] = {
    CHOICE(TRAIN, "optimizer", optimizer, "sgd", OPTIM_WORDS,
           "set the optimizer; `statrec list optimizers`", .common = true),
    REAL(TRAIN, "lr", lr, "0.1", 0, 1e6, "", "set the (peak) learning rate", .common = true),
    CHOICE(TRAIN, "lr-scheduler", scheduler, "step",
           "fixed|step|cosine|linear|inverse_sqrt|inverse_sqrt_xl",
           "set the learning rate schedule after the warm-up", .common = true),
    TEXT(TRAIN, "lr-steps", lr_steps, "", "step: set the milestones, as in 6,9", .use = &of_steps),
    CHOICE(TRAIN, "lr-steps-in", lr_steps_in, "epochs", "epochs|updates",
           "set the unit of the milestones", .use = &of_milestones),
    REAL(TRAIN, "lr-factor", lr_factor, "0.1", 0, 1, "",
         "step: multiply the rate by X at each milestone", .use = &of_milestones),
    REAL(TRAIN, "lr-min", lr_min, "0", 0, 1e6, "", "cosine: end at the learning rate X",
         .use = &of_cosine),
    INT(TRAIN, "warmup-updates", warmup_updates, "0", 0, BIG, "updates",
        "warm up linearly for N updates; 0: none", .common = true),
    REAL(TRAIN, "warmup-init-lr", warmup_init, "0", 0, 1e6, "",
         "start the warm-up at the learning rate X", .use = &of_warmup),
    REAL(TRAIN, "momentum", optim.momentum, "0.9", 0, 1, "", "sgd: set the momentum",
         .use = &of_optimizer),
    FLAG(TRAIN, "nesterov", optim.nesterov, "no", "sgd: use Nesterov's momentum",
         .use = &of_momentum),
    REAL(TRAIN, "adam-beta1", optim.beta1, "0.9", 0, BELOW_ONE, "",
         "adam ...: weigh the old mean of gradients by X", .use = &of_optimizer),
    REAL(TRAIN, "adam-beta2", optim.beta2, "0.98", 0, BELOW_ONE, "",
         "adam ...: weigh the old mean of their squares by X", .use = &of_optimizer),
    REAL(TRAIN, "adam-eps", optim.eps, "1e-8", 0, 1, "", "adam ...: add X to the root of that mean",
         .use = &of_optimizer),
    REAL(TRAIN, "adagrad-eps", optim.adagrad_eps, "1e-6", 0, 1, "",
         "adagrad: add X to the root of the sum of squares", .use = &of_optimizer),
    REAL(TRAIN, "weight-decay", optim.weight_decay, "1e-4", 0, 1, "", "decay every parameter by X"),
    REAL(TRAIN, "clip-norm", clip_norm, "0", 0, 1e9, "",
         "limit the global gradient norm to X; 0: off"),
    REAL(TRAIN, "clip-value", clip_value, "0", 0, 1e9, "",
         "limit every gradient entry to X, before clip-norm; 0: off"),
    INT(TRAIN, "update-freq", update_freq, "1", 1, 65536, "steps",
        "accumulate the gradients of N micro-batches per update", .common = true),
    INT(TRAIN, "shards", shards, "0", 1, 65536, "shards",
        "split batches into N shards with separate batch statistics; 0: one per rank"),
    FLAG(TRAIN, "sync-norm", sync_norm, "no",
         "compute batch statistics over all ranks, for methods that `statrec list norms` marks"),
    FLAG(TRAIN, "record-shards", record_shards, "no",
         "record every shard: sites NAME@1, NAME@2 ... after those of the first"),
    REAL(TRAIN, "rank-timeout", rank_timeout, "600", 0, 1e9, "s",
         "fail when another rank does not answer for X seconds; 0: wait for ever"),
    INT(TRAIN, "epochs", epochs, "10", 1, BIG, "epochs", "make N passes over the training data",
        .common = true),
    INT(TRAIN, "max-steps", max_steps, "0", 1, BIG, "updates", "stop after N updates; 0: no limit",
        .common = true),
    INT(TRAIN, "validate-interval", validate_epochs, "1", 1, BIG, "epochs",
        "validate every N epochs, and at the end"),
    INT(TRAIN, "validate-interval-updates", validate_updates, "0", 1, BIG, "updates",
        "validate every N updates, too; 0: after epochs only", .common = true),
    INT(TRAIN, "patience", patience, "0", 1, BIG, "evaluations",
        "stop after N evaluations in a row without a better patience-metric; 0: never"),
    TEXT(TRAIN, "patience-metric", patience_metric, "valid_loss",
         "set the validation metric for --patience, a column of the table", .use = &of_patience,
         .value = "METRIC"),
    FLAG(TRAIN, "validate-batch", validate_batch, "no",
         "validate a second time with the statistics of each batch; not given: if that is cheap"),
    INT(TRAIN, "validate-train", validate_train, "0", 1, BIG, "batches",
        "validate on N training batches of epoch 0, too, with batch statistics; 0: none"),
    REAL(TRAIN, "freeze-stats", freeze_stats, "1", 0, 1, "",
         "normalize by frozen running statistics after the fraction X of all updates; 1: never"),
    INT(TRAIN, "bleu-every", bleu_every, "0", 1, BIG, "validations",
        "compute BLEU in every N-th validation, for the test with --test; 0: never",
        .use = &of_data),
    INT(TRAIN, "bleu-beam", bleu_beam, "5", 1, 1000, "hypotheses", "set the beam size",
        .use = &of_bleu),
    FLAG(TRAIN, "test", test, "no", "evaluate the test split after training", .common = true),
    INT(TRAIN, "seed", seed, "1", 0, 9007199254740992.0, "",
        "seed initialization, order, dropout and generated data", .common = true),
    CHOICE(TRAIN, "precision", precision, "float32", "float32|bf16",
           "round operands and results of matrix products to bfloat16; sums and statistics stay "
           "float32",
           .common = true),
    INT(TRAIN, "threads", threads, "0", 1, 1024, "threads",
        "use N threads; 0: every core; the result does not depend on it", .common = true),
};

const option_table config_training = {rows, sizeof rows / sizeof rows[0]};
