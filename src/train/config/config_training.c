/* config_training.c -- options of the loop, optimizers and schedules. */
#include <string.h>

#include "train/config/config_rows.h"
#include "train/optim/optim_rows.h"

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
    CHOICE(TRAIN, "optimizer", optimizer, "sgd", OPTIM_WORDS, "how gradients move the weights"),
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
    REAL(TRAIN, "momentum", optim.momentum, "0.9", 0, 1, "", "of sgd", .use = &of_optimizer),
    FLAG(TRAIN, "nesterov", optim.nesterov, "no", "sgd: Nesterov's momentum", .use = &of_momentum),
    REAL(TRAIN, "adam-beta1", optim.beta1, "0.9", 0, 1, "",
         "adam ...: weight of the old mean of gradients", .use = &of_optimizer),
    REAL(TRAIN, "adam-beta2", optim.beta2, "0.98", 0, 1, "",
         "adam ...: of the old mean of their squares", .use = &of_optimizer),
    REAL(TRAIN, "adam-eps", optim.eps, "1e-8", 0, 1, "",
         "adam ...: added to the root of the latter", .use = &of_optimizer),
    REAL(TRAIN, "adagrad-eps", optim.adagrad_eps, "1e-6", 0, 1, "",
         "adagrad: added to the root of the sum of squares", .use = &of_optimizer),
    REAL(TRAIN, "weight-decay", optim.weight_decay, "1e-4", 0, 1, "", "on every parameter"),
    REAL(TRAIN, "clip-norm", clip_norm, "0", 0, 1e9, "",
         "bound of the global gradient norm; 0: off"),
    REAL(TRAIN, "clip-value", clip_value, "0", 0, 1e9, "",
         "bound of every entry of the gradient, before clip-norm; 0: off"),
    INT(TRAIN, "update-freq", update_freq, "1", 1, 65536, "steps",
        "forward/backward passes per update"),
    INT(TRAIN, "shards", shards, "0", 1, 65536, "shares",
        "parts of every batch, each with its own batch statistics, which ranks pass; 0: as many as "
        "ranks"),
    FLAG(TRAIN, "sync-norm", sync_norm, "no",
         "batch statistics of bn, pnv, pn, rbn, un and repbn over the rows of all ranks"),
    FLAG(TRAIN, "record-shards", record_shards, "no",
         "record the statistics of every share, as sites NAME@1, NAME@2 ... behind those of the "
         "first"),
    REAL(TRAIN, "rank-timeout", rank_timeout, "600", 0, 1e9, "s",
         "a rank gives up when the others do not answer for so long; 0: never"),
    INT(TRAIN, "epochs", epochs, "10", 1, BIG, "epochs", "passes over the training data"),
    INT(TRAIN, "max-steps", max_steps, "0", 1, BIG, "updates",
        "stop after so many updates; 0: no bound"),
    INT(TRAIN, "validate-interval", validate_epochs, "1", 1, BIG, "epochs",
        "validate every N epochs, and at the end"),
    INT(TRAIN, "validate-interval-updates", validate_updates, "0", 1, BIG, "updates",
        "validate every N updates too; 0: after epochs only"),
    INT(TRAIN, "patience", patience, "0", 1, BIG, "evaluations",
        "stop after N evaluations in a row without a better patience-metric; 0: never"),
    TEXT(TRAIN, "patience-metric", patience_metric, "valid_loss",
         "metric of the validation, as the table's columns call it", .use = &of_patience,
         .value = "METRIC"),
    FLAG(TRAIN, "validate-batch", validate_batch, "no",
         "validate a second time with the statistics of each validation batch"),
    INT(TRAIN, "validate-train", validate_train, "0", 1, BIG, "batches",
        "validate on the first N training batches of epoch 0 too: without dropout, with the "
        "statistics of each batch; 0: none"),
    REAL(TRAIN, "freeze-stats", freeze_stats, "1", 0, 1, "",
         "share of the planned updates after which running statistics stop, and training "
         "normalizes by them; 1: never"),
    INT(TRAIN, "bleu-every", bleu_every, "0", 1, BIG, "validations",
        "BLEU of the validation pairs in every N-th validation, of the test pairs with --test; 0: "
        "never",
        .use = &of_data),
    INT(TRAIN, "bleu-beam", bleu_beam, "5", 1, 1000, "hypotheses", "of a sentence that go on",
        .use = &of_bleu),
    FLAG(TRAIN, "test", test, "no", "evaluate the test split too, after training"),
    INT(TRAIN, "seed", seed, "1", 0, 9007199254740992.0, "",
        "of initialisation, order, dropout, generated data"),
    CHOICE(TRAIN, "precision", precision, "float32", "float32|bf16",
           "products of linear layers and convolutions: of float32, or of operands and results "
           "rounded to bfloat16; sums, norms, their statistics and weights stay float32"),
    INT(TRAIN, "threads", threads, "0", 1, 1024, "threads",
        "0: every core; the result does not depend on it"),
};

const option_table config_training = {rows, sizeof rows / sizeof rows[0]};
