/* task.h -- tasks: one file task_*.c and one row of the table each. A task has a loss, metrics, and
 * a way to evaluate a split. */
#ifndef TASK_TASK_H
#define TASK_TASK_H

#include <stdio.h>

#include "base/npz/npz.h"
#include "data/data.h"
#include "engine/ops/loss/loss_ops.h"
#include "nets/models.h"

enum { TASK_METRICS = 12, TASK_ARRAYS = 8, TASK_COUNTS = 4, TASK_TEXT = 256, TASK_DECODED = 768 };

/* Sums over the batches of a split. */
typedef struct task_sums {
    double loss, nll; /* nats; loss with smoothing and penalties */
    int64_t tokens;   /* their divisor, as in batch */
    int64_t correct;  /* negative: not known */
    int64_t unknown;
    int64_t count[TASK_COUNTS]; /* defined by the task */
} task_sums;

/* Which value of a metric is better. */
typedef enum { BETTER_LESS = -1, BETTER_NEITHER, BETTER_MORE } task_better;

/* A number of an evaluation: valid_NAME, test_NAME; with batch statistics valid_NAME_batch. */
typedef struct task_metric {
    const char *name, *unit;
    const char *definition; /* without the split, which precedes it */
    task_better better;
    bool decoded; /* measured on decoded output, not in a pass; these come last */
} task_metric;

typedef struct task_options {
    double label_smoothing; /* NaN: the task's */
    smoothing_form smoothing;
    int64_t beam; /* pairs: beam size */
} task_options;

/* A trained model and the split to decode. */
typedef struct task_decoding {
    const task_options *options;
    model *model;
    tape *tape;
    dataset *data;
    data_split split;
    bool (*stop)(void *context); /* NULL: never */
    void *context;
} task_decoding;

/* An array of a batch, for programs that check us from outside. */
typedef struct task_array {
    const char *name;
    npz_array array;
} task_array;

/* Results of a split. */
typedef struct task_result {
    const task_sums *sum;
    const char *split;     /* "validation" */
    int64_t left_out;      /* tokens of the split outside all batches */
    const char *condition; /* condition of the model (model_condition), "": none */
} task_result;

typedef struct task_row {
    task id;
    const char *name;    /* "pairs": as in run files and tables */
    const char *takes;   /* "sentence pairs": for messages */
    const char *summary; /* one line for `statrec list tasks` */
    bool text;           /* batches of words */
    double label_smoothing;
    task_metric metric[TASK_METRICS]; /* name NULL ends */
    int counts;                       /* number of task_sums.count in use */
    int leading;                      /* the metric that ranks runs */
    data_shape example;               /* any shape, for models without data */
    /* Summed loss of the model's output for a batch, count 1; *sum is filled. */
    tensor *(*loss)(const task_options *o, const pass *p, tensor *output, task_sums *sum);
    /* The same for a model with gives_nll; NULL: not in this task. */
    tensor *(*loss_of_nll)(const pass *p, tensor *nll, task_sums *sum);
    /* value [metrics] from the sums of all batches of a split; NaN where nothing was counted. */
    void (*measure)(const task_sums *sum, double *value);
    /* The decoded metrics, value [task_all_metrics - task_metrics], and a line on them; NULL: none.
     * *stopped: by `stop`, without values. */
    sr_status (*decode)(const task_decoding *d, double *value, char text[TASK_DECODED],
                        bool *stopped, sr_failure *why);
    bool decode_asked; /* decoding is slow: only on request */
    /* Writes the predictions for the split, in the format of its scorer; NULL: none. */
    sr_status (*predict)(const task_decoding *d, FILE *to, sr_failure *why);
    /* One line on the result of a split, without an end of line. */
    void (*describe)(const task_result *r, char text[TASK_TEXT]);
    /* Arrays of a batch; their number. Data are the batch's. */
    int (*arrays)(const batch *b, task_array array[TASK_ARRAYS]);
} task_row;

const task_row *task_at(int i); /* NULL past the end */
const task_row *task_of(task id);
int task_metrics(const task_row *row);     /* metrics of a pass */
int task_all_metrics(const task_row *row); /* with decoded ones */

/* SR_USAGE when a model cannot learn from data of this shape. */
sr_status task_check(const model_row *m, const data_shape *shape, sr_failure *why);
/* SR_USAGE when the model has no loss with these options. */
sr_status task_check_loss(const task_row *row, const task_options *o, const model *m,
                          sr_failure *why);

/* Forward pass and loss, summed over the batch's tokens, count 1, with its own gradients. NULL
 * after a failure, which the tape keeps. *sum (may be NULL) also holds the normalizations'
 * penalties, in `loss`. */
tensor *task_loss(const task_row *row, const task_options *o, model *m, pass *p, task_sums *sum);

/* An empty memory of the model for a stream of the split, in training or evaluation. */
sr_status task_memory(model_memory *k, const model *m, const dataset *d, data_split split,
                      bool training, sr_failure *why);

/* Sums over a split, without dropout, gradients and changes of state. mode: NORM_RUNNING, or
 * NORM_BATCH for the statistics of each batch. A model with memory starts with an empty one. The
 * tape is reset. */
sr_status task_evaluate(const task_row *row, const task_options *o, model *m, tape *t, dataset *d,
                        data_split split, norm_mode mode, task_sums *sum, sr_failure *why);
/* Sums over the first `count` training batches of epoch 0, with the memory of training. Every call
 * uses the same batches. NORM_BATCH. */
sr_status task_evaluate_training(const task_row *row, const task_options *o, model *m, tape *t,
                                 dataset *d, int64_t count, task_sums *sum, sr_failure *why);

#endif
