/* checkpoint.h -- checkpoints of a run: contents, when to write them, which to keep. */
#ifndef TRAIN_CHECKPOINT_CHECKPOINT_H
#define TRAIN_CHECKPOINT_CHECKPOINT_H

#include "hdf5/array_file.h"
#include "text/bpe/text_codec.h"
#include "train/trainer.h"

#define CHECKPOINT_FORMAT "statrec-checkpoint"
enum { CHECKPOINT_VERSION = 1, CHECKPOINT_PATH = 1024 };

/* -- one file: checkpoint.c */

/* Writes the state of the run as PATH, which appears complete or not at all. */
sr_status checkpoint_write(trainer *r, const char *path, sr_failure *why);
/* Restores the complete state of the run; rejects a checkpoint of another configuration or other
   data. */
sr_status checkpoint_restore(trainer *r, const char *path, sr_failure *why);
/* Name and address of the i-th size of the data; NULL past the end (checkpoint_sizes.c). */
const char *checkpoint_size(data_shape *shape, int i, int64_t **size);
/* SR_FORMAT names the first size that data of the shape's task cannot have. path: of the file. */
sr_status checkpoint_check_sizes(const data_shape *shape, const char *path, sr_failure *why);
/* The same for an array of the group progress, whose values are in a->data. */
sr_status checkpoint_check_progress(const char *path, const char *name, const npz_array *a,
                                    sr_failure *why);
/* SR_USAGE when ids mean other words or classes than in the checkpoint; older ones do not store
   this. */
sr_status checkpoint_check_meaning(const array_reader *f, const data_shape *shape, sr_failure *why);
/* Writes the attributes of a checkpoint; and one item of the state. */
typedef struct checkpoint_head {
    const char *config, *data;
    model *model;
    const data_shape *shape;
    int64_t updates;
    text_codec codec; /* zeros where the data are no text */
} checkpoint_head;
void checkpoint_put_head(array_writer *w, const checkpoint_head *h);
sr_status checkpoint_add(void *writer, const state_item *item, sr_failure *why);
/* Dictionaries and merges of a codec: /text (checkpoint_text.c). */
void checkpoint_put_text(array_writer *w, const text_codec *codec);
extern const char *const checkpoint_groups[]; /* by state_kind, NULL ends */
/* Counts arrays of a group and the numbers in them by their shapes; read: reads every value. */
sr_status checkpoint_count(const array_reader *f, const char *group, bool read, int64_t *arrays,
                           int64_t *numbers, sr_failure *why);
/* Number i of an array of float32 or float64. */
double weights_get(const npz_array *a, int64_t i);
void weights_put(const npz_array *a, int64_t i, double value);
/* Path of an item of the state: "parameters/embedding". */
enum { CHECKPOINT_NAME = 2 * PARAM_NAME + 16 };
void checkpoint_name(const state_item *item, char name[CHECKPOINT_NAME]);

/* -- the files of a run: checkpoint_files.c */

/* PREFIX-0000500.ckpt; prefix: of checkpoint_prefix, which leaves space for the rest. */
void checkpoint_path(const char *prefix, int64_t update, char path[CHECKPOINT_PATH]);
/* PREFIX of a run: --checkpoint, or its output without .h5, shorter than OPTION_TEXT_SIZE. ""
 * without either. */
void checkpoint_prefix(const train_config *c, char prefix[CHECKPOINT_PATH]);
/* Updates of the checkpoints PREFIX-UPDATE.ckpt, newest first; malloc'd, *count of them. */
sr_status checkpoint_list(const char *prefix, int64_t **update, int *count, sr_failure *why);
/* The best one's name after PREFIX. */
#define CHECKPOINT_BEST "-best.ckpt"
/* Removes PREFIX-UPDATE.ckpt.part and PREFIX-best.ckpt.part, which a killed writer left. For the
 * only writer of PREFIX. */
sr_status checkpoint_sweep(const char *prefix, sr_failure *why);
/* Checkpoints of a run that --force replaces, the best one too, are called PREFIX-UPDATE.ckpt.old
 * until the new run has its name. Checkpoints of a killed run that replaced them without a result
 * are removed. */
sr_status checkpoint_set_aside(const char *prefix, sr_failure *why);
/* The new run came to nothing. */
sr_status checkpoint_put_back(const char *prefix, sr_failure *why);
/* The new run has its name. */
sr_status checkpoint_drop_old(const char *prefix, sr_failure *why);

#endif
