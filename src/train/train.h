/* train.h -- one training run: configuration, loop, recording. */
#ifndef TRAIN_TRAIN_H
#define TRAIN_TRAIN_H

#include "base/options/options.h"
#include "data/data.h"
#include "engine/ops/loss/loss_ops.h"
#include "nets/models.h"
#include "score/score.h"
#include "task/task.h"
#include "train/optim/optim.h"

/* Values of train_options(), one field per row (meaning, default, range and unit:
   src/train/config/config_*.c). */
typedef struct train_config {
    model_options model;
    data_options data;
    optim_options optim;
    option_text precision, smoothing_form, optimizer, scheduler, lr_steps, lr_steps_in,
        patience_metric;
    double label_smoothing;
    smoothing_form smoothing;
    bool bf16;                /* from precision */
    bool validate_batch_open; /* not given: the run decides (validation_choice.c) */
    double lr, warmup_init, lr_factor, lr_min, clip_norm, clip_value, freeze_stats;
    int64_t warmup_updates, update_freq, epochs, max_steps, validate_epochs, validate_updates;
    int64_t patience, validate_train;
    int64_t seed, threads;
    option_text output, record, record_sites, observe, on_write_error, sync, conf;
    option_text dump_weights, dump_batches;
    option_text tokenize;
    bool lowercase;
    option_text weights, checkpoint, checkpoint_every, keep_best;
    int64_t keep, bleu_every, bleu_beam;
    int64_t shards; /* parts of a batch; 0: as many as ranks */
    double rank_timeout;
    bool sync_norm, record_shards;
    bool force, quiet, profile, validate_batch, test, final_tid, attention_stats;
    int64_t vectors_every, spectra_every, activations_every, parameter_norms_every, theorems_every,
        final_batches, svd_every, flush_steps, size_limit, dump_steps, pairs;
    double flush_seconds;
} train_config;

/* The options of the methods' own parameters follow from the rows of norm_at. */
option_table train_options(void);

/* Defaults, then the settings of the model and preset that the arguments name, then the arguments
 * argv[first..]. Checks the names of models, methods and data sets. *positional as in
 * options_parse. */
sr_status train_config_parse(train_config *c, int argc, char **argv, int first, int *positional,
                             sr_failure *why);

/* Values from the text that trainer_config_text made, as run files and checkpoints keep it. */
sr_status train_config_read(train_config *c, const char *text, const char *where, sr_failure *why);
/* Every check of values that train_config_parse makes: for values that were changed since. */
sr_status train_config_check(train_config *c, sr_failure *why);

/* The file of a model, share/presets/NAME.conf, or of a preset, NAME-PRESET.conf: a summary, then
   `key = value` lines. The caller frees the text; NULL on failure. */
char *train_preset_text(const char *name, const char *preset, sr_failure *why);
/* The summary in such a text: size, source, and how long it trains. */
void train_preset_summary(const char *text, char *summary, size_t size);
/* Sets the options in the files of the model and, unless it is "", of the preset. Unknown names set
   nothing. */
sr_status train_preset_apply(train_config *c, const char *name, const char *preset,
                             sr_failure *why);

/* -- a run */

/* One pass over a split. */
typedef struct train_eval {
    const task_row *task;
    data_split split;
    int64_t step, update;
    double epoch;
    bool both_ways;    /* batch_value is measured in every validation */
    double train_loss; /* nats per token or image since the last evaluation */
    int64_t left_out;  /* as in task_result, as is condition */
    const char *condition;
    task_sums sum;                    /* running statistics; tokens 0: no evaluation was made */
    double value[TASK_METRICS];       /* the task's metrics of it */
    double batch_value[TASK_METRICS]; /* with batch statistics; NaN without */
    double train_value[TASK_METRICS]; /* values of --validate-train; NaN unless requested */
    bool decodes;                     /* the decoded metrics were due; NaN otherwise */
    char decoded[TASK_DECODED];       /* on the decoded metrics; "" if they were not due */
    double lr, seconds;
} train_eval;

/* A metric of a split in run files and tables: "valid_loss"; with batch statistics
   "valid_loss_batch"; of training batches (--validate-train) "train_loss_batch". */
