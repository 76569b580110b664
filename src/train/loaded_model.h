/* loaded_model.h -- a trained model, as a checkpoint has it: to be evaluated, averaged, decoded
 * with.
 *
 * Sources: the checkpoints that `statrec train` writes (docs/checkpoints.md). A run's name means
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
/* A step of lines by --tokenize and --lowercase; apply is NULL without effect.
 * form must live as long. */
line_transform tokenizer_option_step(const char *tokenize, bool lowercase, bleu_form *form);

/* The data set of a run; `text` must live as long. */
dataset *train_data_open(const train_config *c, train_text *text, sr_failure *why);

/* Options that a user may change. */
typedef struct loaded_model_options {
    const char *data_dir; /* "": the run's */
    const char *testpref; /* prefix of the test's files; NULL or "": the run's */
    int threads;          /* 0: all */
    /* batches of texts, as those options of train; NULL or "": the run's; kept, not copied */
    const char *batching, *max_tokens_of;
} loaded_model_options;

typedef struct loaded_model {
    char path[TRAIN_CHECKPOINT_PATH]; /* path of the checkpoint */
    train_config config;              /* configuration of its run */
    int64_t updates;
    data_shape shape;
    const task_row *task;
    task_options task_options;
    const char *batching, *max_tokens_of; /* options of the loaded model */
    int threads;
    model *model;
    tape *tape;
    dataset *data;   /* NULL until loaded_model_open_data */
    train_text text; /* text of the data */
} loaded_model;

/* name: X.ckpt, or a run file (its newest checkpoint). Reads weights and running values. To be
 * closed also after a failure. */
sr_status loaded_model_open(loaded_model *t, const char *name, const loaded_model_options *o,
                            sr_failure *why);
void loaded_model_close(loaded_model *t);
/* Checks that the model, its sizes, its progress and its dictionaries fit the stored data. Builds
 * the model, and needs no data. *weights_only: true for the first format revision, whose weights
 * alone can be read. */
sr_status loaded_model_check(const char *path, bool *weights_only, sr_failure *why);
/* The data of its run, which must have the sizes that the model was built for. */
sr_status loaded_model_open_data(loaded_model *t, sr_failure *why);

/* Recomputes running statistics as means over `batches` training batches (0: all), with dropout;
   weights stay. Batch k has the weight 1/k, so the old values have none. */
sr_status loaded_model_recompute(loaded_model *t, int64_t batches, sr_failure *why);

/* Training-inference discrepancy of each site over `batches` training batches (0: all), with frozen
   running statistics (docs/norms.md 18.3 (b)). mean[sites], var[sites]: NaN without one. */
sr_status loaded_model_tid(loaded_model *t, int64_t batches, double *mean, double *var,
                           sr_failure *why);

/* Writes the model as a checkpoint without optimizer and progress, which cannot be resumed. origin:
   one line on its sources. */
sr_status loaded_model_write(loaded_model *t, const char *path, const char *origin, bool force,
                             sr_failure *why);
/* Averages parameters and running statistics of checkpoints of one configuration, in double, into
   the open model of t. */
sr_status loaded_model_average(loaded_model *t, char *const *name, int count, sr_failure *why);

/* Reads the attributes and every value of a checkpoint: SR_OK when all are valid. Texts are
 * malloc'd, freed by checkpoint_info_free; origin "" of a run's own. */
typedef struct checkpoint_card {
    char *version, *model, *data, *task, *weights_digest, *origin, *config;
    int64_t updates, steps; /* steps -1: an averaged one has none */
    int64_t parameters;     /* numbers */
    int64_t arrays;         /* arrays of all groups */
} checkpoint_card;
sr_status checkpoint_info_read(const char *path, checkpoint_card *card, sr_failure *why);
void checkpoint_info_free(checkpoint_card *card);
/* True for a name that ends in ".ckpt". */
bool checkpoint_is_name(const char *path);

/* Reads weights from X.ckpt or X.npz. Every parameter must exist in its shape; running statistics
   may be missing. */
sr_status weights_read(model *m, const char *path, sr_failure *why);
/* SR_USAGE if path is a checkpoint of other words or classes than the data have, or of the same
 * ones in another order. */
sr_status weights_check_meaning(const char *path, const data_shape *shape, sr_failure *why);
/* The words of a dictionary that a file of vectors has. */
enum { VECTOR_EXAMPLES = 3 };
typedef struct vector_matches {
    int64_t found, words;             /* words with a vector; all */
    int64_t example[VECTOR_EXAMPLES]; /* [missing] ids of the most frequent words without one */
    int missing;
    char line_ends[256]; /* text_lines_warning of the file */
} vector_matches;
/* Reads pretrained vectors into the table [V, d] from lines of a word and d numbers. table NULL:
   the words are only looked up, and d comes from the first line. Opened as text_lines_open does. */
sr_status word_vectors_read(const char *path, const vocab *v, tensor *table, vector_matches *m,
                            sr_failure *why);
/* Less than 20 % of the words have a vector: a warning with the share and the examples. */
bool vector_matches_few(const vector_matches *m);
void vector_matches_warning(const vector_matches *m, const vocab *v, const char *path, char *text,
                            size_t size);
/* All of them as a NumPy archive, by name. */
sr_status weights_write_npz(model *m, const char *path, bool force, sr_failure *why);

/* The dictionaries and line steps of a checkpoint. To be closed; t->codec points into it. */
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
