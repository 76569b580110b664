/* data_command.h -- the model for a data set, and the command that trains it. */
#ifndef CLI_DATA_DATA_COMMAND_H
#define CLI_DATA_DATA_COMMAND_H

#include "data/find/data_find.h"
#include "train/train.h"

enum { COMMAND_OPTIONS = FIND_OPTIONS + 6 };

typedef struct data_command {
    train_config config; /* options of the command */
    const char *preset;
    find_option option[COMMAND_OPTIONS]; /* where the preset has another value */
    int options;
} data_command;

/* Chooses the preset of the model that needs the fewest options; dir: of the set's files. */
sr_status data_command_make(data_command *c, const data_finding *set, const char *dir,
                            sr_failure *why);
/* Running text that is too short for the windows of the preset: asks for one sequence, in windows
 * of this many tokens. */
sr_status data_command_shrink(data_command *c, int window, sr_failure *why);
/* Polarity of fewer lines than its default counts: asks for the first of ten folds. */
sr_status data_command_fold(data_command *c, sr_failure *why);
/* Quoted for a shell; malloc'd, NULL when out of memory. */
char *data_command_text(const data_command *c);

#endif