typedef struct train_metric {
    char name[64], definition[256];
    const char *unit;
    task_better better;
} train_metric;
void train_metric_make(const task_row *row, int metric, data_split split, bool of_batch,
                       train_metric *m);
/* Number of the task's metrics in an evaluation, decoded ones if wanted. */
int train_metrics_shown(const train_config *c, const task_row *row);
/* Every metric of a run's evaluations, the task's leading one first; their number. */
enum { TRAIN_METRICS = 4 * TASK_METRICS };
int train_metrics_make(const train_config *c, const task_row *row, train_metric m[TRAIN_METRICS]);

typedef struct train_progress {
    int64_t update, updates; /* done, planned */
    double epoch, loss, lr;
    int64_t tokens;
} train_progress;

/* The loop never prints; it calls these. Any of the functions may be NULL. */
typedef struct train_events {
    void *context;
    void (*note)(void *context, const char *text); /* one line: sizes, data, projection */
    void (*warn)(void *context, const char *text);
    void (*eval)(void *context, const train_eval *e); /* after every validation pass */
    void (*progress)(void *context, const train_progress *p);
    bool (*stop)(void *context); /* true: finish as interrupted */
    /* The processes that the run is spread over; each calls train_run with its own. NULL: this
       one. */
    struct ranks *ranks;
} train_events;

/* Time of a run by part, seconds. */
typedef struct train_times {
    double data, forward, backward, optimizer, recorder, validation, checkpoints, total;
} train_times;

typedef struct train_result {
    int64_t steps, updates, skipped; /* skipped: updates with a non-finite gradient norm */
    int64_t steps_before;            /* steps of the resumed run */
    train_eval last, test;           /* the last validation; the test */
    char condition[64];              /* condition of the model, if it is not a constant */
    bool interrupted;
    const char *diverged; /* why the run counts as diverged; NULL: it does not */
    char stopped[192];    /* why the run ended before its time; "": it did not */
    char digest[32];      /* digest of all weights and running state */
    train_times times;
    tape_profile profile[PROFILE_OPS]; /* with --profile; training steps only */
} train_result;

/* A run to resume (src/train/checkpoint/resume.c): the newest checkpoint covered by its rows. */
enum { TRAIN_CHECKPOINT_PATH = OPTION_TEXT_SIZE + 32 }; /* a prefix and "-UPDATE.ckpt" */

typedef struct train_resume {
    char checkpoint[TRAIN_CHECKPOINT_PATH], rows[OPTION_TEXT_SIZE]; /* rows: the run file to read */
    char passed_over[SR_FAILURE_TEXT]; /* why a newer checkpoint was not taken, or "" */
    /* outputs that the file names, which are not written: "" or one, or both dumps */
    char stored_checkpoint[OPTION_TEXT_SIZE], stored_dumps[2 * OPTION_TEXT_SIZE + 2];
    int64_t steps, updates; /* done */
    bool complete;          /* the run has come to its end */
    char *command, *parent; /* texts of the run file; the caller frees them by train_resume_free */
} train_resume;
/* The two files that the rows of `run` may be in, `run` being either of them: RUN.h5 and
   RUN.h5.part. SR_USAGE where the path is too long. */
sr_status train_resume_names(const char *run, char output[OPTION_TEXT_SIZE],
                             char part[OPTION_TEXT_SIZE + 8], sr_failure *why);

/* Finds the checkpoint of a run (RUN.h5, RUN.h5.part or a checkpoint) and reads the run's
   configuration, without its names of outputs. checkpoint: prefix of the checkpoints; "": RUN. */
sr_status train_resume_find(const char *run, const char *checkpoint, train_resume *from,
                            train_config *c, sr_failure *why);
void train_resume_free(train_resume *from);
/* Whether an option may change on resuming: true for "threads". */
bool train_resume_may_change(const char *key);

/* command: as typed, for the run file. from: NULL for a new run. */
sr_status train_run(const train_config *c, const char *command, const train_resume *from,
                    const train_events *events, train_result *result, sr_failure *why);

#endif
