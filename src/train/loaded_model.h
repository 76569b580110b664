/* loaded_model.h -- a trained model, as a checkpoint has it: to be evaluated, averaged, decoded with.
 *
 * Sources: the checkpoints that `statrec train` writes (docs/checkpoints.md). A run's name stands for
 * its newest checkpoint.
 */
#ifndef TRAIN_LOADED_MODEL_H
#define TRAIN_LOADED_MODEL_H

#include "score/score.h"
#include "train/train.h"

/* Tokenizing and lowercasing of a run's texts. */
typedef struct train_text {
    bleu_form form;
    line_transform tokenizer;
} train_text;
/* A step of lines by the options --tokenize and --lowercase; apply NULL where there is nothing to do.
 * form must live as long. */
line_transform tokenizer_option_step(const char *tokenize, bool lowercase, bleu_form *form);

/* The data set of a run; `text` must live as long. */
dataset *train_data_open(const train_config *c, train_text *text, sr_failure *why);

/* What a user may change. */
typedef struct loaded_model_options {
    const char *data_dir; /* "": the run's */
    const char *testpref; /* prefix of the test's files; NULL or "": the run's */
    int threads;          /* 0: all */
} loaded_model_options;

typedef struct loaded_model {
    char path[OPTION_TEXT_SIZE]; /* of the checkpoint */
    train_config config;         /* of its run */
    int64_t updates;
    data_shape shape;
    const task_row *task;
    task_options task_options;
    int threads;
    model *model;
    tape *tape;
    dataset *data;   /* NULL until loaded_model_open_data */
    train_text text; /* of the data */
} loaded_model;

/* name: X.ckpt, or a run file (its newest checkpoint). Reads weights and running values. To be closed
 * also after a failure. */
sr_status loaded_model_open(loaded_model *t, const char *name, const loaded_model_options *o,
                            sr_failure *why);
void loaded_model_close(loaded_model *t);
/* The data of its run, which must have the sizes that the model was built for. */
sr_status loaded_model_open_data(loaded_model *t, sr_failure *why);

/* The running values made anew: each is the mean over `batches` training batches (0: all) of what its
 * method would add to it, with dropout as in training; the weights stay. Cumulative: batch k has the
 * weight 1/k, its predecessors the rest, so that the values of before leave no trace. */
sr_status loaded_model_recompute(loaded_model *t, int64_t batches, sr_failure *why);

/* Train-inference discrepancy of each site over so many training batches (0: all), running values
 * frozen: mean[sites], var[sites] of the model, NaN where a site has none (docs/norms.md 18.3 (b)). */
sr_status loaded_model_tid(loaded_model *t, int64_t batches, double *mean, double *var,
                           sr_failure *why);

/* Writes the model as it is now as a checkpoint, without optimizer and progress: it can be evaluated
 * and started from, not resumed. origin: what it was made of, one line. */
sr_status loaded_model_write(loaded_model *t, const char *path, const char *origin, bool force,
                             sr_failure *why);
/* The arithmetic mean of every parameter and running value of so many checkpoints of one
 * configuration, in double, into the model of t, which is open. */
sr_status loaded_model_average(loaded_model *t, char *const *name, int count, sr_failure *why);

/* What a checkpoint says of itself, after every value in it was read: SR_OK when all are whole. Texts are
 * malloc'd, freed by checkpoint_info_free; origin "" of a run's own. */
typedef struct checkpoint_card {
    char *version, *model, *data, *task, *weights_digest, *origin, *config;
    int64_t updates, steps; /* steps -1: an averaged one has none */
    int64_t parameters;     /* numbers */
    int64_t arrays;         /* of all groups */
} checkpoint_card;
sr_status checkpoint_info_read(const char *path, checkpoint_card *card, sr_failure *why);
void checkpoint_info_free(checkpoint_card *card);
/* True for a name that ends as those of checkpoints do, in ".ckpt". */
bool checkpoint_is_name(const char *path);

/* Weights and running values from X.ckpt or X.npz into a model: every parameter must be there in its
 * shape; running values where they are. */
sr_status weights_read(model *m, const char *path, sr_failure *why);
/* Pretrained vectors of a dictionary's words into the table [V, d], from a text file with a word and d
 * numbers on each line; *found words have one. Opened as text_lines_open does. */
sr_status word_vectors_read(const char *path, const vocab *v, tensor *table, int64_t *found,
                            sr_failure *why);
/* All of them as a NumPy archive, by name. */
sr_status weights_write_npz(model *m, const char *path, bool force, sr_failure *why);

/* Of a checkpoint: its dictionaries and steps. To be closed; t->codec points into it. */
typedef struct loaded_model_text {
    vocab *dictionary[CODEC_SIDES];
    bool joint;
    line_transform step[CODEC_STEPS];
    int steps;
    train_text text;
} loaded_model_text;
sr_status loaded_model_open_text(const loaded_model *t, loaded_model_text *text, sr_failure *why);
void loaded_model_close_text(loaded_model_text *text);
text_codec loaded_model_codec(const loaded_model_text *text);

#endif
