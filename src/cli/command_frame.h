/* command_frame.h -- the frame of the commands: --help, reading of options, unknown names. */
#ifndef CLI_COMMAND_FRAME_H
#define CLI_COMMAND_FRAME_H

#include "base/options/options.h"
#include "base/program/tool.h"

typedef struct command_frame {
    const char *help; /* before the options */
    option_table options;
    const char *notes;  /* after the options; NULL: none */
    const char *status; /* exit status: "0 done, 1 failed, 2 usage." */
    int first;          /* index of the first argument in argv */
} command_frame;

/* Prints the help, or sets *values and *count: arguments that are no options, moved to argv[first].
 * Returns true when the command ends here, with *exit_status. */
bool command_ends(const tool *t, const command_frame *c, void *values, int *count,
                  int *exit_status);

/* For callbacks: true after a signal. */
bool command_stops(void *unused);

/* Prints each line of a text as a warning. */
void command_warn_lines(const tool *t, const char *lines);

/* One name below a command. */
typedef struct command_row {
    const char *name;
    int (*run)(const tool *t);
    const char *help;
} command_row;

/* Runs the row with this name; t->name gets its name appended. -1: no such row. */
int command_run(const tool *t, const command_row *row, int count, const char *name);
/* Prints names and help lines of the rows. */
void command_list(FILE *to, const command_row *row, int count);
/* Reports "unknown KIND 'NAME'" and the nearest name, else `hint`. Returns the exit status. */
int command_unknown(const tool *t, const command_row *row, int count, const char *kind,
                    const char *name, const char *hint);

#endif
