/* trainer.h -- the state of a run, shared by setup.c, loop.c and validate.c. */
#ifndef TRAIN_TRAINER_H
#define TRAIN_TRAINER_H

#include "base/npz/npz.h"
#include "nets/pass.h"
#include "observe/observe.h"
#include "observe/state.h"
#include "ranks/ranks.h"
#include "train/loaded_model.h"
#include "train/train.h"

/* How often: in updates, seconds or epochs. */
typedef enum { EVERY_NONE, EVERY_END, EVERY_UPDATES, EVERY_SECONDS, EVERY_EPOCHS } train_every;
typedef struct train_interval {
    train_every unit;
    int64_t count;
} train_interval;
/* "none", "end", "500", "600s", "1e". */
sr_status train_interval_read(const char *text, train_interval *every, sr_failure *why);

/* Place of a metric among the values of an evaluation. */
typedef struct train_metric_place {
    int index; /* -1: none */
    bool of_batch, decoded;
    task_better better;
} train_metric_place;
/* name: "valid_loss". False if no validation of the task has it; metrics with batch statistics
 * count while the run may still decide on them. */
bool train_metric_find(const train_config *c, const task_row *row, const char *name,
                       train_metric_place *place);
double train_metric_value(const train_eval *e, const train_metric_place *place);

typedef struct trainer {
    const train_config *config;
    train_config *chosen;     /* config, where the run decided on an option; owned */
    const train_resume *from; /* NULL: a new run */
    const train_events *events;
    train_result *result;
    int threads;
    rng random; /* split per step */
    dataset *data;
    train_text text; /* text of the data */
    model *model;
    const task_row *task;
    task_options task_options;
    const optim_row *optimizer;
    schedule schedule;
    model_memory memory; /* of the training text; no rows if the model carries nothing */
    tape *tape;
    ranks *ranks;                 /* the processes of the run */
    ranks *alone;                 /* owned, if none was given */
    int shards;                   /* shards of every batch, over all ranks */
    struct shards *sharing;       /* this rank's; owned (shards.c) */
    struct gradient_sum *leaving; /* watches the backward pass that comes next; NULL: none */
    sr_failure exchange_failed;   /* failure of the normalizations' exchange */
    run_record *record; /* NULL without a run file, and on ranks that find nothing for it */
    npz_writer *dump_weights, *dump_batches; /* being gathered; NULL: not wanted, or written */
    int64_t batches;                         /* steps of an epoch */
    int64_t data_digest;                     /* data_training_digest */
    int64_t updates;                         /* planned */
    double started;                          /* progress_clock */

    int64_t data_epoch, data_batch; /* position of the next step */
    /* since the last update */
    int64_t accumulated, accumulated_tokens;
    /* since the last evaluation */
    double loss_sum;
    int64_t loss_tokens;
    double lr, epoch;
    int64_t validations; /* so far */
    bool unevaluated;    /* a signal interrupted an evaluation's decoding: repeat it */
    bool stepped;        /* a step of this process has begun */
    bool tested;         /* a test of these weights is among the rows that were taken over */
    bool nonfinite_told, finished;
    double patience_best;    /* best value of patience-metric, NaN: none yet */
    int64_t patience_waited; /* evaluations since */
    double last_loss;        /* loss of the last pass */
    bool last_skipped;       /* the last update */

    train_interval checkpoint_every;
    train_metric_place best_metric; /* metric of --keep-best */
    double best;                    /* its best value; NaN before the first */
    bool better;                    /* the last validation was */
    double checkpoint_clock;        /* time of the last checkpoint */
    int64_t checkpoint_update;      /* the last one's; -1: none of this process */
    /* the newest one that rows of the run file cover; a run can be resumed from it; -1: none */
    int64_t checkpoint_covered;
    int64_t checkpoint_newest; /* newest among the files of this run; -1: none */
    bool checkpoints_aside;    /* checkpoints of the run that this one replaces may be */
    bool record_loss_told;     /* that the run file failed, under --on-write-error continue */
    /* the first that could not be written, under --on-write-error continue */
    sr_failure checkpoint_lost;
} trainer;

/* The first rank writes files, evaluates and reports; the others follow. */
static inline bool trainer_writes(const trainer *r) {
    return ranks_rank(r->ranks) == 0;
}

/* One forward and backward pass of a batch or one of its shards; its summed loss (train_pass.c). */
sr_status trainer_pass(trainer *r, pass *p, double *loss, sr_failure *why);

/* Opens data, model, optimizer, recorder; close also after a failure. */
sr_status trainer_open(trainer *r, const char *command, sr_failure *why);
/* Frees everything; the run file is finished with this status and reason. Returns `so_far`, or the
 * record's failure when that was SR_OK. */
sr_status trainer_close(trainer *r, sr_status so_far, sr_failure *why);

/* config_check.c. */
bool trainer_has_preset(const model_row *row, const char *preset);
/* Names are in the tables; options that belong together fit. */
sr_status trainer_check_names(const train_config *c, sr_failure *why);
sr_status trainer_check_together(const train_config *c, sr_failure *why);

/* Hints at the option for a metric of decoded text. */
void train_metric_hint(const task_row *row, const char *name, sr_failure *why);

/* Writes buffered rows. Check: a failure of the run file stops the run unless the user wants
 * otherwise. */
sr_status trainer_flush(trainer *r, sr_failure *why);
sr_status trainer_check_record(trainer *r, sr_failure *why);

/* Decides on --validate-batch if it is not given (validation_choice.c). */
sr_status trainer_choose_validation(trainer *r, sr_failure *why);
/* Validations of a run of `updates`, every a and every b updates (0: not) and at the end. */
int64_t trainer_count_validations(int64_t updates, int64_t a, int64_t b);

/* Steps of the planned updates; an epoch's last update may have fewer than --update-freq. */
int64_t trainer_planned_steps(const trainer *r);
/* --freeze-stats: running statistics stay as they are after this many updates. Products that are
 * whole but for rounding are whole. */
int64_t trainer_freeze_update(const trainer *r);
/* Warns of options without effect in this run (unused_options.c). */
void trainer_warn_unused(const trainer *r);

/* Prepares an evaluation of a split, without numbers yet. */
void trainer_eval_begin(const trainer *r, data_split split, train_eval *e);
/* Evaluates a split; records and reports it unless a signal interrupts its decoding
   (unevaluated). */
sr_status trainer_evaluate(trainer *r, data_split split, sr_failure *why);

/* SR_USAGE names the first option that needs a split which the data lack (split_options.c). */
sr_status trainer_check_splits(const trainer *r, sr_failure *why);

/* Early stopping (early_stopping.c). Check: of the options alone. See: after every validation. */
sr_status trainer_check_patience(const train_config *c, sr_failure *why);
void trainer_see_patience(trainer *r, const train_eval *e);
bool trainer_out_of_patience(const trainer *r);
/* SR_USAGE when a run that has come to its end would stop at once again. */
sr_status trainer_check_resumed_patience(const trainer *r, sr_failure *why);
/* At the end of a run: *result reports early stopping. */
void trainer_tell_patience(const trainer *r);

/* BLEU of the split into the evaluation, when it is time for it. */
sr_status trainer_decode(trainer *r, train_eval *e, sr_failure *why);

/* The final pass: batches of the next epoch, with dropout and frozen running statistics. Nothing
   without recorded sites. */
sr_status trainer_final_pass(trainer *r, sr_failure *why);

/* Visits the run's state in a fixed order: parameters, running statistics by site, optimizer slots,
   counters. Stops at the first failure of a visit. */
sr_status train_state_each(trainer *r, state_visit_fn *visitor, void *context, sr_failure *why);

/* The part of it that a trained model needs: parameters and running values. */
sr_status train_model_each(model *m, state_visit_fn *visitor, void *context, sr_failure *why);

/* Dumps of the first steps (dump.c). Open: rejects files that cannot be written, before anything is
 * read. Weights: after the last update. Step: after each one; loss is the summed one.
 * Close: writes the dumps of a shorter run; returns `so_far`, or its own failure. */
sr_status trainer_dump_open(trainer *r, sr_failure *why);
sr_status trainer_dump_weights(trainer *r, sr_failure *why);
sr_status trainer_dump_step(trainer *r, const batch *b, double loss, const run_step *row,
                            sr_failure *why);
sr_status trainer_dump_close(trainer *r, sr_status so_far, sr_failure *why);

/* Checkpoints (checkpoint_policy.c). Open: finds the metric of --keep-best. Evaluated: after a
 * validation. Between: after an update, when it is time for one. Last: when a signal ends the run.
 * Close: handles the checkpoints of the run that this one replaces. They are removed when this
 * run's file has the name (named), and restored when this run has not begun. */
sr_status trainer_checkpoints_open(trainer *r, sr_failure *why);
void trainer_checkpoint_evaluated(trainer *r, const train_eval *e);
sr_status trainer_checkpoint_between(trainer *r, bool epoch_ends, sr_failure *why);
sr_status trainer_checkpoint_last(trainer *r, sr_failure *why);
sr_status trainer_checkpoints_close(const trainer *r, bool named, bool began, sr_failure *why);

/* 16 hexadecimal digits over all weights and running state; over the weights. */
void trainer_digest(model *m, char digest[32]);
void trainer_parameters_digest(model *m, char digest[32]);

void trainer_note(const trainer *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Options as a .conf file, normalizations in use as comments; malloc'd, NULL when out of memory. */
char *trainer_config_text(const trainer *r);
void trainer_warn(const trainer *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
